//! Answers of Converse, whole, or streamed: as an event stream, or as lines of JSON, each event under its name.
//!
//! Sources: API reference, "Converse" and "ConverseStream"; types of the official Python SDK (botocore 1.44.5),
//! `ConverseResponse` and `ConverseStreamOutput`. What is measured, traced and configured is left out.
//!
//! The blocks of a stream, each from its first delta to its stop. What is signed, cited or not known is said when it ends.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::request::{block, native};
use crate::json::compact;
use crate::json::fields::{Fields, array};
use crate::model::extra::Owner;
use crate::model::{Body, Chunk, Metadata};
use crate::provider::read::answer::{Answer, Decode};

/// Fields that say nothing of the message. `p` is padding.
const OF_THE_RESPONSE: &[&str] = &["metrics", "trace", "performanceConfig", "serviceTier", "ResponseMetadata", "p"];
/// Events of a stream.
const EVENTS: &[&str] =
    &["messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata"];
/// How the names of errors end that come in place of an event.
const EXCEPTION: &str = "Exception";

/// A decoder of answers.
#[derive(Debug, Default)]
struct Response {
    blocks: Blocks,
}

pub(crate) fn decoder(_: &'static str) -> Box<dyn Decode> {
    Box::new(Response::default())
}

impl Decode for Response {
    fn take(&mut self, event: &str, fields: &mut Fields<'_>, answer: &mut Answer) -> bool {
        if let Some(output) = fields.object("output") {
            self.response(output, fields, answer);
            return true;
        }
        // As a line of JSON, an event is the value of its name.
        let named = fields.names().find(|name| EVENTS.contains(name) || name.ends_with(EXCEPTION)).map(str::to_owned);
        if let Some(name) = named
            && let Some(mut inner) = fields.object(&name)
        {
            let known = self.event(&name, &mut inner, answer);
            inner.rest().for_each(|(name, raw)| answer.keep(&name, raw));
            rest(fields, answer);
            return known;
        }
        let grows = fields.peek("delta").is_some() && fields.peek("contentBlockIndex").is_some();
        let known = self.event(if grows { "contentBlockDelta" } else { event }, fields, answer);
        if known {
            rest(fields, answer);
        }
        known
    }

    fn finish(&mut self, answer: &mut Answer) {
        self.blocks.finish(answer);
    }
}

impl Response {
    /// A whole answer.
    fn response(&mut self, mut output: Fields<'_>, fields: &mut Fields<'_>, answer: &mut Answer) {
        let mut message = output.object("message").unwrap_or_default();
        message.take("role");
        let content = message.array("content").unwrap_or_default();
        answer.begin(Metadata { extra: message.extra(Owner::Message), ..Metadata::default() });
        for mut chunk in content.into_iter().filter_map(block) {
            if let Body::ToolCall { arguments, .. } = &mut chunk.body {
                // Answers may be indented: what is kept of them is not.
                *arguments = compact(arguments).into_owned();
            }
            answer.chunk(chunk);
        }
        output.rest().for_each(|(name, raw)| answer.keep(&name, raw));
        end(fields, answer);
        answer.complete();
        rest(fields, answer);
    }

    fn event(&mut self, name: &str, fields: &mut Fields<'_>, answer: &mut Answer) -> bool {
        let index = fields.integer("contentBlockIndex");
        match (name, index) {
            ("messageStart", _) => {
                fields.take("role");
                fields.take("p");
                let extra = std::mem::take(fields).extra(Owner::Message);
                answer.begin(Metadata { extra, ..Metadata::default() });
            }
            ("contentBlockStart", Some(index)) => {
                let start = fields.take("start").and_then(Fields::of).unwrap_or_default();
                self.blocks.start(index, start, answer);
            }
            ("contentBlockDelta", Some(index)) => {
                let Some(delta) = fields.object("delta") else { return false };
                self.blocks.delta(index, delta, answer);
            }
            ("contentBlockStop", Some(index)) => self.blocks.stop(index, answer),
            ("messageStop", _) => {
                end(fields, answer);
                answer.complete();
            }
            ("metadata", _) => end(fields, answer),
            (exception, _) if exception.ends_with(EXCEPTION) => {
                let message = fields.text("message").or_else(|| fields.text("Message"));
                let message = message.unwrap_or_else(|| "the answer failed".to_owned());
                answer.fail(Body::Error { message, code: Some(exception.to_owned()) });
            }
            _ => return false,
        }
        OF_THE_RESPONSE.iter().for_each(|name| _ = fields.take(name));
        true
    }
}

/// Why the model stopped, and what it cost.
fn end(fields: &mut Fields<'_>, answer: &mut Answer) {
    if let Some(word) = fields.string("stopReason") {
        answer.stop(&word);
    }
    if let Some(usage) = fields.take("usage") {
        answer.usage(usage);
    }
}

/// Keeps what is not known. An error is left for the caller.
fn rest(fields: &mut Fields<'_>, answer: &mut Answer) {
    OF_THE_RESPONSE.iter().for_each(|name| _ = fields.take(name));
    fields.take_but_error().rest().for_each(|(name, raw)| answer.keep(&name, raw));
}

/// The blocks that have not ended, by index.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    open: BTreeMap<u64, Block>,
}

#[derive(Debug)]
struct Block {
    chunk_index: u32,
    kind: Kind,
    /// Text, or the JSON text of a call's input.
    grown: String,
    signature: String,
    citations: Vec<Box<RawValue>>,
    /// What a call, or a block that comes whole, began with.
    began: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Redacted,
    Call,
    /// It is said whole, at its end.
    Other(String),
}

impl Blocks {
    /// A block begins. A text does so without its kind.
    pub(crate) fn start(&mut self, index: u64, start: Fields<'_>, answer: &mut Answer) {
        self.stop(index, answer);
        for (name, raw) in start.rest() {
            let kind = if name == "toolUse" { Kind::Call } else { Kind::Other(name.into_owned()) };
            let block = self.block(index, &kind, answer);
            answer.hold(raw.get().len());
            block.began = serde_json::from_str(raw.get()).unwrap_or_default();
            if block.kind == Kind::Call {
                let word = |name: &str| block.began.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
                let (id, name) = (word("toolUseId"), word("name"));
                let server = block.began.get("type").is_some_and(|kind| kind == "server_tool_use");
                let arguments = String::new();
                answer.delta(block.chunk_index, Body::ToolCall { id, name, arguments, signature: None, server });
            }
        }
    }

    /// A piece of a block.
    pub(crate) fn delta(&mut self, index: u64, mut delta: Fields<'_>, answer: &mut Answer) {
        if let Some(text) = delta.string("text") {
            let block = self.block(index, &Kind::Text, answer);
            block.grow(&text, answer);
            answer.delta(block.chunk_index, Body::Text { text, annotations: None });
        }
        if let Some(mut call) = delta.object("toolUse") {
            let input = call.string("input").unwrap_or_default();
            let block = self.block(index, &Kind::Call, answer);
            block.grow(&input, answer);
            if !input.is_empty() {
                answer.delta(block.chunk_index, Chunk::tool_call("", "", input));
            }
            call.rest().for_each(|(name, raw)| answer.keep(&name, raw));
        }
        if let Some(reasoning) = delta.object("reasoningContent") {
            self.reasoning(index, reasoning, answer);
        }
        if let Some(citation) = delta.take("citation") {
            answer.hold(citation.get().len());
            self.block(index, &Kind::Text, answer).citations.push(citation.to_owned());
        }
        for (name, raw) in delta.rest() {
            answer.hold(raw.get().len());
            let block = self.block(index, &Kind::Other(name.into_owned()), answer);
            block.merge(raw);
        }
    }

    fn reasoning(&mut self, index: u64, mut reasoning: Fields<'_>, answer: &mut Answer) {
        if let Some(data) = reasoning.string("redactedContent") {
            let block = self.block(index, &Kind::Redacted, answer);
            block.grow(&data, answer);
        }
        if let Some(text) = reasoning.string("text") {
            let block = self.block(index, &Kind::Thinking, answer);
            block.grow(&text, answer);
            answer.delta(block.chunk_index, Body::Thinking { text, signature: None, redacted: None });
        }
        if let Some(signature) = reasoning.string("signature") {
            answer.hold(signature.len());
            self.block(index, &Kind::Thinking, answer).signature.push_str(&signature);
        }
        reasoning.rest().for_each(|(name, raw)| answer.keep(&name, raw));
    }

    /// The open block of this index; one of another kind ends here.
    fn block(&mut self, index: u64, kind: &Kind, answer: &mut Answer) -> &mut Block {
        if self.open.get(&index).is_some_and(|open| open.kind != *kind) {
            self.stop(index, answer);
        }
        self.open.entry(index).or_insert_with(|| Block {
            chunk_index: answer.new_chunk(),
            kind: kind.clone(),
            grown: String::new(),
            signature: String::new(),
            citations: Vec::new(),
            began: Map::new(),
        })
    }

    pub(crate) fn stop(&mut self, index: u64, answer: &mut Answer) {
        if let Some(block) = self.open.remove(&index) {
            block.end(true, answer);
        }
    }

    /// The blocks that were cut off, or whose end did not come.
    pub(crate) fn finish(&mut self, answer: &mut Answer) {
        for block in std::mem::take(&mut self.open).into_values() {
            block.end(false, answer);
        }
    }
}

impl Block {
    fn grow(&mut self, text: &str, answer: &mut Answer) {
        answer.hold(text.len());
        self.grown.push_str(text);
    }

    /// A piece of a block that is not known: items of its content, or fields of its own.
    fn merge(&mut self, raw: &RawValue) {
        if let Some(items) = array(raw) {
            let items = items.into_iter().filter_map(|item| serde_json::from_str(item.get()).ok());
            match self.began.entry("content").or_insert_with(|| json!([])) {
                Value::Array(content) => content.extend(items),
                other => *other = items.collect(),
            }
        } else if let Ok(fields) = serde_json::from_str::<Map<String, Value>>(raw.get()) {
            self.began.extend(fields);
        }
    }

    /// Says what is known only now. `whole`: nothing of the block is missing.
    fn end(self, whole: bool, answer: &mut Answer) {
        let Self { chunk_index, kind, grown, signature, citations, began } = self;
        match kind {
            Kind::Text if !citations.is_empty() => {
                let cited = json!({"citationsContent": {"content": [{"text": grown}], "citations": citations}});
                if let Some(Chunk { body: Body::Text { annotations, .. }, native, .. }) = read(&cited) {
                    let body = Body::Text { text: String::new(), annotations };
                    answer.delta(chunk_index, Chunk { native, ..body.into() });
                }
            }
            Kind::Text => {}
            Kind::Thinking => {
                let is_signed = !signature.is_empty();
                let unsigned = json!({"reasoningContent": {"reasoningText": {"text": grown}}});
                let native = if is_signed || !whole { None } else { read(&unsigned).and_then(|chunk| chunk.native) };
                let signature = is_signed.then_some(signature);
                let body = Body::Thinking { text: String::new(), signature, redacted: None };
                answer.delta(chunk_index, Chunk { native, ..body.into() });
            }
            Kind::Redacted => {
                let body = Body::Thinking { text: String::new(), signature: None, redacted: Some(grown) };
                answer.delta(chunk_index, body);
            }
            Kind::Call => {
                let is_known = began.keys().all(|name| ["toolUseId", "name"].contains(&name.as_str()));
                if grown.is_empty() && whole {
                    answer.delta(chunk_index, Chunk::tool_call("", "", "{}"));
                }
                let input = if grown.is_empty() { "{}" } else { &grown };
                if let Some(input) = serde_json::from_str(input).ok().filter(|_| !is_known) {
                    let native = to_raw_value(&Whole { call: Call { began, input } }).ok().and_then(|raw| native(&raw));
                    answer.delta(chunk_index, Chunk { native, ..Chunk::tool_call("", "", "") });
                }
            }
            Kind::Other(name) => {
                let mut whole = Map::new();
                whole.insert(name, Value::Object(began));
                if let Some(chunk) = read(&Value::Object(whole)) {
                    answer.delta(chunk_index, chunk);
                }
            }
        }
    }
}

/// The block of a call.
#[derive(Serialize)]
struct Whole<'a> {
    #[serde(rename = "toolUse")]
    call: Call<'a>,
}

#[derive(Serialize)]
struct Call<'a> {
    #[serde(flatten)]
    began: Map<String, Value>,
    /// As it came: a number keeps its digits.
    input: &'a RawValue,
}

fn read(value: &Value) -> Option<Chunk> {
    to_raw_value(value).ok().and_then(|raw| block(&raw))
}
