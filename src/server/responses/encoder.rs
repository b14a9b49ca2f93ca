//! Entries of the log to the events of a response. What was streamed once is streamed again: events follow from the entries alone,
//! whatever the upstream's wire was, and so do their numbers.
//!
//! Source of the events: OpenAI's OpenAPI document of 2026-08-21, and the Open Responses specification.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::about::{About, End, ResponseId};
use super::item::{Shape, in_progress, item_of};
use super::sealed::Seal;
use super::words::code;
use crate::history::{Entry, EntryKind, MessageState};
use crate::model::{Body, Chunk, FinishReason, Json, Timestamp};
use crate::provider::TokenCounts;
use crate::server::openai::{annotations_of, base64_of, sound_part};

/// The code of a failure of which nothing else is known.
const SERVER_ERROR: &str = "server_error";

/// An event of a response.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) number: u64,
    pub(super) kind: &'static str,
    pub(super) data: Value,
}

/// How far a response is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Queued,
    InProgress,
    Completed,
    /// The reason, in OpenAI's word; the provider's where OpenAI has none.
    Incomplete(String),
    Cancelled,
    Failed {
        /// In the word of who reports it.
        word: String,
        message: String,
    },
}

impl Status {
    const fn word(&self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Incomplete(_) => "incomplete",
            Self::Cancelled => "cancelled",
            Self::Failed { .. } => "failed",
        }
    }

    pub(super) const fn is_end(&self) -> bool {
        !matches!(self, Self::Queued | Self::InProgress)
    }

    pub(super) const fn has_failed(&self) -> bool {
        matches!(self, Self::Failed { .. })
    }

    /// The last event.
    const fn event(&self) -> &'static str {
        match self {
            Self::Queued => "response.queued",
            Self::InProgress => "response.in_progress",
            Self::Completed => "response.completed",
            // A cancelled response has no event of its own.
            Self::Incomplete(_) | Self::Cancelled => "response.incomplete",
            Self::Failed { .. } => "response.failed",
        }
    }
}

/// A response as far as its entries were read.
#[derive(Debug)]
pub(super) struct Encoder {
    id: ResponseId,
    about: About,
    shape: Shape,
    created_at: Timestamp,
    completed_at: Option<Timestamp>,
    model: String,
    usage: Option<Json>,
    pub(super) status: Status,
    failure: Option<(String, String)>,
    chunks: BTreeMap<u32, Open>,
    items: Vec<Item>,
    number: u64,
    events: Vec<Event>,
    /// Bytes of the answer that were taken.
    taken: usize,
}

/// A chunk, and the item that it is of, once it is known enough to be one.
#[derive(Debug)]
struct Open {
    chunk: Chunk,
    item: Option<usize>,
    /// Its place among the parts of its item.
    part: usize,
}

#[derive(Debug)]
struct Item {
    id: String,
    chunks: Vec<u32>,
    kind: Kind,
    /// Whether words of its summary have come.
    has_summary: bool,
    /// As it ended.
    done: Option<Value>,
}

/// What an item is to its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Message,
    Reasoning,
    Call,
    /// It comes whole.
    Other,
}

impl Encoder {
    /// Of a response that has begun, but of whose answer nothing was read.
    pub(super) fn new(id: ResponseId, about: About, seal: Option<Seal>, created_at: Timestamp) -> Self {
        let (shape, model) = (Shape::of(&about, seal), about.model.clone());
        Self {
            id,
            about,
            shape,
            created_at,
            completed_at: None,
            model,
            usage: None,
            status: Status::InProgress,
            failure: None,
            chunks: BTreeMap::new(),
            items: Vec::new(),
            number: 0,
            events: Vec::new(),
            taken: 0,
        }
    }

    /// The number of the next event.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// Bytes of the answer that it holds.
    pub(super) const fn taken(&self) -> usize {
        self.taken
    }

    /// Takes the next entry of the log: the events that follow from it.
    pub(super) fn take(&mut self, entry: Entry) -> Vec<Event> {
        if entry.message_index != Some(self.id.message) || self.status.is_end() {
            return Vec::new();
        }
        match entry.kind {
            EntryKind::Begin { .. } => {
                self.created_at = entry.created_at;
                self.begin();
            }
            EntryKind::Chunk { chunk, .. } => self.chunk(entry.chunk_index.unwrap_or_default(), *chunk),
            EntryKind::Finish { header } => {
                self.usage = header.usage;
                if let Some(model) = header.metadata.model {
                    self.model = model;
                }
                let end = End::of(&header.metadata.extra);
                self.end(entry.created_at, self.ended(header.finish_reason.as_ref(), end));
            }
            EntryKind::Interrupt { .. } => self.end(
                entry.created_at,
                Status::Failed {
                    word: SERVER_ERROR.to_owned(),
                    message: "the server ended before the answer did; what had come of it is kept".to_owned(),
                },
            ),
            _ => {}
        }
        std::mem::take(&mut self.events)
    }

    fn begin(&mut self) {
        if self.about.is("background") {
            self.status = Status::Queued;
            self.state("response.created");
            self.state("response.queued");
            self.status = Status::InProgress;
        } else {
            self.state("response.created");
        }
        self.state("response.in_progress");
    }

    /// What a finish reason says of the response.
    fn ended(&self, reason: Option<&FinishReason>, end: End) -> Status {
        let failed = |message: &str| match &self.failure {
            Some((word, message)) => Status::Failed { word: word.clone(), message: message.clone() },
            None => {
                let message = end.failure.as_deref().unwrap_or(message).to_owned();
                Status::Failed { word: SERVER_ERROR.to_owned(), message }
            }
        };
        match reason {
            _ if end.is_cancelled => Status::Cancelled,
            None | Some(FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Refusal) => Status::Completed,
            Some(FinishReason::Length) => Status::Incomplete("max_output_tokens".to_owned()),
            Some(FinishReason::ContentFilter) => Status::Incomplete("content_filter".to_owned()),
            Some(FinishReason::Error) => failed("the model's answer failed"),
            Some(FinishReason::Interrupted) => failed("the upstream ended the connection before its answer was whole"),
            // What is not known is not called whole.
            Some(other) => Status::Incomplete(other.as_str().to_owned()),
        }
    }

    /// Says how the response is.
    fn state(&mut self, kind: &'static str) {
        let response = self.object();
        self.say(kind, json!({ "response": response }));
    }

    fn say(&mut self, kind: &'static str, data: Value) {
        let mut fields = Map::new();
        fields.insert("type".to_owned(), kind.into());
        fields.insert("sequence_number".to_owned(), self.number.into());
        if let Value::Object(data) = data {
            fields.extend(data);
        }
        self.events.push(Event { number: self.number, kind, data: Value::Object(fields) });
        self.number += 1;
    }

    fn chunk(&mut self, index: u32, piece: Chunk) {
        if let Body::Error { message, code } = &piece.body {
            let word = code.clone().filter(|code| !code.is_empty()).unwrap_or_else(|| SERVER_ERROR.to_owned());
            self.failure = Some((word, message.clone()));
            return;
        }
        let (grown, cites) = (words(&piece).to_owned(), cites(&piece));
        self.taken = self.taken.saturating_add(grown.len());
        match self.chunks.get_mut(&index) {
            // What does not fit was refused before it was stored.
            Some(open) => _ = open.chunk.push_fragment(piece),
            None => _ = self.chunks.insert(index, Open { chunk: piece, item: None, part: 0 }),
        }
        let Some(open) = self.chunks.get(&index) else { return };
        let annotations = cites.map(|cites| annotations_of(&cites, open.chunk.growing())).unwrap_or_default();
        if let Some(item) = open.item {
            self.grow(index, item, open.part, &grown, annotations);
            return;
        }
        // A call may be named after it has begun.
        if matches!(&open.chunk.body, Body::ToolCall { name, .. } if name.is_empty()) {
            return;
        }
        let whole = words(&open.chunk).to_owned();
        if let Some((item, part)) = self.open(index) {
            self.grow(index, item, part, &whole, annotations);
        }
    }

    /// Finds the item of a chunk, or makes it: its place among the parts.
    fn open(&mut self, index: u32) -> Option<(usize, usize)> {
        let open = self.chunks.get(&index)?;
        let kind = kind(&open.chunk)?;
        if kind == Kind::Other {
            // Blocks of other providers are in the log alone.
            let whole = [(index, open.chunk.clone())];
            item_of(&self.shape, "", self.id.message, &whole, MessageState::Complete)?;
        }
        let id = open.chunk.id.clone().unwrap_or_else(|| self.id.of_item("item", index));
        let last = self.items.len().checked_sub(1);
        let joins = |item: &Item| kind == Kind::Message && item.kind == kind && item.id == id && item.done.is_none();
        let (item, is_new) = match last.filter(|last| self.items.get(*last).is_some_and(joins)) {
            Some(last) => (last, false),
            None => {
                if self.shape.closes_early {
                    self.close_all(MessageState::Complete);
                }
                self.items.push(Item { id: id.clone(), chunks: Vec::new(), kind, has_summary: false, done: None });
                (self.items.len() - 1, true)
            }
        };
        let of = self.items.get_mut(item)?;
        of.chunks.push(index);
        let part = of.chunks.len() - 1;
        let chunk = {
            let open = self.chunks.get_mut(&index)?;
            (open.item, open.part) = (Some(item), part);
            open.chunk.clone()
        };
        if is_new && kind != Kind::Other {
            let begun = in_progress(&self.shape, &id, &chunk);
            self.say("response.output_item.added", json!({ "output_index": item, "item": begun }));
        }
        match kind {
            Kind::Message => {
                let part_of = match &chunk.body {
                    Body::Refusal { .. } => json!({ "type": "refusal", "refusal": "" }),
                    Body::Audio(audio) => sound_part(audio, ""),
                    _ => json!({ "type": "output_text", "text": "", "annotations": [], "logprobs": [] }),
                };
                let data = json!({ "item_id": id, "output_index": item, "content_index": part, "part": part_of });
                self.say("response.content_part.added", data);
            }
            Kind::Reasoning | Kind::Call | Kind::Other => {}
        }
        if kind == Kind::Other {
            self.close(item, MessageState::Complete);
        }
        Some((item, part))
    }

    /// A thought may begin without words, and end without any.
    fn begin_summary(&mut self, id: &str, item: usize) {
        let Some(of) = self.items.get_mut(item).filter(|of| !of.has_summary) else { return };
        of.has_summary = true;
        let part = json!({ "type": "summary_text", "text": "" });
        let data = json!({ "item_id": id, "output_index": item, "summary_index": 0, "part": part });
        self.say("response.reasoning_summary_part.added", data);
    }

    /// Says what was added to a part.
    fn grow(&mut self, index: u32, item: usize, part: usize, delta: &str, annotations: Vec<Value>) {
        let (Some(of), Some(open)) = (self.items.get(item), self.chunks.get(&index)) else { return };
        if of.done.is_some() {
            return;
        }
        let (id, kind) = (of.id.clone(), of.kind);
        if !delta.is_empty() {
            match (kind, &open.chunk.body) {
                (Kind::Message, Body::Refusal { .. }) => {
                    let data = json!({ "item_id": id, "output_index": item, "content_index": part, "delta": delta });
                    self.say("response.refusal.delta", data);
                }
                (Kind::Message, _) => {
                    let data = json!({
                        "item_id": id, "output_index": item, "content_index": part, "delta": delta, "logprobs": []
                    });
                    self.say("response.output_text.delta", data);
                }
                (Kind::Reasoning, _) => {
                    self.begin_summary(&id, item);
                    let data = json!({ "item_id": id, "output_index": item, "summary_index": 0, "delta": delta });
                    self.say("response.reasoning_summary_text.delta", data);
                }
                (Kind::Call, Body::ToolCall { name, .. }) if !self.shape.is_custom(name) => {
                    let data = json!({ "item_id": id, "output_index": item, "delta": delta });
                    self.say("response.function_call_arguments.delta", data);
                }
                (Kind::Call | Kind::Other, _) => {}
            }
        }
        for (at, annotation) in annotations.into_iter().enumerate() {
            let data = json!({
                "item_id": id, "output_index": item, "content_index": part, "annotation_index": at, "annotation": annotation
            });
            self.say("response.output_text.annotation.added", data);
        }
    }

    fn close_all(&mut self, state: MessageState) {
        for item in 0..self.items.len() {
            self.close(item, state);
        }
    }

    /// Ends an item, unless it has ended.
    fn close(&mut self, item: usize, state: MessageState) {
        let Some(of) = self.items.get(item).filter(|of| of.done.is_none()) else { return };
        let (id, kind) = (of.id.clone(), of.kind);
        let chunks: Vec<(u32, Chunk)> =
            of.chunks.iter().filter_map(|index| Some((*index, self.chunks.get(index)?.chunk.clone()))).collect();
        let Some(done) = item_of(&self.shape, &id, self.id.message, &chunks, state) else { return };
        if kind == Kind::Other {
            self.say("response.output_item.added", json!({ "output_index": item, "item": done }));
        }
        for (part, (_, chunk)) in chunks.iter().enumerate() {
            self.close_part(&id, item, part, chunk, kind, &done);
        }
        self.say("response.output_item.done", json!({ "output_index": item, "item": done }));
        if let Some(of) = self.items.get_mut(item) {
            of.done = Some(done);
        }
    }

    fn close_part(&mut self, id: &str, item: usize, part: usize, chunk: &Chunk, kind: Kind, done: &Value) {
        let text = words(chunk);
        match kind {
            Kind::Message => {
                let of_part = done["content"].get(part).cloned().unwrap_or_default();
                let place = |rest: Value| {
                    let mut data = json!({ "item_id": id, "output_index": item, "content_index": part });
                    if let (Value::Object(data), Value::Object(rest)) = (&mut data, rest) {
                        data.extend(rest);
                    }
                    data
                };
                match &chunk.body {
                    Body::Refusal { .. } => self.say("response.refusal.done", place(json!({ "refusal": text }))),
                    _ => self.say("response.output_text.done", place(json!({ "text": text, "logprobs": [] }))),
                }
                self.say("response.content_part.done", place(json!({ "part": of_part })));
            }
            Kind::Reasoning if !text.is_empty() => {
                let place = json!({ "item_id": id, "output_index": item, "summary_index": 0, "text": text });
                self.say("response.reasoning_summary_text.done", place);
                let part = json!({ "type": "summary_text", "text": text });
                let place = json!({ "item_id": id, "output_index": item, "summary_index": 0, "part": part });
                self.say("response.reasoning_summary_part.done", place);
            }
            Kind::Call => {
                let field = |name: &str| done.get(name).cloned().unwrap_or_default();
                if done["type"] == "custom_tool_call" {
                    let input = field("input");
                    let data = json!({ "item_id": id, "output_index": item, "delta": input });
                    self.say("response.custom_tool_call_input.delta", data);
                    let data = json!({ "item_id": id, "output_index": item, "input": input });
                    self.say("response.custom_tool_call_input.done", data);
                } else {
                    let data = json!({
                        "item_id": id, "output_index": item, "name": field("name"), "arguments": field("arguments")
                    });
                    self.say("response.function_call_arguments.done", data);
                }
            }
            Kind::Reasoning | Kind::Other => {}
        }
    }

    fn end(&mut self, at: Timestamp, status: Status) {
        // A call that never got a name is one all the same.
        let unnamed: Vec<u32> =
            self.chunks.iter().filter(|(_, open)| open.item.is_none()).map(|(index, _)| *index).collect();
        for index in unnamed {
            let whole = self.chunks.get(&index).map(|open| open.chunk.growing().to_owned()).unwrap_or_default();
            if let Some((item, part)) = self.open(index) {
                self.grow(index, item, part, &whole, Vec::new());
            }
        }
        let is_whole = status == Status::Completed;
        self.close_all(if is_whole { MessageState::Complete } else { MessageState::Interrupted });
        self.completed_at = is_whole.then_some(at);
        self.status = status;
        self.state(self.status.event());
    }

    /// The response as it is now.
    pub(super) fn object(&self) -> Value {
        let Self { id, about, status, .. } = self;
        let mut fields = about.fields.clone();
        let mut set = |name: &str, value: Value| _ = fields.insert(name.to_owned(), value);
        set("id", id.to_string().into());
        set("object", "response".into());
        set("created_at", seconds(self.created_at).into());
        set("completed_at", self.completed_at.map_or(Value::Null, |at| seconds(at).into()));
        set("status", status.word().into());
        set("model", self.model.clone().into());
        let details = match status {
            Status::Incomplete(reason) => json!({ "reason": reason }),
            _ => Value::Null,
        };
        set("incomplete_details", details);
        let error = match status {
            Status::Failed { word, message } => match code(word) {
                own if own == word => json!({ "code": own, "message": message }),
                own => json!({ "code": own, "message": message, "upstream_code": word }),
            },
            _ => Value::Null,
        };
        set("error", error);
        set("output", self.output().into());
        set("usage", self.usage.as_ref().and_then(TokenCounts::of).map_or(Value::Null, usage));
        Value::Object(fields)
    }

    fn output(&self) -> Vec<Value> {
        let item = |of: &Item| match &of.done {
            Some(done) => Some(done.clone()),
            None => {
                let chunk = |index: &u32| Some((*index, self.chunks.get(index)?.chunk.clone()));
                let chunks: Vec<_> = of.chunks.iter().filter_map(chunk).collect();
                item_of(&self.shape, &of.id, self.id.message, &chunks, MessageState::Streaming)
            }
        };
        self.items.iter().filter_map(item).collect()
    }
}

/// What a chunk is to its events; `None` if it is not the model's to say.
fn kind(chunk: &Chunk) -> Option<Kind> {
    match &chunk.body {
        Body::Text { .. } | Body::Refusal { .. } | Body::Audio(_) => Some(Kind::Message),
        Body::Image(image) if base64_of(image).is_none() => Some(Kind::Message),
        Body::Thinking { .. } => Some(Kind::Reasoning),
        Body::ToolCall { .. } => Some(Kind::Call),
        Body::Error { .. } | Body::Unknown { .. } => None,
        _ => Some(Kind::Other),
    }
}

/// What a chunk says in its part: a sound its transcript, a picture its address.
fn words(chunk: &Chunk) -> &str {
    match &chunk.body {
        Body::Audio(audio) => audio.transcript.as_deref().unwrap_or_default(),
        Body::Image(image) => &image.url,
        _ => chunk.growing(),
    }
}

/// What a piece of text cites.
fn cites(piece: &Chunk) -> Option<Json> {
    match &piece.body {
        Body::Text { annotations, .. } => annotations.clone(),
        _ => None,
    }
}

pub(super) fn seconds(at: Timestamp) -> i64 {
    at.as_micros().div_euclid(1_000_000)
}

/// Token counts in OpenAI's words.
pub(super) fn usage(counts: TokenCounts) -> Value {
    json!({
        "input_tokens": counts.input,
        "input_tokens_details": { "cached_tokens": counts.cached, "cache_write_tokens": counts.cache_written },
        "output_tokens": counts.output,
        "output_tokens_details": { "reasoning_tokens": counts.reasoning },
        "total_tokens": counts.input.saturating_add(counts.output),
    })
}
