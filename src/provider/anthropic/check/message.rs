//! One message: its role, its fields, its content as a whole, its blocks.

use super::seen::{Seen, check_document, is_thinking};
use crate::provider::anthropic::rules::{
    AN_03, AN_04, AN_06, AN_07, AN_08, AN_16, AN_17, AN_18, AN_19, AN_20, AN_21, AN_22, AN_24, AN_25, AN_27, AN_33,
    AN_40, AN_41,
};
use crate::provider::anthropic::server_tools::is_server_result;
use crate::provider::anthropic::types::{ROLES, is_known};
use crate::provider::check::finding::Level;
use crate::provider::check::findings::Findings;
use crate::provider::check::shape::{Fault, Shape};
use crate::provider::check::value::{Object, is_filled, items, kind, objects, text};
use crate::provider::text::{is_blank, is_word};
use serde_json::Value;

/// Characters of a tool's name where it is defined.
pub(crate) const NAME: usize = 128;
/// Characters of a tool's name where it is called.
const NAME_IN_CALL: usize = 200;
/// Types of other wires' parts, which are sent here by mistake.
const OF_OTHER_WIRES: &[&str] = &[
    "image_url",
    "input_audio",
    "file",
    "refusal",
    "input_text",
    "input_image",
    "input_file",
    "output_text",
    "function_call",
    "function_call_output",
];

/// `last`: it is the last of the conversation.
pub(crate) fn check_message<'a>(message: &'a Value, place: &str, last: bool, seen: &mut Seen<'a>, out: &mut Findings) {
    let Some(object) = message.as_object() else {
        return out.push(AN_03.at(place, format!("expected an object, got {}", kind(message))));
    };
    let name = object.get("role").unwrap_or(&Value::Null);
    let Some((role, shape)) = ROLES.iter().find(|(role, _)| name == role) else {
        return out.push(AN_03.at(place, format!("role is {}", kind(name))));
    };
    let place_of_content = format!("{place}.content");
    check_fields(shape, role, object, place, out);
    match object.get("content").unwrap_or(&Value::Null) {
        Value::Null => {}
        Value::String(text) if text.is_empty() => check_emptiness(role, last, &place_of_content, out),
        Value::String(text) if is_blank(text) => out.push(AN_08.at(place_of_content, "text is blank")),
        Value::Array(blocks) if blocks.is_empty() => check_emptiness(role, last, &place_of_content, out),
        Value::Array(blocks) => {
            for (i, block) in blocks.iter().enumerate() {
                let place = format!("{place_of_content}[{i}]");
                match block.as_object() {
                    Some(block) => check_block(block, &place, role, seen, out),
                    None => out.push(AN_41.at(place, format!("expected an object, got {}", kind(block)))),
                }
            }
            match *role {
                "system" => check_system(blocks, &place_of_content, out),
                "assistant" => check_order(blocks, &place_of_content, out),
                _ => {}
            }
        }
        _ => {}
    }
}

/// Compares with the official type, but for what other rules say better.
fn check_fields(shape: &'static Shape, role: &str, message: &Object, place: &str, out: &mut Findings) {
    let content = format!("{place}.content");
    let is_content = message.get("content").is_some_and(|content| content.is_string() || content.is_array());
    for misfit in shape.misfits(message, place) {
        let (place, fault) = (&misfit.place, misfit.fault);
        let field = place.rsplit('.').next().unwrap_or_default();
        let rule = match (fault, field) {
            // AN-27 and AN-28 judge them.
            (Fault::Unknown, "cache_control") if place.starts_with(&content) => continue,
            (_, "media_type") => continue,
            (Fault::Unknown, "clear_at") if role == "system" => {
                out.push(AN_33.of(misfit).with_level(Level::Soft));
                continue;
            }
            (Fault::Unknown, _) => &AN_33,
            (Fault::Wrong, "input") => &AN_18,
            (_, "signature") => &AN_21,
            (_, "content") if *place == content && !is_content => &AN_06,
            _ => &AN_41,
        };
        out.push(rule.of(misfit));
    }
}

fn check_emptiness(role: &str, last: bool, place: &str, out: &mut Findings) {
    if !(last && role == "assistant") {
        out.push(AN_06.at(place, "content is empty"));
    }
}

fn check_system(blocks: &[Value], place: &str, out: &mut Findings) {
    let strange =
        |block: &Object| block.get("type").and_then(Value::as_str).is_none_or(|name| name != "text" && is_known(name));
    if objects(blocks).any(|(_, block)| strange(block)) {
        out.push(AN_04.at(place, "another block than text"));
    }
    for (i, _) in objects(blocks).filter(|(_, block)| block.get("cache_control").is_some_and(|mark| !mark.is_null())) {
        out.push(AN_27.at(format!("{place}[{i}]"), "in a message of the role system"));
    }
}

/// Thinking comes first, and is not all; after a server's tool the model may think again.
fn check_order(blocks: &[Value], place: &str, out: &mut Findings) {
    if blocks.last().is_some_and(|last| is_thinking(name(last))) {
        out.push(AN_25.at(format!("{place}[{}]", blocks.len() - 1), "nothing follows the thinking"));
    }
    let mut spoken = false;
    for (i, name) in blocks.iter().map(name).enumerate() {
        match name {
            name if is_thinking(name) && spoken => {
                out.push(AN_24.at(format!("{place}[{i}]"), "after text or tool_use"));
            }
            "text" | "tool_use" => spoken = true,
            "server_tool_use" => spoken = false,
            name if is_server_result(name) => spoken = false,
            _ => {}
        }
    }
}

/// The type of a block, empty where it is no string.
fn name(block: &Value) -> &str {
    block.get("type").and_then(Value::as_str).unwrap_or_default()
}

/// The blocks of message `i` that are objects, and their places.
pub(crate) fn blocks(message: &Object, i: usize) -> impl Iterator<Item = (String, &Object)> {
    objects(items(message, "content")).map(move |(j, block)| (format!("messages[{i}].content[{j}]"), block))
}

pub(crate) fn check_block<'a>(block: &'a Object, place: &str, role: &str, seen: &mut Seen<'a>, out: &mut Findings) {
    seen.marks.see(block, place, out);
    let name = text(block, "type");
    check_side(name, role, place, out);
    match name {
        "text" => check_text(block, place, out),
        "image" => seen.images.see(block, place, out),
        "document" => check_document(block, place, out),
        "tool_use" => check_call(block, place, out),
        "tool_result" => check_result(block, place, seen, out),
        "thinking" if !is_text(block, "signature") => {
            out.push(AN_21.at(format!("{place}.signature"), "missing, empty, or not a string"));
        }
        "redacted_thinking" if !is_text(block, "data") => {
            out.push(AN_22.at(format!("{place}.data"), "missing, empty, or not a string"));
        }
        _ if OF_OTHER_WIRES.contains(&name) => {
            out.push(AN_41.at(format!("{place}.type"), format!("{name:?} is a type of another wire")));
        }
        _ => {}
    }
}

fn check_side(name: &str, role: &str, place: &str, out: &mut Findings) {
    let problem = format!("{name} in a message of the role {role}");
    match (name, role) {
        ("image" | "document", "assistant") => out.push(AN_20.at(place, problem)),
        ("tool_use" | "thinking" | "redacted_thinking", "assistant") | ("tool_result", "user") => {}
        ("tool_use" | "thinking" | "redacted_thinking" | "tool_result", _) => out.push(AN_19.at(place, problem)),
        _ => {}
    }
}

pub(crate) fn check_text(block: &Object, place: &str, out: &mut Findings) {
    let text =
        block.get("text").and_then(Value::as_str).filter(|_| block.get("type").is_some_and(|name| name == "text"));
    match text {
        Some("") => out.push(AN_07.at(format!("{place}.text"), "text is empty")),
        Some(text) if is_blank(text) => out.push(AN_08.at(format!("{place}.text"), "text is blank")),
        _ => {}
    }
}

fn check_call(call: &Object, place: &str, out: &mut Findings) {
    check_id(call.get("id"), &format!("{place}.id"), out);
    let name = call.get("name").unwrap_or(&Value::Null);
    let place_of_name = format!("{place}.name");
    match name.as_str().filter(|name| (1..=NAME_IN_CALL).contains(&name.chars().count())) {
        None => out.push(AN_17.at(place_of_name, format!("name is {}", kind(name)))),
        Some(text) if !is_word(text, NAME) => {
            let problem = format!("name is {}, which no tool can be defined as", kind(name));
            out.push(AN_17.at(place_of_name, problem).with_level(Level::Soft));
        }
        Some(_) => {}
    }
    let input = call.get("input").unwrap_or(&Value::Null);
    if !input.is_object() {
        out.push(AN_18.at(format!("{place}.input"), format!("expected an object, got {}", kind(input))));
    }
}

fn check_result<'a>(result: &'a Object, place: &str, seen: &mut Seen<'a>, out: &mut Findings) {
    check_id(result.get("tool_use_id"), &format!("{place}.tool_use_id"), out);
    let failed = result.get("is_error") == Some(&Value::Bool(true));
    let content = result.get("content").unwrap_or(&Value::Null);
    let place = format!("{place}.content");
    if failed && !is_filled(content) {
        out.push(AN_40.at(&place, "an error without content").with_level(Level::Soft));
    }
    let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
    for (i, block) in objects(blocks) {
        let place = format!("{place}[{i}]");
        let name = block.get("type").unwrap_or(&Value::Null);
        check_text(block, &place, out);
        if name == "image" {
            seen.images.see(block, &place, out);
        }
        seen.marks.see(block, &place, out);
        if failed && name != "text" {
            out.push(AN_40.at(place, format!("block of type {name} in an error")));
        }
    }
}

fn check_id(id: Option<&Value>, place: &str, out: &mut Findings) {
    let id = id.unwrap_or(&Value::Null);
    if !id.as_str().is_some_and(|id| is_word(id, usize::MAX)) {
        out.push(AN_16.at(place, format!("id is {}", kind(id))));
    }
}

fn is_text(block: &Object, field: &str) -> bool {
    block.get(field).and_then(Value::as_str).is_some_and(|text| !text.is_empty())
}
