//! Items that are not the model's: messages of the user and the system, outputs of calls.

use serde_json::value::RawValue;

use super::said::{Origin, kind, native, opaque, says_more};
use crate::history::report::Fact;
use crate::model::{Audio, Body, Chunk, File, Image, Message, Output, Part, PartBody, Role};
use crate::provider::read::fields::{Fields, Owner, json, string, text};
use crate::provider::read::parsed::{Notes, words};
use crate::provider::read::roles::{ROLES, RoleNames};

const ROLE_NAMES: RoleNames = RoleNames { known: ROLES, same: &["system", "developer", "user", "assistant"] };
/// Outputs that calls of functions have.
const OUTPUTS: &[&str] = &["function_call_output", "custom_tool_call_output"];
/// Items of the caller's that are kept as they are.
const OTHERS: &[&str] = &["item_reference", "additional_tools", "compaction_trigger", "mcp_approval_response"];

/// The message that an item is; `None` if the model said it.
pub(crate) fn given(raw: &RawValue, notes: &mut Notes<'_>) -> Option<Message> {
    let fields = Fields::of(raw)?;
    let kind = kind(&fields);
    match kind.as_str() {
        "message" => message(fields, notes),
        kind if OUTPUTS.contains(&kind) => Some(output(fields, notes)),
        // What the service's own tools gave is the model's turn.
        "program_output" => None,
        "tool_search_output" if fields.peek("execution").is_none_or(|raw| raw.get() != "\"client\"") => None,
        kind if OTHERS.contains(&kind) || kind.ends_with("_output") => {
            Some(Message::new(Role::User, opaque(kind, raw)))
        }
        _ => None,
    }
}

fn message(mut fields: Fields<'_>, notes: &mut Notes<'_>) -> Option<Message> {
    let name = fields.text("role").unwrap_or_default();
    if ROLE_NAMES.find(&name) == Some(Role::Tool) {
        notes.push(Fact::ToolMessageAsOutput);
        return Some(output(fields, notes));
    }
    let role = ROLE_NAMES.role(&name, Role::User, notes);
    if role == Role::Assistant {
        return None;
    }
    let mut message = Message::new(role, []);
    match fields.array("content") {
        Some(parts) => message.chunks = notes.each(".content", parts, |raw, _| part(raw)),
        None => {
            let words = fields.take("content").map(|raw| words(raw, notes)).filter(|text| !text.is_empty());
            message.chunks.extend(notes.at(".content", words.map(Chunk::text)));
        }
    }
    fields.take("type");
    message.metadata.id = fields.string("id");
    message.metadata.extra = fields.extra(Owner::Message);
    Some(message)
}

/// The output of a call. A chat's tool message has its content in place of it, and another name for the id.
fn output(mut fields: Fields<'_>, notes: &mut Notes<'_>) -> Message {
    let tool_call_id = ["call_id", "tool_call_id"].iter().find_map(|name| fields.text(name)).unwrap_or_default();
    ["type", "role"].iter().for_each(|name| _ = fields.take(name));
    let name = fields.string("name");
    let key = if fields.peek("output").is_some() { "output" } else { "content" };
    let output = match fields.array(key) {
        Some(parts) => Output::Parts(parts.into_iter().filter_map(output_part).collect()),
        None => Output::Text(fields.take(key).map_or_else(String::new, |raw| words(raw, notes))),
    };
    let mut chunk = Chunk::from(Body::ToolResult { tool_call_id, name, output, is_error: None });
    chunk.id = fields.string("id");
    fields.extend(Owner::Chunk, &mut chunk.extra);
    Message::new(Role::Tool, [chunk])
}

fn output_part(raw: &RawValue) -> Option<Part> {
    let Chunk { body, extra, .. } = part(raw)?;
    let body = match body {
        Body::Text { text, annotations: None } => PartBody::Text { text },
        Body::Image(image) if !image.url.is_empty() => PartBody::Image(image),
        Body::Audio(audio) => PartBody::Audio(audio),
        Body::File(file) if file.url.is_some() || file.data.is_some() => PartBody::File(file),
        _ => return Some(PartBody::Json { json: json(raw)? }.into()),
    };
    Some(Part { body, extra })
}

/// A part as a chunk, kept as it came where the chunk would not give it back. What is not known becomes an opaque one.
fn part(raw: &RawValue) -> Option<Chunk> {
    let Some(mut fields) = Fields::of(raw) else {
        return string(raw).map(Chunk::text).or_else(|| opaque("part", raw));
    };
    let kind = fields.text("type").unwrap_or_default();
    let (body, known): (_, &[&str]) = match kind.as_str() {
        "input_text" | "output_text" | "text" => (text_of(&mut fields)?, &["text", "annotations", "logprobs"]),
        "refusal" => (Body::Refusal { text: fields.text("refusal")? }, &["refusal"]),
        "input_image" => {
            let url = fields.string("image_url").unwrap_or_default();
            (Body::Image(Image { url, mime_type: None }), &["image_url"])
        }
        "input_file" => (file(&mut fields), &["filename", "file_data", "file_url"]),
        "input_audio" => (audio(fields.object("input_audio")?), &["input_audio"]),
        _ => return opaque(&kind, raw),
    };
    let native = if says_more(&fields, known, Origin::Request) { native(raw) } else { None };
    Some(Chunk { native, ..body.into() })
}

fn text_of(fields: &mut Fields<'_>) -> Option<Body> {
    Some(Body::Text { text: fields.text("text")?, annotations: None })
}

fn file(fields: &mut Fields<'_>) -> Body {
    let (name, payload, address) = (fields.string("filename"), fields.string("file_data"), fields.string("file_url"));
    let (url, data) = match payload {
        Some(payload) if payload.starts_with("data:") => (Some(payload), None),
        payload => (address, payload),
    };
    Body::File(File { name, url, data, mime_type: None })
}

fn audio(mut audio: Fields<'_>) -> Body {
    let mime_type = audio.string("format").map(|format| format!("audio/{format}"));
    Body::Audio(Audio {
        data: audio.string("data").or_else(|| audio.take("data").map(text)),
        mime_type,
        ..Audio::default()
    })
}
