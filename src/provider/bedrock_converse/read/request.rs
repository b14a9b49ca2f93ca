//! The messages of a Converse request, whatever it took to write them.

use serde_json::value::RawValue;

use super::block::block;
use crate::error::Result;
use crate::model::{Body, Chunk, Message, Role};
use crate::provider::bedrock_converse::manner::PROVIDER;
use crate::provider::read::fields::{Fields, Owner, array, is_empty, string};
use crate::provider::read::parsed::{Notes, Parsed, no_messages, opaque, stranger, words};
use crate::provider::read::roles::{ROLES, RoleNames};
use crate::provider::target::Target;

const ROLE_NAMES: RoleNames = RoleNames { known: ROLES, same: &["user", "assistant", "system"] };

/// Takes `system` and the messages out of a request. Each message gives one, or two where results stand beside other
/// blocks.
pub(crate) fn parse(_: Target, request: &mut Fields<'_>) -> Result<Parsed> {
    let list = request.array("messages").ok_or_else(|| no_messages("messages"))?;
    let mut parsed = Parsed::default();
    if request.peek("system").is_some_and(|system| !is_empty(system)) {
        parsed.messages.extend(request.take("system").and_then(system));
    }
    for raw in list {
        let mut notes = Notes::new(parsed.messages.len(), &mut parsed.notes);
        let messages = message(raw, &mut notes);
        parsed.messages.extend(messages);
    }
    Ok(parsed)
}

/// An array of blocks; a string passes for text.
fn system(raw: &RawValue) -> Option<Message> {
    let chunks: Vec<Chunk> = match (string(raw), array(raw)) {
        (Some(text), _) => vec![Chunk::text(text)],
        (None, Some(blocks)) => blocks.into_iter().filter_map(block).collect(),
        (None, None) => vec![opaque(raw, "system", PROVIDER)?],
    };
    (!chunks.is_empty()).then(|| Message::new(Role::System, chunks))
}

fn message(raw: &RawValue, notes: &mut Notes<'_>) -> Vec<Message> {
    let Some(mut fields) = Fields::of(raw) else {
        return vec![stranger(raw, "message", opaque(raw, "message", PROVIDER), notes)];
    };
    let chunks = content(&mut fields, notes);
    let calls = chunks.iter().any(|chunk| matches!(chunk.body, Body::ToolCall { .. } | Body::Thinking { .. }));
    let guess = if calls { Role::Assistant } else { Role::User };
    let role = ROLE_NAMES.take(&mut fields, guess, notes);
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

fn content(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Vec<Chunk> {
    if let Some(blocks) = fields.array("content") {
        return blocks.into_iter().filter_map(block).collect();
    }
    let Some(raw) = fields.take("content") else { return Vec::new() };
    let text = words(raw, notes);
    if text.is_empty() { Vec::new() } else { vec![Chunk::text(text)] }
}
