//! LangChain's messages, as `messages_to_dict` writes them.
//!
//! Source: langchain-core 1.7.2, which wrote the sample.

use std::io::{self, Write};

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::history::Conversation;
use crate::json::fields::{Fields, array, is_empty, string};
use crate::model::extra::{Owner, json as kept};
use crate::model::{Body, Chunk, Image, Json, Message, Output, Part, PartBody, Role};
use crate::provider::Target;
use crate::transfer::foreign::{Foreign, Skipped, Taken};
use crate::transfer::format::{Context, Format, Head, Outgoing, Reader, Writer};
use crate::transfer::take;

pub(crate) const FORMAT: Format = Format {
    name: "langchain",
    about: "LangChain's messages",
    read: Some(Reader::Parts { recognise, group: |_| None, read }),
    tables: None,
    write: Some(Writer { frame: ["", "\n", "\n"], extension: "json", write }),
};

const TYPES: &[(&str, Role)] = &[
    ("human", Role::User),
    ("ai", Role::Assistant),
    ("AIMessageChunk", Role::Assistant),
    ("system", Role::System),
    ("tool", Role::Tool),
    ("function", Role::Tool),
    ("chat", Role::User),
];

/// Classes, as `dumpd` names them.
const CLASSES: &[(&str, &str)] = &[
    ("HumanMessage", "human"),
    ("AIMessage", "ai"),
    ("SystemMessage", "system"),
    ("ToolMessage", "tool"),
    ("FunctionMessage", "function"),
    ("ChatMessage", "chat"),
];

fn role(kind: &str) -> Option<Role> {
    TYPES.iter().find(|(name, _)| *name == kind).map(|(_, role)| *role)
}

fn recognise(head: &Head<'_>) -> bool {
    head.first(|fields| {
        // The state of a graph has its messages in a list.
        let listed = fields.peek("messages").and_then(array).and_then(|messages| messages.first().copied());
        of(fields).is_some() || listed.and_then(Fields::of).is_some_and(|message| of(&message).is_some())
    })
}

/// The kind of a message and its fields, in each of the forms: `messages_to_dict`, `dumpd`, `model_dump`.
fn of<'a>(fields: &Fields<'a>) -> Option<(String, Fields<'a>)> {
    let kind = fields.peek("type").and_then(string)?;
    if kind == "constructor" {
        let inner = fields.peek("kwargs").and_then(Fields::of)?;
        let names = fields.peek("id").and_then(array)?;
        let class = names.last().and_then(|name| string(name))?;
        let known = CLASSES.iter().find(|(name, _)| class.strip_suffix("Chunk").unwrap_or(&class) == *name);
        return known.map(|(_, kind)| ((*kind).to_owned(), inner));
    }
    role(&kind)?;
    if let Some(data) = fields.peek("data").filter(|raw| raw.get().starts_with('{')) {
        return Some((kind, Fields::of(data)?));
    }
    let is_flat = fields.peek("content").is_some() && fields.peek("additional_kwargs").is_some();
    is_flat.then(|| (kind, fields.clone()))
}

fn read(key: &str, values: Vec<String>, _: &Context<'_>) -> Vec<Taken> {
    let mut foreign = Foreign::new(key);
    let mut listed: Vec<String> = Vec::new();
    for value in values {
        let messages =
            Fields::read(&value).ok().filter(|fields| fields.peek("type").is_none()).and_then(|mut state| {
                let messages = state.array("messages")?.into_iter().map(|raw| raw.get().to_owned()).collect::<Vec<_>>();
                foreign.rest = take::rest(state);
                Some(messages)
            });
        match messages {
            Some(messages) => listed.extend(messages),
            None => listed.push(value),
        }
    }
    for value in listed {
        let Ok(fields) = Fields::read(&value) else {
            foreign.skip("message_that_is_no_object");
            continue;
        };
        let Some((kind, data)) = of(&fields) else {
            let kind = fields.peek("type").and_then(string).unwrap_or_default();
            foreign.skip(format!("message_of_kind:{kind}"));
            continue;
        };
        let messages = message(&kind, data, &mut foreign);
        let id = messages.first().and_then(|message| message.metadata.id.clone());
        foreign.push(id, messages);
    }
    vec![Ok(foreign.in_a_row())]
}

fn message(kind: &str, mut fields: Fields<'_>, foreign: &mut Foreign) -> Vec<Message> {
    let role = role(kind).unwrap_or_else(|| {
        foreign.skip("unknown_role_taken_for_user");
        Role::User
    });
    let role = match fields.string("role").as_deref() {
        Some(name) if kind == "chat" => Role::from_name(name).unwrap_or(role),
        _ => role,
    };
    fields.take("type");
    let id = fields.string("id");
    let mut chunks = Vec::new();
    if role == Role::Tool {
        let call = fields.string("tool_call_id").unwrap_or_default();
        let name = fields.string("name");
        let is_error = fields.string("status").map(|status| status == "error");
        let output = pictured(take::output(fields.take("content")));
        chunks.push(Chunk::from(take::result(&call, name, output, is_error)));
    } else {
        let content = fields.take("content").map_or("\"\"", RawValue::get);
        // Blocks are in their provider's form: OpenAI's and Anthropic's, where these differ.
        let wire = if content.contains("\"tool_use\"") || content.contains("\"thinking\"") {
            Target::ANTHROPIC
        } else {
            Target::OPENAI_CHAT
        };
        let request = format!("[{{\"role\":{},\"content\":{content}}}]", json!(role.as_str()));
        let parsed = crate::provider::parse(wire, &request).unwrap_or_default();
        chunks.extend(parsed.messages.into_iter().flat_map(|message| message.chunks));
        let is_call = |chunk: &Chunk, wanted: &str| matches!(&chunk.body, Body::ToolCall { id, .. } if id == wanted);
        for raw in ["tool_calls", "invalid_tool_calls"].iter().flat_map(|name| fields.array(name).unwrap_or_default()) {
            let Some(mut call) = Fields::of(raw) else { continue };
            let (id, name) = (call.string("id").unwrap_or_default(), call.string("name").unwrap_or_default());
            call.take("type");
            // Anthropic's blocks hold the calls too.
            if id.is_empty() || !chunks.iter().any(|chunk| is_call(chunk, &id)) {
                let arguments = take::arguments(call.take("args"));
                chunks.push(take::with_rest(call, Chunk::tool_call(id, name, arguments).body));
            }
        }
        chunks.retain(|chunk| !matches!(&chunk.body, Body::Text { text, .. } if text.is_empty()));
        // Models that send their reasoning beside the content.
        let beside = fields.peek("additional_kwargs").and_then(Fields::of);
        let reasoning = beside.and_then(|mut beside| beside.string("reasoning_content"));
        if let Some(text) = reasoning.filter(|text| !text.is_empty()) {
            chunks.insert(0, Chunk::thinking(text));
        }
    }
    if chunks.is_empty() {
        foreign.skip("empty_message");
        return Vec::new();
    }
    let mut message = Message::new(role, chunks);
    message.metadata.id = id;
    message.usage = fields.take("usage_metadata").and_then(kept);
    if let Some(mut made) = fields.peek("response_metadata").and_then(Fields::of) {
        message.metadata.model = made.string("model_name").or_else(|| made.string("model"));
        message.metadata.provider = made.string("model_provider");
        let reason = made.string("finish_reason").or_else(|| made.string("stop_reason"));
        message.finish_reason = reason.map(|reason| reason.as_str().into());
    }
    fields.drop_if(|_, raw| is_empty(raw));
    take::keep(fields, Some(&mut message));
    vec![message]
}

/// A result whose pictures are pictures.
fn pictured(output: Output) -> Output {
    let picture = |json: &Json| {
        let mut fields = Fields::read(json.as_str()).ok()?;
        let url = match fields.string("type")?.as_str() {
            "image_url" => fields.object("image_url").and_then(|mut image| image.string("url")),
            "image" => fields.string("url").or_else(|| {
                let data = ["base64", "data"].iter().find_map(|name| fields.string(name))?;
                Some(format!("data:{};base64,{data}", fields.string("mime_type")?))
            }),
            _ => None,
        };
        let body = PartBody::Image(Image { url: url?, mime_type: fields.string("mime_type") });
        Some(Part { body, extra: fields.extra(Owner::Chunk) })
    };
    let Output::Parts(parts) = output else { return output };
    let part = |part: Part| match &part.body {
        PartBody::Json { json } => picture(json).unwrap_or(part),
        _ => part,
    };
    Output::Parts(parts.into_iter().map(part).collect())
}

fn write(outgoing: &Outgoing, out: &mut dyn Write, skipped: &mut Skipped) -> io::Result<()> {
    let conversation = Conversation::new(outgoing.messages.clone());
    let list = super::rendered(Target::OPENAI_CHAT, &conversation, "messages", skipped)?;
    let list: Vec<Value> = list.map_or_else(Vec::new, |raw| serde_json::from_str(raw.get()).unwrap_or_default());
    let messages: Vec<Value> = list.iter().map(dict).collect();
    serde_json::to_writer(out, &messages)?;
    Ok(())
}

/// A message as LangChain writes it.
fn dict(message: &Value) -> Value {
    let get = |name: &str| message.get(name).cloned().unwrap_or_default();
    let role = get("role");
    let kind = match role.as_str() {
        Some("assistant") => "ai",
        Some("system" | "developer") => "system",
        Some("tool") => "tool",
        _ => "human",
    };
    let content = Some(get("content")).filter(|content| !content.is_null()).unwrap_or_else(|| json!(""));
    let mut data = json!({ "content": content, "additional_kwargs": {}, "response_metadata": {}, "type": kind, "name": null, "id": null });
    let Some(fields) = data.as_object_mut() else { return data };
    if kind == "ai" {
        let call = |call: &Value| {
            let get = |name: &str| call.pointer(name).cloned().unwrap_or_default();
            let arguments = get("/function/arguments");
            let args: Value = arguments.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
            json!({ "name": get("/function/name"), "args": args, "id": get("/id"), "type": "tool_call" })
        };
        let calls = get("tool_calls");
        let calls: Vec<Value> = calls.as_array().into_iter().flatten().map(call).collect();
        fields.insert("tool_calls".to_owned(), json!(calls));
        fields.insert("invalid_tool_calls".to_owned(), json!([]));
    }
    if kind == "tool" {
        fields.insert("tool_call_id".to_owned(), get("tool_call_id"));
        fields.insert("status".to_owned(), json!("success"));
    }
    json!({ "type": kind, "data": data })
}
