//! The messages of a Converse request, whatever it took to write them.

use serde_json::value::RawValue;

use super::block::block;
use crate::error::Result;
use crate::json::fields::{Fields, array, is_empty, string};
use crate::model::{Body, Chunk, Message, Role};
use crate::provider::bedrock_converse::manner::PROVIDER;
use crate::provider::read::parsed::{Notes, Parsed, no_messages, opaque, push_parted, stranger, words};
use crate::provider::read::roles::{ROLES, RoleNames};
use crate::provider::target::Target;

const ROLE_NAMES: RoleNames = RoleNames { known: ROLES, same: &["user", "assistant", "system"] };

/// Takes `system` and the messages out of a request. Each message gives one, or two where results stand beside other
/// blocks.
pub(crate) fn parse(_: Target, request: &mut Fields<'_>) -> Result<Parsed> {
    let list = request.array("messages").ok_or_else(|| no_messages("messages"))?;
    let mut parsed = Parsed::default();
    if request.peek("system").is_some_and(|system| !is_empty(system)) {
        let mut notes = Notes::new(0, "system".to_owned(), &mut parsed.notes);
        if let Some(system) = request.take("system").and_then(|raw| system(raw, &mut notes)) {
            let places = notes.into_places();
            parsed.push(None, system, places);
        }
    }
    for (at, raw) in list.into_iter().enumerate() {
        message(raw, at, &mut parsed);
    }
    Ok(parsed)
}

/// An array of blocks; a string passes for text.
fn system(raw: &RawValue, notes: &mut Notes<'_>) -> Option<Message> {
    let chunks: Vec<Chunk> = match (string(raw), array(raw)) {
        (Some(text), _) => vec![Chunk::text(text)],
        (None, Some(blocks)) => notes.each("", blocks, |raw, _| block(raw)),
        (None, None) => vec![opaque(raw, "system", PROVIDER)?],
    };
    (!chunks.is_empty()).then(|| Message::new(Role::System, chunks))
}

fn message(raw: &RawValue, at: usize, parsed: &mut Parsed) {
    let mut notes = Notes::new(parsed.messages.len(), format!("messages[{at}]"), &mut parsed.notes);
    let Some(mut fields) = Fields::of(raw) else {
        let message = stranger(raw, "message", opaque(raw, "message", PROVIDER), &mut notes);
        let places = notes.into_places();
        return parsed.push(Some(at), message, places);
    };
    let chunks = content(&mut fields, &mut notes);
    let calls = chunks.iter().any(|chunk| matches!(chunk.body, Body::ToolCall { .. } | Body::Thinking { .. }));
    let guess = if calls { Role::Assistant } else { Role::User };
    let role = ROLE_NAMES.take(&mut fields, guess, &mut notes);
    let places = notes.into_places();
    push_parted(parsed, at, (role, chunks), fields, places);
}

fn content(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Vec<Chunk> {
    if let Some(blocks) = fields.array("content") {
        return notes.each(".content", blocks, |raw, _| block(raw));
    }
    let Some(raw) = fields.take("content") else { return Vec::new() };
    let text = words(raw, notes);
    let text = (!text.is_empty()).then(|| Chunk::text(text));
    notes.at(".content", text).into_iter().collect()
}
