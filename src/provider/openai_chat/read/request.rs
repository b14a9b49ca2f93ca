//! The messages of a chat request, whatever it took to write them.

use serde_json::value::RawValue;

use super::calls::{Call, call, function, tool_call};
use super::growing::sound;
use super::part::{part, thinking};
use crate::error::Result;
use crate::history::report::Fact;
use crate::json::fields::{Fields, is_empty, string, text};
use crate::model::extra::{Owner, json};
use crate::model::{Audio, Body, Chunk, Message, Output, Part, PartBody, Role};
use crate::provider::openai_chat::manner::provider;
use crate::provider::read::parsed::{Notes, Parsed, no_messages, opaque, stranger, words};
use crate::provider::read::roles::{ROLES, RoleNames};
use crate::provider::target::Target;

/// Takes the messages out of a request. Each gives one message, so their positions stay.
pub(crate) fn parse(target: Target, request: &mut Fields<'_>) -> Result<Parsed> {
    let list = request.array("messages").ok_or_else(|| no_messages("messages"))?;
    let mut parsed = Parsed::default();
    for (at, raw) in list.into_iter().enumerate() {
        let mut notes = Notes::new(at, format!("messages[{at}]"), &mut parsed.notes);
        let message = message(raw, provider(target), &mut notes);
        let places = notes.into_places();
        parsed.push(Some(at), message, places);
    }
    Ok(parsed)
}

const ROLE_NAMES: RoleNames =
    RoleNames { known: ROLES, same: &["system", "developer", "user", "assistant", "tool", "function"] };

fn message(raw: &RawValue, provider: &str, notes: &mut Notes<'_>) -> Message {
    let Some(mut fields) = Fields::of(raw) else {
        return stranger(raw, "message", opaque(raw, "message", provider), notes);
    };
    let role = role(&mut fields, notes);
    let mut message = Message::new(role, []);
    let chunks = &mut message.chunks;
    if role == Role::Tool {
        let result = result(&mut fields, provider, notes);
        chunks.extend(notes.at("", result));
    } else {
        let thought = thinking(&mut fields);
        if let Some((field, text, native)) = thought {
            chunks.extend(notes.at(&format!(".{field}"), Some(Chunk { native, ..Chunk::thinking(text) })));
        }
        content(&mut fields, provider, chunks, notes);
        let refusal = fields.string("refusal").filter(|text| !text.is_empty());
        chunks.extend(notes.at(".refusal", refusal.map(|text| Body::Refusal { text }.into())));
        chunks.extend(notes.at(".audio", sound(&mut fields).map(audio)));
    }
    let calls = fields.array("tool_calls").unwrap_or_default();
    chunks.extend(notes.each(".tool_calls", calls, |raw, notes| tool_call(raw, provider, notes)));
    let function_call = function(&mut fields).map(|fields| call(Call::function(fields), notes));
    chunks.extend(notes.at(".function_call", function_call));
    if fields.peek("annotations").is_some_and(is_empty) {
        // Sent back as it came: an answer without any has an empty list.
        fields.take("annotations");
    }
    message.metadata.id = fields.string("id");
    if role == Role::Assistant {
        // Fields of the server's own, as an answer keeps them.
        let names: Vec<String> = fields.names().filter(|name| *name != "name").map(str::to_owned).collect();
        for name in names {
            let kept = fields.take(&name).and_then(|raw| opaque(raw, &name, provider));
            message.chunks.extend(notes.at(&format!(".{name}"), kept));
        }
    }
    message.metadata.extra = fields.extra(Owner::Message);
    message
}

fn role(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Role {
    let guess = if fields.peek("tool_call_id").is_some() {
        Role::Tool
    } else if fields.peek("tool_calls").is_some() {
        Role::Assistant
    } else {
        Role::User
    };
    ROLE_NAMES.take(fields, guess, notes)
}

fn content(fields: &mut Fields<'_>, provider: &str, chunks: &mut Vec<Chunk>, notes: &mut Notes<'_>) {
    if let Some(parts) = fields.array("content") {
        return chunks.extend(notes.each(".content", parts, |raw, _| part(raw, provider)));
    }
    let Some(raw) = fields.take("content") else { return };
    let text = words(raw, notes);
    if !text.is_empty() {
        chunks.extend(notes.at(".content", Some(Chunk::text(text))));
    }
}

/// What a tool message says: one result, and no more than that.
fn result(fields: &mut Fields<'_>, provider: &str, notes: &mut Notes<'_>) -> Option<Chunk> {
    let tool_call_id = fields.text("tool_call_id").unwrap_or_default();
    let name = fields.string("name");
    let output = match fields.array("content") {
        Some(parts) => Output::Parts(parts.into_iter().filter_map(|raw| output_part(raw, provider)).collect()),
        None => Output::Text(fields.take("content").map_or_else(String::new, |raw| {
            string(raw).unwrap_or_else(|| {
                notes.of_call(Fact::ContentAsText, &tool_call_id);
                text(raw)
            })
        })),
    };
    Some(Body::ToolResult { tool_call_id, name, output, is_error: None }.into())
}

fn output_part(raw: &RawValue, provider: &str) -> Option<Part> {
    let Chunk { body, extra, .. } = part(raw, provider)?;
    let body = match body {
        Body::Text { text, annotations: None } => PartBody::Text { text },
        Body::Image(image) => PartBody::Image(image),
        Body::Audio(audio) => PartBody::Audio(audio),
        Body::File(file) => PartBody::File(file),
        _ => return Some(PartBody::Json { json: json(raw)? }.into()),
    };
    Some(Part { body, extra })
}

/// The audio of an earlier answer, by its id.
fn audio(mut fields: Fields<'_>) -> Chunk {
    let (data, transcript) = (fields.string("data"), fields.string("transcript"));
    let mut chunk = Chunk::from(Body::Audio(Audio { data, transcript, ..Audio::default() }));
    chunk.id = fields.string("id");
    fields.extend(Owner::Chunk, &mut chunk.extra);
    chunk
}
