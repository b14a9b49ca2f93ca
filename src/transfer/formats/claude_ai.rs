//! Claude.ai's export, `conversations.json`, and what browser extensions save of one conversation.
//!
//! Sources: the schema of brandtcormorant/claude-json-schema, the types of socketteer's exporter; see `docs/transfer.md`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;

use crate::json::fields::{Fields, is_empty};
use crate::model::{Body, Chunk, File, Role};
use crate::transfer::foreign::{Broken, Foreign, Node, Taken};
use crate::transfer::format::{Context, Format, Head, Reader};
use crate::transfer::take;

pub(crate) const FORMAT: Format = Format {
    name: "claude-ai",
    about: "Claude.ai's export",
    read: Some(Reader::Each { recognise, read }),
    tables: None,
    write: None,
};

/// What the text has for a block that is no text.
const PLACEHOLDER: &str = "This block is not supported on your current device yet.";

fn recognise(head: &Head<'_>) -> bool {
    head.any(|fields| fields.peek("chat_messages").is_some_and(|raw| raw.get().starts_with('[')))
}

fn read(text: &str, context: &Context<'_>) -> Taken {
    let mut fields = Fields::read(text).map_err(|error| Broken::new(error.to_string()))?;
    let id = fields.string("uuid");
    let title = take::title(&mut fields, "name");
    let broken = |why: &str| Broken { id: id.clone(), title: title.clone(), why: why.to_owned() };
    let messages = fields.array("chat_messages").ok_or_else(|| broken("it has no list of messages"))?;
    let mut foreign = Foreign::new(id.clone().unwrap_or_else(|| context.unnamed()));
    foreign.title.clone_from(&title);
    foreign.shown = fields.string("current_leaf_message_uuid");
    take::tag_if(&fields, "is_starred", "starred", &mut foreign);
    let model = fields.peek("model").and_then(crate::json::fields::string);
    for raw in messages {
        message(raw, model.as_deref(), context, &mut foreign);
    }
    foreign.rest = take::rest(fields);
    Ok(foreign)
}

fn message(raw: &RawValue, model: Option<&str>, context: &Context<'_>, foreign: &mut Foreign) {
    let Some(mut fields) = Fields::of(raw) else { return foreign.skip("message_that_is_no_object") };
    let last = foreign.nodes.last().map(|node| node.id.clone());
    let id = fields.string("uuid").unwrap_or_else(|| foreign.nodes.len().to_string());
    // The parent of the first message is a UUID of zeros. Older exports have no parents: messages follow each other.
    let parent = match fields.string("parent_message_uuid") {
        Some(parent) if parent.starts_with("00000000-0000-") => None,
        Some(parent) => Some(parent),
        None => last,
    };
    let role = match fields.string("sender").as_deref() {
        Some("human" | "user") => Role::User,
        Some("assistant") => Role::Assistant,
        other => {
            if other != Some("system") {
                foreign.skip("unknown_role_taken_for_user");
            }
            if other == Some("system") { Role::System } else { Role::User }
        }
    };
    let mut chunks = Vec::new();
    let mut open: Vec<(String, Option<String>)> = Vec::new();
    for (number, raw) in fields.array("content").unwrap_or_default().into_iter().enumerate() {
        chunks.extend(block(raw, &format!("{id}:{number}"), &mut open));
    }
    let text = fields.string("text").unwrap_or_default();
    // The text repeats the blocks; old exports have nothing else. For blocks that are no text it has a placeholder.
    let is_repeated = chunks.iter().any(|chunk| matches!(chunk.body, Body::Text { .. }));
    if !is_repeated && !text.trim().is_empty() && (chunks.is_empty() || !text.contains(PLACEHOLDER)) {
        chunks.push(Chunk::text(text));
    }
    for raw in fields.array("attachments").unwrap_or_default() {
        chunks.extend(attachment(raw));
    }
    for name in ["files_v2", "files"] {
        for raw in fields.array(name).unwrap_or_default() {
            chunks.extend(file(raw, context).filter(|chunk| !chunks.contains(chunk)));
        }
    }
    if chunks.is_empty() {
        foreign.skip("empty_message");
        foreign.nodes.push(Node { id, parent, messages: Vec::new() });
        return;
    }
    let created_at = take::moment_of(&mut fields, "created_at");
    let mut messages = take::messages(role, chunks);
    for message in &mut messages {
        message.metadata.created_at = created_at;
        if message.role == Role::Assistant {
            message.metadata.model = model.map(str::to_owned);
            message.metadata.provider = Some("anthropic".to_owned());
        }
    }
    if let Some(message) = messages.first_mut() {
        message.metadata.id = Some(id.clone());
    }
    take::keep(fields, messages.first_mut());
    foreign.nodes.push(Node { id, parent, messages });
}

/// A block. `open` are the calls of the message that have no result yet.
fn block(raw: &RawValue, made: &str, open: &mut Vec<(String, Option<String>)>) -> Option<Chunk> {
    let Some(mut fields) = Fields::of(raw) else { return take::stray(raw, FORMAT.name) };
    let kind = fields.string("type").unwrap_or_default();
    for name in ["citations", "summaries"] {
        if fields.peek(name).is_some_and(is_empty) {
            fields.take(name);
        }
    }
    let body = match kind.as_str() {
        "text" => match fields.string("text") {
            Some(text) if text.is_empty() => return None,
            Some(text) => Body::Text { text, annotations: None },
            None => return take::opaque(raw, kind, FORMAT.name),
        },
        "thinking" => {
            let signature = fields.string("signature").filter(|signature| !signature.is_empty());
            Body::Thinking { text: fields.string("thinking").unwrap_or_default(), signature, redacted: None }
        }
        "tool_use" => {
            let id = fields.string("id").unwrap_or_else(|| made.to_owned());
            let name = fields.text("name").unwrap_or_default();
            open.push((id.clone(), Some(name.clone())));
            let arguments = take::arguments(fields.take("input"));
            Body::ToolCall { id, name, arguments, signature: None, server: false }
        }
        "tool_result" => {
            let name = fields.string("name");
            let id = fields.string("tool_use_id");
            // Results without an id answer the first open call of their tool.
            let place = match &id {
                Some(id) => open.iter().position(|(call, _)| call == id),
                None => {
                    open.iter().position(|(_, tool)| *tool == name).or(if open.is_empty() { None } else { Some(0) })
                }
            };
            let answered = place.map(|place| open.remove(place).0);
            let is_error = fields.take("is_error").map(|raw| raw.get() == "true");
            let output = take::output(fields.take("content"));
            take::result(&id.or(answered).unwrap_or_default(), name, output, is_error)
        }
        _ => return take::opaque(raw, kind, FORMAT.name),
    };
    Some(take::with_rest(fields, body))
}

/// A text file: the export holds the text that was extracted from it.
fn attachment(raw: &RawValue) -> Option<Chunk> {
    let mut fields = Fields::of(raw)?;
    let name = fields.string("file_name");
    let data = fields.string("extracted_content").filter(|text| !text.is_empty()).map(|text| STANDARD.encode(text));
    let mime_type = data.is_some().then(|| "text/plain".to_owned());
    Some(take::with_rest(fields, Body::File(File { name, url: None, data, mime_type })))
}

/// A file that the export only names.
fn file(raw: &RawValue, context: &Context<'_>) -> Option<Chunk> {
    let mut fields = Fields::of(raw)?;
    let name = fields.string("file_name");
    let id = fields.string("file_uuid");
    let found = id.as_deref().and_then(|id| context.assets.find(id));
    let found = found.or_else(|| name.as_deref().and_then(|name| context.assets.find(name)));
    let reference = id.map(|id| format!("claude-file://{id}")).unwrap_or_default();
    let is_image = name.as_deref().is_some_and(|name| take::mime_of(name).starts_with("image/"));
    let chunk = if is_image {
        let mut chunk = take::picture(found, &reference, None);
        if let Some(json) = name.and_then(|name| take::json_of(&name)) {
            chunk.extra.push("file_name", json);
        }
        chunk
    } else {
        take::document(found, &reference, name, None)
    };
    let mut kept = take::with_rest(fields, chunk.body);
    for (name, json) in chunk.extra.iter() {
        kept.extra.push(name, json.clone());
    }
    Some(kept)
}
