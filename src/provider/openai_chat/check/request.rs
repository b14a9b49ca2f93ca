//! The request as a whole: its parameters, its messages one by one, their sequence, its tools.

use serde_json::Value;

use super::message::{check_message, is_function_name};
use super::sequence::check_sequence;
use crate::provider::check::finding::Level;
use crate::provider::check::findings::Findings;
use crate::provider::check::value::{Object, kind, sequence};
use crate::provider::openai_chat::manner::Manner;
use crate::provider::openai_chat::rules::{OC_01, OC_02, OC_14, OC_33};
use crate::provider::target::Target;

/// Messages in one request (from memory; no report found).
const MESSAGES: usize = 2048;

/// The parameters of the official type (openai 2.54.0, `CompletionCreateParams`).
const PARAMETERS: &[&str] = &[
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "modalities",
    "model",
    "moderation",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];
/// Parameters of other servers, often sent because they are known there.
const FOREIGN_PARAMETERS: &[&str] = &["chat_template_kwargs", "enable_thinking", "thinking"];
/// What client packages call the parameters that they do not know themselves: it is not meant for the wire.
const OF_CLIENTS: &str = "extra_body";

pub(crate) fn check(target: Target, request: &Value, out: &mut Findings) {
    let Some(object) = request.as_object() else {
        return out.push(OC_01.at("", format!("expected an object, got {}", kind(request))));
    };
    let Some(list) = object.get("messages").and_then(Value::as_array).filter(|list| !list.is_empty()) else {
        return out.push(OC_01.at("messages", "missing, not an array, or empty"));
    };
    for name in object.keys().filter(|name| !PARAMETERS.contains(&name.as_str())) {
        let level = match name.as_str() {
            OF_CLIENTS => OC_02.level,
            name if FOREIGN_PARAMETERS.contains(&name) => Level::Soft,
            _ => Level::Unknown,
        };
        out.push(OC_02.at(name, "unknown parameter").with_level(level));
    }
    if list.len() > MESSAGES {
        out.push(OC_33.at("messages", format!("{} messages", list.len())));
    }
    let manner = Manner::of(target);
    for (i, message) in list.iter().enumerate() {
        check_message(message, manner, &format!("messages[{i}]"), out);
    }
    if let Some(messages) = sequence(request, "messages") {
        check_sequence(&messages, manner, out);
    }
    check_tools(object, out);
}

fn check_tools(request: &Object, out: &mut Findings) {
    let tools = match request.get("tools") {
        None | Some(Value::Null) => return,
        Some(Value::Array(tools)) => tools,
        Some(other) => return out.push(OC_02.at("tools", format!("expected an array, got {}", kind(other)))),
    };
    for (i, tool) in tools.iter().enumerate() {
        let Some(function) = tool.get("function").filter(|function| function.is_object()) else { continue };
        let name = function.get("name").unwrap_or(&Value::Null);
        if !is_function_name(name) {
            out.push(OC_14.at(format!("tools[{i}].function.name"), format!("name is {}", kind(name))));
        }
    }
}
