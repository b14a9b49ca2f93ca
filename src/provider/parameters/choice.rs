//! Which tools a model may call, as each wire says it.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{ANTHROPIC, CHAT, GEMINI, RESPONSES, WIRES};
use crate::json::fields::{Fields, array, string};
use crate::json::object::Object;

/// Where each wire says it.
pub(crate) const PLACES: [&str; WIRES.len()] =
    ["tool_choice", "tool_choice", "tool_choice", "toolConfig.functionCallingConfig", "toolConfig.toolChoice"];
/// Where OpenAI's wires say whether several tools may be called at once.
pub(crate) const PARALLEL: &str = "parallel_tool_calls";
/// The field of a choice in which Anthropic says that they may not.
pub(crate) const DISABLED: &str = "disable_parallel_tool_use";

/// What a model may do with its tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Call some, or none.
    Auto,
    /// Call none.
    None,
    /// Call at least one.
    Required,
    /// Call the one of this name.
    One(String),
}

impl Choice {
    /// Reads what a request of the wire says; `None` if nothing else has a word for it.
    pub(crate) fn read(wire: usize, raw: &RawValue) -> Option<Self> {
        let fields = Fields::of(raw);
        let field = |name: &str| fields.as_ref().and_then(|fields| fields.peek(name));
        let word = match wire {
            GEMINI => field("mode").and_then(string)?.to_lowercase(),
            CHAT | RESPONSES => string(raw).or_else(|| field("type").and_then(string))?,
            ANTHROPIC => field("type").and_then(string)?,
            _ => fields.as_ref()?.names().next()?.to_owned(),
        };
        let name = match wire {
            CHAT => field("function").and_then(Fields::of).and_then(|function| function.peek("name").and_then(string)),
            GEMINI => {
                let mut allowed = field("allowedFunctionNames").and_then(array).unwrap_or_default().into_iter();
                let first = allowed.next().and_then(string);
                if allowed.next().is_some() {
                    return None;
                }
                first
            }
            RESPONSES | ANTHROPIC => field("name").and_then(string),
            _ => field("tool").and_then(Fields::of).and_then(|tool| tool.peek("name").and_then(string)),
        };
        match (&*word, name) {
            ("auto", None) => Some(Self::Auto),
            ("none", None) => Some(Self::None),
            ("required" | "any", None) => Some(Self::Required),
            ("function" | "tool" | "any", Some(name)) => Some(Self::One(name)),
            _ => None,
        }
    }

    /// Says it in a request of the wire. `false`: that has no word for it.
    pub(crate) fn put(&self, wire: usize, request: &mut Object) -> bool {
        let place = PLACES.get(wire).copied().unwrap_or_default();
        match self.written(wire) {
            // One more field may follow.
            Some(Value::Object(fields)) if wire == ANTHROPIC => {
                fields.into_iter().for_each(|(name, value)| request.put(&format!("{place}.{name}"), value));
            }
            Some(value) => request.put(place, value),
            None => return false,
        }
        true
    }

    fn written(&self, wire: usize) -> Option<Value> {
        Some(match (wire, self) {
            (CHAT | RESPONSES, Self::Auto) => json!("auto"),
            (CHAT | RESPONSES, Self::None) => json!("none"),
            (CHAT | RESPONSES, Self::Required) => json!("required"),
            (CHAT, Self::One(name)) => json!({ "type": "function", "function": { "name": name } }),
            (RESPONSES, Self::One(name)) => json!({ "type": "function", "name": name }),
            (ANTHROPIC, Self::Auto) => json!({ "type": "auto" }),
            (ANTHROPIC, Self::None) => json!({ "type": "none" }),
            (ANTHROPIC, Self::Required) => json!({ "type": "any" }),
            (ANTHROPIC, Self::One(name)) => json!({ "type": "tool", "name": name }),
            (GEMINI, Self::Auto) => json!({ "mode": "AUTO" }),
            (GEMINI, Self::None) => json!({ "mode": "NONE" }),
            (GEMINI, Self::Required) => json!({ "mode": "ANY" }),
            (GEMINI, Self::One(name)) => json!({ "mode": "ANY", "allowedFunctionNames": [name] }),
            (_, Self::Auto) => json!({ "auto": {} }),
            (_, Self::Required) => json!({ "any": {} }),
            (_, Self::One(name)) => json!({ "tool": { "name": name } }),
            (_, Self::None) => return None,
        })
    }
}

/// Says in a request of the wire, after its choice, that tools are called one by one. `false`: that has no word for it.
pub(crate) fn put_one_by_one(wire: usize, choice: Option<&Choice>, request: &mut Object) -> bool {
    match wire {
        CHAT | RESPONSES => request.put(PARALLEL, false),
        ANTHROPIC => {
            if choice.is_none() {
                Choice::Auto.put(wire, request);
            }
            if choice != Some(&Choice::None) {
                let place = PLACES.get(wire).copied().unwrap_or_default();
                request.put(&format!("{place}.{DISABLED}"), true);
            }
        }
        _ => return false,
    }
    true
}
