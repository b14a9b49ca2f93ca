//! The messages of a Converse request, whatever it took to write them; and one block of a message, of a request as of an
//! answer: what was said, the result of a tool, or media, which are a format, and bytes or where they are.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;

use crate::error::Result;
use crate::json::fields::{Fields, Item, array, is_empty, string};
use crate::model::extra::{compact, json};
use crate::model::{Audio, Body, Chunk, File, Image, Message, Native, Output, Part, PartBody, Role};
use crate::provider::bedrock_converse::manner::{NAME, PROVIDER};
use crate::provider::read::parsed::{
    Given, Notes, Parsed, ROLES, RoleNames, no_messages, opaque, push_parted, stranger,
};
use crate::provider::target::Target;

const ROLE_NAMES: RoleNames = RoleNames { known: ROLES, same: &["user", "assistant", "system"] };

/// Takes `system` and the messages out of a request. Each message gives one, or two where results stand beside other
/// blocks.
pub(crate) fn parse<'a>(_: Target, given: Given<'a>) -> Result<(Parsed, Fields<'a>)> {
    let (mut request, list) = given.items("messages")?;
    let list = list.ok_or_else(|| no_messages("messages"))?;
    let mut parsed = Parsed::default();
    if request.peek("system").is_some_and(|system| !is_empty(system)) {
        parsed.read("system", None, |notes| system(request.take("system")?, notes));
    }
    for (at, item) in list.into_iter().enumerate() {
        message(item, at, &mut parsed);
    }
    Ok((parsed, request))
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

fn message(item: Item<'_>, at: usize, parsed: &mut Parsed) {
    let mut notes = Notes::new(parsed.messages.len(), "messages", Some(at), &mut parsed.notes);
    let mut fields = match item {
        Item::Object(fields) => fields,
        Item::Other(raw) => {
            let message = stranger(raw, "message", opaque(raw, "message", PROVIDER), &mut notes);
            let place = notes.into_place();
            return parsed.push(message, place);
        }
    };
    let chunks = notes.content(&mut fields, block);
    let calls = chunks.iter().any(|chunk| matches!(chunk.body, Body::ToolCall { .. } | Body::Thinking { .. }));
    let guess = if calls { Role::Assistant } else { Role::User };
    let role = ROLE_NAMES.take(&mut fields, guess, &mut notes);
    let place = notes.into_place();
    push_parted(parsed, (role, chunks), fields, place);
}

/// Reads the value of a block's name. Gives whether that is all, so that a chunk gives the block back; `None` if it is
/// not what the name says, or nothing that a chunk has a place for.
type Read = fn(&RawValue) -> Option<(Body, bool)>;

/// The kinds of blocks that have a chunk of their own. Source: botocore 1.44.5, `ContentBlock`.
const BLOCKS: &[(&str, Read)] = &[
    ("text", |raw| Some((Body::Text { text: string(raw)?, annotations: None }, true))),
    ("toolUse", |raw| call(Fields::of(raw)?)),
    ("reasoningContent", |raw| reasoning(Fields::of(raw)?)),
    ("citationsContent", |raw| cited(Fields::of(raw)?)),
    ("toolResult", |raw| whole(raw, |fields| Some(result(fields)))),
    ("image", |raw| whole(raw, |fields| image(fields).map(|(image, all)| (Body::Image(image), all)))),
    ("document", |raw| whole(raw, |fields| document(fields).map(|(file, all)| (Body::File(file), all)))),
    ("video", |raw| whole(raw, |fields| video(fields).map(|file| (Body::File(file), false)))),
    ("audio", |raw| whole(raw, |fields| audio(fields).map(|audio| (Body::Audio(audio), false)))),
];

/// A block as a chunk; it is kept as it came where the chunk would not give it back. What is not known becomes an opaque
/// one of this provider.
pub(crate) fn block(raw: &RawValue) -> Option<Chunk> {
    if let Some(text) = string(raw) {
        return Some(Chunk::text(text));
    }
    let fields = Fields::of(raw).unwrap_or_default();
    let kind = fields.present().next().map_or("block", |(name, _)| name).to_owned();
    let known = BLOCKS.iter().find_map(|(name, read)| Some((fields.peek(name)?, read)));
    let Some((body, all)) = known.and_then(|(value, read)| read(value)) else {
        return opaque(raw, kind, PROVIDER);
    };
    let is_alone = fields.names().count() == 1;
    let native = if all && is_alone { None } else { native(raw) };
    Some(Chunk { native, ..body.into() })
}

/// The block, to be given back as it came.
pub(crate) fn native(raw: &RawValue) -> Option<Native> {
    compact(raw).map(|json| Native { wire: NAME.to_owned(), json })
}

/// Reads an object, and gives whether nothing of it is left.
fn whole(raw: &RawValue, read: impl Fn(&mut Fields<'_>) -> Option<(Body, bool)>) -> Option<(Body, bool)> {
    let mut fields = Fields::of(raw)?;
    let (body, all) = read(&mut fields)?;
    Some((body, all && fields.names().next().is_none()))
}

fn call(mut call: Fields<'_>) -> Option<(Body, bool)> {
    let id = call.text("toolUseId").unwrap_or_default();
    let name = call.text("name").unwrap_or_default();
    let input = call.take("input");
    let all = input.is_some_and(|input| input.get().starts_with('{'));
    let arguments = input.map(|input| string(input).unwrap_or_else(|| input.get().to_owned())).unwrap_or_default();
    let server = call.peek("type").is_some_and(|kind| kind.get() == "\"server_tool_use\"");
    let is_known = call.names().next().is_none();
    Some((Body::ToolCall { id, name, arguments, signature: None, server }, all && is_known))
}

/// What the model thought. In a request nobody says whose it is: it is the provider's as long as it is kept as it came.
fn reasoning(mut reasoning: Fields<'_>) -> Option<(Body, bool)> {
    if let Some(redacted) = reasoning.string("redactedContent") {
        return Some((Body::Thinking { text: String::new(), signature: None, redacted: Some(redacted) }, false));
    }
    let mut said = reasoning.object("reasoningText")?;
    let text = said.string("text")?;
    let signature = said.string("signature").filter(|signature| !signature.is_empty());
    Some((Body::Thinking { text, signature, redacted: None }, false))
}

/// A text, and what it cites.
fn cited(mut cited: Fields<'_>) -> Option<(Body, bool)> {
    let content = cited.take("content").and_then(array)?;
    let texts: Option<Vec<String>> = content.into_iter().map(|part| Fields::of(part)?.string("text")).collect();
    let annotations = cited.take("citations").and_then(json);
    Some((Body::Text { text: texts?.concat(), annotations }, false))
}

/// The result, and whether a chunk says all of it.
fn result(fields: &mut Fields<'_>) -> (Body, bool) {
    let tool_call_id = fields.text("toolUseId").unwrap_or_default();
    let status = fields.string("status");
    let is_error = match status.as_deref() {
        Some("error") => Some(true),
        Some("success") => Some(false),
        _ => None,
    };
    let given = fields.array("content");
    let mut whole = given.is_some() && status.is_some() == is_error.is_some();
    let mut parts = Vec::new();
    for raw in given.unwrap_or_default() {
        let (read, is_whole) = part(raw);
        parts.extend(read);
        whole &= is_whole;
    }
    let output = match parts.as_slice() {
        [Part { body: PartBody::Text { text }, .. }] => Output::Text(text.clone()),
        _ => Output::Parts(parts),
    };
    (Body::ToolResult { tool_call_id, name: None, output, is_error }, whole && fields.names().next().is_none())
}

fn part(raw: &RawValue) -> (Option<Part>, bool) {
    if let Some(text) = string(raw) {
        return (Some(PartBody::Text { text }.into()), false);
    }
    let read = Fields::of(raw).and_then(|mut fields| {
        let read = body(&mut fields)?;
        Some((read.0, read.1 && fields.names().next().is_none()))
    });
    match read {
        Some((body, whole)) => (Some(body.into()), whole),
        None => (json(raw).map(|json| PartBody::Json { json }.into()), false),
    }
}

fn body(fields: &mut Fields<'_>) -> Option<(PartBody, bool)> {
    if let Some(text) = fields.string("text") {
        return Some((PartBody::Text { text }, true));
    }
    if let Some(raw) = fields.take("json") {
        return Some((PartBody::Json { json: json(raw)? }, true));
    }
    if let Some(mut block) = fields.object("image") {
        let (read, whole) = image(&mut block)?;
        return Some((PartBody::Image(read), whole && block.names().next().is_none()));
    }
    if let Some(mut block) = fields.object("document") {
        // The name is a new one: it is unique in the request.
        let (read, _) = document(&mut block)?;
        return Some((PartBody::File(read), false));
    }
    let mut block = fields.object("video")?;
    Some((PartBody::File(video(&mut block)?), false))
}

/// Formats of documents that are not named as their type is. Source: botocore 1.44.5, `DocumentFormat`, `VideoFormat`.
pub(crate) const TYPES: &[(&str, &str)] = &[
    ("pdf", "application/pdf"),
    ("txt", "text/plain"),
    ("md", "text/markdown"),
    ("html", "text/html"),
    ("csv", "text/csv"),
    ("doc", "application/msword"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("xls", "application/vnd.ms-excel"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
];

/// The image, and whether that is all of it.
fn image(fields: &mut Fields<'_>) -> Option<(Image, bool)> {
    let format = fields.string("format")?;
    let (url, whole) = source(fields, &format!("image/{format}"))?;
    Some((Image { url, mime_type: None }, whole))
}

/// The document.
fn document(fields: &mut Fields<'_>) -> Option<(File, bool)> {
    let name = fields.string("name");
    let format = fields.string("format");
    let known = TYPES.iter().find(|(known, _)| format.as_deref() == Some(*known)).map(|(_, mime_type)| *mime_type);
    let mime_type = known.map(str::to_owned);
    let mut source = fields.object("source")?;
    if let Some(text) = source.string("text") {
        let data = Some(STANDARD.encode(text));
        let mime_type = mime_type.or_else(|| Some("text/plain".to_owned()));
        return Some((File { name, data, mime_type, url: None }, false));
    }
    let (data, url) = (source.string("bytes"), location(&mut source));
    let is_alone = source.rest().next().is_none();
    let whole = known.is_some() && data.is_some() && url.is_none() && is_alone;
    (data.is_some() || url.is_some()).then_some((File { name, url, data, mime_type }, whole))
}

/// A film, as a file: nothing else has a place for one, so that it stays the provider's block, too.
fn video(fields: &mut Fields<'_>) -> Option<File> {
    let format = fields.string("format")?;
    let mime_type = Some(if format.contains('/') { format } else { format!("video/{format}") });
    let mut source = fields.object("source")?;
    let (data, url) = (source.string("bytes"), location(&mut source));
    (data.is_some() || url.is_some()).then_some(File { name: None, url, data, mime_type })
}

/// Sound.
fn audio(fields: &mut Fields<'_>) -> Option<Audio> {
    let mime_type = Some(format!("audio/{}", fields.string("format")?));
    let mut source = fields.object("source")?;
    let (data, url) = (source.string("bytes"), location(&mut source));
    (data.is_some() || url.is_some()).then_some(Audio { url, data, mime_type, transcript: None })
}

fn source(fields: &mut Fields<'_>, media_type: &str) -> Option<(String, bool)> {
    let mut source = fields.object("source")?;
    let bytes = source.string("bytes").map(|bytes| format!("data:{media_type};base64,{bytes}"));
    let stored = location(&mut source);
    let whole = bytes.is_some() && stored.is_none() && source.rest().next().is_none();
    Some((bytes.or(stored)?, whole))
}

/// Where it is stored.
fn location(source: &mut Fields<'_>) -> Option<String> {
    source.object("s3Location")?.string("uri")
}
