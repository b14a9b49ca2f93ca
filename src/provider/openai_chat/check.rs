//! Is a chat request accepted?
//!
//! First the request as a whole: its parameters, its tools. Then one message: its role, its fields, its name, its content, its
//! calls. Then the messages in their sequence: which calls are answered, and where. What dialects ask of messages, too.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::manner::{Ends, Manner};
use super::rules::{
    OC_01, OC_02, OC_03, OC_04, OC_05, OC_06, OC_07, OC_08, OC_09, OC_10, OC_11, OC_12, OC_13, OC_14, OC_15, OC_16,
    OC_17, OC_18, OC_19, OC_20, OC_21, OC_22, OC_23, OC_24, OC_25, OC_26, OC_27, OC_28, OC_29, OC_30, OC_31, OC_33,
    OC_34, OC_35,
};
use super::types::{ROLES, Role};
use crate::json::is_object;
use crate::provider::check::finding::Level;
use crate::provider::check::findings::Findings;
use crate::provider::check::rule::ProtocolRule;
use crate::provider::check::shape::Fault;
use crate::provider::check::value::{Object, is_filled, items, kind, objects, role, sequence, text};
use crate::provider::prompt::media::bytes::{UrlFault, decode_base64, image_url_fault};
use crate::provider::target::Target;
use crate::provider::text::{is_blank, is_word};

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

/// Characters in one string (from memory).
const CHARACTERS: usize = 10_485_760;
/// Types of other wires' parts: they are sent here by mistake, and refused (gh:QwenLM/qwen-code#1888).
const OF_OTHER_WIRES: &[&str] = &[
    "image",
    "document",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "tool_result",
    "input_text",
    "input_image",
    "input_file",
    "output_text",
];
/// Calls in one message (from memory of the error's text).
const CALLS: usize = 128;
/// Characters of an id.
const ID: usize = 40;
/// Characters of a name.
pub(crate) const NAME: usize = 64;

fn check_message(message: &Value, manner: &Manner, place: &str, out: &mut Findings) {
    let Some(object) = message.as_object() else {
        return out.push(OC_03.at(place, format!("expected an object, got {}", kind(message))));
    };
    let name = object.get("role").unwrap_or(&Value::Null);
    let Some(role) = ROLES.iter().find(|role| name == role.name) else {
        return out.push(OC_03.at(place, format!("role is {}", kind(name))));
    };
    check_fields(role, object, manner, place, out);
    check_content_is_there(role, object, place, out);
    check_content(role, object, manner, &format!("{place}.content"), out);
    if let Some(name) = object.get("name").and_then(Value::as_str) {
        check_name(name, &format!("{place}.name"), out);
    }
    if object.get("function_call").is_some_and(is_filled) {
        out.push(OC_26.at(format!("{place}.function_call"), "deprecated function_call"));
    }
    if let Some(calls) = object.get("tool_calls") {
        check_calls(calls, manner, &format!("{place}.tool_calls"), out);
    }
    if role.name == "tool" {
        let id = object.get("tool_call_id").unwrap_or(&Value::Null);
        check_id(id, &OC_18, manner, &format!("{place}.tool_call_id"), out);
    }
}

/// Compares with the official type, but for what other rules say better, and for fields that the server's own type has.
fn check_fields(role: &Role, message: &Object, manner: &Manner, place: &str, out: &mut Findings) {
    let own = manner.types.iter().flat_map(|types| *types).find(|(name, _)| *name == role.name).map(|(_, shape)| shape);
    let is_own = |of: &str| {
        let field = of.strip_prefix(place).and_then(|field| field.strip_prefix('.'));
        field.is_some_and(|field| own.is_some_and(|own| own.knows(field)))
    };
    let content = format!("{place}.content");
    let calls = format!("{place}.tool_calls");
    let images = if manner.image_strings { image_strings(message, &content) } else { HashSet::new() };
    let judged_elsewhere = |place: &str| {
        (place == content && role.name != "function")
            || (place == calls && message.get("tool_calls").is_some_and(Value::is_null))
            || images.contains(place)
    };
    for misfit in role.message.misfits(message, place) {
        if misfit.fault == Fault::Unknown {
            if !is_own(&misfit.place) {
                out.push(OC_25.of(misfit));
            }
        } else if !judged_elsewhere(&misfit.place) {
            out.push(OC_34.of(misfit));
        }
    }
}

/// Where the address of an image is without an object around it.
fn image_strings(message: &Object, content: &str) -> HashSet<String> {
    let parts = objects(items(message, "content"));
    let bare = parts.filter(|(_, part)| part.get("image_url").is_some_and(Value::is_string));
    bare.map(|(at, _)| format!("{content}[{at}].image_url")).collect()
}

fn check_content_is_there(role: &Role, message: &Object, place: &str, out: &mut Findings) {
    let content = message.get("content").unwrap_or(&Value::Null);
    let place_of_content = format!("{place}.content");
    match (role.name, content) {
        ("function", _) => out.push(OC_26.at(place, "deprecated role function")),
        (_, Value::String(_) | Value::Array(_)) => {}
        ("assistant", Value::Null) if speaks_otherwise(message) => {}
        ("assistant", Value::Null) => {
            out.push(OC_05.at(place_of_content, "content is null or absent, and nothing else is said"));
        }
        ("assistant", other) => out.push(OC_05.at(place_of_content, format!("content is {}", kind(other)))),
        (_, Value::Null) => out.push(OC_04.at(place_of_content, "content is null or absent")),
        (_, other) => out.push(OC_04.at(place_of_content, format!("content is {}", kind(other)))),
    }
}

fn speaks_otherwise(message: &Object) -> bool {
    ["tool_calls", "function_call", "audio"].iter().any(|key| message.get(*key).is_some_and(is_filled))
        || message.get("refusal").and_then(Value::as_str).is_some_and(|refusal| !refusal.is_empty())
}

fn check_name(name: &str, place: &str, out: &mut Findings) {
    let refused = |character: char| character.is_whitespace() || "<|\\/>".contains(character);
    if name.is_empty() || name.chars().count() > 64 || name.contains(refused) {
        out.push(OC_23.at(place, format!("name is {name:?}")));
    } else if !is_word(name, NAME) {
        out.push(OC_24.at(place, format!("name is {name:?}")));
    }
}

fn check_content(role: &Role, message: &Object, manner: &Manner, place: &str, out: &mut Findings) {
    match message.get("content") {
        Some(Value::String(text)) => {
            let beside_calls = role.name == "assistant" && message.get("tool_calls").is_some_and(is_filled);
            if is_blank(text) && !beside_calls {
                out.push(OC_28.at(place, "content is empty or blank"));
            }
            if text.len() > CHARACTERS && text.chars().count() > CHARACTERS {
                out.push(OC_33.at(place, format!("{} characters", text.chars().count())));
            }
        }
        Some(Value::Array(parts)) => check_parts(role, parts, manner, place, out),
        _ => {}
    }
}

fn check_parts(role: &Role, parts: &[Value], manner: &Manner, place: &str, out: &mut Findings) {
    if parts.is_empty() {
        out.push(OC_06.at(place, "content is an empty array"));
    }
    for (i, part) in parts.iter().enumerate() {
        check_part(role, part, manner, &format!("{place}[{i}]"), out);
    }
    let refusals = parts.iter().filter(|part| part.get("type").is_some_and(|kind| kind == "refusal")).count();
    if refusals > 0 && parts.len() > 1 {
        out.push(OC_30.at(place, "refusal beside other parts"));
    }
}

fn check_part(role: &Role, part: &Value, manner: &Manner, place: &str, out: &mut Findings) {
    let Some(part) = part.as_object() else {
        return out.push(OC_20.at(place, format!("expected an object, got {}", kind(part))));
    };
    let name = part.get("type").unwrap_or(&Value::Null);
    let name_text = name.as_str().unwrap_or_default();
    if name_text == "image_url" && role.name != "user" {
        out.push(OC_19.at(place, format!("image in a {} message", role.name)));
    } else if !role.parts.contains(&name_text) {
        let finding =
            OC_20.at(format!("{place}.type"), format!("part of type {} in a {} message", kind(name), role.name));
        let known = ROLES.iter().flat_map(|role| role.parts).chain(OF_OTHER_WIRES);
        let is_unknown = name.is_string() && !known.into_iter().any(|known| *known == name_text);
        out.push(if is_unknown { finding.with_level(Level::Unknown) } else { finding });
    }
    match name_text {
        "text" if part.get("text").and_then(Value::as_str).is_some_and(is_blank) => {
            out.push(OC_28.at(format!("{place}.text"), "text is empty or blank"));
        }
        "image_url" => check_image(part.get("image_url"), manner, &format!("{place}.image_url"), out),
        "input_audio" => check_audio(part.get("input_audio"), &format!("{place}.input_audio"), out),
        "file" => check_file(part.get("file"), &format!("{place}.file"), out),
        _ => {}
    }
}

fn check_image(image: Option<&Value>, manner: &Manner, place: &str, out: &mut Findings) {
    if let Some(Value::String(url)) = image.filter(|_| manner.image_strings) {
        return check_address(url, place, out);
    }
    let Some(image) = image.and_then(Value::as_object) else {
        return out.push(OC_21.at(place, format!("expected an object, got {}", kind(image.unwrap_or(&Value::Null)))));
    };
    let place = format!("{place}.url");
    let Some(url) = image.get("url").and_then(Value::as_str) else {
        return out.push(OC_21.at(place, "url is missing, or not a string"));
    };
    check_address(url, &place, out);
}

fn check_address(url: &str, place: &str, out: &mut Findings) {
    match image_url_fault(url) {
        Some(fault @ UrlFault::Payload) => out.push(OC_22.at(place, fault.to_string())),
        Some(fault) => out.push(OC_21.at(place, fault.to_string())),
        None => {}
    }
}

fn check_audio(audio: Option<&Value>, place: &str, out: &mut Findings) {
    let Some(audio) = audio.and_then(Value::as_object) else { return };
    if audio.get("data").and_then(Value::as_str).and_then(decode_base64).is_none() {
        out.push(OC_22.at(format!("{place}.data"), "data is not base64"));
    }
}

fn check_file(file: Option<&Value>, place: &str, out: &mut Findings) {
    let Some(file) = file.and_then(Value::as_object) else { return };
    let has = |key| file.get(key).is_some_and(is_filled);
    if !(has("file_id") || has("file_data") && has("filename")) {
        out.push(OC_31.at(place, "neither file_id nor file_data with filename"));
    }
}

fn check_calls(calls: &Value, manner: &Manner, place: &str, out: &mut Findings) {
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
fn check_id(id: &Value, absent: &ProtocolRule, manner: &Manner, place: &str, out: &mut Findings) {
    match id.as_str().map(|id| id.chars().count()) {
        None | Some(0) => out.push(absent.at(place, "missing, empty, or not a string")),
        Some(length) if length > ID => {
            let problem = format!("id of {length} characters, at most {ID}");
            let level = if manner.own_ids || length <= manner.ids.max { Level::Soft } else { Level::Reported };
            out.push(OC_13.at(place, problem).with_level(level));
        }
        Some(_) => {}
    }
}

fn check_call(call: &Object, manner: &Manner, place: &str, out: &mut Findings) {
    let type_name = text(call, "type");
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
        // A type of its own may have an object of its own, but every server reads the object of a function.
        let has_object = ["function", "custom"].iter().any(|name| call.get(*name).is_some_and(Value::is_object));
        let is_unknown = key == "type" && !type_name.is_empty() && has_object;
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

fn is_function_name(name: &Value) -> bool {
    name.as_str().is_some_and(|name| is_word(name, NAME))
}

fn check_sequence(messages: &[&Object], manner: &Manner, out: &mut Findings) {
    let mut used = HashMap::new();
    let mut begun = false;
    let mut function_call = None;
    let mut rest = messages.iter().enumerate().peekable();
    while let Some((i, message)) = rest.next() {
        let place = format!("messages[{i}]");
        match role(message) {
            "system" | "developer" if begun => out.push(OC_35.at(&place, "the conversation has begun before it")),
            "system" | "developer" => {}
            _ => begun = true,
        }
        match role(message) {
            "tool" => out.push(OC_08.at(&place, "no assistant message with tool_calls opens its run")),
            "function" => check_function(message, function_call, &place, out),
            _ => {}
        }
        function_call = message.get("function_call").and_then(|call| call.get("name"));
        let ids = if role(message) == "assistant" { call_ids(message) } else { Vec::new() };
        if ids.is_empty() {
            continue;
        }
        check_reuse(&ids, i, &mut used, out);
        let mut answers = Vec::new();
        while let Some((j, answer)) = rest.next_if(|(_, next)| role(next) == "tool") {
            answers.push((j, answer.get("tool_call_id").unwrap_or(&Value::Null)));
        }
        let next = rest.peek().map(|(j, next)| format!("messages[{j}], of role {:?}", role(next)));
        check_answers(i, &ids, &answers, &next.unwrap_or_else(|| "the conversation ends".to_owned()), out);
    }
    let goes_on = |last: &Object| manner.order.ends == Ends::AskingOrPrefix && is_prefix(last);
    let last = messages.last().filter(|last| role(last) == "assistant" && call_ids(last).is_empty());
    if last.is_some_and(|last| !goes_on(last)) {
        out.push(OC_29.at(format!("messages[{}]", messages.len() - 1), "the conversation ends with the assistant"));
    }
}

/// The tool messages after message `i`, against its calls.
fn check_answers(i: usize, ids: &[&Value], answers: &[(usize, &Value)], end: &str, out: &mut Findings) {
    let mut position = HashMap::new();
    for (j, id) in ids.iter().enumerate() {
        position.entry(*id).or_insert(j);
    }
    let mut answered = HashSet::new();
    for (j, id) in answers {
        let place = format!("messages[{j}].tool_call_id");
        if !position.contains_key(id) {
            out.push(OC_08.at(place, format!("{id} is no call of messages[{i}]")));
        } else if !answered.insert(*id) {
            out.push(OC_09.at(place, format!("{id} is answered already")));
        }
    }
    let place = format!("messages[{i}].tool_calls");
    let missing: Vec<_> = ids.iter().filter(|id| !answered.contains(*id)).map(ToString::to_string).collect();
    if !missing.is_empty() {
        out.push(OC_07.at(&place, format!("no tool message for {} before {end}", missing.join(", "))));
    }
    if !answers.iter().filter_map(|(_, id)| position.get(id)).is_sorted() {
        out.push(OC_27.at(place, "its tool messages are in another order"));
    }
}

/// `used` holds the ids of earlier messages, and where they stand.
fn check_reuse<'a>(ids: &[&'a Value], i: usize, used: &mut HashMap<&'a Value, usize>, out: &mut Findings) {
    for (j, id) in ids.iter().enumerate() {
        if let Some(earlier) = used.get(id) {
            let problem = format!("{id} is the id of a call of messages[{earlier}]");
            out.push(OC_11.at(format!("messages[{i}].tool_calls[{j}].id"), problem));
        }
    }
    used.extend(ids.iter().filter(|id| id.is_string()).map(|id| (*id, i)));
}

fn check_function(message: &Object, call: Option<&Value>, place: &str, out: &mut Findings) {
    let finding = OC_26.at(place, "does not answer a function_call directly before it, by name");
    match call {
        None => out.push(finding.with_level(Level::Hard)),
        Some(name) if Some(name) != message.get("name") => out.push(finding),
        Some(_) => {}
    }
}

/// Why a message of this role may not follow one of the previous role, where user and assistant take turns.
pub(crate) fn out_of_turn(role: &str, previous: Option<&str>) -> Option<String> {
    match (role, previous) {
        ("assistant", None) => Some("the conversation begins with the assistant".to_owned()),
        ("user", Some(previous @ ("user" | "tool"))) | ("assistant", Some(previous @ "assistant")) => {
            Some(format!("follows a message of role {previous}"))
        }
        _ => None,
    }
}

/// The ids of a message's calls as they stand, null where there is none. No calls, no ids.
pub(crate) fn call_ids(message: &Object) -> Vec<&Value> {
    calls(message).map(|(_, call)| call.get("id").unwrap_or(&Value::Null)).collect()
}

/// The calls of a message that are objects, and their positions.
pub(crate) fn calls(message: &Object) -> impl Iterator<Item = (usize, &Object)> {
    objects(items(message, "tool_calls"))
}

/// Whether the assistant is to go on with the text: Mistral's field.
pub(crate) fn is_prefix(message: &Object) -> bool {
    message.get("prefix") == Some(&Value::Bool(true))
}

/// Is thinking on? The request says so; else the name of its model shows it, or a message that has thought.
pub(crate) fn is_thinking(request: &Value, messages: &[&Object], models: &[&str]) -> bool {
    if let Some(thinking) = request.get("thinking").filter(|thinking| thinking.is_object()) {
        return thinking.get("type").is_some_and(|mode| mode == "enabled");
    }
    let model = request.get("model").and_then(Value::as_str).unwrap_or_default();
    models.iter().any(|name| model.contains(name))
        || messages.iter().any(|message| message.get("reasoning_content").is_some_and(Value::is_string))
}
