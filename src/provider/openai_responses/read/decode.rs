//! Responses, whole (`response`) or streamed (`response.*` events).
//!
//! An item grows by deltas and comes whole at its end: what the deltas left open (its id, signature, annotations) comes
//! from there. Fields that repeat the request are left out; others that are not known here become fields of the message's
//! metadata. Sources: API reference, "The response object" and "Streaming events"; types of the official Python SDK
//! (openai 2.54.0).
//!
//! Items as they grow.

use std::collections::{BTreeMap, HashSet};

use serde_json::value::RawValue;

use super::request::{Origin, PARAGRAPH, is_by_id, kind, said};
use crate::json::fields::{Fields, string};
use crate::model::extra::Owner;
use crate::model::{Body, Chunk, Metadata};
use crate::provider::read::answer::{Answer, Decode};

/// Fields of a response that repeat the request, or say nothing of the message.
const OF_THE_REQUEST: &[&str] = &[
    "object",
    "output_text",
    "background",
    "billing",
    "completed_at",
    "content_filters",
    "conversation",
    "frequency_penalty",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "parallel_tool_calls",
    "presence_penalty",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];
/// Events that say nothing more than those around them.
const ECHOES: &[&str] = &[
    "response.content_part.added",
    "response.content_part.done",
    "response.output_text.done",
    "response.output_text.annotation.added",
    "response.refusal.done",
    "response.function_call_arguments.done",
    "response.custom_tool_call_input.done",
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_part.done",
    "response.reasoning_summary_text.done",
    "response.reasoning_text.done",
    "keepalive",
];
/// How events of hosted tools begin: their items come whole.
const OF_HOSTED_TOOLS: &[&str] = &[
    "response.web_search_call.",
    "response.file_search_call.",
    "response.code_interpreter_call",
    "response.image_generation_call.",
    "response.mcp_call",
    "response.mcp_list_tools.",
    "response.computer_call.",
    "response.shell_call_",
    "response.apply_patch_call_",
    "response.compaction.",
];

pub(crate) fn decoder(_: &'static str) -> Box<dyn Decode> {
    Box::new(Response::default())
}

/// A decoder of responses.
#[derive(Debug, Default)]
struct Response {
    items: Growing,
}

impl Decode for Response {
    fn take(&mut self, event: &str, fields: &mut Fields<'_>, answer: &mut Answer) -> bool {
        let kind = fields.peek("type").and_then(string).unwrap_or_else(|| event.to_owned());
        if fields.peek("object").is_some_and(|raw| raw.get() == "\"response\"")
            || fields.peek("output").is_some_and(|raw| raw.get().starts_with('['))
        {
            self.response(std::mem::take(fields), answer);
            return true;
        }
        match kind.as_str() {
            "response.created"
            | "response.in_progress"
            | "response.queued"
            | "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => match fields.object("response") {
                Some(response) => self.response(response, answer),
                None => return false,
            },
            "response.output_item.added" => self.items.added(fields, answer),
            "response.output_item.done" => self.items.done(fields, answer),
            kind if kind.ends_with(".delta") => return self.items.delta(kind, fields, answer) || is_hosted(kind),
            kind => return ECHOES.contains(&kind) || is_hosted(kind),
        }
        true
    }

    fn finish(&mut self, _: &mut Answer) {}
}

fn is_hosted(kind: &str) -> bool {
    OF_HOSTED_TOOLS.iter().any(|start| kind.starts_with(start))
}

impl Response {
    /// A response: as it begins, or as it ends, with all of its items.
    fn response(&mut self, mut fields: Fields<'_>, answer: &mut Answer) {
        let status = fields.string("status").unwrap_or_default();
        let items = fields.array("output").unwrap_or_default();
        let has_items = !items.is_empty();
        let usage = fields.take("usage");
        let error = fields.object("error");
        let incomplete = fields.object("incomplete_details").and_then(|mut details| details.string("reason"));
        if fields.peek("store").is_some_and(|raw| raw.get() == "false") {
            self.items.set_unkept();
        }
        begin(fields, answer);
        for (index, raw) in (0..).zip(items) {
            self.items.whole(index, raw, answer);
        }
        if let Some(usage) = usage {
            answer.usage(usage);
        }
        if let Some(error) = error {
            answer.fail(failure(error));
        }
        match status.as_str() {
            "completed" | "cancelled" => {
                answer.stop(&status);
                answer.complete();
            }
            "incomplete" => answer.stop(incomplete.as_deref().unwrap_or("length")),
            "failed" => answer.stop("error"),
            "queued" | "in_progress" => {}
            // Other servers have other words for an answer that is whole (recorded: pydantic-ai
            // test_openai_responses_verbosity).
            other if has_items && !other.is_empty() => {
                answer.stop(other);
                answer.complete();
            }
            _ => {}
        }
    }
}

fn begin(mut fields: Fields<'_>, answer: &mut Answer) {
    OF_THE_REQUEST.iter().for_each(|name| _ = fields.take(name));
    if answer.has_begun() {
        return;
    }
    let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
    let (id, model) = (filled(fields.string("id")), filled(fields.string("model")));
    let extra = fields.extra(Owner::Message);
    answer.begin(Metadata { id, model, extra, ..Metadata::default() });
}

fn failure(mut error: Fields<'_>) -> Body {
    let message = error.text("message").unwrap_or_else(|| "the response failed".to_owned());
    Body::Error { message, code: error.text("code") }
}

/// The items of an answer.
#[derive(Debug, Default)]
struct Growing {
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
    fn set_unkept(&mut self) {
        self.is_unkept = true;
    }

    /// An item that is whole: what was not said of it before.
    pub(crate) fn whole(&mut self, item: u64, raw: &RawValue, answer: &mut Answer) {
        if !self.whole.insert(item) {
            return;
        }
        let origin = Origin::Answer { kept: !self.is_unkept, after_id: self.after_id == Some(item) };
        let fields = Fields::of(raw).unwrap_or_default();
        if !self.is_unkept && is_by_id(&fields) {
            self.after_id = item.checked_add(1);
        }
        let chunks = said(fields, raw, origin, &mut Vec::new());
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
