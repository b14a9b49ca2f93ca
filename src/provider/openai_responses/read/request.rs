//! The messages of a Responses request, whatever it took to write them.
//!
//! Items of the model that follow each other are one message: what it reasoned belongs to what it said. Two plain messages
//! of the model in a row stay two. Other items are messages of the user and the system, and outputs of calls.
//!
//! An item of the model's, whole: as a request or an answer holds it.

use serde_json::value::RawValue;

use crate::error::Result;
use crate::history::report::Fact;
use crate::json;
use crate::json::fields::{Fields, array, is_empty, string, text};
use crate::model::extra::{Owner, compact, json};
use crate::model::{Audio, Body, Chunk, File, Image, Json, Message, Native, Output, Part, PartBody, Role};
use crate::provider::anthropic::read::request as anthropic;
use crate::provider::openai_responses::manner::{NAME, PROVIDER};
use crate::provider::read::parsed::{Given, Notes, Parsed, ROLES, RoleNames, Spot, no_messages, stranger, words};
use crate::provider::target::Target;

/// Takes the messages out of a request. `instructions` is its first.
pub(crate) fn parse<'a>(_: Target, given: Given<'a>) -> Result<(Parsed, Fields<'a>)> {
    let mut items = Items::default();
    let (mut request, list) = given.values("input")?;
    if list.is_none() {
        let text = request.string("input").ok_or_else(|| no_messages("input"))?;
        items.parsed.read("input", None, |_| Some(Message::user(text)));
    }
    list.into_iter().flatten().enumerate().for_each(|(at, raw)| items.take(at, raw));
    let mut parsed = items.parsed;
    if let Some(raw) = request.peek("instructions")
        && let Some(text) = string(raw)
    {
        request.take("instructions");
        let json = Json::new(format!("{{\"instructions\":{raw}}}")).ok();
        let native = json.map(|json| Native { wire: NAME.to_owned(), json });
        let instructions = Message::new(Role::System, [Chunk { native, ..Chunk::text(text) }]);
        parsed.read("instructions", None, |_| Some(instructions));
        parsed.messages.rotate_right(1);
        parsed.places.rotate_right(1);
        parsed.notes.iter_mut().for_each(|note| note.message_index = note.message_index.map(|index| index + 1));
    }
    Ok((parsed, request))
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
        let mut notes = Notes::new(self.parsed.messages.len(), "input", Some(at), &mut self.parsed.notes);
        let fields = Fields::of(raw);
        let kind = fields.as_ref().map(kind).unwrap_or_default();
        let given = match fields {
            Some(fields) => given(&kind, fields, raw, &mut notes),
            // A string is what the user said.
            None => Ok(stranger(raw, "item", opaque("item", raw), &mut notes)),
        };
        let place = notes.into_place();
        let fields = match given {
            Err(fields) => fields,
            Ok(message) => {
                self.parsed.push(message, place);
                self.last = Last::Given;
                return;
            }
        };
        let mut spots = Vec::new();
        let chunks = said_as(&kind, fields, raw, Origin::Request, &mut spots);
        let is_kept = |chunk: &Chunk| {
            chunk.native.as_ref().is_some_and(|native| native.json.as_str() == json::compact(raw.get()))
        };
        let is_plain = kind == "message" && !chunks.iter().any(is_kept);
        let calls = chunks.iter().any(|chunk| matches!(chunk.body, Body::ToolCall { .. }));
        if self.last == Last::Given || self.last == Last::Plain && is_plain {
            self.parsed.push(Message::assistant([]), place);
        }
        self.last = match self.last {
            Last::Called => Last::Called,
            _ if calls => Last::Called,
            _ if is_plain => Last::Plain,
            _ => Last::Item,
        };
        if let (Some(message), Some(place)) = (self.parsed.messages.last_mut(), self.parsed.places.last_mut()) {
            message.chunks.extend(chunks);
            place.extend(at, spots);
        }
    }
}

const ROLE_NAMES: RoleNames = RoleNames { known: ROLES, same: &["system", "developer", "user", "assistant"] };
/// Outputs that calls of functions have.
const OUTPUTS: &[&str] = &["function_call_output", "custom_tool_call_output"];

/// Types of parts that are the user's wherever they stand.
const STRAY_PARTS: &[&str] =
    &["text", "input_text", "input_image", "input_file", "input_audio", "image_url", "file", "image", "document"];

/// The message that an item is; its fields if the model said it.
fn given<'a>(
    kind: &str,
    fields: Fields<'a>,
    raw: &RawValue,
    notes: &mut Notes<'_>,
) -> std::result::Result<Message, Fields<'a>> {
    match kind {
        "message" => message(fields, notes),
        kind if OUTPUTS.contains(&kind) => Ok(output(fields, notes)),
        // A part in the place of a message.
        kind if STRAY_PARTS.contains(&kind) => Ok(Message::new(Role::User, part(raw))),
        kind if is_given(kind, fields.peek("execution").is_some_and(|raw| raw.get() == "\"client\"")) => {
            Ok(Message::new(Role::User, opaque(kind, raw)))
        }
        _ => Err(fields),
    }
}

fn message<'a>(mut fields: Fields<'a>, notes: &mut Notes<'_>) -> std::result::Result<Message, Fields<'a>> {
    let name = fields.peek("role").map(text).unwrap_or_default();
    if ROLE_NAMES.find(&name) == Some(Role::Tool) {
        notes.push(Fact::ToolMessageAsOutput);
        fields.take("role");
        return Ok(output(fields, notes));
    }
    let role = ROLE_NAMES.role(&name, Role::User, notes);
    if role == Role::Assistant {
        return Err(fields);
    }
    fields.take("role");
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
    Ok(message)
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

/// A part as a chunk, kept as it came where the chunk would not give it back. The attachments of other wires are what they are
/// there. What is not known becomes an opaque one.
fn part(raw: &RawValue) -> Option<Chunk> {
    let Some(mut fields) = Fields::of(raw) else {
        return string(raw).map(Chunk::text).or_else(|| opaque("part", raw));
    };
    let kind = fields.text("type").unwrap_or_default();
    if let Some(own) = of_chat(&kind, &fields) {
        return part(&own);
    }
    let (body, known): (_, &[&str]) = match kind.as_str() {
        "input_text" | "output_text" | "text" => (text_of(&mut fields)?, &["text", "annotations", "logprobs"]),
        "refusal" => (Body::Refusal { text: fields.text("refusal")? }, &["refusal"]),
        "input_image" => {
            let url = fields.string("image_url").unwrap_or_default();
            (Body::Image(Image { url, mime_type: None }), &["image_url"])
        }
        "input_file" => (file(&mut fields), &["filename", "file_data", "file_url"]),
        "input_audio" => (audio(fields.object("input_audio")?), &["input_audio"]),
        "image" | "document" => return anthropic::block(raw, PROVIDER),
        _ => return opaque(&kind, raw),
    };
    let native = if says_more(&fields, known, Origin::Request) { native(raw) } else { None };
    Some(Chunk { native, ..body.into() })
}

/// A picture or a file of a chat, in the words of this wire.
fn of_chat(kind: &str, fields: &Fields<'_>) -> Option<Box<RawValue>> {
    let inner = |name: &str| fields.peek(name).and_then(Fields::of);
    let (kind, fields) = match kind {
        "file" => {
            let file = inner("file")?;
            ("input_file", ["filename", "file_data", "file_id"].map(|name| (name, given_text(&file, name))).to_vec())
        }
        "image_url" | "input_image" => {
            let image = inner("image_url");
            let url = match &image {
                Some(image) => given_text(image, "url")?,
                None => given_text(fields, "image_url").filter(|_| kind == "image_url")?,
            };
            let detail = image.and_then(|image| given_text(&image, "detail")).or_else(|| given_text(fields, "detail"));
            ("input_image", vec![("image_url", Some(url)), ("detail", detail)])
        }
        _ => return None,
    };
    let fields = fields.into_iter().filter_map(|(name, raw)| Some(format!(",\"{name}\":{}", raw?)));
    RawValue::from_string(format!("{{\"type\":\"{kind}\"{}}}", fields.collect::<String>())).ok()
}

/// A field that is a string.
fn given_text<'a>(fields: &Fields<'a>, name: &str) -> Option<&'a RawValue> {
    fields.peek(name).filter(|raw| raw.get().starts_with('"'))
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

/// What comes between the paragraphs of a summary.
pub(crate) const PARAGRAPH: &str = "\n\n";

/// Where an item comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// An answer: the message says who made it.
    Answer {
        /// Whether the server has what the item leaves out: it did not say that it stores nothing.
        kept: bool,
        /// Whether the item before it is reasoning that goes back by its id alone, with the item after it.
        after_id: bool,
    },
    /// A request. Nobody says who made its items: they are the wire's own as long as they are kept as they are.
    Request,
}

/// Fields that an item's chunk has a place for.
const OF_A_CALL: &[&str] = &["type", "call_id", "name", "arguments"];
const OF_A_MESSAGE: &[&str] = &["type", "role", "content"];
const OF_REASONING: &[&str] = &["type", "summary", "content", "encrypted_content"];
const OF_A_PART: &[&str] = &["type", "text", "refusal"];
/// What an answer's items have and need not keep: ids of what is stored elsewhere, and that they are whole.
const OF_AN_ANSWER: &[&str] = &["id", "status"];

/// The item as chunks; it is kept as it came where they would not give it back. What is not known becomes an opaque one.
/// `spots` gets where in the item each chunk was read.
pub(crate) fn said(fields: Fields<'_>, raw: &RawValue, origin: Origin, spots: &mut Vec<Spot>) -> Vec<Chunk> {
    said_as(&kind(&fields), fields, raw, origin, spots)
}

fn said_as(kind: &str, fields: Fields<'_>, raw: &RawValue, origin: Origin, spots: &mut Vec<Spot>) -> Vec<Chunk> {
    let chunks = match kind {
        "message" => said_message(fields, raw, origin, spots),
        "reasoning" => Some(vec![reasoning(fields, raw, origin)]),
        "function_call" | "custom_tool_call" => call(fields, raw, origin).map(|chunk| vec![chunk]),
        _ => None,
    };
    let chunks = chunks.unwrap_or_else(|| opaque(kind, raw).into_iter().collect());
    spots.resize(chunks.len(), Spot::default());
    chunks
}

/// The type of an item. Messages may leave it out.
pub(crate) fn kind(fields: &Fields<'_>) -> String {
    match fields.peek("type").map(text) {
        None if fields.peek("role").is_some() => "message".to_owned(),
        kind => kind.unwrap_or_else(|| "item".to_owned()),
    }
}

fn opaque(kind: &str, raw: &RawValue) -> Option<Chunk> {
    Some(Body::Opaque { provider: PROVIDER.to_owned(), kind: kind.to_owned(), json: compact(raw)? }.into())
}

/// Items that the caller gives, beside the outputs of calls.
pub(crate) const CALLERS: &[&str] =
    &["item_reference", "additional_tools", "compaction_trigger", "mcp_approval_response"];

/// Whether the caller gives an item of this type. What the service's own tools gave is the model's turn.
pub(crate) fn is_given(kind: &str, by_client: bool) -> bool {
    match kind {
        "program_output" => false,
        "tool_search_output" => by_client,
        kind => CALLERS.contains(&kind) || kind.ends_with("_output"),
    }
}

/// Whether this is the type of a part of a message, known or not; else it is an item's.
pub(crate) fn is_part(kind: &str) -> bool {
    ["input_", "output_"].iter().any(|begins| kind.starts_with(begins))
}

fn native(raw: &RawValue) -> Option<Native> {
    Some(Native { wire: NAME.to_owned(), json: compact(raw)? })
}

/// Whether an item or part says more than its chunk does.
fn says_more(fields: &Fields<'_>, known: &[&str], origin: Origin) -> bool {
    fields.present().any(|(name, raw)| {
        let is_known = known.contains(&name) || origin != Origin::Request && OF_AN_ANSWER.contains(&name);
        !is_known && (origin == Origin::Request || !is_empty(raw))
    })
}

fn said_message(mut fields: Fields<'_>, raw: &RawValue, origin: Origin, spots: &mut Vec<Spot>) -> Option<Vec<Chunk>> {
    let calls = chat_calls(&mut fields);
    if !calls.is_empty() {
        return Some(called_message(fields, calls, origin, spots));
    }
    let more = says_more(&fields, OF_A_MESSAGE, origin) || matches!(origin, Origin::Answer { after_id: true, .. });
    let id = fields.string("id");
    if let Some(text) = fields.string("content") {
        let native = if more { native(raw) } else { None };
        spots.push(Spot::field(".content", None));
        return Some(vec![Chunk { id, native, ..Chunk::text(text) }]);
    }
    let parts = fields.array("content")?;
    let mut chunks = Vec::with_capacity(parts.len());
    for (at, part) in parts.iter().enumerate() {
        if let Some(chunk) = said_part(part, origin) {
            chunks.push(chunk);
            spots.push(Spot::field(".content", Some(at)));
        }
    }
    match chunks.as_mut_slice() {
        // A text without words is no text to others.
        [chunk] if more || chunk.native.is_some() || is_wordless(&chunk.body) => chunk.native = native(raw),
        // Of several parts the first has the item.
        [first, _, ..] if more => first.native = native(raw),
        _ => {}
    }
    chunks.iter_mut().for_each(|chunk| chunk.id.clone_from(&id));
    Some(chunks)
}

/// Takes the calls that a message has as one of a chat does. Here each is an item of its own.
fn chat_calls(fields: &mut Fields<'_>) -> Vec<(usize, Chunk)> {
    let calls = fields.peek("tool_calls").and_then(array).unwrap_or_default().into_iter().enumerate();
    let calls: Vec<_> = calls.filter_map(|(at, raw)| Some((at, chat_call(raw)?))).collect();
    if !calls.is_empty() {
        fields.take("tool_calls");
    }
    calls
}

/// `None` if it has no name.
fn chat_call(raw: &RawValue) -> Option<Chunk> {
    let mut fields = Fields::of(raw)?;
    let id = fields.text("id").unwrap_or_default();
    let mut function = fields.object("function").unwrap_or(fields);
    Some(Chunk::tool_call(id, function.text("name")?, function.text("arguments").unwrap_or_default()))
}

/// A message of a chat, with its calls: what it says, and then what it calls. As an item of this wire it is refused.
fn called_message(
    mut fields: Fields<'_>,
    calls: Vec<(usize, Chunk)>,
    origin: Origin,
    spots: &mut Vec<Spot>,
) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    if let Some(text) = fields.string("content").filter(|text| !text.is_empty()) {
        spots.push(Spot::field(".content", None));
        chunks.push(Chunk::text(text));
    }
    for (at, part) in fields.array("content").unwrap_or_default().into_iter().enumerate() {
        if let Some(chunk) = said_part(part, origin) {
            spots.push(Spot::field(".content", Some(at)));
            chunks.push(chunk);
        }
    }
    for (at, call) in calls {
        spots.push(Spot::field(".tool_calls", Some(at)));
        chunks.push(call);
    }
    chunks
}

fn is_wordless(body: &Body) -> bool {
    matches!(body, Body::Text { text, .. } | Body::Refusal { text } if text.is_empty())
}

fn said_part(raw: &RawValue, origin: Origin) -> Option<Chunk> {
    let Some(mut fields) = Fields::of(raw) else {
        return string(raw).map(Chunk::text).or_else(|| opaque("part", raw));
    };
    let more = says_more(&fields, OF_A_PART, origin);
    let native = if more { native(raw) } else { None };
    let kind = fields.text("type").unwrap_or_default();
    let body = match kind.as_str() {
        "refusal" => Body::Refusal { text: fields.text("refusal")? },
        "output_text" | "text" | "input_text" => {
            let annotations = fields.peek("annotations").filter(|raw| raw.get().starts_with('[') && !is_empty(raw));
            Body::Text { text: fields.text("text")?, annotations: annotations.and_then(compact) }
        }
        kind if STRAY_PARTS.contains(&kind) => return part(raw),
        _ => return opaque(&kind, raw),
    };
    Some(Chunk { native, ..body.into() })
}

/// Whether this is reasoning that only the server has: the item says no more of it than its id.
pub(crate) fn is_by_id(fields: &Fields<'_>) -> bool {
    let has = |name: &str| fields.peek(name).is_some_and(|raw| !is_empty(raw));
    kind(fields) == "reasoning" && has("id") && !has("encrypted_content") && !has("content")
}

fn reasoning(mut fields: Fields<'_>, raw: &RawValue, origin: Origin) -> Chunk {
    let (more, by_id) = (says_more(&fields, OF_REASONING, origin), is_by_id(&fields));
    let id = fields.string("id");
    let mut texts = |name: &str| {
        let parts = fields.array(name).unwrap_or_default().into_iter();
        let text = |raw| Fields::of(raw).and_then(|mut part| part.string("text"));
        parts.filter_map(text).collect::<Vec<_>>()
    };
    let (summary, content) = (texts("summary"), texts("content"));
    let signature = fields.string("encrypted_content").filter(|data| !data.is_empty());
    // One paragraph of a summary is what a chunk gives back.
    let is_plain = match origin {
        Origin::Answer { kept, .. } => !more && summary.len() < 2 && content.is_empty() && !(kept && by_id),
        Origin::Request => false,
    };
    let native = if is_plain { None } else { native(raw) };
    let text = if summary.is_empty() { content } else { summary }.join(PARAGRAPH);
    Chunk { id, native, ..Body::Thinking { text, signature, redacted: None }.into() }
}

/// `None` if it has no name.
fn call(mut fields: Fields<'_>, raw: &RawValue, origin: Origin) -> Option<Chunk> {
    let is_custom = fields.peek("input").is_some();
    let native = if is_custom || says_more(&fields, OF_A_CALL, origin) { native(raw) } else { None };
    let id = fields.string("id");
    let name = fields.text("name")?;
    let arguments = fields.text("arguments").or_else(|| fields.text("input")).unwrap_or_default();
    let call_id = fields.text("call_id").unwrap_or_default();
    Some(Chunk { id, native, ..Chunk::tool_call(call_id, name, arguments) })
}
