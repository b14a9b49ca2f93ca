//! The tool calls of a message.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::model::json_text::is_object;
use crate::provider::check::finding::{Finding, Level};
use crate::provider::check::rule::ProtocolRule;
use crate::provider::check::shape::{is_filled, kind};
use crate::provider::openai_chat::manner::Manner;
use crate::provider::openai_chat::rules::{OC_10, OC_12, OC_13, OC_14, OC_15, OC_16, OC_17};
use crate::provider::text::is_word;

/// Calls in one message (from memory of the error's text).
const CALLS: usize = 128;
/// Characters of an id.
const ID: usize = 40;
/// Characters of a name.
pub(crate) const NAME: usize = 64;

/// The ids of a message's calls as they stand, null where there is none. No calls, no ids.
pub(crate) fn call_ids(message: &Map<String, Value>) -> Vec<&Value> {
    calls(message).map(|(_, call)| call.get("id").unwrap_or(&Value::Null)).collect()
}

/// The calls of a message that are objects, and their positions.
pub(crate) fn calls(message: &Map<String, Value>) -> impl Iterator<Item = (usize, &Map<String, Value>)> {
    let calls = message.get("tool_calls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    calls.iter().enumerate().filter_map(|(i, call)| Some((i, call.as_object()?)))
}

pub(crate) fn check_calls(calls: &Value, manner: &Manner, place: &str, out: &mut Vec<Finding>) {
    if manner.types.is_some() && !is_filled(calls) {
        return;
    }
    let Some(calls) = calls.as_array().filter(|calls| !calls.is_empty()) else {
        return out.push(OC_12.at(place, "null, empty, or not an array"));
    };
    if calls.len() > CALLS {
        out.push(OC_12.at(place, format!("{} calls, at most {CALLS}", calls.len())));
    }
    let mut seen = HashSet::new();
    for (i, call) in calls.iter().enumerate() {
        let place = format!("{place}[{i}]");
        let Some(call) = call.as_object() else {
            out.push(OC_17.at(place, format!("expected an object, got {}", kind(call))));
            continue;
        };
        let id = call.get("id").unwrap_or(&Value::Null);
        check_id(id, &OC_13, manner, &format!("{place}.id"), out);
        if id.is_string() && !seen.insert(id) {
            out.push(OC_10.at(format!("{place}.id"), format!("{id} is the id of an earlier call of the message")));
        }
        check_call(call, manner, &place, out);
    }
}

/// `absent` is the rule that a missing id breaks.
pub(crate) fn check_id(id: &Value, absent: &ProtocolRule, manner: &Manner, place: &str, out: &mut Vec<Finding>) {
    match id.as_str().map(|id| id.chars().count()) {
        None | Some(0) => out.push(absent.at(place, "missing, empty, or not a string")),
        Some(length) if length > ID => {
            let problem = format!("id of {length} characters, at most {ID}");
            let level = if manner.own_ids { Level::Soft } else { Level::Reported };
            out.push(OC_13.at(place, problem).with_level(level));
        }
        Some(_) => {}
    }
}

fn check_call(call: &Map<String, Value>, manner: &Manner, place: &str, out: &mut Vec<Finding>) {
    let type_name = call.get("type").and_then(Value::as_str).unwrap_or_default();
    let (key, body) = match type_name {
        "custom" => ("custom", call.get("custom").filter(|body| body.get("input").is_some_and(Value::is_string))),
        "function" => ("function", call.get("function").filter(|body| body.is_object())),
        _ => ("type", None),
    };
    let Some(body) = body else {
        if key == "type" && manner.types.is_some() {
            // Its own answers leave the type of a call out (sdk:mistralai ToolCall).
            return;
        }
        let finding = OC_17.at(format!("{place}.{key}"), "call without a known type and its object");
        let is_unknown = key == "type" && !type_name.is_empty();
        return out.push(if is_unknown { finding.with_level(Level::Unknown) } else { finding });
    };
    if type_name == "function" {
        let place = format!("{place}.function.arguments");
        match body.get("arguments").unwrap_or(&Value::Null) {
            Value::String(arguments) if is_object(arguments) => {}
            Value::String(_) => out.push(OC_16.at(place, "not the JSON text of an object")),
            other => out.push(OC_15.at(place, format!("expected a string, got {}", kind(other)))),
        }
    }
    let name = body.get("name").unwrap_or(&Value::Null);
    if !is_function_name(name) {
        out.push(OC_14.at(format!("{place}.{key}.name"), format!("name is {}", kind(name))));
    }
}

pub(crate) fn is_function_name(name: &Value) -> bool {
    name.as_str().is_some_and(|name| is_word(name, NAME))
}
