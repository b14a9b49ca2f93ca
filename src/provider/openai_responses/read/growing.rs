//! Items as they grow.

use std::collections::{BTreeMap, HashSet};

use serde_json::value::RawValue;

use super::item::{Origin, PARAGRAPH, is_by_id, kind, said};
use crate::json::fields::Fields;
use crate::model::{Body, Chunk};
use crate::provider::read::answer::Answer;

/// The items of an answer.
#[derive(Debug, Default)]
pub(crate) struct Growing {
    /// Chunks by item, part and kind. A call, and reasoning, are one part each.
    parts: BTreeMap<(u64, u64, Kind), Part>,
    /// Items that came whole.
    whole: HashSet<u64>,
    /// Whether the server said that it stores nothing.
    is_unkept: bool,
    /// The item after reasoning that goes back by its id.
    after_id: Option<u64>,
}

/// What grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Text,
    Refusal,
    Thinking,
    Call,
    /// It comes whole.
    Other,
}

/// A chunk as far as it has grown.
#[derive(Debug, Default)]
struct Part {
    chunk_index: u32,
    /// Bytes of its text.
    said: usize,
    /// Whether a call's id and name were said.
    named: bool,
    /// The paragraph of a summary.
    paragraph: u64,
}

impl Growing {
    /// Whether an item came whole.
    pub(crate) fn is_known(&self, item: u64) -> bool {
        self.whole.contains(&item)
    }

    /// An item begins: a call has its name from the start.
    pub(crate) fn added(&mut self, fields: &mut Fields<'_>, answer: &mut Answer) {
        let index = fields.integer("output_index").unwrap_or_default();
        let Some(mut item) = fields.object("item").filter(|_| !self.is_known(index)) else { return };
        let kind = kind(&item);
        if ["function_call", "custom_tool_call"].contains(&kind.as_str()) {
            let (id, name) = (item.text("call_id").unwrap_or_default(), item.text("name").unwrap_or_default());
            let part = self.part((index, 0, Kind::Call), answer);
            if !std::mem::replace(&mut part.named, true) {
                answer.delta(part.chunk_index, Chunk::tool_call(id, name, ""));
            }
        }
    }

    /// A piece of an item's text. False if it is of a kind that is not known.
    pub(crate) fn delta(&mut self, kind: &str, fields: &mut Fields<'_>, answer: &mut Answer) -> bool {
        let item = fields.integer("output_index").unwrap_or_default();
        let text = fields.string("delta").unwrap_or_default();
        let mut at = |name: &str| fields.integer(name).unwrap_or_default();
        let (place, paragraph) = match kind {
            "response.output_text.delta" => ((item, at("content_index"), Kind::Text), 0),
            "response.refusal.delta" => ((item, at("content_index"), Kind::Refusal), 0),
            "response.reasoning_summary_text.delta" => ((item, 0, Kind::Thinking), at("summary_index")),
            "response.reasoning_text.delta" => ((item, 0, Kind::Thinking), at("content_index")),
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                ((item, 0, Kind::Call), 0)
            }
            _ => return false,
        };
        if self.is_known(item) {
            return true;
        }
        let part = self.part(place, answer);
        let mut text = text;
        if paragraph > part.paragraph {
            part.paragraph = paragraph;
            text.insert_str(0, PARAGRAPH);
        }
        part.said += text.len();
        let chunk_index = part.chunk_index;
        let body = match place.2 {
            Kind::Refusal => Body::Refusal { text },
            Kind::Thinking => Body::Thinking { text, signature: None, redacted: None },
            Kind::Call => Chunk::tool_call("", "", text).body,
            Kind::Text | Kind::Other => Body::Text { text, annotations: None },
        };
        answer.delta(chunk_index, body);
        true
    }

    /// An item's end: it comes whole.
    pub(crate) fn done(&mut self, fields: &mut Fields<'_>, answer: &mut Answer) {
        let index = fields.integer("output_index").unwrap_or_default();
        if let Some(raw) = fields.take("item") {
            self.whole(index, raw, answer);
        }
    }

    /// The server stores nothing of this answer.
    pub(crate) fn set_unkept(&mut self) {
        self.is_unkept = true;
    }

    /// An item that is whole: what was not said of it before.
    pub(crate) fn whole(&mut self, item: u64, raw: &RawValue, answer: &mut Answer) {
        if !self.whole.insert(item) {
            return;
        }
        let origin = Origin::Answer { kept: !self.is_unkept, after_id: self.after_id == Some(item) };
        if !self.is_unkept && Fields::of(raw).is_some_and(|fields| is_by_id(&fields)) {
            self.after_id = item.checked_add(1);
        }
        let chunks = said(raw, origin, &mut Vec::new());
        for (at, mut chunk) in (0..).zip(chunks) {
            let place = (item, at, Kind::of(&chunk.body));
            let known = self.parts.contains_key(&place);
            let part = self.part(place, answer);
            if known {
                rest(&mut chunk, part);
            }
            answer.delta(part.chunk_index, chunk);
        }
    }

    fn part(&mut self, place: (u64, u64, Kind), answer: &mut Answer) -> &mut Part {
        self.parts.entry(place).or_insert_with(|| Part { chunk_index: answer.new_chunk(), ..Part::default() })
    }
}

impl Kind {
    const fn of(body: &Body) -> Self {
        match body {
            Body::Text { .. } => Self::Text,
            Body::Refusal { .. } => Self::Refusal,
            Body::Thinking { .. } => Self::Thinking,
            Body::ToolCall { .. } => Self::Call,
            _ => Self::Other,
        }
    }
}

/// Leaves of a chunk what was not said of it.
fn rest(chunk: &mut Chunk, part: &Part) {
    let text = match &mut chunk.body {
        Body::Text { text, .. } | Body::Refusal { text } | Body::Thinking { text, .. } => text,
        Body::ToolCall { id, name, arguments, .. } => {
            if part.named {
                id.clear();
                name.clear();
            }
            arguments
        }
        _ => return,
    };
    *text = text.get(part.said..).unwrap_or_default().to_owned();
}
