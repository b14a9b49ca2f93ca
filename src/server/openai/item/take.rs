//! Items to messages. Consecutive items of the model are one message, each item a chunk of it; an item of anybody else
//! is one message. The original item is kept beside its meaning, so that it is returned whole.

use serde_json::value::RawValue;

use super::normal::{Normal, object};
use super::{FRAME, WIRE};
use crate::model::{Body, Chunk, Json, Message, Metadata, Native, Role};
use crate::provider::{self, Target};

/// The provider of these items, as chunks name it.
const PROVIDER: &str = "openai";

/// The messages for these items.
pub(crate) fn messages(items: &[Normal]) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    // Whether the last message may take more of the model's items, and whether its last item was a message.
    let (mut goes_on, mut was_message) = (false, false);
    for item in items {
        let is_message = item.kind == "message";
        let parts = if is_message { parts(item) } else { None };
        let role = role(item);
        match parts {
            // One part is the item; several, or none, need a message of their own.
            Some(parts) if role != Role::Assistant || parts.len() != 1 => {
                messages.push(framed(item, role, &parts));
                goes_on = false;
            }
            _ => {
                let (role, chunk) = single(item);
                match messages.last_mut() {
                    // Two messages in a row stay two.
                    Some(last) if goes_on && role == Role::Assistant && !(is_message && was_message) => {
                        last.chunks.push(chunk);
                    }
                    _ => messages.push(Message::new(role, [chunk])),
                }
                goes_on = role == Role::Assistant;
            }
        }
        was_message = is_message;
    }
    messages
}

/// The role of a message item.
fn role(item: &Normal) -> Role {
    match item.fields.get("role").map(Json::as_str) {
        Some("\"assistant\"") => Role::Assistant,
        Some("\"system\"" | "\"developer\"") => Role::System,
        _ => Role::User,
    }
}

fn parts(item: &Normal) -> Option<Vec<Box<RawValue>>> {
    serde_json::from_str(item.fields.get("content")?.as_str()).ok()
}

/// A message whose chunks are the item's parts. The rest of the item is kept beside them.
fn framed(item: &Normal, role: Role, parts: &[Box<RawValue>]) -> Message {
    let fields = item.fields.iter().map(|(name, value)| (name, if name == "content" { "[]" } else { value.as_str() }));
    let native = Json::new(object(fields)).ok().map(|json| Native { wire: FRAME.to_owned(), json });
    let mut message = Message::new(role, parts.iter().map(|raw| part(raw, role)));
    message.metadata = Metadata { id: Some(item.id.clone()), native, ..Metadata::default() };
    message
}

fn part(raw: &RawValue, role: Role) -> Chunk {
    let item = format!("{{\"type\":\"message\",\"role\":\"{role}\",\"content\":[{}]}}", raw.get());
    let native = Json::new(raw.get()).ok().map(|json| Native { wire: WIRE.to_owned(), json });
    match read(&item) {
        Some((_, chunk)) if !matches!(chunk.body, Body::Opaque { .. }) => Chunk { native, ..chunk },
        _ => opaque(raw.get()),
    }
}

/// An item that is one chunk.
fn single(item: &Normal) -> (Role, Chunk) {
    let text = item.to_json();
    let id = Some(item.id.clone());
    match read(&text) {
        Some((role, chunk)) if !matches!(chunk.body, Body::Opaque { .. }) => {
            let native = Json::new(text).ok().map(|json| Native { wire: WIRE.to_owned(), json });
            (role, Chunk { id, native, ..chunk })
        }
        // It is kept as its own JSON. The wire knows whose turn it is.
        read => (read.map_or(Role::Assistant, |(role, _)| role), Chunk { id, ..opaque(&text) }),
    }
}

fn opaque(text: &str) -> Chunk {
    let kind = Json::new(text).ok().and_then(|json| {
        let fields = crate::model::Extra::from_object(json.as_str()).ok()?;
        Some((serde_json::from_str(fields.get("type")?.as_str()).ok()?, json))
    });
    match kind {
        Some((kind, json)) => Body::Opaque { provider: PROVIDER.to_owned(), kind, json }.into(),
        // It was read as an object with a type before.
        None => Chunk::text(text),
    }
}

/// What the wire's reader makes of an item, if that is one chunk.
fn read(item: &str) -> Option<(Role, Chunk)> {
    let parsed = provider::parse(Target::OPENAI_RESPONSES, &format!("{{\"input\":[{item}]}}")).ok()?;
    let mut messages = parsed.messages.into_iter();
    let (message, None) = (messages.next()?, messages.next()) else { return None };
    let mut chunks = message.chunks.into_iter();
    match (chunks.next(), chunks.next()) {
        (Some(chunk), None) => Some((message.role, chunk)),
        _ => None,
    }
}
