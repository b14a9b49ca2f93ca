//! Is a Responses request accepted?
//!
//! First the request as a whole: its parameters, its tools. Then one item: its type, its fields, its ids, and what its type
//! asks for. Then the items in their sequence: which calls are answered, and what reasoning belongs to.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::rules::{
    OR_01, OR_02, OR_03, OR_04, OR_05, OR_06, OR_07, OR_08, OR_09, OR_10, OR_11, OR_12, OR_13, OR_14, OR_15, OR_16,
    OR_17, OR_18, OR_19, OR_20, OR_21, OR_22, OR_23, OR_24, OR_25, OR_26, OR_27, OR_29, OR_30, OR_32,
};
use super::types::{EASY_MESSAGE, INPUT_MESSAGE, ITEMS, ItemType, OUTPUT_MESSAGE};
use crate::json::is_object;
use crate::provider::check::finding::Level;
use crate::provider::check::findings::Findings;
use crate::provider::check::rule::{ProtocolRule, set_level};
use crate::provider::check::shape::{Fault, Shape};
use crate::provider::check::value::{Object, is_filled, kind};
use crate::provider::prompt::media::bytes::image_url_fault;
use crate::provider::target::Target;
use crate::provider::text::is_word;

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

/// Characters of a function's name.
pub(crate) const NAME: usize = 128;
/// Characters of an id.
const ID: usize = 64;
/// Roles of a message.
const ROLES: &[&str] = &["user", "assistant", "system", "developer"];
/// Fields that the official types require, and the API does not.
const OPTIONAL: &[&str] = &["annotations", "detail", "status", "id", "type", "logprobs"];
/// Types whose prefix was seen to be enforced.
const ENFORCED_PREFIXES: &[&str] = &["message", "function_call", "reasoning"];
/// Types of parts, of what is sent to the model and of what it said.
const INPUT_PARTS: &[&str] = &["input_text", "input_image", "input_file"];
const OUTPUT_PARTS: &[&str] = &["output_text", "refusal"];
/// Types of other wires' parts: they are sent here by mistake, and refused (gh:jeremychone/rust-genai#119).
const OF_OTHER_WIRES: &[&str] =
    &["text", "image", "image_url", "document", "file", "thinking", "redacted_thinking", "tool_use", "tool_result"];
/// Characters in one string.
const CHARACTERS: usize = 10_485_760;

/// The type of an item, if it is a known one. A message may leave it out, and so may a reference.
fn item_type(item: &Object) -> Option<&'static ItemType> {
    let name = match item.get("type").unwrap_or(&Value::Null) {
        Value::Null if item.contains_key("role") => "message",
        Value::Null if item.len() == 1 && item.contains_key("id") => "item_reference",
        name => name.as_str()?,
    };
    ITEMS.iter().find(|item| item.name == name)
}

/// `stored`: the server may keep the items of this request.
pub(crate) fn check_item(item: &Object, place: &str, stored: bool, out: &mut Findings) {
    let Some(of) = item_type(item) else {
        let name = item.get("type").unwrap_or(&Value::Null);
        let finding = OR_03.at(format!("{place}.type"), format!("type is {}", kind(name)));
        let is_known = name.as_str().is_none_or(is_part_of_any);
        return out.push(if is_known { finding } else { finding.with_level(Level::Unknown) });
    };
    let role = item.get("role").unwrap_or(&Value::Null);
    if of.name == "message" && !role.as_str().is_some_and(|role| ROLES.contains(&role)) {
        return out.push(OR_03.at(format!("{place}.role"), format!("role is {}", kind(role))));
    }
    check_fields(of, item, place, out);
    check_ids(of, item, place, out);
    match of.name {
        "message" => check_message(item, &format!("{place}.content"), out),
        "function_call" | "custom_tool_call" => check_call(item, place, out),
        "function_call_output" | "custom_tool_call_output" => check_output(item, &format!("{place}.output"), out),
        "reasoning" => check_reasoning(item, place, stored, out),
        "item_reference" => {
            let level = if stored { Level::Soft } else { Level::Hard };
            out.push(OR_22.at(place, "the item itself is not here").with_level(level));
        }
        _ => {}
    }
}

/// Compares with the official type, but for what other rules say better.
fn check_fields(of: &ItemType, item: &Object, place: &str, out: &mut Findings) {
    let shape = match of.name {
        "message" => Shape::nearest(&[&EASY_MESSAGE, &INPUT_MESSAGE, &OUTPUT_MESSAGE], item).unwrap_or(of.fields),
        _ => of.fields,
    };
    let content = format!("{place}.content");
    for misfit in shape.misfits(item, place) {
        let (place, fault) = (&misfit.place, misfit.fault);
        let message = of.name == "message";
        let field = place.rsplit('.').next().unwrap_or_default();
        let rule = match (fault, field) {
            (Fault::Missing, "type") if !message => &OR_29,
            (Fault::Missing, "id") if of.name == "item_reference" => &OR_29,
            (Fault::Missing, field) if OPTIONAL.contains(&field) => &OR_27,
            (Fault::Unknown, "phase") => continue,
            (Fault::Unknown, _) => &OR_25,
            (Fault::Missing, "summary") => &OR_19,
            // OR-18 and OR-17 judge them.
            (_, "content") if message && *place == content => continue,
            (_, "type") if message && place.starts_with(&content) => continue,
            (Fault::Wrong, "arguments" | "input") => &OR_14,
            (_, "output") => &OR_26,
            _ => &OR_29,
        };
        out.push(rule.of(misfit));
    }
}

fn check_ids(of: &ItemType, item: &Object, place: &str, out: &mut Findings) {
    if let Some(id) = item.get("id").filter(|id| !id.is_null()) {
        let place = format!("{place}.id");
        match id.as_str().filter(|id| is_word(id, ID)) {
            None => out.push(OR_12.at(place, format!("id is {}", kind(id)))),
            Some(id) if !id.starts_with(of.prefix) => {
                let rule = if ENFORCED_PREFIXES.contains(&of.name) { &OR_10 } else { &OR_11 };
                out.push(rule.at(place, format!("{id:?} does not begin with {:?}", of.prefix)));
            }
            Some(_) => {}
        }
    }
    if let Some(id) = item.get("call_id").filter(|id| !id.is_null()) {
        let length = id.as_str().map_or(0, |id| id.chars().count());
        if !(1..=ID).contains(&length) {
            out.push(OR_13.at(format!("{place}.call_id"), format!("call_id is {}", kind(id))));
        }
    }
}

/// Whether the wire takes an item of this type with this id.
#[cfg(feature = "server")]
pub(crate) fn takes_id(kind: &str, id: &str) -> bool {
    is_word(id, ID) && ITEMS.iter().find(|item| item.name == kind).is_none_or(|item| id.starts_with(item.prefix))
}

fn check_call(call: &Object, place: &str, out: &mut Findings) {
    let name = call.get("name").unwrap_or(&Value::Null);
    if !name.as_str().is_some_and(|name| is_word(name, NAME)) {
        out.push(OR_16.at(format!("{place}.name"), format!("name is {}", kind(name))));
    }
    let arguments = call.get("arguments").and_then(Value::as_str);
    if arguments.is_some_and(|arguments| !is_object(arguments)) {
        out.push(OR_15.at(format!("{place}.arguments"), "not the JSON text of an object"));
    }
}

fn check_reasoning(reasoning: &Object, place: &str, stored: bool, out: &mut Findings) {
    if reasoning.get("content").is_some_and(is_filled) {
        out.push(OR_20.at(format!("{place}.content"), "content is not empty"));
    }
    if !reasoning.get("encrypted_content").is_some_and(is_filled) {
        let level = if stored { Level::Soft } else { Level::Hard };
        out.push(OR_21.at(place, "reasoning without encrypted_content").with_level(level));
    }
}

fn check_message(message: &Object, place: &str, out: &mut Findings) {
    let by_model = message.get("role").is_some_and(|role| role == "assistant");
    match message.get("content").unwrap_or(&Value::Null) {
        Value::String(_) => {}
        Value::Array(parts) if parts.is_empty() => out.push(OR_30.at(place, "content is an empty array")),
        Value::Array(parts) => check_parts(parts, if by_model { OUTPUT_PARTS } else { INPUT_PARTS }, place, out),
        Value::Null => out.push(OR_18.at(place, "content is null or absent")),
        other => out.push(OR_18.at(place, format!("content is {}", kind(other)))),
    }
}

fn check_output(item: &Object, place: &str, out: &mut Findings) {
    match item.get("output") {
        Some(Value::String(text)) if text.len() > CHARACTERS && text.chars().count() > CHARACTERS => {
            out.push(OR_26.at(place, format!("{} characters, at most {CHARACTERS}", text.chars().count())));
        }
        Some(Value::Array(parts)) => check_parts(parts, INPUT_PARTS, place, out),
        _ => {}
    }
}

fn check_parts(parts: &[Value], allowed: &[&str], place: &str, out: &mut Findings) {
    for (i, part) in parts.iter().enumerate() {
        let place = format!("{place}[{i}]");
        let Some(part) = part.as_object() else {
            out.push(OR_17.at(place, format!("expected an object, got {}", kind(part))));
            continue;
        };
        let name = part.get("type").unwrap_or(&Value::Null);
        if !name.as_str().is_some_and(|name| allowed.contains(&name)) {
            let problem = format!("type is {}, allowed are {}", kind(name), allowed.join(", "));
            let finding = OR_17.at(format!("{place}.type"), problem);
            let is_known = name.as_str().is_none_or(is_part_of_any);
            out.push(if is_known { finding } else { finding.with_level(Level::Unknown) });
        }
        if name == "input_image" {
            check_image(part, &place, out);
        }
        if name == "input_file" && !["file_id", "file_url", "file_data"].iter().any(|key| has(part, key)) {
            out.push(OR_24.at(place, "neither file_id nor file_url nor file_data"));
        }
    }
}

/// Whether this is the type of a part, of this wire or of another.
fn is_part_of_any(name: &str) -> bool {
    [INPUT_PARTS, OUTPUT_PARTS, OF_OTHER_WIRES].iter().any(|names| names.contains(&name))
}

fn check_image(image: &Object, place: &str, out: &mut Findings) {
    match image.get("image_url").unwrap_or(&Value::Null) {
        Value::Null if has(image, "file_id") => {}
        Value::Null => out.push(OR_23.at(place, "neither image_url nor file_id")),
        Value::String(url) => {
            if let Some(fault) = image_url_fault(url) {
                out.push(OR_23.at(format!("{place}.image_url"), fault.to_string()));
            }
        }
        other => out.push(OR_23.at(format!("{place}.image_url"), format!("expected a string, got {}", kind(other)))),
    }
}

fn has(part: &Object, key: &str) -> bool {
    part.get(key).is_some_and(is_filled)
}

/// What the server's own ids begin with.
const SERVER_IDS: &[&str] = &["fc_", "msg_"];

/// `continues`: earlier items are on the server. `stored`: the server may keep the items of this request.
fn check_sequence(items: &[&Object], continues: bool, stored: bool, out: &mut Findings) {
    check_unique_ids(items, out);
    check_pairs(items, continues, out);
    check_order_of_reasoning(items, stored, out);
}

fn check_unique_ids(items: &[&Object], out: &mut Findings) {
    let mut seen = HashMap::new();
    for (i, item) in items.iter().enumerate() {
        let Some(id) = text(item, "id") else { continue };
        if let Some(earlier) = seen.insert(id, i) {
            out.push(OR_06.at(format!("input[{i}].id"), format!("{id:?} is the id of input[{earlier}]")));
        }
    }
}

/// A call and its output have one key: the type of the output and the call_id.
fn check_pairs(items: &[&Object], continues: bool, out: &mut Findings) {
    let (mut calls, mut outputs) = (HashMap::new(), HashMap::new());
    // Calls that no type of output is known for: any may answer them.
    let mut others = HashSet::new();
    for (i, item) in items.iter().enumerate() {
        if item_type(item).is_none_or(|of| of.by_model && of.output.is_empty()) {
            others.extend(text(item, "call_id"));
        }
        let (Some(of), Some(id)) = (item_type(item), call_id(item)) else { continue };
        let place = format!("input[{i}].call_id");
        if !of.output.is_empty() {
            let earlier = *calls.entry((of.output, id)).or_insert(i);
            if earlier != i {
                out.push(OR_07.at(place, format!("{id:?} is the call_id of input[{earlier}]")));
            }
        } else if ITEMS.iter().any(|call| call.output == of.name) {
            let earlier = *outputs.entry((of.name, id)).or_insert(i);
            if earlier != i {
                out.push(OR_07.at(&place, format!("input[{earlier}] is an output for {id:?} too")));
            }
            if !continues && !calls.contains_key(&(of.name, id)) && !others.contains(id) {
                out.push(OR_05.at(place, format!("no call with call_id {id:?} before it")));
            }
        }
    }
    let mut open: Vec<_> =
        calls.into_iter().filter(|(key, i)| outputs.get(key).is_none_or(|output| output < i)).collect();
    open.sort_by_key(|(_, i)| *i);
    for ((output, id), i) in open {
        out.push(OR_04.at(format!("input[{i}]"), format!("no {output} for call_id {id:?} after it")));
    }
}

fn check_order_of_reasoning(items: &[&Object], stored: bool, out: &mut Findings) {
    let any = items.iter().any(|item| is_reasoning(item));
    // Reasoning comes before this item, in the same turn of the model.
    let mut reasoned = false;
    for (i, item) in items.iter().enumerate() {
        let place = format!("input[{i}]");
        if is_reasoning(item) {
            let level = if text(item, "id").is_some_and(|id| !id.is_empty()) { Level::Hard } else { Level::Soft };
            match items.get(i + 1) {
                None => out.push(OR_08.at(place, "nothing follows the reasoning").with_level(level)),
                Some(next) if !is_by_model(next) => {
                    out.push(OR_08.at(place, "what follows the reasoning is not of the model").with_level(level));
                }
                Some(next) if is_message(next) && !next.get("id").is_some_and(is_filled) => {
                    let level = if stored { level } else { Level::Soft };
                    out.push(OR_08.at(place, "the message after the reasoning has no id").with_level(level));
                }
                Some(_) => {}
            }
        } else if any && !reasoned && is_by_model(item) && bears_server_id(item) {
            out.push(OR_09.at(place, "no reasoning before it in its turn"));
        }
        reasoned = is_reasoning(item) || (reasoned && is_by_model(item));
    }
}

fn is_reasoning(item: &Object) -> bool {
    item_type(item).is_some_and(|of| of.name == "reasoning")
}

fn is_message(item: &Object) -> bool {
    item_type(item).is_some_and(|of| of.name == "message")
}

fn is_by_model(item: &Object) -> bool {
    // A type that is not known may be the model's.
    item_type(item).map_or(text(item, "type").is_some(), |of| {
        of.by_model || (of.name == "message" && text(item, "role") == Some("assistant"))
    })
}

fn bears_server_id(item: &Object) -> bool {
    item_type(item).is_some_and(|of| ["function_call", "message"].contains(&of.name))
        && text(item, "id").is_some_and(|id| SERVER_IDS.iter().any(|prefix| id.starts_with(prefix)))
}

/// The id by which a call and its output know each other. The official type of a local shell's output calls it `id`.
fn call_id(item: &Object) -> Option<&str> {
    let is_shells = || item_type(item).is_some_and(|of| of.name == "local_shell_call_output");
    text(item, "call_id").or_else(|| text(item, "id").filter(|_| is_shells()))
}

fn text<'a>(item: &'a Object, key: &str) -> Option<&'a str> {
    item.get(key).and_then(Value::as_str)
}
