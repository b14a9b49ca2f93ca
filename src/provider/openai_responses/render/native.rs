//! What the provider itself wrote: given back byte for byte where it is valid and belongs there. Calls of tools that are no
//! functions (a shell, a computer, a patch, a search of the client's) belong together with the items that the caller answered
//! them with, and the answer comes after its call (OR-04, OR-05).

use std::collections::{HashMap, VecDeque};

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::history::{OUTCOME_UNKNOWN, ToolKind, answered, asked};
use crate::json;
use crate::model::{Body, Chunk, Extra, Json};
use crate::provider::check::finding::Finding;
use crate::provider::check::findings::Findings;
use crate::provider::check::rule::ProtocolRule;
use crate::provider::check::value::is_filled;
use crate::provider::openai_responses::check::{OF_OPENAI, check_item, is_others};
use crate::provider::openai_responses::manner::{Manner, NAME, PROVIDER};
use crate::provider::openai_responses::read::request::{PARAGRAPH, is_given, is_part};
use crate::provider::openai_responses::rules::{OR_10, OR_20};
use crate::provider::openai_responses::types::ITEMS;
use crate::provider::prompt::arguments::embedded_object;
use crate::provider::prompt::turns::{Call, Turn};

/// Items that are chunks of their own kind: as a bare item they are not what their type has.
const TYPED: &[&str] =
    &["message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"];
/// Items that are not seen without the id that the server gave them. Source: types of the official Python SDK (openai
/// 2.54.0); a web search goes without it (gh:openai/codex, `ResponseItem`).
const NEED_IDS: &[&str] = &[
    "file_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "computer_call",
    "local_shell_call",
    "local_shell_call_output",
    "mcp_call",
    "mcp_list_tools",
    "mcp_approval_request",
    "program",
    "program_output",
    "item_reference",
];

/// What OpenAI asks for where its own models are spoken to.
const OF_ITS_MODELS: &[&ProtocolRule] = &[&OR_20];

/// An item or a part as the provider wrote it, read.
#[derive(Debug)]
pub(crate) struct NativeItem<'a> {
    json: &'a Json,
    fields: Map<String, Value>,
    /// What OpenAI asks for, and the target does not.
    waived: &'static [&'static ProtocolRule],
}

impl<'a> NativeItem<'a> {
    /// What came with a chunk, if it is of this wire.
    pub(crate) fn of(chunk: &'a Chunk) -> Option<Self> {
        let native = chunk.native.as_ref().filter(|native| native.wire == NAME)?;
        Self::read(&native.json)
    }

    /// `None` if it is no object, holds half characters, or is nested too deep.
    pub(crate) fn read(json: &'a Json) -> Option<Self> {
        Some(Self { json, fields: embedded_object(json)?, waived: &[] })
    }

    /// The same, for a server of that manner and a model of it.
    pub(crate) fn taken_by(self, manner: &Manner, model: Option<&str>) -> Self {
        let waived: &[&ProtocolRule] = match model {
            _ if !manner.openais_items => OF_OPENAI,
            Some(model) if is_others(model) => OF_ITS_MODELS,
            _ => &[],
        };
        Self { waived, ..self }
    }

    /// The server's id, if the target takes it: other servers of this wire have ids of their own kinds (OR-10).
    pub(crate) fn id(&self) -> Option<&str> {
        self.fields.get("id").and_then(Value::as_str).filter(|_| !self.has_foreign_id())
    }

    /// As it came, but for an id that the target refuses.
    pub(crate) fn whole(&self) -> Box<RawValue> {
        if self.has_foreign_id() { self.without_id() } else { raw(self.json.as_str()) }
    }

    fn has_foreign_id(&self) -> bool {
        self.may_lose_id() && self.refusals().any(|finding| is_foreign_id(&finding))
    }

    /// As it came, but for the server's id.
    pub(crate) fn without_id(&self) -> Box<RawValue> {
        // It was read as an object.
        let fields = Extra::from_object(self.json.as_str()).unwrap_or_default();
        let fields = fields.iter().filter(|(name, _)| *name != "id");
        let fields: Vec<String> = fields.map(|(name, value)| format!("{}:{}", Value::from(name), value)).collect();
        raw(&format!("{{{}}}", fields.join(",")))
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.fields.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) const fn json(&self) -> &Json {
        self.json
    }

    /// Whether a field is there and says something.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.get(name).is_some_and(is_filled)
    }

    pub(crate) fn kind(&self) -> &str {
        self.text("type")
    }

    fn is_valid_item(&self) -> bool {
        self.refusals().all(|finding| is_foreign_id(&finding))
    }

    /// What the target refuses the item for.
    fn refusals(&self) -> impl Iterator<Item = Finding> {
        let waived = self.waived;
        refusals(&self.fields).filter(move |finding| waived.iter().all(|rule| rule.id != finding.rule))
    }

    /// Whether it is a valid part of a message of this role.
    fn is_valid_part(&self, role: &str) -> bool {
        let message = json!({"type": "message", "role": role, "content": [self.fields]});
        message.as_object().is_some_and(|message| refusals(message).all(|finding| is_foreign_id(&finding)))
    }

    /// Is this reasoning that can be given back, without the server's help (OR-21) or by its id?
    pub(crate) fn is_reasoning(&self, said: &str) -> bool {
        let says = self.has("encrypted_content") || !self.waived.is_empty() && self.has("content") || self.goes_by_id();
        self.kind() == "reasoning" && says && (!self.has("content") || self.thinks(said)) && self.is_valid_item()
    }

    /// Is this reasoning that only the server has, if it stored the answer?
    pub(crate) fn goes_by_id(&self) -> bool {
        let is_here = self.has("encrypted_content") || self.has("content");
        self.kind() == "reasoning" && self.waived.is_empty() && !is_here && self.id().is_some()
    }

    /// Whether the reasoning says this.
    fn thinks(&self, said: &str) -> bool {
        let texts = |name: &str| {
            let parts = self.fields.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let texts: Vec<_> = parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
            texts.join(PARAGRAPH)
        };
        [texts("summary"), texts("content")].iter().any(|text| text == said)
    }

    /// Is this the part that says this, under this name: `text` or `refusal`?
    pub(crate) fn is_part(&self, name: &str, said: &str) -> bool {
        self.kind() == if name == "text" { "output_text" } else { name }
            && self.text(name) == said
            && self.is_valid_part("assistant")
    }

    /// How many of these chunks are this message of the model, from the first on: one for each of its parts. 0 if it is no
    /// message, or says something else.
    pub(crate) fn message_of(&self, chunks: &[Chunk]) -> usize {
        let parts = match self.fields.get("content") {
            Some(Value::Array(parts)) => parts.as_slice(),
            Some(text @ Value::String(_)) => std::slice::from_ref(text),
            _ => &[],
        };
        let says = |part: &Value, chunk: &Chunk| match &chunk.body {
            Body::Text { text, .. } => part.get("text").unwrap_or(part) == text,
            Body::Refusal { text } => part.get("refusal").is_some_and(|said| said == text),
            _ => false,
        };
        let is_said = parts.len() <= chunks.len() && parts.iter().zip(chunks).all(|(part, chunk)| says(part, chunk));
        let is_message = self.kind() == "message" && self.text("role") == "assistant" && is_said;
        if is_message && self.is_valid_item() { parts.len() } else { 0 }
    }

    /// Is this a part that a user may send, of this type?
    pub(crate) fn is_input(&self, kinds: &[&str]) -> bool {
        kinds.contains(&self.kind()) && self.is_valid_part("user")
    }

    /// Is this the call, with this input if it is a custom tool's?
    pub(crate) fn is_call(&self, call: &Call<'_>, input: Option<&str>) -> bool {
        let (kind, key, said) = match input {
            Some(input) => ("custom_tool_call", "input", input),
            None => ("function_call", "arguments", call.arguments.as_ref()),
        };
        (self.kind(), self.text(key)) == (kind, said)
            && (self.text("call_id"), self.text("name")) == (call.id.as_str(), call.name.as_ref())
            && self.is_valid_item()
    }

    /// Is this a call of a tool that takes text, not JSON, with this input?
    pub(crate) fn is_custom(&self, input: &str) -> bool {
        self.kind() == "custom_tool_call" && self.text("input") == input
    }

    /// Is this the request's `instructions`?
    pub(crate) fn is_instructions(&self, said: &str) -> bool {
        self.fields.len() == 1 && self.text("instructions") == said
    }

    /// Whether this is an item of its own: of any type, known or not, but those that are other chunks.
    pub(crate) fn is_item(&self) -> bool {
        !self.kind().is_empty() && !TYPED.contains(&self.kind()) && !is_part(self.kind())
    }

    /// Whether the model may have said it, so that reasoning may stand before it (OR-08). What is read as the caller's is not:
    /// it ends the message that the reasoning is in.
    pub(crate) fn is_by_model(&self) -> bool {
        let known = ITEMS.iter().find(|item| item.name == self.kind());
        known.map_or_else(|| !is_given(self.kind(), false), |item| item.by_model)
    }

    /// Why the target refuses the item, with or without its id.
    pub(crate) fn refusal(&self) -> Option<Finding> {
        self.refusals().find(|finding| !(self.may_lose_id() && is_foreign_id(finding)))
    }

    /// Whether the item is taken without the id that the server gave it.
    pub(crate) fn may_lose_id(&self) -> bool {
        !NEED_IDS.contains(&self.kind())
    }

    /// Is this a part that a message of this role may hold?
    pub(crate) fn is_part_for(&self, role: &str) -> bool {
        is_part(self.kind()) && self.is_valid_part(role)
    }
}

/// Whether a finding is about an id that is of another server's kind.
fn is_foreign_id(finding: &Finding) -> bool {
    finding.rule == OR_10.id
}

/// What the target refuses an item for.
fn refusals(item: &Map<String, Value>) -> impl Iterator<Item = Finding> {
    let mut findings = Findings::default();
    check_item(item, "", true, &mut findings);
    findings.into_kept().into_iter().filter(|finding| finding.level.is_refused())
}

/// Of JSON text.
fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(json::compact(text).into_owned()).unwrap_or_default()
}

/// A picture of one white pixel, where the screenshot that a computer's call asks for is not known.
const BLANK_SCREEN: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg==";

/// The place of a chunk: the turn, and the position in its message.
pub(crate) type Place = (usize, usize);

/// Which items answer which calls.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    /// The answer of a call.
    pub(crate) answers: HashMap<Place, Place>,
    /// The call of an answer.
    pub(crate) calls: HashMap<Place, Place>,
}

impl Pairs {
    /// In one pass: an answer belongs to the earliest open call of its kind and id.
    pub(crate) fn find(turns: &[Turn<'_>], providers: &[&str]) -> Self {
        let mut open: HashMap<(ToolKind, String), VecDeque<Place>> = HashMap::new();
        let mut pairs = Self::default();
        for (turn, said) in turns.iter().enumerate().filter(|(_, said)| said.is_by(providers, None)) {
            for (chunk, content) in said.stored.message.chunks.iter().enumerate() {
                let Body::Opaque { provider, json, .. } = &content.body else { continue };
                let given = NativeItem::read(json).filter(|given| provider == PROVIDER && given.refusal().is_none());
                let Some(given) = given else { continue };
                let place = (turn, chunk);
                if let Some(asked) = asked(given.kind(), json) {
                    open.entry((asked.kind, asked.id)).or_default().push_back(place);
                } else if let Some(call) = answered(given.kind(), json).and_then(|key| open.get_mut(&key)?.pop_front())
                {
                    pairs.answers.insert(call, place);
                    pairs.calls.insert(place, call);
                }
            }
        }
        pairs
    }
}

impl NativeItem<'_> {
    /// Whether it is an answer, which is nothing without its call.
    pub(crate) fn is_answer(&self) -> bool {
        answered(self.kind(), self.json()).is_some()
    }

    /// Whether the target refuses it as long as nothing answers it.
    pub(crate) fn wants_answer(&self) -> bool {
        asked(self.kind(), self.json()).is_some_and(|asked| asked.kind != ToolKind::McpApproval)
    }

    /// What the call is answered in place of an answer that is not there. `None` where none is wanted.
    pub(crate) fn made_answer(&self) -> Option<Value> {
        let (id, why) = (self.text("call_id"), OUTCOME_UNKNOWN);
        Some(match self.kind() {
            // Nobody has looked at what the service warns of.
            "computer_call" if self.has("pending_safety_checks") => return None,
            "computer_call" => json!({"type": "computer_call_output", "call_id": id,
                "output": {"type": "computer_screenshot", "image_url": BLANK_SCREEN}}),
            "shell_call" => json!({"type": "shell_call_output", "call_id": id,
                "output": [{"stdout": "", "stderr": why, "outcome": {"type": "timeout"}}]}),
            "apply_patch_call" => {
                json!({"type": "apply_patch_call_output", "call_id": id, "status": "failed", "output": why})
            }
            "local_shell_call" => json!({"type": "local_shell_call_output", "call_id": id, "output": why}),
            "tool_search_call" if self.text("execution") == "client" => {
                json!({"type": "tool_search_output", "call_id": id, "execution": "client", "status": "completed", "tools": []})
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> NativeItem<'static> {
        NativeItem::read(Box::leak(Box::new(Json::new(json).unwrap()))).unwrap()
    }

    #[test]
    fn reasoning_goes_back_if_it_says_what_was_thought() {
        let summary = r#""summary":[{"type":"summary_text","text":"hm"}]"#;
        let content = r#""content":[{"type":"reasoning_text","text":"well"}]"#;
        let deepseek = Manner::of("openai-responses/deepseek".parse().unwrap());
        let item = read(&format!(r#"{{"type":"reasoning",{summary},{content}}}"#)).taken_by(deepseek, None);
        assert!(item.is_reasoning("hm") && item.is_reasoning("well") && !item.is_reasoning("oh"));
    }

    #[test]
    fn ids_of_other_servers_are_left_out_where_an_item_is_taken_without() {
        let foreign = read(r#"{"type":"reasoning","id":"other_1","summary":[],"encrypted_content":"x"}"#);
        assert!(foreign.id().is_none() && !foreign.whole().get().contains("other_1"));
        let own = read(r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}"#);
        assert_eq!((own.id(), own.whole().get().contains("rs_1")), (Some("rs_1"), true));
        for kind in NEED_IDS {
            assert!(!read(&format!(r#"{{"type":{kind:?}}}"#)).may_lose_id(), "{kind}");
        }
    }

    #[test]
    fn nobody_answers_for_a_caller_who_was_warned() {
        let call = |checks: &str| {
            let call = r#""type":"computer_call","call_id":"c","action":{"type":"wait"}"#;
            read(&format!(r#"{{{call},"pending_safety_checks":[{checks}]}}"#)).made_answer()
        };
        assert!(call("").is_some());
        assert!(call(r#"{"id":"s","code":"c","message":"m"}"#).is_none());
    }
}
