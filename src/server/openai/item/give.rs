//! Messages to items, no matter who wrote them. What arrived as an item is that item; anything else is written as one.
//!
//! What a text cites, in OpenAI's words where they say the same. What they do not say stays as its provider wrote it.
//!
//! Sources: the types of the vendors' Python SDKs: openai 3.52.0, `ResponseOutputText`; anthropic 2.14.0, `TextCitation`;
//! botocore 1.44.8, `Citation` of `bedrock-runtime`.

use serde_json::{Map, Value, json};

use super::normal::{object, prefix, string};
use super::{FRAME, WIRE};
use crate::history::{MessageState, StoredMessage};
use crate::model::{Audio, Body, Chunk, Extra, FinishReason, Image, Json, Native, Output, Part, PartBody, Role};

/// An item and its place.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) id: String,
    /// The index of its message, and of its first chunk; 0 for a message that is an item.
    pub(crate) place: (u64, u32),
    /// Its chunks; none if it is the whole message.
    pub(crate) chunks: Vec<u32>,
    pub(crate) json: String,
}

impl Given {
    /// An id that names its place, even if something else has its id too.
    pub(crate) fn place_id(&self) -> String {
        synthetic_id("", self.place.0, self.place.1)
    }
}

/// The items of a message, in order. An error of a generation, and blocks of other providers, yield none.
pub(crate) fn given(stored: &StoredMessage) -> Vec<Given> {
    let message = &stored.message;
    if let Some(Native { wire, json }) = &message.metadata.native
        && wire == FRAME
        && let Ok(frame) = Extra::from_object(json.as_str())
    {
        return vec![framed(stored, &frame)];
    }
    let said_by_others = matches!(message.role, Role::User | Role::System);
    if said_by_others && !message.chunks.iter().any(|chunk| own_item(chunk).is_some()) {
        return whole(stored).into_iter().collect();
    }
    let mut items: Vec<Given> = Vec::new();
    let mut at = 0;
    while let Some(chunk) = message.chunks.get(at) {
        // Parts of one answer of the provider's share its id.
        let rest = message.chunks.get(at..).unwrap_or_default();
        let is_part = |other: &&Chunk| other.id == chunk.id && is_text(other) && own_item(other).is_none();
        let parts = if chunk.id.is_some() { rest.iter().take_while(is_part).count().max(1) } else { 1 };
        let run = rest.get(..parts).unwrap_or_default();
        items.extend(item(stored, at, run));
        at += parts;
    }
    items
}

fn is_text(chunk: &Chunk) -> bool {
    matches!(chunk.body, Body::Text { .. } | Body::Refusal { .. })
}

/// The item that a chunk arrived as.
fn own_item(chunk: &Chunk) -> Option<&Json> {
    let json = match (&chunk.native, &chunk.body) {
        (Some(native), _) if native.wire == WIRE => &native.json,
        (_, Body::Opaque { provider, json, .. }) if provider == "openai" => json,
        _ => return None,
    };
    let fields = Extra::from_object(json.as_str()).ok()?;
    let kind: String = serde_json::from_str(fields.get("type")?.as_str()).ok()?;
    // A part has no id: whatever has the chunk's id is an item, regardless of its type.
    let id = fields.get("id").and_then(|id| serde_json::from_str::<String>(id.as_str()).ok());
    if id.is_some() && id == chunk.id {
        return Some(json);
    }
    let is_part = ["input_", "output_"].iter().any(|begins| kind.starts_with(begins))
        || ["text", "refusal", "summary_text", "reasoning_text"].contains(&kind.as_str());
    (!is_part).then_some(json)
}

/// An item whose parts are the message's chunks.
fn framed(stored: &StoredMessage, frame: &Extra) -> Given {
    let parts: Vec<String> = stored.message.chunks.iter().map(|chunk| part(chunk, stored.message.role)).collect();
    let parts = format!("[{}]", parts.join(","));
    let fields = frame.iter().map(|(name, value)| (name, if name == "content" { &*parts } else { value.as_str() }));
    let id = stored.message.metadata.id.clone().unwrap_or_else(|| synthetic_id("message", stored.index, 0));
    Given { id, place: (stored.index, 0), chunks: Vec::new(), json: object(fields) }
}

/// A user or system message that did not arrive as an item.
fn whole(stored: &StoredMessage) -> Option<Given> {
    if stored.message.chunks.is_empty() {
        return None;
    }
    let id = stored.message.metadata.id.clone().unwrap_or_else(|| synthetic_id("message", stored.index, 0));
    let parts: Vec<String> = stored.message.chunks.iter().map(|chunk| part(chunk, stored.message.role)).collect();
    let fields = [
        ("id", Value::from(&*id).to_string()),
        ("type", "\"message\"".to_owned()),
        ("role", Value::from(stored.message.role.as_str()).to_string()),
        ("content", format!("[{}]", parts.join(","))),
        ("status", Value::from(status(stored)).to_string()),
    ];
    let json = object(fields.iter().map(|(name, value)| (*name, value.as_str())));
    Some(Given { id, place: (stored.index, 0), chunks: Vec::new(), json })
}

/// The item of one chunk, or of several parts of an answer.
fn item(stored: &StoredMessage, at: usize, run: &[Chunk]) -> Option<Given> {
    let chunk = run.first()?;
    let first = stored.chunk_index(at);
    let chunks = (at..at + run.len()).map(|at| stored.chunk_index(at)).collect();
    let (kind, fields) = match own_item(chunk) {
        Some(json) => {
            let fields = Extra::from_object(json.as_str()).ok()?;
            let kind = serde_json::from_str::<String>(fields.get("type")?.as_str()).ok()?;
            (kind, fields)
        }
        None => written(stored, chunk, run)?,
    };
    let own = fields.get("id").and_then(|id| serde_json::from_str::<Option<String>>(id.as_str()).ok()).flatten();
    let id = chunk.id.clone().or_else(|| own.clone()).filter(|id| !id.is_empty());
    let id = id.unwrap_or_else(|| synthetic_id(&kind, stored.index, first));
    let json = if own.as_deref() == Some(&id) {
        object(fields.iter().map(|(name, value)| (name, value.as_str())))
    } else {
        let quoted = string(&id)?;
        let others = fields.iter().filter(|(name, _)| *name != "id").map(|(name, value)| (name, value.as_str()));
        object(std::iter::once(("id", quoted.as_str())).chain(others))
    };
    Some(Given { id, place: (stored.index, first), chunks, json })
}

/// A chunk that did not arrive as an item, as one: its type and fields.
fn written(stored: &StoredMessage, chunk: &Chunk, run: &[Chunk]) -> Option<(String, Extra)> {
    let status = status(stored);
    let (kind, fields) = match &chunk.body {
        Body::Thinking { text, signature, redacted } => {
            let summary = if text.is_empty() { json!([]) } else { json!([{ "type": "summary_text", "text": text }]) };
            let mut fields = vec![("summary", summary)];
            fields.extend(signature.as_ref().or(redacted.as_ref()).map(|data| ("encrypted_content", json!(data))));
            ("reasoning", fields)
        }
        Body::ToolCall { id, name, arguments, .. } => (
            "function_call",
            vec![
                ("call_id", json!(id)),
                ("name", json!(name)),
                ("arguments", json!(arguments)),
                ("status", json!(status)),
            ],
        ),
        Body::ToolResult { tool_call_id, output, .. } => {
            let output = match output {
                Output::Text(text) => json!(text),
                Output::Parts(parts) => parts.iter().map(result_part).collect(),
            };
            let fields = vec![("call_id", json!(tool_call_id)), ("output", output), ("status", json!(status))];
            ("function_call_output", fields)
        }
        Body::Error { .. } | Body::Opaque { .. } | Body::Unknown { .. } => return None,
        // OpenAI's models give pictures as what a tool made.
        Body::Image(image) if stored.message.role == Role::Assistant && base64_of(image).is_some() => {
            let (kind, data) = base64_of(image).unwrap_or_default();
            let format = kind.strip_prefix("image/").unwrap_or(kind);
            let fields =
                vec![("status", json!("completed")), ("output_format", json!(format)), ("result", json!(data))];
            ("image_generation_call", fields)
        }
        Body::Text { .. } | Body::Refusal { .. } | Body::Image(_) | Body::Audio(_) | Body::File(_) => {
            let parts: Vec<String> = run.iter().map(|chunk| part(chunk, stored.message.role)).collect();
            let mut fields = Extra::new();
            fields.push("type", string("message")?);
            fields.push("role", string(if stored.message.role == Role::Tool { "tool" } else { "assistant" })?);
            fields.push("content", Json::new(format!("[{}]", parts.join(","))).ok()?);
            fields.push("status", string(status)?);
            return Some(("message".to_owned(), fields));
        }
    };
    let mut all = Extra::new();
    all.push("type", string(kind)?);
    for (name, value) in fields {
        all.push(name, Json::new(value.to_string()).ok()?);
    }
    Some((kind.to_owned(), all))
}

/// OpenAI's word for the status of a message.
fn status(stored: &StoredMessage) -> &'static str {
    match stored.state {
        MessageState::Streaming => "in_progress",
        _ if stored.message.finish_reason == Some(FinishReason::Interrupted) => "incomplete",
        MessageState::Interrupted => "incomplete",
        MessageState::Complete | MessageState::Synthetic => "completed",
    }
}

/// A chunk as a part of a message: unchanged if it arrived as a part.
fn part(chunk: &Chunk, role: Role) -> String {
    match (&chunk.native, &chunk.body) {
        (Some(native), _) if native.wire == WIRE && own_item(chunk).is_none() => {
            return native.json.as_str().to_owned();
        }
        (_, Body::Opaque { json, .. }) => return json.as_str().to_owned(),
        _ => {}
    }
    let is_models = role == Role::Assistant;
    let part = match &chunk.body {
        Body::Text { text, .. } if !is_models => json!({ "type": "input_text", "text": text }),
        Body::Text { text, annotations } => {
            let annotations = annotations.as_ref().map(|json| annotations_of(json, text)).unwrap_or_default();
            json!({ "type": "output_text", "text": text, "annotations": annotations, "logprobs": [] })
        }
        Body::Refusal { text } => json!({ "type": "refusal", "refusal": text }),
        // OpenAI's models have no parts but texts.
        Body::Image(Image { url, .. }) if is_models => {
            json!({ "type": "output_text", "text": url, "annotations": [], "logprobs": [] })
        }
        Body::Audio(audio) if is_models => sound_part(audio, audio.transcript.as_deref().unwrap_or_default()),
        Body::Image(image) => image_part(image),
        Body::File(file) => {
            json!({ "type": "input_file", "filename": file.name, "file_url": file.url, "file_data": file.data })
        }
        Body::Audio(audio) => json!({ "type": "input_text", "text": audio.transcript.as_deref().unwrap_or_default() }),
        Body::Thinking { text, .. } => json!({ "type": "reasoning_text", "text": text }),
        Body::Error { message, .. } => json!({ "type": "text", "text": message }),
        // In messages of others than the model, such a chunk is written as its own JSON.
        _ => json!({ "type": "text", "text": serde_json::to_string(chunk).unwrap_or_default() }),
    };
    part.to_string()
}

/// The media type and the base64 data of a picture that is no address.
pub(crate) fn base64_of(image: &Image) -> Option<(&str, &str)> {
    image.url.strip_prefix("data:")?.split_once(";base64,")
}

/// What is said in a sound, with the sound beside it.
pub(crate) fn sound_part(audio: &Audio, said: &str) -> Value {
    let sound = json!({ "data": audio.data, "url": audio.url, "mime_type": audio.mime_type });
    json!({ "type": "output_text", "text": said, "annotations": [], "logprobs": [], "audio": sound })
}

fn image_part(image: &Image) -> Value {
    json!({ "type": "input_image", "image_url": image.url, "detail": "auto" })
}

fn result_part(part: &Part) -> Value {
    match &part.body {
        PartBody::Text { text } => json!({ "type": "input_text", "text": text }),
        PartBody::Image(image) => image_part(image),
        PartBody::File(file) => {
            json!({ "type": "input_file", "filename": file.name, "file_url": file.url, "file_data": file.data })
        }
        PartBody::Json { json } => json!({ "type": "input_text", "text": json.as_str() }),
        PartBody::Audio(_) | PartBody::Unknown { .. } => {
            json!({ "type": "input_text", "text": serde_json::to_string(part).unwrap_or_default() })
        }
    }
}

/// The id of an item that has none: its place.
pub(crate) fn synthetic_id(kind: &str, message: u64, chunk: u32) -> String {
    format!("{}_{message}_{chunk}", prefix(kind))
}

/// The place that a synthetic id names.
pub(crate) fn synthetic_place(id: &str) -> Option<(u64, u32)> {
    let mut fields = id.split('_').skip(1);
    let place = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    fields.next().is_none().then_some(place)
}

/// The annotations of a text.
pub(crate) fn annotations_of(annotations: &Json, text: &str) -> Vec<Value> {
    let all: Vec<Value> = serde_json::from_str(annotations.as_str()).unwrap_or_default();
    all.into_iter()
        .map(|annotation| match annotation {
            Value::Object(fields) => annotation_of(fields, text),
            other => other,
        })
        .collect()
}

fn annotation_of(mut fields: Map<String, Value>, text: &str) -> Value {
    let word = |name: &str| fields.get(name).and_then(Value::as_str).filter(|word| !word.is_empty());
    let web = |url: &str, title: Option<&str>| {
        let mut citation = json!({
            "type": "url_citation", "url": url, "title": title.unwrap_or(url), "start_index": 0, "end_index": text.chars().count(),
        });
        // What the source says, where the provider quotes it.
        if let (Some(cited), Value::Object(citation)) = (word("cited_text"), &mut citation) {
            citation.insert("cited_text".to_owned(), cited.into());
        }
        citation
    };
    let is_address = |source: &&str| source.starts_with("http://") || source.starts_with("https://");
    let made = match word("type") {
        Some("web_search_result_location") => word("url").map(|url| web(url, word("title"))),
        Some("search_result_location") => word("source").filter(is_address).map(|url| web(url, word("title"))),
        Some("char_location" | "page_location" | "content_block_location") => word("file_id").map(|file| {
            let name = word("document_title").unwrap_or_default();
            json!({ "type": "file_citation", "file_id": file, "filename": name, "index": text.chars().count() })
        }),
        Some(_) => None,
        // Bedrock's have no type, but a place of one kind.
        None => fields.get("location").and_then(Value::as_object).and_then(|location| {
            let web_page = location.get("web").and_then(|page| page.get("url")?.as_str());
            let found = location.get("searchResultLocation").and_then(|_| word("source")).filter(is_address);
            web_page.or(found).map(|url| web(url, word("title")))
        }),
    };
    if let Some(made) = made {
        return made;
    }
    // Chat Completions has what a citation says in an object of its own.
    if let Some(Value::Object(citation)) = fields.remove("url_citation") {
        fields.extend(citation);
    }
    fields.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_citation_of_the_same_meaning_is_openais() {
        let web = json!({
            "type": "url_citation", "url": "https://x.test/rust", "title": "Rust", "start_index": 0, "end_index": 4,
        });
        let quoted = {
            let mut web = web.clone();
            web["cited_text"] = json!("It is.");
            web
        };
        let untitled = {
            let mut web = web.clone();
            web["title"] = json!("https://x.test/rust");
            web
        };
        let table = [
            (json!({ "type": "url_citation", "url_citation": { "url": "u", "start_index": 2 } }), {
                json!({ "type": "url_citation", "url": "u", "start_index": 2 })
            }),
            (
                json!({ "type": "web_search_result_location", "cited_text": "It is.", "url": "https://x.test/rust", "title": "Rust",
                    "encrypted_index": "Eo8B" }),
                quoted.clone(),
            ),
            (json!({ "type": "web_search_result_location", "url": "https://x.test/rust", "title": null }), untitled),
            (
                json!({ "type": "search_result_location", "cited_text": "It is.", "source": "https://x.test/rust", "title": "Rust",
                    "search_result_index": 0, "start_block_index": 0, "end_block_index": 1 }),
                quoted,
            ),
            (
                json!({ "type": "page_location", "cited_text": "It is.", "document_index": 1, "document_title": "a.pdf",
                    "start_page_number": 1, "end_page_number": 2, "file_id": "file_1" }),
                json!({ "type": "file_citation", "file_id": "file_1", "filename": "a.pdf", "index": 4 }),
            ),
            (
                json!({ "title": "Rust", "location": { "web": { "url": "https://x.test/rust", "domain": "x.test" } } }),
                web.clone(),
            ),
            (
                json!({ "title": "Rust", "source": "https://x.test/rust", "location": { "searchResultLocation": { "start": 0 } } }),
                web,
            ),
        ];
        for (given, wanted) in table {
            let found = annotations_of(&Json::new(json!([given]).to_string()).unwrap(), "Yes\u{1f600}");
            assert_eq!(found, [wanted], "{given}");
        }
    }

    #[test]
    fn what_openai_cannot_say_stays_as_it_is() {
        for given in [
            json!({ "type": "char_location", "cited_text": "a", "document_index": 0, "document_title": "b", "file_id": null }),
            json!({ "type": "search_result_location", "source": "kb/7", "title": "c" }),
            json!({ "title": "Doc", "location": { "documentChar": { "documentIndex": 0, "start": 0, "end": 15 } } }),
            json!({ "type": "file_path", "file_id": "f", "index": 1 }),
            json!("odd"),
        ] {
            assert_eq!(annotations_of(&Json::new(json!([given]).to_string()).unwrap(), "text"), [given]);
        }
    }
}
