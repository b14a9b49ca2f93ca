//! The blocks of a stream, each from its start over its deltas to its stop.

use std::collections::BTreeMap;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use super::block::{block, native};
use crate::json::fields::{Fields, array, is_empty, string};
use crate::model::extra::json;
use crate::model::{Body, Chunk};
use crate::provider::read::answer::Answer;
use crate::provider::read::parsed::opaque;

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
    fields: Vec<(String, Box<RawValue>)>,
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
        set(&mut self.fields, name, raw.to_owned());
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
        if let Some(grows) = grows.filter(|grows| !self.fields.iter().any(|(name, _)| name == grows)) {
            set(&mut self.fields, grows, to_raw_value("").ok()?);
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
                let began = self.fields.iter().find(|(name, _)| name == "input").map(|(_, raw)| raw.get().to_owned());
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
        let raw = self.fields.iter().find(|(field, _)| field == name).map(|(_, raw)| raw);
        raw.and_then(|raw| string(raw)).unwrap_or_default()
    }

    /// The citations that the block began with come first.
    fn citations_so_far(&mut self) {
        let began = self.fields.iter().find(|(name, _)| name == "citations").map(|(_, raw)| raw.clone());
        let Some(began) = began.filter(|began| !is_empty(began)) else { return };
        let began = array(&began).unwrap_or_default();
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
        set(&mut self.fields, "text", text);
        set(&mut self.fields, "citations", citations);
        let native = native(&self.object()?);
        Some(Chunk { native, ..Body::Text { text: String::new(), annotations }.into() })
    }

    /// The block with the input that came in pieces.
    fn with_input(&mut self) -> Option<Box<RawValue>> {
        let input = RawValue::from_string(self.grown.clone()).ok()?;
        set(&mut self.fields, "input", input);
        self.object()
    }

    /// An input that was cut off is kept as a string: no provider takes that for one.
    fn with_cut_input(&mut self) -> Option<Box<RawValue>> {
        let cut = to_raw_value(&self.grown).ok()?;
        set(&mut self.fields, "input", cut);
        self.object()
    }

    fn object(&self) -> Option<Box<RawValue>> {
        to_raw_value(&Object(&self.fields)).ok()
    }
}

fn set(fields: &mut Vec<(String, Box<RawValue>)>, name: &str, raw: Box<RawValue>) {
    match fields.iter_mut().find(|(field, _)| field == name) {
        Some((_, known)) => *known = raw,
        None => fields.push((name.to_owned(), raw)),
    }
}

/// Fields as the object that they are of.
pub(crate) struct Object<'a>(pub(crate) &'a [(String, Box<RawValue>)]);

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, raw) in self.0 {
            map.serialize_entry(name, raw)?;
        }
        map.end()
    }
}
