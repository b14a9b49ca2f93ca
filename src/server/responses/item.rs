//! Items of a response: those of the Conversations API, in the words of the request that asked for them.

use serde_json::{Map, Value, json};

use super::about::{About, ResponseId};
use super::sealed::Seal;
use super::tools::{Declared, ToolNames, custom_input};
use crate::history::{MessageState, StoredMessage};
use crate::model::{Body, Chunk, Image, Message};
use crate::provider::Target;
use crate::server::openai::{base64_of, given};

/// How the items of a response are written.
#[derive(Debug)]
pub(super) struct Shape {
    tools: ToolNames,
    gives_reasoning: bool,
    /// Whether nothing is added to an item once the next one has begun. Chat Completions has its parts side by side.
    pub(super) closes_early: bool,
    upstream: String,
    model: String,
    seal: Option<Seal>,
}

impl Shape {
    pub(super) fn of(about: &About, seal: Option<Seal>) -> Self {
        let target = about.target.parse::<Target>().unwrap_or(Target::OPENAI_RESPONSES);
        Self {
            tools: ToolNames::of(&about.fields, target),
            gives_reasoning: about.gives_reasoning,
            closes_early: target.wire().name != Target::OPENAI_CHAT.wire().name,
            upstream: about.upstream.clone(),
            model: about.model.clone(),
            seal,
        }
    }

    pub(super) fn is_custom(&self, name: &str) -> bool {
        self.tools.is_custom(name)
    }

    /// Gives a call the name by which the client declared its tool.
    fn name_call(&self, item: &mut Map<String, Value>) {
        let Some(called) = item.get("name").and_then(Value::as_str) else { return };
        let is_custom = self.is_custom(called);
        let (name, namespace) = match self.tools.back(called) {
            Declared::Function { name, namespace } | Declared::Custom { name, namespace } => (name, namespace),
        };
        let mut set = |name: &str, value: String| _ = item.insert(name.to_owned(), value.into());
        set("name", name);
        if let Some(namespace) = namespace {
            set("namespace", namespace);
        }
        if is_custom && let Some(arguments) = item.remove("arguments") {
            let input = custom_input(arguments.as_str().unwrap_or_default());
            item.insert("input".to_owned(), input.into());
            item.insert("type".to_owned(), "custom_tool_call".into());
        } else if !is_custom && let Some(input) = item.remove("input") {
            // One that nobody declared began as a function's.
            item.insert("arguments".to_owned(), input);
            item.insert("type".to_owned(), "function_call".into());
        }
    }
}

/// The item of a chunk, or of the parts of a message.
pub(super) fn item_of(
    shape: &Shape,
    id: &str,
    message: u64,
    chunks: &[(u32, Chunk)],
    state: MessageState,
) -> Option<Value> {
    let named = chunks.iter().map(|(_, chunk)| Chunk { id: Some(id.to_owned()), ..chunk.clone() });
    let mut stored = StoredMessage::new(message, state, Message::assistant(named));
    stored.chunk_indexes = chunks.iter().map(|(index, _)| *index).collect();
    let given = given(&stored).into_iter().next()?;
    let mut item: Map<String, Value> = serde_json::from_str(&given.json).ok()?;
    let status = match state {
        MessageState::Streaming => "in_progress",
        MessageState::Interrupted => "incomplete",
        MessageState::Complete | MessageState::Synthetic => "completed",
    };
    match item.get("type").and_then(Value::as_str) {
        Some("reasoning") => {
            for name in ["encrypted_content", "status", "content"] {
                item.remove(name);
            }
            // As its events said it: one summary, whatever parts the provider made at the end.
            let (_, chunk) = chunks.first()?;
            let part = json!({ "type": "summary_text", "text": chunk.growing() });
            let summary = if chunk.growing().is_empty() { json!([]) } else { json!([part]) };
            item.insert("summary".to_owned(), summary);
            let seal = shape.seal.as_ref().filter(|_| shape.gives_reasoning);
            if let Some(sealed) = seal.and_then(|seal| seal.thought(chunk, &shape.upstream, &shape.model)) {
                item.insert("encrypted_content".to_owned(), sealed.into());
            }
        }
        Some("function_call" | "custom_tool_call") => {
            item.insert("status".to_owned(), status.into());
            shape.name_call(&mut item);
        }
        Some("message") => _ = item.insert("status".to_owned(), status.into()),
        _ => {}
    }
    Some(item.into())
}

/// An item of which nothing has come but that it begins.
pub(super) fn in_progress(shape: &Shape, id: &str, chunk: &Chunk) -> Value {
    match &chunk.body {
        Body::Thinking { .. } => json!({ "id": id, "type": "reasoning", "summary": [] }),
        Body::ToolCall { id: call, name, .. } => {
            let fields = [
                ("id", id),
                ("type", "function_call"),
                ("status", "in_progress"),
                ("call_id", call),
                ("name", name),
                ("arguments", ""),
            ];
            let mut item = fields.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
            shape.name_call(&mut item);
            item.into()
        }
        _ => json!({ "id": id, "type": "message", "status": "in_progress", "role": "assistant", "content": [] }),
    }
}

/// The prefix of the ids of pictures.
const PICTURE: &str = "ig";

/// The picture that an item was which a client gives back; `None` if it is no item of this server's, or no picture.
pub(super) fn picture(chunk: &Chunk) -> Option<Chunk> {
    let Body::Opaque { kind, json, .. } = &chunk.body else { return None };
    let id = chunk.id.as_deref().filter(|id| id.split_once('_').is_some_and(|(prefix, _)| prefix == PICTURE))?;
    ResponseId::of_answer(id).filter(|_| kind == "image_generation_call")?;
    let item: Value = serde_json::from_str(json.as_str()).ok()?;
    let field = |name: &str| item.get(name).and_then(Value::as_str);
    let url = format!("data:image/{};base64,{}", field("output_format").unwrap_or("png"), field("result")?);
    Some(Chunk { id: chunk.id.clone(), ..Body::Image(Image { url, mime_type: None }).into() })
}

/// The prefix of the id of the item that a chunk begins.
pub(super) fn prefix(body: &Body) -> &'static str {
    match body {
        Body::Image(image) if base64_of(image).is_some() => PICTURE,
        Body::Text { .. } | Body::Refusal { .. } | Body::Image(_) | Body::Audio(_) | Body::File(_) => "msg",
        Body::Thinking { .. } => "rs",
        Body::ToolCall { .. } => "fc",
        Body::ToolResult { .. } => "fco",
        _ => "item",
    }
}
