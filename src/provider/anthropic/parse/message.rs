//! One message of a request.

use serde_json::value::RawValue;

use super::block::block;
use crate::model::{Body, Chunk, Json, Message, Role};
use crate::provider::ingest::fields::{Fields, Owner, json, string};
use crate::provider::parse::Notes;
use crate::reconcile::Rule;

/// Roles by name: the wire's own, and what others call them.
const ROLES: &[(Role, &[&str])] = &[
    (Role::User, &["user", "human"]),
    (Role::Assistant, &["assistant", "ai", "model", "bot"]),
    (Role::System, &["system", "developer"]),
    (Role::Tool, &["tool", "function"]),
];
/// Names that need no note: the wire has them.
const SAME: &[&str] = &["user", "assistant", "system"];

pub(super) fn message(raw: &RawValue, provider: &str, notes: &mut Notes<'_>) -> Message {
    let Some(mut fields) = Fields::of(raw) else { return no_object(raw, provider, notes) };
    let chunks = content(&mut fields, provider, notes);
    let mut message = Message::new(role(&mut fields, &chunks, notes), chunks);
    message.metadata.id = fields.string("id");
    message.metadata.extra = fields.extra(Owner::Message);
    message
}

fn role(fields: &mut Fields<'_>, chunks: &[Chunk], notes: &mut Notes<'_>) -> Role {
    let calls = chunks.iter().any(|chunk| matches!(chunk.body, Body::ToolCall { .. } | Body::Thinking { .. }));
    let guess = if calls { Role::Assistant } else { Role::User };
    let Some(name) = fields.text("role") else {
        notes.push(Rule::RoleChanged, format!("the message has no role; it was taken for {guess}"));
        return guess;
    };
    let lower = name.trim().to_lowercase();
    let known = ROLES.iter().find(|(_, names)| names.contains(&lower.as_str())).map(|(role, _)| *role);
    let role = known.unwrap_or(guess);
    if !SAME.contains(&name.as_str()) {
        notes.push(Rule::RoleChanged, format!("there is no role {name:?}; it was taken for {role}"));
    }
    role
}

fn content(fields: &mut Fields<'_>, provider: &str, notes: &mut Notes<'_>) -> Vec<Chunk> {
    if let Some(blocks) = fields.array("content") {
        return blocks.into_iter().filter_map(|raw| block(raw, provider)).collect();
    }
    let Some(raw) = fields.take("content") else { return Vec::new() };
    let text = string(raw).unwrap_or_else(|| {
        notes.push(Rule::Altered, "the content is neither a string nor an array; its JSON text stands for it");
        raw.get().to_owned()
    });
    if text.is_empty() { Vec::new() } else { vec![Chunk::text(text)] }
}

/// What stands where a message should: a string is what the user said.
fn no_object(raw: &RawValue, provider: &str, notes: &mut Notes<'_>) -> Message {
    if let Some(text) = string(raw) {
        notes.push(Rule::RoleChanged, "a string in place of a message; it was taken for the user's");
        return Message::user(text);
    }
    notes.push(Rule::Altered, "no message, but other JSON; it was kept as an opaque chunk");
    let opaque = |json: Json| Body::Opaque { provider: provider.to_owned(), kind: "message".to_owned(), json }.into();
    Message::new(Role::User, json(raw).map(opaque))
}
