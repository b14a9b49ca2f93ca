//! The messages of a Responses request, whatever it took to write them.
//!
//! Items of the model that follow each other are one message: what it reasoned belongs to what it said. Two plain messages
//! of the model in a row stay two. Other items are messages of the user and the system, and outputs of calls.

use serde_json::value::RawValue;

use super::item::{Origin, is_given, kind, native, opaque, said, says_more};
use crate::error::Result;
use crate::history::report::Fact;
use crate::json;
use crate::json::fields::{Fields, string, text};
use crate::model::extra::{Owner, json};
use crate::model::{Audio, Body, Chunk, File, Image, Json, Message, Native, Output, Part, PartBody, Role};
use crate::provider::openai_responses::manner::NAME;
use crate::provider::read::parsed::{Notes, Parsed, no_messages, stranger, words};
use crate::provider::read::roles::{ROLES, RoleNames};
use crate::provider::target::Target;

/// Takes the messages out of a request. `instructions` is its first.
pub(crate) fn parse(_: Target, request: &mut Fields<'_>) -> Result<Parsed> {
    let mut items = Items::default();
    match request.string("input") {
        Some(text) => {
            let places = Notes::new(0, "input".to_owned(), &mut items.parsed.notes).into_places();
            items.parsed.push(None, Message::user(text), places);
        }
        None => {
            let list = request.array("input").ok_or_else(|| no_messages("input"))?;
            list.into_iter().enumerate().for_each(|(at, raw)| items.take(at, raw));
        }
    }
    let mut parsed = items.parsed;
    if let Some(raw) = request.peek("instructions")
        && let Some(text) = string(raw)
    {
        request.take("instructions");
        let json = Json::new(format!("{{\"instructions\":{raw}}}")).ok();
        let native = json.map(|json| Native { wire: NAME.to_owned(), json });
        let instructions = Message::new(Role::System, [Chunk { native, ..Chunk::text(text) }]);
        let places = Notes::new(0, "instructions".to_owned(), &mut parsed.notes).into_places();
        parsed.push(None, instructions, places);
        parsed.messages.rotate_right(1);
        parsed.places.rotate_right(1);
        parsed.notes.iter_mut().for_each(|note| note.message_index = note.message_index.map(|index| index + 1));
    }
    Ok(parsed)
}

/// Items as they become messages.
#[derive(Debug, Default)]
struct Items {
    parsed: Parsed,
    last: Last,
}

/// What the last item was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Last {
    /// Not the model's: what the model says next is a new message.
    #[default]
    Given,
    /// A message of the model that says no more than its parts: rendered, the next such one would be one with it.
    Plain,
    /// Any other item of the model.
    Item,
    /// Any item of the model, after calls that are not answered yet.
    Called,
}

impl Items {
    fn take(&mut self, at: usize, raw: &RawValue) {
        let whole = format!("input[{at}]");
        let mut notes = Notes::new(self.parsed.messages.len(), whole.clone(), &mut self.parsed.notes);
        let fields = Fields::of(raw);
        let given = match fields {
            Some(_) => given(raw, &mut notes),
            // A string is what the user said.
            None => Some(stranger(raw, "item", opaque("item", raw), &mut notes)),
        };
        let places = notes.into_places();
        if let Some(message) = given {
            self.parsed.push(Some(at), message, places);
            self.last = Last::Given;
            return;
        }
        let fields = fields.unwrap_or_default();
        let mut parts = Vec::new();
        let chunks = said(raw, Origin::Request, &mut parts);
        let is_kept = |chunk: &Chunk| {
            chunk.native.as_ref().is_some_and(|native| native.json.as_str() == json::compact(raw.get()))
        };
        let is_plain = kind(&fields) == "message" && !chunks.iter().any(is_kept);
        let calls = chunks.iter().any(|chunk| matches!(chunk.body, Body::ToolCall { .. }));
        if self.last == Last::Given || self.last == Last::Plain && is_plain {
            self.parsed.push(Some(at), Message::assistant([]), places);
        }
        self.last = match self.last {
            Last::Called => Last::Called,
            _ if calls => Last::Called,
            _ if is_plain => Last::Plain,
            _ => Last::Item,
        };
        if let (Some(message), Some(place)) = (self.parsed.messages.last_mut(), self.parsed.places.last_mut()) {
            message.chunks.extend(chunks);
            place.chunks.extend(parts.into_iter().map(|part| format!("{whole}{part}")));
            place.items = place.items.take().map(|items| items.start..at + 1);
        }
    }
}

const ROLE_NAMES: RoleNames = RoleNames { known: ROLES, same: &["system", "developer", "user", "assistant"] };
/// Outputs that calls of functions have.
const OUTPUTS: &[&str] = &["function_call_output", "custom_tool_call_output"];

/// The message that an item is; `None` if the model said it.
fn given(raw: &RawValue, notes: &mut Notes<'_>) -> Option<Message> {
    let fields = Fields::of(raw)?;
    let kind = kind(&fields);
    match kind.as_str() {
        "message" => message(fields, notes),
        kind if OUTPUTS.contains(&kind) => Some(output(fields, notes)),
        kind if is_given(kind, fields.peek("execution").is_some_and(|raw| raw.get() == "\"client\"")) => {
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
