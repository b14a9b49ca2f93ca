//! The request as a whole.

use serde_json::Value;

use super::message::{DOCUMENTS, Seen, TOOL_NAME, check_message, check_text};
use super::sequence::check_sequence;
use crate::provider::bedrock_converse::rules::{BC_01, BC_02, BC_13, BC_14, BC_21, BC_24};
use crate::provider::bedrock_converse::types::PARAMETERS;
use crate::provider::check::findings::Findings;
use crate::provider::check::value::{Object, kind, text};
use crate::provider::target::Target;
use crate::provider::text::{is_blank, is_word};

pub(crate) fn check(_: Target, request: &Value, out: &mut Findings) {
    let Some(object) = request.as_object() else {
        return out.push(BC_01.at("", format!("expected an object, got {}", kind(request))));
    };
    for name in object.keys().filter(|name| !PARAMETERS.contains(&name.as_str())) {
        out.push(BC_02.unknown(name, "a parameter that is not known"));
    }
    check_system(object, out);
    let model = text(object, "modelId");
    let mut seen = Seen { model, ..Seen::default() };
    match object.get("messages").unwrap_or(&Value::Null) {
        Value::Array(messages) if !messages.is_empty() => {
            for (i, message) in messages.iter().enumerate() {
                check_message(message, &format!("messages[{i}]"), &mut seen, out);
            }
            if let Some(messages) = messages.iter().map(Value::as_object).collect::<Option<Vec<_>>>() {
                check_sequence(&messages, out);
            }
        }
        Value::Array(_) => out.push(BC_01.at("messages", "no message")),
        other => out.push(BC_01.at("messages", format!("expected an array, got {}", kind(other)))),
    }
    if seen.documents > DOCUMENTS {
        out.push(BC_21.at("messages", format!("{} documents", seen.documents)));
    }
    check_tools(object, seen.tools, out);
}

fn check_system(request: &Object, out: &mut Findings) {
    let blocks = match request.get("system").unwrap_or(&Value::Null) {
        Value::Null => return,
        Value::Array(blocks) => blocks,
        other => return out.push(BC_24.at("system", format!("expected an array, got {}", kind(other)))),
    };
    for (i, block) in blocks.iter().enumerate() {
        match block.get("text") {
            Some(Value::String(text)) => check_text(text, format!("system[{i}].text"), out),
            Some(other) => {
                out.push(BC_24.at(format!("system[{i}].text"), format!("expected a string, got {}", kind(other))));
            }
            None if block.is_object() => {}
            None => out.push(BC_24.at(format!("system[{i}]"), format!("expected an object, got {}", kind(block)))),
        }
    }
}

/// A request of messages alone does not tell whether tools are declared.
fn check_tools(request: &Object, needed: Option<String>, out: &mut Findings) {
    let config = request.get("toolConfig").unwrap_or(&Value::Null);
    let tools = config.get("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for (i, tool) in tools.iter().enumerate() {
        let Some(spec) = tool.get("toolSpec") else { continue };
        let name = spec.get("name").unwrap_or(&Value::Null);
        if !name.as_str().is_some_and(|name| is_word(name, TOOL_NAME)) {
            out.push(BC_13.at(format!("toolConfig.tools[{i}].toolSpec.name"), format!("name is {}", kind(name))));
        }
        if spec.get("description").and_then(Value::as_str).is_some_and(is_blank) {
            out.push(BC_24.at(format!("toolConfig.tools[{i}].toolSpec.description"), "the description is empty"));
        }
    }
    let whole = request.keys().any(|name| !["messages", "system"].contains(&name.as_str()));
    if let Some(place) = needed.filter(|_| whole && tools.is_empty()) {
        out.push(BC_14.at("toolConfig", format!("no tool is declared, and {place} needs one")));
    }
}
