//! One message of a request.

use serde_json::value::RawValue;

use super::block::block;
use crate::model::{Body, Chunk, Message, Role};
use crate::provider::read::fields::{Fields, Owner};
use crate::provider::read::parsed::{Notes, opaque, stranger, words};
use crate::provider::read::roles::{ROLES, RoleNames};

const ROLE_NAMES: RoleNames = RoleNames { known: ROLES, same: &["user", "assistant", "system"] };

pub(crate) fn message(raw: &RawValue, provider: &str, notes: &mut Notes<'_>) -> Message {
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
