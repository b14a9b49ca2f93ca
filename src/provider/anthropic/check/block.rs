//! One block of a message: what its type asks for.

use serde_json::{Map, Value};

use super::cache::Marks;
use super::image::{ImagesSeen, check_document};
use crate::provider::anthropic::rules::{AN_07, AN_08, AN_16, AN_17, AN_18, AN_19, AN_20, AN_21, AN_22, AN_40, AN_41};
use crate::provider::check::finding::{Finding, Level};
use crate::provider::check::shape::{is_filled, kind};
use crate::provider::text::{is_blank, is_word};

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

/// The blocks of message `i` that are objects, and their places.
pub(crate) fn blocks(message: &Map<String, Value>, i: usize) -> impl Iterator<Item = (String, &Map<String, Value>)> {
    let blocks = message.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let objects = blocks.iter().enumerate().filter_map(|(j, block)| Some((j, block.as_object()?)));
    objects.map(move |(j, block)| (format!("messages[{i}].content[{j}]"), block))
}

/// What counts over the whole request.
#[derive(Default)]
pub(crate) struct Seen<'a> {
    pub(crate) images: ImagesSeen,
    pub(crate) marks: Marks<'a>,
}

pub(crate) fn is_thinking(name: &str) -> bool {
    ["thinking", "redacted_thinking"].contains(&name)
}

pub(crate) fn check_block<'a>(
    block: &'a Map<String, Value>,
    place: &str,
    role: &str,
    seen: &mut Seen<'a>,
    out: &mut Vec<Finding>,
) {
    seen.marks.see(block, place, out);
    let name = block.get("type").and_then(Value::as_str).unwrap_or_default();
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

fn check_side(name: &str, role: &str, place: &str, out: &mut Vec<Finding>) {
    let problem = format!("{name} in a message of the role {role}");
    match (name, role) {
        ("image" | "document", "assistant") => out.push(AN_20.at(place, problem)),
        ("tool_use" | "thinking" | "redacted_thinking", "assistant") | ("tool_result", "user") => {}
        ("tool_use" | "thinking" | "redacted_thinking" | "tool_result", _) => out.push(AN_19.at(place, problem)),
        _ => {}
    }
}

pub(crate) fn check_text(block: &Map<String, Value>, place: &str, out: &mut Vec<Finding>) {
    let text =
        block.get("text").and_then(Value::as_str).filter(|_| block.get("type").is_some_and(|name| name == "text"));
    match text {
        Some("") => out.push(AN_07.at(format!("{place}.text"), "text is empty")),
        Some(text) if is_blank(text) => out.push(AN_08.at(format!("{place}.text"), "text is blank")),
        _ => {}
    }
}

fn check_call(call: &Map<String, Value>, place: &str, out: &mut Vec<Finding>) {
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

fn check_result<'a>(result: &'a Map<String, Value>, place: &str, seen: &mut Seen<'a>, out: &mut Vec<Finding>) {
    check_id(result.get("tool_use_id"), &format!("{place}.tool_use_id"), out);
    let failed = result.get("is_error") == Some(&Value::Bool(true));
    let content = result.get("content").unwrap_or(&Value::Null);
    let place = format!("{place}.content");
    if failed && !is_filled(content) {
        out.push(AN_40.at(&place, "an error without content").with_level(Level::Soft));
    }
    let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
    for (i, block) in blocks.iter().enumerate().filter_map(|(i, block)| Some((i, block.as_object()?))) {
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

fn check_id(id: Option<&Value>, place: &str, out: &mut Vec<Finding>) {
    let id = id.unwrap_or(&Value::Null);
    if !id.as_str().is_some_and(|id| is_word(id, usize::MAX)) {
        out.push(AN_16.at(place, format!("id is {}", kind(id))));
    }
}

fn is_text(block: &Map<String, Value>, field: &str) -> bool {
    block.get(field).and_then(Value::as_str).is_some_and(|text| !text.is_empty())
}
