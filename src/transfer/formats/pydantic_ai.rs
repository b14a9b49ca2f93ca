//! Pydantic AI's messages, as `ModelMessagesTypeAdapter` writes them.
//!
//! Source: Pydantic AI 2.68.0, which wrote the sample.

use serde_json::value::RawValue;

use crate::json::fields::{Fields, array, is_empty, string};
use crate::model::extra::json;
use crate::model::{Body, Chunk, FinishReason, Image, Message, Role};
use crate::transfer::foreign::{Foreign, Taken};
use crate::transfer::format::{Context, Format, Head, Reader};
use crate::transfer::take;

pub(crate) const FORMAT: Format = Format {
    name: "pydantic-ai",
    about: "Pydantic AI's messages",
    read: Some(Reader::Parts { recognise, group: |_| None, read }),
    tables: None,
    write: None,
};

fn recognise(head: &Head<'_>) -> bool {
    head.first(|fields| {
        let kind = fields.peek("kind").and_then(string);
        matches!(kind.as_deref(), Some("request" | "response")) && fields.peek("parts").is_some()
    })
}

fn read(key: &str, values: Vec<String>, _: &Context<'_>) -> Vec<Taken> {
    let mut foreign = Foreign::new(key);
    for value in values {
        let messages = match Fields::read(&value) {
            Ok(fields) => messages(fields, &mut foreign),
            Err(_) => {
                foreign.skip("message_that_is_no_object");
                continue;
            }
        };
        foreign.push(None, messages);
    }
    vec![Ok(foreign)]
}

fn messages(mut fields: Fields<'_>, foreign: &mut Foreign) -> Vec<Message> {
    let kind = fields.string("kind").unwrap_or_default();
    let mut messages: Vec<Message> = Vec::new();
    let mut calls = 0;
    if let Some(instructions) = fields.string("instructions") {
        messages.push(Message::system(instructions));
    }
    for raw in fields.array("parts").unwrap_or_default() {
        let mut part = Fields::of(raw).unwrap_or_default();
        let part_kind = part.string("part_kind").unwrap_or_default();
        let time = take::moment_of(&mut part, "timestamp");
        part.drop_if(|name, raw| name != "content" && is_empty(raw));
        let (role, chunks) = chunks(&part_kind, raw, part, &mut calls);
        if chunks.is_empty() {
            foreign.skip("empty_part");
            continue;
        }
        let is_result = role == Role::Tool;
        match messages.last_mut().filter(|last| last.role == role && !is_result) {
            Some(last) => last.chunks.extend(chunks),
            None => messages.push(Message::new(role, chunks)),
        }
        if let Some(last) = messages.last_mut() {
            last.metadata.created_at = last.metadata.created_at.or(time);
        }
    }
    let time = take::moment_of(&mut fields, "timestamp");
    for message in &mut messages {
        message.metadata.created_at = message.metadata.created_at.or(time);
    }
    let made = messages.iter_mut().find(|message| kind == "response" && message.role == Role::Assistant);
    if let Some(message) = made {
        message.metadata.model = fields.string("model_name");
        message.metadata.provider = fields.string("provider_name");
        message.metadata.id = fields.string("provider_response_id");
        message.usage = fields.take("usage").and_then(json);
        message.finish_reason = fields.string("finish_reason").map(|reason| match reason.as_str() {
            "tool_call" => FinishReason::ToolCalls,
            reason => FinishReason::from(reason),
        });
    }
    fields.drop_if(|_, raw| is_empty(raw));
    take::keep(fields, messages.first_mut());
    messages
}

fn chunks(kind: &str, raw: &RawValue, mut part: Fields<'_>, calls: &mut usize) -> (Role, Vec<Chunk>) {
    let role = match kind {
        "system-prompt" | "instruction" => Role::System,
        "user-prompt" => Role::User,
        "tool-return" | "builtin-tool-return" => Role::Tool,
        "retry-prompt" if part.peek("tool_name").is_some() => Role::Tool,
        "retry-prompt" => Role::User,
        _ => Role::Assistant,
    };
    let body = match kind {
        "user-prompt" => {
            let content = part.take("content");
            let mut chunks = content.map(prompt).unwrap_or_default();
            if let Some(chunk) = chunks.first_mut() {
                part.extend(crate::model::extra::Owner::Chunk, &mut chunk.extra);
            }
            return (role, chunks);
        }
        "thinking" => {
            let (text, signature) = (part.string("content").unwrap_or_default(), part.string("signature"));
            (!text.is_empty() || signature.is_some()).then_some(Body::Thinking { text, signature, redacted: None })
        }
        "tool-call" | "builtin-tool-call" => {
            let id = part.string("tool_call_id").unwrap_or_else(|| format!("call_{calls}"));
            *calls += 1;
            let name = part.string("tool_name").unwrap_or_default();
            Some(Body::ToolCall {
                id,
                name,
                arguments: take::arguments(part.take("args")),
                signature: None,
                server: false,
            })
        }
        _ if role == Role::Tool => {
            let id = part.string("tool_call_id").unwrap_or_default();
            let outcome = part.string("outcome");
            let is_error =
                (kind == "retry-prompt" || outcome.is_some_and(|outcome| outcome != "success")).then_some(true);
            let name = part.string("tool_name");
            Some(take::result(&id, name, take::output(part.take("content")), is_error))
        }
        "system-prompt" | "instruction" | "text" | "retry-prompt" => {
            let text = part.text("content").unwrap_or_default();
            (!text.is_empty()).then_some(Body::Text { text, annotations: None })
        }
        _ => return (role, take::opaque(raw, kind, FORMAT.name).into_iter().collect()),
    };
    (role, body.map(|body| take::with_rest(part, body)).into_iter().collect())
}

/// A string, or a list of strings, pictures by their address, data.
fn prompt(raw: &RawValue) -> Vec<Chunk> {
    if let Some(text) = string(raw) {
        return if text.is_empty() { Vec::new() } else { vec![Chunk::text(text)] };
    }
    let part = |raw: &RawValue| {
        if let Some(text) = string(raw) {
            return Some(Chunk::text(text));
        }
        let mut fields = Fields::of(raw)?;
        let kind = fields.string("kind").unwrap_or_default();
        let chunk = match kind.as_str() {
            "image-url" => Chunk::image(fields.string("url")?),
            "document-url" => {
                let url = fields.string("url")?;
                take::document(None, &url, None, fields.string("media_type"))
            }
            "binary" => {
                let (data, mime) = (fields.string("data")?, fields.string("media_type").unwrap_or_default());
                if mime.starts_with("image/") {
                    Body::Image(Image { url: format!("data:{mime};base64,{data}"), mime_type: None }).into()
                } else {
                    Body::File(crate::model::File { name: None, url: None, data: Some(data), mime_type: Some(mime) })
                        .into()
                }
            }
            _ => return take::opaque(raw, kind, FORMAT.name),
        };
        Some(take::with_rest(fields, chunk.body))
    };
    array(raw).unwrap_or_default().into_iter().filter_map(part).collect()
}
