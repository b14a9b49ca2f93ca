//! UIMessages of the AI SDK: what `useChat` stores.
//!
//! Source: the types of ai 6.0.326.

use std::collections::HashSet;
use std::io::{self, Write};

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::documents::place_of;
use crate::history::{Calls, Site};
use crate::json::fields::{Fields, array, string};
use crate::model::extra::Owner;
use crate::model::{Body, Chunk, File, Message, Output, PartBody, Role};
use crate::transfer::foreign::{Foreign, Skipped, Taken};
use crate::transfer::format::{Context, Format, Head, Outgoing, Reader, Writer};
use crate::transfer::take;

pub(crate) const FORMAT: Format = Format {
    name: "ai-sdk",
    about: "UIMessages of the AI SDK",
    read: Some(Reader::Parts { recognise, group, read }),
    tables: None,
    write: Some(Writer { frame: ["", "\n", "\n"], extension: "json", write }),
};

/// The fields in which parts have what a provider added.
const METADATA: &[&str] = &["providerMetadata", "callProviderMetadata"];

fn recognise(head: &Head<'_>) -> bool {
    head.first(|fields| {
        let first = fields.peek("messages").and_then(array).and_then(|messages| messages.first().copied());
        is_message(fields) || first.and_then(Fields::of).is_some_and(|message| is_message(&message))
    })
}

/// Gemini's messages have parts too, but without types. Those of version 4 may have none: they have a content, and fields
/// of the SDK.
fn is_message(fields: &Fields<'_>) -> bool {
    const OF_VERSION_4: &[&str] = &["id", "createdAt", "toolInvocations", "experimental_attachments"];
    let is_text = fields.peek("content").is_some_and(|raw| raw.get().starts_with('"'));
    let is_of_4 = is_text && OF_VERSION_4.iter().any(|name| fields.peek(name).is_some());
    let parts = fields.peek("parts").and_then(array);
    let is_typed = |raw: &&RawValue| Fields::of(raw).is_some_and(|part| part.peek("type").is_some());
    let is_known = |parts: Vec<&RawValue>| match parts.first() {
        Some(part) => is_typed(part),
        None => fields.peek("id").is_some(),
    };
    fields.peek("role").is_some() && (parts.is_some_and(is_known) || is_of_4)
}

/// A chat may be an object with an id and its messages.
fn group(text: &str) -> Option<String> {
    let mut fields = Fields::read(text).ok()?;
    fields.peek("messages")?;
    fields.string("id")
}

fn read(key: &str, values: Vec<String>, _: &Context<'_>) -> Vec<Taken> {
    let mut foreign = Foreign::new(key);
    let mut listed: Vec<String> = Vec::new();
    for value in values {
        let messages = Fields::read(&value).ok().and_then(|mut chat| {
            let messages = chat.array("messages")?.into_iter().map(|raw| raw.get().to_owned()).collect::<Vec<_>>();
            foreign.title = take::title(&mut chat, "title");
            foreign.rest = take::rest(chat);
            Some(messages)
        });
        match messages {
            Some(messages) => listed.extend(messages),
            None => listed.push(value),
        }
    }
    for value in &listed {
        let Ok(mut fields) = Fields::read(value) else {
            foreign.skip("message_that_is_no_object");
            continue;
        };
        let id = fields.string("id").filter(|id| !id.is_empty());
        let id = id.unwrap_or_else(|| foreign.nodes.len().to_string());
        let messages = messages(&id, fields, &mut foreign);
        foreign.push(Some(id), messages);
    }
    vec![Ok(foreign.in_a_row())]
}

fn messages(id: &str, mut fields: Fields<'_>, foreign: &mut Foreign) -> Vec<Message> {
    let name = fields.string("role").unwrap_or_default();
    let role = Role::from_name(&name).unwrap_or_else(|| {
        foreign.skip("unknown_role_taken_for_user");
        Role::User
    });
    let mut messages: Vec<Message> = Vec::new();
    let mut chunks = Vec::new();
    // Results of a step come after all of its calls.
    let mut results = Vec::new();
    let parts = fields.array("parts").unwrap_or_default();
    for raw in &parts {
        let mut part = Fields::of(raw).unwrap_or_default();
        let kind = part.string("type").unwrap_or_default();
        if kind == "step-start" {
            step(role, &mut chunks, &mut results, &mut messages);
            continue;
        }
        // Text after a result was written with the result known.
        if !results.is_empty() && matches!(kind.as_str(), "text" | "reasoning") {
            step(role, &mut chunks, &mut results, &mut messages);
        }
        chunk(&kind, raw, part, &mut chunks, &mut results);
    }
    step(role, &mut chunks, &mut results, &mut messages);
    let text = fields.string("content").filter(|text| !text.is_empty());
    if parts.is_empty() {
        messages.extend(before_parts(role, text, &mut fields));
    } else {
        // The content and the calls repeat the parts.
        ["reasoning", "toolInvocations"].iter().for_each(|name| _ = fields.take(name));
    }
    for raw in fields.array("experimental_attachments").unwrap_or_default() {
        let Some(mut part) = Fields::of(raw) else { continue };
        let Some(body) = file(&mut part) else { continue };
        let chunk = take::with_rest(part, body);
        match messages.first_mut() {
            Some(first) => first.chunks.push(chunk),
            None => messages.push(Message::new(role, [chunk])),
        }
    }
    if messages.is_empty() {
        foreign.skip("empty_message");
    }
    let metadata = fields.peek("metadata").and_then(Fields::of).unwrap_or_default();
    let created_at =
        ["createdAt", "timestamp"].iter().find_map(|name| metadata.peek(name)).or_else(|| fields.peek("createdAt"));
    let created_at = created_at.and_then(take::moment);
    let model = ["model", "modelId"].iter().find_map(|name| metadata.peek(name)).and_then(string);
    for message in &mut messages {
        message.metadata.created_at = created_at;
        if message.role == Role::Assistant {
            message.metadata.model.clone_from(&model);
            message.metadata.provider = message.chunks.iter().find_map(provider);
        }
    }
    if let Some(first) = messages.first_mut() {
        first.metadata.id = Some(id.to_owned());
    }
    take::keep(fields, messages.first_mut());
    messages
}

/// A message of version 4 without parts: its reasoning, its text, its calls and their results by step.
fn before_parts(role: Role, text: Option<String>, fields: &mut Fields<'_>) -> Vec<Message> {
    let (mut messages, mut chunks, mut results) = (Vec::new(), Vec::new(), Vec::new());
    chunks.extend(fields.string("reasoning").filter(|text| !text.is_empty()).map(Chunk::thinking));
    let mut last = None;
    for mut part in fields.array("toolInvocations").unwrap_or_default().into_iter().filter_map(Fields::of) {
        let this = part.integer("step");
        if last.is_some_and(|last| last != this) {
            step(role, &mut chunks, &mut results, &mut messages);
        }
        last = Some(this);
        let name = part.string("toolName").unwrap_or_default();
        call(&name, part, &mut chunks, &mut results);
    }
    // The text is the last step's.
    if text.is_some() && !results.is_empty() {
        step(role, &mut chunks, &mut results, &mut messages);
    }
    chunks.extend(text.map(Chunk::text));
    step(role, &mut chunks, &mut results, &mut messages);
    messages
}

/// The provider whose data a chunk has.
fn provider(chunk: &Chunk) -> Option<String> {
    let json = METADATA.iter().find_map(|name| chunk.extra.get(name))?;
    let raw = RawValue::from_string(json.as_str().to_owned()).ok()?;
    Fields::of(&raw)?.names().next().map(str::to_owned)
}

/// The opaque proof among what a provider added to a part.
fn signature(part: &Fields<'_>) -> Option<String> {
    added(part, &["signature", "reasoningEncryptedContent", "thoughtSignature"])
}

/// A text of one of these names among what a provider added to a part.
fn added(part: &Fields<'_>, names: &[&str]) -> Option<String> {
    let providers = METADATA.iter().find_map(|name| part.peek(name)).and_then(Fields::of)?;
    let mut data = providers.rest().filter_map(|(_, raw)| Fields::of(raw));
    data.find_map(|mut data| names.iter().find_map(|name| data.string(name))).filter(|text| !text.is_empty())
}

fn step(role: Role, chunks: &mut Vec<Chunk>, results: &mut Vec<Chunk>, messages: &mut Vec<Message>) {
    if !chunks.is_empty() {
        messages.push(Message::new(role, chunks.drain(..)));
    }
    messages.extend(results.drain(..).map(|result| Message::new(Role::Tool, [result])));
}

fn chunk(kind: &str, raw: &RawValue, mut part: Fields<'_>, chunks: &mut Vec<Chunk>, results: &mut Vec<Chunk>) {
    let said = match kind {
        "text" => part.string("text").map(|text| Body::Text { text, annotations: None }),
        // Version 4 has the text under the part's own name, and again in `details`, with the signature.
        "reasoning" => part.string("text").or_else(|| part.string("reasoning")).map(|text| {
            let details = part.peek("details").and_then(array).unwrap_or_default();
            let signed = details.into_iter().find_map(|raw| Fields::of(raw)?.string("signature"));
            let redacted = added(&part, &["redactedData"]);
            Body::Thinking { text, signature: signature(&part).or(signed), redacted }
        }),
        "file" => file(&mut part),
        _ => None,
    };
    match said {
        Some(Body::Text { text, .. }) if text.is_empty() => {}
        Some(body) => chunks.push(take::with_rest(part, body)),
        None if kind == "tool-invocation" && part.peek("toolInvocation").is_some() => {
            let mut inner = part.object("toolInvocation").unwrap_or_default();
            let name = inner.string("toolName").unwrap_or_default();
            call(&name, inner, chunks, results);
        }
        None => match kind
            .strip_prefix("tool-")
            .map(str::to_owned)
            .or_else(|| (kind == "dynamic-tool").then(|| part.string("toolName").unwrap_or_default()))
        {
            Some(name) => call(&name, part, chunks, results),
            None => chunks.extend(take::opaque(raw, kind, FORMAT.name)),
        },
    }
}

fn file(part: &mut Fields<'_>) -> Option<Body> {
    // Version 4 has the file's data in base64.
    let url = part.string("url").or_else(|| {
        let mime = part.peek("mimeType").and_then(string)?;
        part.string("data").map(|data| format!("data:{mime};base64,{data}"))
    })?;
    let mime_type = ["mediaType", "mimeType", "contentType"].iter().find_map(|name| part.string(name));
    if mime_type.as_deref().is_some_and(|mime| mime.starts_with("image/")) {
        let mut chunk = take::picture(None, &url, mime_type);
        if url.starts_with("data:") {
            chunk = Chunk::image(url);
        }
        return Some(chunk.body);
    }
    let name = ["filename", "name"].iter().find_map(|name| part.string(name));
    Some(Body::File(File { name, url: Some(url), data: None, mime_type }))
}

/// A call, and its result if there is one.
fn call(name: &str, mut part: Fields<'_>, chunks: &mut Vec<Chunk>, results: &mut Vec<Chunk>) {
    let id = part.string("toolCallId").unwrap_or_default();
    let state = part.string("state").unwrap_or_default();
    // Version 4 has `args` and `result`.
    let input = ["input", "rawInput", "args"].iter().find_map(|name| part.take(name));
    let output = ["output", "result"].iter().find_map(|name| part.take(name));
    let error = part.string("errorText");
    let result = match state.as_str() {
        "output-error" => Some((Output::Text(error.unwrap_or_default()), Some(true))),
        "output-denied" => Some((Output::Text("The call was denied.".to_owned()), Some(true))),
        "output-available" => Some((take::output(output), None)),
        _ => output.map(|output| (take::output(Some(output)), None)),
    };
    let proof = signature(&part);
    let arguments = take::arguments(input);
    let body = Body::ToolCall { id: id.clone(), name: name.to_owned(), arguments, signature: proof, server: false };
    let mut chunk = Chunk::from(body);
    part.extend(Owner::Chunk, &mut chunk.extra);
    chunks.push(chunk);
    results.extend(result.map(|(output, is_error)| take::result(&id, Some(name.to_owned()), output, is_error).into()));
}

fn write(outgoing: &Outgoing, out: &mut dyn Write, skipped: &mut Skipped) -> io::Result<()> {
    let paired = Calls::pair(&outgoing.messages);
    let results: HashSet<Site> = paired.pairs().map(|(_, result)| result).collect();
    let at = |site: Site| outgoing.messages.get(site.message)?.message.chunks.get(site.chunk);
    let mut messages: Vec<Value> = Vec::new();
    for (number, stored) in outgoing.messages.iter().enumerate() {
        let message = &stored.message;
        let provider = message.metadata.provider.as_deref();
        let mut parts: Vec<Value> = Vec::new();
        for (chunk, content) in message.chunks.iter().enumerate() {
            let site = Site { message: number, chunk };
            let mut skip = |kind: &str| *skipped.entry(kind.to_owned()).or_default() += 1;
            match &content.body {
                // It is written with its call.
                Body::ToolResult { .. } if results.contains(&site) => continue,
                Body::ToolResult { .. } => skip("result_without_a_call"),
                body if message.role == Role::Tool => skip(body.kind()),
                _ => {
                    let Some(mut part) = part(content, provider, skipped) else { continue };
                    if let Some(result) = paired.result(site).and_then(at) {
                        answer(&mut part, result);
                    }
                    parts.push(part);
                }
            }
        }
        if message.role == Role::Tool || parts.is_empty() && message.role != Role::Assistant {
            continue;
        }
        // The model's turn is one message, with a step for each answer.
        if message.role == Role::Assistant {
            parts.insert(0, json!({ "type": "step-start" }));
            if let Some(last) = messages.last_mut().filter(|last| last.get("role") == Some(&json!("assistant")))
                && let Some(list) = last.get_mut("parts").and_then(Value::as_array_mut)
            {
                list.extend(parts);
                continue;
            }
        }
        let id = message.metadata.id.clone().unwrap_or_else(|| format!("{}-{}", outgoing.item.id, stored.index));
        let created_at = message.metadata.created_at.map(|at| at.as_micros().div_euclid(1000));
        messages.push(
            json!({ "id": id, "role": message.role.as_str(), "metadata": { "createdAt": created_at }, "parts": parts }),
        );
    }
    serde_json::to_writer(out, &messages)?;
    Ok(())
}

fn part(chunk: &Chunk, provider: Option<&str>, skipped: &mut Skipped) -> Option<Value> {
    let mut part = bare_part(chunk, skipped)?;
    let name = if part.get("toolCallId").is_some() { "callProviderMetadata" } else { "providerMetadata" };
    let as_it_came = METADATA.iter().find_map(|name| chunk.extra.get(name));
    let added = match as_it_came {
        Some(json) => serde_json::from_str(json.as_str()).ok(),
        None => proof(chunk, provider, skipped),
    };
    if let (Some(added), Some(fields)) = (added, part.as_object_mut()) {
        fields.insert(name.to_owned(), added);
    }
    Some(part)
}

/// The opaque proof of thinking or of a call, where the provider's package of the SDK looks for it.
fn proof(chunk: &Chunk, provider: Option<&str>, skipped: &mut Skipped) -> Option<Value> {
    let (signature, redacted) = match &chunk.body {
        Body::Thinking { signature, redacted, .. } => (signature.as_deref(), redacted.as_deref()),
        Body::ToolCall { signature, .. } => (signature.as_deref(), None),
        _ => return None,
    };
    match (provider.unwrap_or_default(), signature, redacted) {
        (_, None, None) => None,
        (name @ ("anthropic" | "bedrock"), _, Some(data)) => Some(json!({ name: { "redactedData": data } })),
        ("anthropic", Some(signature), _) => Some(json!({ "anthropic": { "signature": signature } })),
        ("bedrock", Some(signature), _) => Some(json!({ "bedrock": { "signature": signature } })),
        ("google" | "gemini", Some(signature), _) => Some(json!({ "google": { "thoughtSignature": signature } })),
        ("openai", Some(content), _) => {
            Some(json!({ "openai": { "itemId": chunk.id, "reasoningEncryptedContent": content } }))
        }
        _ => {
            *skipped.entry("signature".to_owned()).or_default() += 1;
            None
        }
    }
}

fn bare_part(chunk: &Chunk, skipped: &mut Skipped) -> Option<Value> {
    Some(match &chunk.body {
        Body::Text { text, .. } | Body::Refusal { text } => json!({ "type": "text", "text": text, "state": "done" }),
        Body::Thinking { text, .. } => json!({ "type": "reasoning", "text": text, "state": "done" }),
        Body::ToolCall { id, name, arguments, .. } => {
            let input = serde_json::from_str(arguments).unwrap_or_else(|_| json!(arguments));
            json!({ "type": format!("tool-{name}"), "toolCallId": id, "state": "input-available", "input": input })
        }
        Body::Image(image) => {
            let mime = image.mime_type.as_deref().or_else(|| labelled(&image.url)).unwrap_or("image/*");
            json!({ "type": "file", "mediaType": mime, "url": image.url })
        }
        Body::File(file) => {
            let place = place_of(file);
            let labelled = || place.as_deref().and_then(labelled);
            let mime = file.mime_type.as_deref().or_else(labelled).unwrap_or("application/octet-stream");
            json!({ "type": "file", "mediaType": mime, "filename": file.name, "url": place })
        }
        other => {
            *skipped.entry(other.kind().to_owned()).or_default() += 1;
            return None;
        }
    })
}

/// The media type that a data URL states.
fn labelled(url: &str) -> Option<&str> {
    url.strip_prefix("data:")?.split([';', ',']).next().filter(|label| !label.is_empty())
}

/// Adds a result to its call.
fn answer(call: &mut Value, result: &Chunk) {
    let (Body::ToolResult { output, is_error, .. }, Some(call)) = (&result.body, call.as_object_mut()) else { return };
    let output = match output {
        Output::Text(text) => json!(text),
        Output::Parts(parts) => match parts.as_slice() {
            [part] if matches!(part.body, PartBody::Json { .. }) => match &part.body {
                PartBody::Json { json } => serde_json::from_str(json.as_str()).unwrap_or_default(),
                _ => Value::Null,
            },
            parts => serde_json::to_value(parts).unwrap_or_default(),
        },
    };
    if *is_error == Some(true) {
        call.insert("state".to_owned(), json!("output-error"));
        let text = output.as_str().map_or_else(|| output.to_string(), str::to_owned);
        call.insert("errorText".to_owned(), json!(text));
    } else {
        call.insert("state".to_owned(), json!("output-available"));
        call.insert("output".to_owned(), output);
    }
}
