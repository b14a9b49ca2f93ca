//! The request as a whole: its parameters, its items one by one, their sequence, its tools.

use super::item::{NAME, check_item};
use super::sequence::check_sequence;
use crate::provider::check::finding::Level;
use crate::provider::check::findings::Findings;
use crate::provider::check::rule::{ProtocolRule, set_level};
use crate::provider::check::value::{Object, is_filled, kind};
use crate::provider::openai_responses::rules::{OR_01, OR_02, OR_03, OR_08, OR_10, OR_12, OR_16, OR_20, OR_21, OR_32};
use crate::provider::target::Target;
use crate::provider::text::is_word;
use serde_json::Value;

/// Characters of a function's name that older models take too.
const OLDER_NAME: usize = 64;

/// The parameters of the official type (openai 2.54.0, `ResponseCreateParams`).
const PARAMETERS: &[&str] = &[
    "background",
    "context_management",
    "conversation",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "moderation",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];
/// The most that a parameter may be; the least is 0.
const RANGES: &[(&str, f64)] = &[("temperature", 2.0), ("top_p", 1.0)];
/// In the names of models that other servers serve: a route, or another maker.
const OTHER_MAKERS: &[&str] = &["/", "deepseek", "grok", "claude", "gemini", "mistral", "qwen", "llama", "kimi", "glm"];
/// What OpenAI asks of the items that its own server made, and no other server. Other servers of this wire make theirs otherwise
/// (recorded: pydantic-ai test_deepseek_responses).
pub(crate) const OF_OPENAI: &[&ProtocolRule] = &[&OR_08, &OR_10, &OR_12, &OR_20, &OR_21];
/// Parameters that bring items from the server.
const CONTINUES: &[&str] = &["previous_response_id", "conversation", "prompt"];

pub(crate) fn check(_: Target, request: &Value, out: &mut Findings) {
    let Some(object) = request.as_object() else {
        return out.push(OR_01.at("", format!("expected an object, got {}", kind(request))));
    };
    for name in object.keys().filter(|name| !PARAMETERS.contains(&name.as_str())) {
        out.push(OR_02.unknown(name, "unknown parameter"));
    }
    for (name, most) in RANGES {
        let out_of_range = |value: &f64| !(0.0..=*most).contains(value);
        if let Some(value) = object.get(*name).and_then(Value::as_f64).filter(out_of_range) {
            out.push(OR_32.at(*name, format!("it is {value}")));
        }
    }
    let continues = CONTINUES.iter().any(|name| object.get(*name).is_some_and(is_filled));
    check_input(object, continues, out);
    check_tools(object, out);
    match object.get("model").and_then(Value::as_str) {
        Some(model) if is_others(model) => set_level(Level::Soft, OF_OPENAI, out),
        Some(_) => {}
        // Whether the model's server takes it is not known.
        None => set_level(Level::Soft, &[&OR_20], out),
    }
}

/// Whether, by its name, a model is served by another server than OpenAI's.
pub(crate) fn is_others(model: &str) -> bool {
    OTHER_MAKERS.iter().any(|maker| model.contains(maker))
}

fn check_input(request: &Object, continues: bool, out: &mut Findings) {
    let items = match request.get("input").unwrap_or(&Value::Null) {
        Value::Array(items) => items,
        Value::String(text) if text.is_empty() && !continues => {
            return out.push(OR_01.at("input", "empty string").with_level(Level::Soft));
        }
        Value::String(_) => return,
        Value::Null if continues => return,
        other => return out.push(OR_01.at("input", format!("expected a string or an array, got {}", kind(other)))),
    };
    if items.is_empty() && !continues {
        return out.push(OR_01.at("input", "empty array"));
    }
    let stored = request.get("store") != Some(&Value::Bool(false));
    for (i, item) in items.iter().enumerate() {
        let place = format!("input[{i}]");
        match item.as_object() {
            Some(object) => check_item(object, &place, stored, out),
            None => out.push(OR_03.at(place, format!("expected an object, got {}", kind(item)))),
        }
    }
    if let Some(items) = items.iter().map(Value::as_object).collect::<Option<Vec<_>>>() {
        check_sequence(&items, continues, stored, out);
    }
}

fn check_tools(request: &Object, out: &mut Findings) {
    let tools = match request.get("tools") {
        None | Some(Value::Null) => return,
        Some(Value::Array(tools)) => tools,
        Some(other) => return out.push(OR_02.at("tools", format!("expected an array, got {}", kind(other)))),
    };
    for (i, tool) in tools.iter().enumerate() {
        if tool.get("type").is_none_or(|name| name != "function") {
            continue;
        }
        let name = tool.get("name").unwrap_or(&Value::Null);
        let place = format!("tools[{i}].name");
        match name.as_str().filter(|name| is_word(name, NAME)) {
            None => out.push(OR_16.at(place, format!("name is {}", kind(name)))),
            Some(name) if name.len() > OLDER_NAME => {
                let problem = format!("name of {} characters; older models take {OLDER_NAME}", name.len());
                out.push(OR_16.at(place, problem).with_level(Level::Soft));
            }
            Some(_) => {}
        }
    }
}
