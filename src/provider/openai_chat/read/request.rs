//! The messages of a chat request, whatever it took to write them; one part of a content array; and thinking, wherever a server
//! puts it.
//!
//! The fields that thinking came in are kept with it as its own block, without the text, which grows: `{"reasoning":""}`.

use std::collections::HashSet;

use serde_json::value::RawValue;

use super::calls::{Call, call, function, tool_call};
use crate::error::Result;
use crate::history::report::Fact;
use crate::json::fields::{Fields, Item, is_empty, string, text};
use crate::model::extra::{Owner, json};
use crate::model::{Audio, Body, Chunk, File, Image, Json, Message, Native, Output, Part, PartBody, Role};
use crate::provider::openai_chat::manner::{NAME, of_parts, provider};
use crate::provider::read::parsed::{Given, Notes, Parsed, ROLES, RoleNames, no_messages, opaque, stranger};
use crate::provider::target::Target;

/// Takes the messages out of a request. Each gives one message, so their positions stay.
pub(crate) fn parse<'a>(target: Target, given: Given<'a>) -> Result<(Parsed, Fields<'a>)> {
    let (request, list) = given.items("messages")?;
    let list = list.ok_or_else(|| no_messages("messages"))?;
    let mut parsed = Parsed::default();
    for (at, item) in list.into_iter().enumerate() {
        parsed.read("messages", Some(at), |notes| Some(message(item, provider(target), notes)));
    }
    Ok((parsed, request))
}

const ROLE_NAMES: RoleNames =
    RoleNames { known: ROLES, same: &["system", "developer", "user", "assistant", "tool", "function"] };

fn message(item: Item<'_>, provider: &str, notes: &mut Notes<'_>) -> Message {
    let mut fields = match item {
        Item::Object(fields) => fields,
        Item::Other(raw) => return stranger(raw, "message", opaque(raw, "message", provider), notes),
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
            chunks.extend(notes.at(format!(".{field}"), Some(Chunk { native, ..Chunk::thinking(text) })));
        }
        chunks.extend(notes.content(&mut fields, |raw| part(raw, provider)));
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
        let own_name = fields.take("name");
        let mut seen = HashSet::new();
        for (name, raw) in fields.present().filter(|(name, _)| seen.insert(*name)) {
            message.chunks.extend(notes.at(format!(".{name}"), opaque(raw, name, provider)));
        }
        fields = own_name.map(|raw| Fields::one("name", raw)).unwrap_or_default();
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

/// Takes the sound of a message; what some servers send in its place, without any of it, stays.
pub(crate) fn sound<'a>(fields: &mut Fields<'a>) -> Option<Fields<'a>> {
    let audio = fields.peek("audio").and_then(Fields::of)?;
    let says = |name: &str| audio.peek(name).is_some_and(|raw| !is_empty(raw));
    if ["id", "data", "transcript"].iter().any(|name| says(name)) { fields.object("audio") } else { None }
}

/// Reads the fields of one type of part. `None` if they are not what the type has.
type Read = fn(&mut Fields<'_>) -> Option<Chunk>;

/// Types of parts. Sources: API reference, "Create chat completion"; the Responses API's names for text, often sent here;
/// Mistral's API docs for `thinking`.
const PARTS: &[(&str, Read)] = &[
    ("text", read_text),
    ("input_text", read_text),
    ("output_text", read_text),
    ("refusal", |fields| Some(Body::Refusal { text: fields.text("refusal")? }.into())),
    ("thinking", read_thinking),
    ("image_url", read_image),
    ("input_audio", read_audio),
    ("file", read_file),
];

/// A part as a chunk. What is not known becomes an opaque one of this provider.
pub(crate) fn part(raw: &RawValue, provider: &str) -> Option<Chunk> {
    if let Some(text) = string(raw) {
        return Some(Chunk::text(text));
    }
    let mut fields = Fields::of(raw).unwrap_or_default();
    let kind = fields.string("type").unwrap_or_default();
    let read = PARTS.iter().find(|(name, _)| *name == kind).map(|(_, read)| read);
    if let Some(mut chunk) = read.and_then(|read| read(&mut fields)) {
        fields.extend(Owner::Chunk, &mut chunk.extra);
        if matches!(chunk.body, Body::Thinking { .. }) {
            chunk.native = thinking_part(raw);
        }
        return Some(chunk);
    }
    opaque(raw, kind, of_parts(provider))
}

fn read_text(fields: &mut Fields<'_>) -> Option<Chunk> {
    let annotations = fields.array("annotations").filter(|items| !items.is_empty());
    let annotations = annotations.and_then(|items| Json::new(serde_json::to_string(&items).ok()?).ok());
    Some(Body::Text { text: fields.text("text")?, annotations }.into())
}

/// `{"type": "thinking", "thinking": [{"type": "text", "text": ".."}]}`, or a string in its place.
fn read_thinking(fields: &mut Fields<'_>) -> Option<Chunk> {
    let of_part = |raw| Fields::of(raw).and_then(|mut part| part.string("text")).unwrap_or_else(|| text(raw));
    let parts = fields.array("thinking").map(|parts| parts.into_iter().map(of_part).collect());
    let text: String = parts.or_else(|| fields.text("thinking"))?;
    let signature = fields.string("signature");
    Some(Body::Thinking { text, signature, redacted: None }.into())
}

/// How a thinking part is written, without its text, which grows.
pub(crate) fn thinking_part(raw: &RawValue) -> Option<Native> {
    let fields = Fields::of(raw)?;
    let empty = |name: &str, value: &'static str| if name == "thinking" { Some(value) } else { None };
    let written = |(name, raw): (&str, &RawValue)| -> Option<String> {
        let is_list = raw.get().starts_with('[');
        let value = empty(name, if is_list { "[]" } else { "\"\"" }).unwrap_or(raw.get());
        Some(format!("{}:{value}", serde_json::to_string(name).ok()?))
    };
    let pairs: Vec<String> = fields.present().filter_map(written).collect();
    Some(Native { wire: NAME.to_owned(), json: Json::new(format!("{{{}}}", pairs.join(","))).ok()? })
}

fn read_image(fields: &mut Fields<'_>) -> Option<Chunk> {
    if let Some(url) = fields.string("image_url") {
        return Some(Chunk::image(url));
    }
    let mut image = fields.object("image_url")?;
    let mut chunk = Chunk::from(Body::Image(Image { url: image.string("url")?, mime_type: None }));
    image.extend(Owner::Chunk, &mut chunk.extra);
    Some(chunk)
}

fn read_audio(fields: &mut Fields<'_>) -> Option<Chunk> {
    let mut audio = fields.object("input_audio")?;
    let mime_type = audio.string("format").map(|format| match format.as_str() {
        "mp3" => "audio/mpeg".to_owned(),
        other => format!("audio/{other}"),
    });
    let mut chunk =
        Chunk::from(Body::Audio(Audio { data: Some(audio.string("data")?), mime_type, ..Audio::default() }));
    audio.extend(Owner::Chunk, &mut chunk.extra);
    Some(chunk)
}

/// A file of which there is only the id is kept as it is, too: no other field has a place for the id.
fn read_file(fields: &mut Fields<'_>) -> Option<Chunk> {
    let raw = fields.peek("file")?;
    let mut file = Fields::of(raw)?;
    let (name, payload, id) = (file.string("filename"), file.string("file_data"), file.string("file_id"));
    let (url, data) = match payload {
        Some(payload) if payload.starts_with("data:") => (Some(payload), None),
        payload => (None, payload),
    };
    let mut chunk = Chunk::from(Body::File(File { name, url, data, mime_type: None }));
    if id.is_some() {
        let json = Json::new(format!("{{\"type\":\"file\",\"file\":{raw}}}")).ok()?;
        chunk.native = Some(Native { wire: NAME.to_owned(), json });
    }
    file.extend(Owner::Chunk, &mut chunk.extra);
    fields.take("file");
    Some(chunk)
}

/// Where thinking is.
const THINKING: &[&str] = &["reasoning_content", "reasoning"];

/// Takes the thinking out of a message, or out of a piece of one: the field's name, the text, and the fields that it stood
/// in. Some servers say it twice: the first counts.
pub(crate) fn thinking(fields: &mut Fields<'_>) -> Option<(&'static str, String, Option<Native>)> {
    let mut said =
        THINKING.iter().filter_map(|name| Some((*name, fields.string(name).filter(|text| !text.is_empty())?)));
    let (name, text) = said.next()?;
    let others: String = said.map(|(other, _)| format!(",\"{other}\":\"\"")).collect();
    let json = Json::new(format!("{{\"{name}\":\"\"{others}}}")).ok();
    Some((name, text, json.map(|json| Native { wire: NAME.to_owned(), json })))
}
