//! Is a Messages request accepted?
//!
//! The request as a whole is judged here: its parameters, `system`, its tools. `message` judges its messages one by one, and
//! what counts over all of them; `sequence` how they follow one another.

pub(crate) mod message;
pub(crate) mod sequence;

use serde_json::Value;

use super::rules::{AN_01, AN_02, AN_07, AN_17, AN_33, AN_36, AN_42, AN_45};
use super::types::TEXT;
use crate::json;
use crate::provider::check::finding::Level;
use crate::provider::check::findings::Findings;
use crate::provider::check::shape::Fault;
use crate::provider::check::value::{Object, items, kind, objects, sequence};
use crate::provider::target::Target;
use crate::provider::text::{is_blank, is_word};
use message::{NAME, Seen, check_message, check_text};
use sequence::check_turns;

/// Messages in one request.
const MESSAGES: usize = 100_000;
/// Bytes of a request.
const BYTES: usize = 32 * 1024 * 1024;

/// The parameters of the official type (anthropic 2.11.0, `MessageCreateParams`), and of its betas.
const PARAMETERS: &[&str] = &[
    "anthropic_version",
    "betas",
    "cache_control",
    "container",
    "context_management",
    "diagnostics",
    "fallback",
    "inference_geo",
    "max_tokens",
    "mcp_servers",
    "messages",
    "metadata",
    "model",
    "output_config",
    "service_tier",
    "speed",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
    "user_profile_id",
    "workspace_id",
];

pub(crate) fn check(_: Target, request: &Value, out: &mut Findings) {
    let Some(object) = request.as_object() else {
        return out.push(AN_01.at("", format!("expected an object, got {}", kind(request))));
    };
    for name in object.keys().filter(|name| !PARAMETERS.contains(&name.as_str())) {
        out.push(AN_02.unknown(name, "unknown parameter"));
    }
    // A part of a request, such as one that was rendered, has neither model nor limit.
    let is_whole = ["model", "anthropic_version"].iter().any(|name| object.contains_key(*name));
    if is_whole && object.get("max_tokens").is_none_or(Value::is_null) {
        out.push(AN_45.at("max_tokens", "required field is missing"));
    }
    let Some(list) = object.get("messages").and_then(Value::as_array).filter(|list| !list.is_empty()) else {
        return out.push(AN_01.at("messages", "missing, not an array, or empty"));
    };
    if list.len() > MESSAGES {
        out.push(AN_01.at("messages", format!("{} messages, at most {MESSAGES}", list.len())));
    }
    let mut seen = Seen::default();
    for key in ["tools", "system"] {
        for (i, block) in objects(items(object, key)) {
            seen.marks.see(block, &format!("{key}[{i}]"), out);
        }
    }
    check_system(object.get("system").unwrap_or(&Value::Null), out);
    for (i, message) in list.iter().enumerate() {
        check_message(message, &format!("messages[{i}]"), i + 1 == list.len(), &mut seen, out);
    }
    seen.marks.see_request(object);
    seen.marks.check(out);
    seen.images.check(out);
    check_tools(object, out);
    if let Some(messages) = sequence(request, "messages") {
        check_turns(object, &messages, out);
    }
    let bytes = json::size(request);
    if bytes > BYTES {
        out.push(AN_42.at("", format!("{bytes} bytes, at most {BYTES}")));
    }
}

fn check_system(system: &Value, out: &mut Findings) {
    let blocks = match system {
        Value::Null => return,
        Value::String(text) if is_blank(text) => {
            return out.push(AN_07.at("system", "text is empty or blank").with_level(Level::Soft));
        }
        Value::String(_) => return,
        Value::Array(blocks) => blocks,
        other => return out.push(AN_36.at("system", format!("expected a string or an array, got {}", kind(other)))),
    };
    for (i, block) in blocks.iter().enumerate() {
        let place = format!("system[{i}]");
        let Some(block) = block.as_object() else {
            out.push(AN_36.at(place, format!("expected an object, got {}", kind(block))));
            continue;
        };
        for misfit in TEXT.misfits(block, &place) {
            let rule = if misfit.fault == Fault::Unknown { &AN_33 } else { &AN_36 };
            out.push(rule.of(misfit));
        }
        check_text(block, &place, out);
    }
}

fn check_tools(request: &Object, out: &mut Findings) {
    if let Some(other) = request.get("tools").filter(|tools| !tools.is_null() && !tools.is_array()) {
        out.push(AN_02.at("tools", format!("expected an array, got {}", kind(other))));
    }
    for (place, name) in tool_names(request) {
        if !name.as_str().is_some_and(|name| is_word(name, NAME)) {
            out.push(AN_17.at(place, format!("name is {}", kind(name))));
        }
    }
}

/// The names of the tools that the request defines itself, null where there is none, and their places. The provider's own
/// tools are named by it.
pub(crate) fn tool_names(request: &Object) -> Vec<(String, &Value)> {
    let own = objects(items(request, "tools")).filter(|(_, tool)| match tool.get("type").unwrap_or(&Value::Null) {
        Value::Null => true,
        name => name == "custom" || tool.contains_key("input_schema"),
    });
    own.map(|(i, tool)| (format!("tools[{i}].name"), tool.get("name").unwrap_or(&Value::Null))).collect()
}
