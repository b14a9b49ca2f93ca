//! Messages, whole (`message`) or streamed (`message_start` to `message_stop`).
//!
//! The tools that the provider runs are its own: their calls and results are opaque chunks, each the block that it was. A
//! signature, citations and such blocks are said when their block ends: what is cut off has none.
//!
//! Sources: API reference, "Messages" and "Streaming Messages"; types of the official Python SDK (anthropic 2.11.0),
//! `Message` and `RawMessageStreamEvent`.
//!
//! The blocks of a stream, each from its start over its deltas to its stop.

use std::collections::BTreeMap;

use serde_json::value::{RawValue, to_raw_value};

use super::request::{block, native};
use crate::json::fields::{Fields, array, is_empty, string};
use crate::json::ordered::Ordered;
use crate::model::extra::{Owner, json};
use crate::model::{Body, Chunk, Metadata};
use crate::provider::read::answer::{Answer, Decode};
use crate::provider::read::parsed::opaque;

/// Fields of a message that say nothing of it, or what its chunks say.
const OF_THE_MESSAGE: &[&str] = &["type", "role"];
/// Fields of a message that come at the end of a stream.
const OF_THE_END: &[&str] = &["stop_reason", "stop_sequence", "stop_details", "container"];
/// Fields of an event that say nothing of the message. The metrics are Bedrock's.
const OF_THE_EVENT: &[&str] = &["type", "amazon-bedrock-invocationMetrics"];

/// A decoder of messages.
#[derive(Debug)]
struct Messages {
    provider: &'static str,
    blocks: Blocks,
    /// The fields of the token counts, as they were said last.
    usage: Option<Ordered<Box<RawValue>>>,
}

pub(crate) fn decoder(provider: &'static str) -> Box<dyn Decode> {
    Box::new(Messages { provider, blocks: Blocks::new(provider), usage: None })
}

impl Decode for Messages {
    fn take(&mut self, event: &str, fields: &mut Fields<'_>, answer: &mut Answer) -> bool {
        let kind = fields.peek("type").and_then(string);
        match kind.as_deref().unwrap_or(event) {
            "message" => {
                let content = fields.array("content").unwrap_or_default();
                self.message(std::mem::take(fields), content, answer);
                answer.complete();
            }
            "message_start" => {
                let Some(mut message) = fields.object("message") else { return false };
                let content = message.array("content").unwrap_or_default();
                self.message(message, content, answer);
                keep_rest(fields, answer);
            }
            "content_block_start" => {
                let (Some(index), Some(raw)) = (fields.integer("index"), fields.take("content_block")) else {
                    return false;
                };
                self.blocks.start(index, raw, answer);
                keep_rest(fields, answer);
            }
            "content_block_delta" => {
                let (Some(index), Some(delta)) = (fields.integer("index"), fields.object("delta")) else {
                    return false;
                };
                self.blocks.delta(index, delta, answer);
                keep_rest(fields, answer);
            }
            "content_block_stop" => {
                let Some(index) = fields.integer("index") else { return false };
                self.blocks.stop(index, answer);
                keep_rest(fields, answer);
            }
            "message_delta" => {
                let delta = fields.object("delta").unwrap_or_default();
                delta.rest().for_each(|(name, raw)| self.end(&name, raw, answer));
                self.usage(fields, answer);
                self.edits(fields, answer);
                keep_rest(fields, answer);
            }
            "message_stop" => {
                answer.complete();
                keep_rest(fields, answer);
            }
            "ping" => _ = std::mem::take(fields),
            _ => return false,
        }
        true
    }

    fn finish(&mut self, answer: &mut Answer) {
        self.blocks.finish(answer);
        if let Some(usage) = self.usage.take().and_then(|usage| to_raw_value(&usage).ok()) {
            answer.usage(&usage);
        }
    }
}

impl Messages {
    /// A whole message, or the beginning of one.
    fn message(&mut self, mut fields: Fields<'_>, content: Vec<&RawValue>, answer: &mut Answer) {
        OF_THE_MESSAGE.iter().for_each(|name| _ = fields.take(name));
        let (id, model) = (fields.string("id"), fields.string("model"));
        let end: Vec<_> = OF_THE_END.iter().filter_map(|name| Some((*name, fields.take(name)?))).collect();
        self.usage(&mut fields, answer);
        self.edits(&mut fields, answer);
        answer.begin(Metadata { id, model, extra: fields.extra(Owner::Message), ..Metadata::default() });
        for chunk in content.into_iter().filter_map(|raw| block(raw, self.provider)) {
            answer.chunk(chunk);
        }
        end.into_iter().for_each(|(name, raw)| self.end(name, raw, answer));
    }

    /// Why the model stopped, and what else is known only then: which sequence stopped it, in which container code ran. That
    /// is no content, and is kept with the counts.
    fn end(&mut self, name: &str, raw: &RawValue, answer: &mut Answer) {
        match string(raw).filter(|word| name == "stop_reason" && !word.is_empty()) {
            Some(word) => answer.stop(&word),
            None if OF_THE_END.contains(&name) => {
                if !is_empty(raw) {
                    count(self.usage.get_or_insert_default(), name, raw, answer);
                }
            }
            None => answer.keep(name, raw),
        }
    }

    /// What the provider left out of the request by itself: it is kept with the counts.
    fn edits(&mut self, fields: &mut Fields<'_>, answer: &mut Answer) {
        let Some(raw) = fields.take("context_management") else { return };
        let applied = Fields::of(raw).and_then(|mut edits| edits.array("applied_edits"));
        if applied.is_some_and(|applied| !applied.is_empty()) {
            count(self.usage.get_or_insert_default(), "context_management", raw, answer);
        }
    }

    /// A stream counts the input at its beginning and the output at its end.
    fn usage(&mut self, fields: &mut Fields<'_>, answer: &mut Answer) {
        let Some(counts) = fields.object("usage") else { return };
        let usage = self.usage.get_or_insert_default();
        for (name, raw) in counts.pairs() {
            if raw.get() != "null" || usage.get(&name).is_none() {
                count(usage, &name, raw, answer);
            }
        }
    }
}

fn count(usage: &mut Ordered<Box<RawValue>>, name: &str, raw: &RawValue, answer: &mut Answer) {
    let known = usage.get(name).map_or(0, |known| name.len() + known.get().len());
    answer.hold((name.len() + raw.get().len()).saturating_sub(known));
    usage.set(name.to_owned(), raw.to_owned());
}

fn keep_rest(fields: &mut Fields<'_>, answer: &mut Answer) {
    OF_THE_EVENT.iter().for_each(|name| _ = fields.take(name));
    fields.take_but_error().rest().for_each(|(name, raw)| answer.keep(&name, raw));
}

/// The blocks that have not ended, by index.
#[derive(Debug)]
pub(crate) struct Blocks {
    provider: &'static str,
    open: BTreeMap<u64, Block>,
}

#[derive(Debug)]
struct Block {
    chunk_index: u32,
    kind: Kind,
    /// The fields that it began with.
    fields: Ordered<Box<RawValue>>,
    /// What grows: text, or the JSON text of a call's input.
    grown: String,
    citations: Vec<Box<RawValue>>,
    signature: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    Call,
    /// It is said whole, at its end.
    Whole,
}

impl Blocks {
    pub(crate) const fn new(provider: &'static str) -> Self {
        Self { provider, open: BTreeMap::new() }
    }

    pub(crate) fn start(&mut self, index: u64, raw: &RawValue, answer: &mut Answer) {
        self.stop(index, answer);
        let Some(fields) = Fields::of(raw) else { return answer.keep("content_block", raw) };
        let name = fields.peek("type").and_then(string).unwrap_or_default();
        let kind = match name.as_str() {
            "text" => Kind::Text,
            "thinking" => Kind::Thinking,
            "tool_use" => Kind::Call,
            _ => Kind::Whole,
        };
        let chunk_index = answer.new_chunk();
        answer.hold(raw.get().len());
        let fields = fields.pairs().into_iter().map(|(name, raw)| (name.into_owned(), raw.to_owned())).collect();
        let mut block =
            Block { chunk_index, kind, fields, grown: String::new(), citations: Vec::new(), signature: String::new() };
        match block.beginning(self.provider) {
            Some(chunk) => answer.delta(chunk_index, chunk),
            None => block.kind = Kind::Whole,
        }
        self.open.insert(index, block);
    }

    /// A delta of a block that did not begin is kept.
    pub(crate) fn delta(&mut self, index: u64, mut delta: Fields<'_>, answer: &mut Answer) {
        let name = delta.string("type").unwrap_or_default();
        let Some(block) = self.open.get_mut(&index) else {
            return delta.rest().for_each(|(name, raw)| answer.keep(&name, raw));
        };
        match (name.as_str(), block.kind) {
            ("text_delta", Kind::Text) => {
                let text = delta.string("text").unwrap_or_default();
                block.grow(&text, answer);
                answer.delta(block.chunk_index, Body::Text { text, annotations: None });
            }
            ("thinking_delta", Kind::Thinking) => {
                let text = delta.string("thinking").unwrap_or_default();
                answer.delta(block.chunk_index, Body::Thinking { text, signature: None, redacted: None });
            }
            ("signature_delta", Kind::Thinking) => {
                let signature = delta.string("signature").unwrap_or_default();
                answer.hold(signature.len());
                block.signature.push_str(&signature);
            }
            ("citations_delta", Kind::Text) => {
                if let Some(citation) = delta.take("citation") {
                    answer.hold(citation.get().len());
                    block.citations.push(citation.to_owned());
                }
            }
            ("input_json_delta", Kind::Call) => {
                let arguments = delta.string("partial_json").unwrap_or_default();
                block.grow(&arguments, answer);
                if !arguments.is_empty() {
                    answer.delta(block.chunk_index, Chunk::tool_call("", "", arguments));
                }
            }
            ("input_json_delta", Kind::Whole) => {
                let input = delta.string("partial_json").unwrap_or_default();
                block.grow(&input, answer);
            }
            _ => {}
        }
        for (name, raw) in delta.rest() {
            match block.kind {
                // For example the content of a compaction.
                Kind::Whole => block.set(&name, raw, answer),
                _ => answer.keep(&name, raw),
            }
        }
    }

    pub(crate) fn stop(&mut self, index: u64, answer: &mut Answer) {
        if let Some(block) = self.open.remove(&index) {
            block.end(true, self.provider, answer);
        }
    }

    /// The blocks that were cut off.
    pub(crate) fn finish(&mut self, answer: &mut Answer) {
        for block in std::mem::take(&mut self.open).into_values() {
            block.end(false, self.provider, answer);
        }
    }
}

impl Block {
    fn grow(&mut self, text: &str, answer: &mut Answer) {
        answer.hold(text.len());
        self.grown.push_str(text);
    }

    fn set(&mut self, name: &str, raw: &RawValue, answer: &mut Answer) {
        answer.hold(raw.get().len());
        self.fields.set(name.to_owned(), raw.to_owned());
    }

    /// What the block says from the first: of a call, all but its input, which may come later. `None` if it has to come
    /// whole, which goes for a block that is not what its type has, too.
    fn beginning(&mut self, provider: &str) -> Option<Chunk> {
        let grows = match self.kind {
            Kind::Text => Some("text"),
            Kind::Thinking => Some("thinking"),
            Kind::Call => None,
            Kind::Whole => return None,
        };
        if let Some(grows) = grows {
            self.fields.add(grows.to_owned(), to_raw_value("").ok()?);
        }
        let mut chunk = block(&self.object()?, provider)?;
        chunk.native = None;
        match &mut chunk.body {
            Body::ToolCall { arguments, .. } => arguments.clear(),
            Body::Text { annotations, .. } => *annotations = None,
            Body::Thinking { signature, .. } => *signature = None,
            _ => return None,
        }
        Some(chunk)
    }

    /// Says what is known only now. `whole`: nothing of the block is missing.
    fn end(mut self, whole: bool, provider: &str, answer: &mut Answer) {
        let index = self.chunk_index;
        match self.kind {
            Kind::Thinking => {
                if self.signature.is_empty() {
                    self.signature = self.string("signature");
                }
                if !self.signature.is_empty() {
                    let signature = Some(self.signature);
                    answer.delta(index, Body::Thinking { text: String::new(), signature, redacted: None });
                }
            }
            Kind::Text => {
                let began = self.string("text");
                self.citations_so_far();
                if let Some(chunk) = self.cited(&began) {
                    answer.delta(index, chunk);
                }
            }
            Kind::Call => {
                let began = self.fields.get("input").map(|raw| raw.get().to_owned());
                if self.grown.is_empty() && (whole || began.as_deref().is_some_and(|input| input != "{}")) {
                    self.grown = began.unwrap_or_else(|| "{}".to_owned());
                    answer.delta(index, Chunk::tool_call("", "", self.grown.clone()));
                }
                if let Some(native) = self.with_input().and_then(|raw| block(&raw, provider)?.native) {
                    answer.delta(index, Chunk { native: Some(native), ..Chunk::tool_call("", "", "") });
                }
            }
            Kind::Whole => {
                let whole = whole || self.grown.is_empty();
                let raw = if self.grown.is_empty() { self.object() } else { self.with_input() };
                let raw = raw.or_else(|| self.with_cut_input());
                let read = |raw: &RawValue| {
                    if whole { block(raw, provider) } else { opaque(raw, self.string("type"), provider) }
                };
                if let Some(chunk) = raw.as_deref().and_then(read) {
                    answer.delta(index, chunk);
                }
            }
        }
    }

    fn string(&self, name: &str) -> String {
        self.fields.get(name).and_then(|raw| string(raw)).unwrap_or_default()
    }

    /// The citations that the block began with come first.
    fn citations_so_far(&mut self) {
        let Some(began) = self.fields.get("citations").filter(|began| !is_empty(began)) else { return };
        let began = array(began).unwrap_or_default();
        self.citations.splice(0..0, began.into_iter().map(ToOwned::to_owned));
    }

    /// The text's citations, and the block that it is with them.
    fn cited(mut self, began: &str) -> Option<Chunk> {
        if self.citations.is_empty() {
            return None;
        }
        let citations = to_raw_value(&self.citations).ok()?;
        let annotations = json(&citations);
        let text = to_raw_value(&format!("{began}{}", self.grown)).ok()?;
        self.fields.set("text".to_owned(), text);
        self.fields.set("citations".to_owned(), citations);
        let native = native(&self.object()?);
        Some(Chunk { native, ..Body::Text { text: String::new(), annotations }.into() })
    }

    /// The block with the input that came in pieces.
    fn with_input(&mut self) -> Option<Box<RawValue>> {
        let input = RawValue::from_string(self.grown.clone()).ok()?;
        self.fields.set("input".to_owned(), input);
        self.object()
    }

    /// An input that was cut off is kept as a string: no provider takes that for one.
    fn with_cut_input(&mut self) -> Option<Box<RawValue>> {
        let cut = to_raw_value(&self.grown).ok()?;
        self.fields.set("input".to_owned(), cut);
        self.object()
    }

    fn object(&self) -> Option<Box<RawValue>> {
        to_raw_value(&self.fields).ok()
    }
}
