//! The messages of a Messages request, whatever it took to write them; and one block of a message, of a request as of an
//! answer.
//!
//! What is stored with the provider, or says more than a chunk has a place for, stays the provider's block, too.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;

use crate::error::Result;
use crate::json::fields::{Fields, Item, array, is_empty, string};
use crate::model::extra::{Owner, json};
use crate::model::{Body, Chunk, File, Image, Json, Message, Native, Output, Part, PartBody, Role};
use crate::provider::anthropic::manner::{NAME, provider};
use crate::provider::anthropic::render::native::NativeBlock;
use crate::provider::read::parsed::{Given, Notes, Parsed, ROLES, RoleNames, no_messages, opaque, stranger};
use crate::provider::target::Target;

/// Takes `system` and the messages out of a request. Each message gives one, after that of `system`, but for signed thinking
/// that is alone: some clients keep each block of a turn in a message. It is one with what the assistant says next, since
/// its signature is good only there (AN-25, AN-38).
pub(crate) fn parse<'a>(target: Target, given: Given<'a>) -> Result<(Parsed, Fields<'a>)> {
    let (mut request, list) = given.items("messages")?;
    let list = list.ok_or_else(|| no_messages("messages"))?;
    let mut parsed = Parsed::default();
    let provider = provider(target);
    parsed.read("system", None, |notes| system(request.take("system")?, provider, notes));
    for (at, item) in list.into_iter().enumerate() {
        let is_thought = parsed.messages.last().is_some_and(is_thought);
        parsed.read("messages", Some(at), |notes| Some(message(item, provider, notes)));
        if is_thought && parsed.messages.last().is_some_and(|last| last.role == Role::Assistant) {
            parsed.join_last(at);
        }
    }
    Ok((parsed, request))
}

/// Whether the message is nothing but thinking that the provider signed.
fn is_thought(message: &Message) -> bool {
    let is_signed = |chunk: &Chunk| {
        matches!(chunk.body, Body::Thinking { signature: Some(_), .. } | Body::Thinking { redacted: Some(_), .. })
    };
    message.role == Role::Assistant && !message.chunks.is_empty() && message.chunks.iter().all(is_signed)
}

/// A string, or an array of text blocks.
fn system(raw: &RawValue, provider: &str, notes: &mut Notes<'_>) -> Option<Message> {
    if let Some(text) = string(raw) {
        return (!text.is_empty()).then(|| Message::system(text));
    }
    let chunks: Vec<Chunk> = match array(raw) {
        Some(blocks) => notes.each("", blocks, |raw, _| block(raw, provider)),
        None => vec![opaque(raw, "system", provider)?],
    };
    let mut message = Message::system("");
    message.chunks = chunks;
    (!message.chunks.is_empty()).then_some(message)
}

const ROLE_NAMES: RoleNames = RoleNames { known: ROLES, same: &["user", "assistant", "system"] };

fn message(item: Item<'_>, provider: &str, notes: &mut Notes<'_>) -> Message {
    let mut fields = match item {
        Item::Object(fields) => fields,
        Item::Other(raw) => return stranger(raw, "message", opaque(raw, "message", provider), notes),
    };
    let answer = answer(&mut fields);
    let chunks = match notes.at("", answer) {
        Some(answer) => vec![answer],
        None => notes.content(&mut fields, |raw| block(raw, provider)),
    };
    let mut message = Message::new(role(&mut fields, &chunks, notes), chunks);
    message.metadata.id = fields.string("id");
    message.metadata.extra = fields.extra(Owner::Message);
    message
}

/// A message of the role that other wires give results: all of it is one.
fn answer(fields: &mut Fields<'_>) -> Option<Chunk> {
    let role = fields.peek("role").and_then(string)?;
    let is_id = |name: &&str| fields.peek(name).is_some();
    let id = ["tool_use_id", "tool_call_id"]
        .into_iter()
        .find(is_id)
        .filter(|_| ROLE_NAMES.find(&role) == Some(Role::Tool))?;
    let is_result = |raw: &&RawValue| Fields::of(raw).is_some_and(|block| block.says("type", "tool_result"));
    if fields.peek("content").and_then(array).unwrap_or_default().iter().any(is_result) {
        return None;
    }
    let id = fields.text(id)?;
    result(fields, id).map(|(body, _)| body.into())
}

fn role(fields: &mut Fields<'_>, chunks: &[Chunk], notes: &mut Notes<'_>) -> Role {
    let calls = chunks.iter().any(|chunk| matches!(chunk.body, Body::ToolCall { .. } | Body::Thinking { .. }));
    let guess = if calls { Role::Assistant } else { Role::User };
    ROLE_NAMES.take(fields, guess, notes)
}

/// Reads the fields of one type of block. `None` if they are not what the type has, or more than a chunk has a place for.
type Read = fn(&mut Fields<'_>, &RawValue) -> Option<Chunk>;

/// Types of blocks that have a chunk of their own. Source: `ContentBlockParam` of the official Python SDK (anthropic
/// 2.11.0). The tools that the provider runs are its own: their blocks are opaque.
const BLOCKS: &[(&str, Read)] = &[
    ("text", read_text),
    ("thinking", read_thinking),
    ("redacted_thinking", |fields, _| {
        let redacted = Some(fields.string("data")?);
        Some(Body::Thinking { text: String::new(), signature: None, redacted }.into())
    }),
    ("tool_use", read_call),
    ("tool_result", read_result),
    ("image", |fields, _| Some(Body::Image(image(fields)?).into())),
    ("document", read_document),
    ("search_result", read_document),
];

/// A block as a chunk. What is not known becomes an opaque one of this provider.
pub(crate) fn block(raw: &RawValue, provider: &str) -> Option<Chunk> {
    if let Some(text) = string(raw) {
        return Some(Chunk::text(text));
    }
    let mut fields = Fields::of(raw).unwrap_or_default();
    let kind = fields.string("type").unwrap_or_default();
    let read = BLOCKS.iter().find(|(name, _)| *name == kind).map(|(_, read)| read);
    if let Some(mut chunk) = read.and_then(|read| read(&mut fields, raw)) {
        fields.extend(Owner::Chunk, &mut chunk.extra);
        return Some(chunk);
    }
    opaque(raw, kind, provider)
}

fn read_text(fields: &mut Fields<'_>, raw: &RawValue) -> Option<Chunk> {
    let text = fields.text("text")?;
    let citations = fields.take("citations").filter(|citations| !is_empty(citations)).and_then(json);
    let native = citations.as_ref().and_then(|_| native(raw));
    Some(Chunk { native, ..Body::Text { text, annotations: citations }.into() })
}

fn read_thinking(fields: &mut Fields<'_>, _: &RawValue) -> Option<Chunk> {
    let text = fields.text("thinking")?;
    let signature = fields.string("signature").filter(|signature| !signature.is_empty());
    Some(Body::Thinking { text, signature, redacted: None }.into())
}

/// No field of the chunk has who called.
fn read_call(fields: &mut Fields<'_>, raw: &RawValue) -> Option<Chunk> {
    let id = fields.text("id").unwrap_or_default();
    let name = fields.text("name").unwrap_or_default();
    let input = fields.take("input").map(|input| string(input).unwrap_or_else(|| input.get().to_owned()));
    let beside = [fields.take("caller"), fields.take("toolset_name")];
    let native = beside.iter().flatten().next().and_then(|_| native(raw));
    Some(Chunk { native, ..Chunk::tool_call(id, name, input.unwrap_or_default()) })
}

fn image(fields: &mut Fields<'_>) -> Option<Image> {
    let mut source = Fields::of(fields.peek("source")?)?;
    let url = match source.string("type")?.as_str() {
        "base64" => format!("data:{};base64,{}", source.string("media_type")?, source.string("data")?),
        "url" => source.string("url")?,
        _ => return None,
    };
    if source.rest().next().is_some() {
        return None;
    }
    fields.take("source");
    Some(Image { url, mime_type: None })
}

/// A document, or what was found, as others read it too. What a file has no place for stays in the provider's block.
fn read_document(fields: &mut Fields<'_>, raw: &RawValue) -> Option<Chunk> {
    if let Some(file) = file(fields) {
        return Some(Body::File(file).into());
    }
    let (file, native) = annotated(fields, raw)?;
    Some(Chunk { native: Some(native), ..Body::File(file).into() })
}

/// A file that says more than a file has a place for, and its block.
fn annotated(fields: &mut Fields<'_>, raw: &RawValue) -> Option<(File, Native)> {
    let native = native(raw)?;
    let file = NativeBlock::read(&native.json)?.file()?;
    for name in ["source", "title", "content", "context", "citations"] {
        fields.take(name);
    }
    Some((file, native))
}

fn file(fields: &mut Fields<'_>) -> Option<File> {
    if ["context", "citations", "content"].iter().any(|name| fields.peek(name).is_some()) {
        return None;
    }
    let mut source = Fields::of(fields.peek("source")?)?;
    let file = match source.string("type")?.as_str() {
        "base64" => {
            File { data: Some(source.string("data")?), mime_type: source.string("media_type"), ..File::default() }
        }
        "text" => {
            let data = Some(STANDARD.encode(source.string("data")?));
            File { data, mime_type: source.string("media_type"), ..File::default() }
        }
        "url" => {
            let (url, mime_type) = (Some(source.string("url")?), Some("application/pdf".to_owned()));
            File { url, mime_type, ..File::default() }
        }
        _ => return None,
    };
    if source.rest().next().is_some() {
        return None;
    }
    fields.take("source");
    Some(File { name: fields.string("title"), ..file })
}

/// A result whose parts are not all of a kind that others know stays the provider's block, too.
fn read_result(fields: &mut Fields<'_>, raw: &RawValue) -> Option<Chunk> {
    let tool_call_id = fields.text("tool_use_id").unwrap_or_default();
    let (body, known) = result(fields, tool_call_id)?;
    let native = if known { None } else { native(raw) };
    Some(Chunk { native, ..body.into() })
}

/// A result, and whether its parts are of kinds that others know.
fn result(fields: &mut Fields<'_>, tool_call_id: String) -> Option<(Body, bool)> {
    let failed = fields.take("is_error");
    let is_error = failed.and_then(|failed| serde_json::from_str(failed.get()).ok());
    let (output, known) = match fields.take("content") {
        None => (Output::Text(String::new()), true),
        Some(content) => match (string(content), array(content)) {
            (Some(text), _) => (Output::Text(text), true),
            (None, Some(parts)) => {
                let parts: Vec<(Part, bool)> = parts.into_iter().filter_map(part).collect();
                let known = parts.iter().all(|(_, known)| *known);
                (Output::Parts(parts.into_iter().map(|(part, _)| part).collect()), known)
            }
            (None, None) => (Output::Parts(vec![PartBody::Json { json: json(content)? }.into()]), true),
        },
    };
    Some((Body::ToolResult { tool_call_id, name: None, output, is_error }, known))
}

/// A part, and whether it is of a kind that others know. Any other is its JSON.
fn part(raw: &RawValue) -> Option<(Part, bool)> {
    let mut fields = Fields::of(raw).unwrap_or_default();
    let body = match fields.string("type").as_deref() {
        Some("text") => fields.string("text").map(|text| PartBody::Text { text }),
        Some("image") => image(&mut fields).map(PartBody::Image),
        Some("document" | "search_result") => {
            if let Some(file) = file(&mut fields) {
                Some(PartBody::File(file))
            } else if let Some((file, _)) = annotated(&mut fields, raw) {
                let part = Part { body: PartBody::File(file), extra: fields.extra(Owner::Chunk) };
                return Some((part, false));
            } else {
                None
            }
        }
        _ => string(raw).map(|text| PartBody::Text { text }),
    };
    let Some(body) = body else { return Some((PartBody::Json { json: json(raw)? }.into(), false)) };
    Some((Part { body, extra: fields.extra(Owner::Chunk) }, true))
}

/// The block, to be given back as it came.
pub(crate) fn native(raw: &RawValue) -> Option<Native> {
    Some(Native { wire: NAME.to_owned(), json: Json::from_raw(raw.to_owned()).ok()? })
}
