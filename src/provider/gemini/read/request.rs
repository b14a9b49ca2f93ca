//! The messages of a generateContent request, whatever it took to write them.

use serde_json::value::RawValue;

use super::part::{Names, Origin, opaque, part, take};
use crate::error::Result;
use crate::history::report::Fact;
use crate::json::fields::{Fields, array, string};
use crate::model::{Body, Chunk, Message, Role};
use crate::provider::gemini::manner::provider;
use crate::provider::read::parsed::{Notes, Parsed, no_messages, push_parted, stranger};
use crate::provider::read::roles::RoleNames;
use crate::provider::target::Target;
use crate::provider::text::is_spelling_of;

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
            let notes = Notes::new(0, "contents".to_owned(), &mut parsed.notes);
            let places = notes.into_places();
            parsed.push(None, Message::user(text), places);
            Vec::new()
        }
        None => request.array("contents").ok_or_else(|| no_messages("contents"))?,
    };
    let name = request.names().find(|name| is_spelling_of("systemInstruction", name)).unwrap_or_default().to_owned();
    if let Some(raw) = take(request, "systemInstruction") {
        let mut notes = Notes::new(0, name, &mut parsed.notes);
        let chunks = match Fields::of(raw) {
            Some(mut fields) => parts(&mut fields, provider, &mut notes),
            None => {
                notes.push(Fact::SystemAsText);
                vec![Chunk::text(string(raw).unwrap_or_else(|| raw.get().to_owned()))]
            }
        };
        let places = notes.into_places();
        parsed.push(None, Message::new(Role::System, chunks), places);
        // Before what `contents` says as a string.
        parsed.messages.rotate_right(1);
        parsed.places.rotate_right(1);
    }
    for (at, raw) in contents.into_iter().enumerate() {
        content(raw, at, provider, &mut parsed);
    }
    Ok(parsed)
}

/// A content: one message, or two where answers to calls stand beside other parts.
fn content(raw: &RawValue, at: usize, provider: &str, parsed: &mut Parsed) {
    let mut notes = Notes::new(parsed.messages.len(), format!("contents[{at}]"), &mut parsed.notes);
    let Some(mut fields) = Fields::of(raw) else {
        let message = stranger(raw, "content", opaque("content", raw, provider), &mut notes);
        let places = notes.into_places();
        return parsed.push(Some(at), message, places);
    };
    let chunks = parts(&mut fields, provider, &mut notes);
    let role = role(&mut fields, &chunks, &mut notes);
    let places = notes.into_places();
    push_parted(parsed, at, (role, chunks), fields, places);
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
fn parts(fields: &mut Fields<'_>, provider: &str, notes: &mut Notes<'_>) -> Vec<Chunk> {
    let Some(raw) = fields.take("parts") else { return Vec::new() };
    let mut names = Names::default();
    let mut read = |raw| part(raw, Origin::Request, provider, &mut names);
    match array(raw) {
        Some(parts) => notes.each(".parts", parts, |raw, _| read(raw)),
        None => notes.at(".parts", read(raw)).into_iter().collect(),
    }
}
