//! The messages of a Messages request, whatever it took to write them.

use serde_json::value::RawValue;

use super::block::block;
use crate::error::Result;
use crate::json::fields::{Fields, array, string};
use crate::model::extra::Owner;
use crate::model::{Body, Chunk, Message, Role};
use crate::provider::anthropic::manner::provider;
use crate::provider::read::parsed::{Notes, Parsed, no_messages, opaque, stranger, words};
use crate::provider::read::roles::{ROLES, RoleNames};
use crate::provider::target::Target;

/// Takes `system` and the messages out of a request. Each message gives one, so their positions stay, after that of
/// `system`.
pub(crate) fn parse(target: Target, request: &mut Fields<'_>) -> Result<Parsed> {
    let list = request.array("messages").ok_or_else(|| no_messages("messages"))?;
    let mut parsed = Parsed::default();
    let provider = provider(target);
    let mut notes = Notes::new(0, "system".to_owned(), &mut parsed.notes);
    if let Some(system) = request.take("system").and_then(|raw| system(raw, provider, &mut notes)) {
        let places = notes.into_places();
        parsed.push(None, system, places);
    }
    for (at, raw) in list.into_iter().enumerate() {
        let mut notes = Notes::new(parsed.messages.len(), format!("messages[{at}]"), &mut parsed.notes);
        let message = message(raw, provider, &mut notes);
        let places = notes.into_places();
        parsed.push(Some(at), message, places);
    }
    Ok(parsed)
}

/// A string, or an array of text blocks.
fn system(raw: &RawValue, provider: &str, notes: &mut Notes<'_>) -> Option<Message> {
    if let Some(text) = string(raw) {
        return (!text.is_empty()).then(|| Message::system(text));
    }
    let chunks: Vec<Chunk> = match array(raw) {
        Some(blocks) => notes.each("", blocks, |raw, _| block(raw, provider)),
        None => vec![opaque(raw, "system", provider)?],
    };
    let mut message = Message::system("");
    message.chunks = chunks;
    (!message.chunks.is_empty()).then_some(message)
}

const ROLE_NAMES: RoleNames = RoleNames { known: ROLES, same: &["user", "assistant", "system"] };

fn message(raw: &RawValue, provider: &str, notes: &mut Notes<'_>) -> Message {
    let Some(mut fields) = Fields::of(raw) else {
        return stranger(raw, "message", opaque(raw, "message", provider), notes);
    };
    let chunks = content(&mut fields, provider, notes);
    let mut message = Message::new(role(&mut fields, &chunks, notes), chunks);
    message.metadata.id = fields.string("id");
    message.metadata.extra = fields.extra(Owner::Message);
    message
}

fn role(fields: &mut Fields<'_>, chunks: &[Chunk], notes: &mut Notes<'_>) -> Role {
    let calls = chunks.iter().any(|chunk| matches!(chunk.body, Body::ToolCall { .. } | Body::Thinking { .. }));
    let guess = if calls { Role::Assistant } else { Role::User };
    ROLE_NAMES.take(fields, guess, notes)
}

fn content(fields: &mut Fields<'_>, provider: &str, notes: &mut Notes<'_>) -> Vec<Chunk> {
    if let Some(blocks) = fields.array("content") {
        return notes.each(".content", blocks, |raw, _| block(raw, provider));
    }
    let Some(raw) = fields.take("content") else { return Vec::new() };
    let text = words(raw, notes);
    let text = (!text.is_empty()).then(|| Chunk::text(text));
    notes.at(".content", text).into_iter().collect()
}
