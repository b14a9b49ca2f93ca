//! The messages of a generateContent request, whatever it took to write them.

use serde_json::value::RawValue;

use super::part::{Names, Origin, opaque, part, take};
use crate::error::Result;
use crate::history::report::Fact;
use crate::model::{Body, Chunk, Message, Role};
use crate::provider::gemini::manner::provider;
use crate::provider::read::fields::{Fields, Owner, array, string};
use crate::provider::read::parsed::{Notes, Parsed, no_messages, stranger};
use crate::provider::read::roles::RoleNames;
use crate::provider::target::Target;

/// The wire's own, and what others call them: there is no role for tools.
const ROLE_NAMES: RoleNames = RoleNames {
    known: &[
        (Role::User, &["user", "function", "human", "tool"]),
        (Role::Assistant, &["model", "assistant", "ai", "bot"]),
        (Role::System, &["system", "developer"]),
    ],
    same: &["user", "model", "function"],
};

/// Takes the messages out of a request. What the system says is its first.
pub(crate) fn parse(target: Target, request: &mut Fields<'_>) -> Result<Parsed> {
    let provider = provider(target);
    let mut parsed = Parsed::default();
    let contents = match request.string("contents") {
        Some(text) => {
            parsed.messages.push(Message::user(text));
            Vec::new()
        }
        None => request.array("contents").ok_or_else(|| no_messages("contents"))?,
    };
    if let Some(raw) = take(request, "systemInstruction") {
        let mut notes = Notes::new(0, &mut parsed.notes);
        let chunks = match Fields::of(raw) {
            Some(mut fields) => parts(&mut fields, provider),
            None => {
                notes.push(Fact::SystemAsText);
                vec![Chunk::text(string(raw).unwrap_or_else(|| raw.get().to_owned()))]
            }
        };
        parsed.messages.insert(0, Message::new(Role::System, chunks));
    }
    for raw in contents {
        let mut notes = Notes::new(parsed.messages.len(), &mut parsed.notes);
        parsed.messages.extend(content(raw, provider, &mut notes));
    }
    Ok(parsed)
}

/// A content: one message, or two where answers to calls stand beside other parts.
fn content(raw: &RawValue, provider: &str, notes: &mut Notes<'_>) -> Vec<Message> {
    let Some(mut fields) = Fields::of(raw) else {
        return vec![stranger(raw, "content", opaque("content", raw, provider), notes)];
    };
    let chunks = parts(&mut fields, provider);
    let role = role(&mut fields, &chunks, notes);
    let is_result = |chunk: &Chunk| matches!(chunk.body, Body::ToolResult { .. });
    let (results, said): (Vec<Chunk>, Vec<Chunk>) = match role {
        Role::User => chunks.into_iter().partition(is_result),
        _ => (Vec::new(), chunks),
    };
    let mut messages = Vec::new();
    if !results.is_empty() {
        messages.push(Message::new(Role::Tool, results));
    }
    if !said.is_empty() || messages.is_empty() {
        messages.push(Message::new(role, said));
    }
    if let Some(message) = messages.last_mut() {
        message.metadata.extra = fields.extra(Owner::Message);
    }
    messages
}

fn role(fields: &mut Fields<'_>, chunks: &[Chunk], notes: &mut Notes<'_>) -> Role {
    let is_call = |chunk: &Chunk| matches!(chunk.body, Body::ToolCall { .. });
    let guess = if chunks.iter().any(is_call) { Role::Assistant } else { Role::User };
    let Some(name) = fields.text("role") else {
        if guess == Role::Assistant {
            notes.push(Fact::RoleTaken { name: None, taken: guess });
        }
        return guess;
    };
    ROLE_NAMES.role(&name, guess, notes)
}

/// The parts of a content: an array, or one of them in place of it.
fn parts(fields: &mut Fields<'_>, provider: &str) -> Vec<Chunk> {
    let Some(raw) = fields.take("parts") else { return Vec::new() };
    let parts = array(raw).unwrap_or_else(|| vec![raw]);
    let mut names = Names::default();
    parts.into_iter().filter_map(|raw| part(raw, Origin::Request, provider, &mut names)).collect()
}
