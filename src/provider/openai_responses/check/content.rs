//! The content of a message and the output of a call: a string, or parts.

use serde_json::{Map, Value};

use crate::provider::check::finding::{Finding, Level};
use crate::provider::check::shape::{is_filled, kind};
use crate::provider::openai_responses::rules::{OR_17, OR_18, OR_23, OR_24, OR_26, OR_30};
use crate::provider::prompt::media::bytes::image_url_fault;

/// Types of parts, of what is sent to the model and of what it said.
const INPUT_PARTS: &[&str] = &["input_text", "input_image", "input_file"];
const OUTPUT_PARTS: &[&str] = &["output_text", "refusal"];
/// Types of other wires' parts: they are sent here by mistake, and refused (gh:jeremychone/rust-genai#119).
const OF_OTHER_WIRES: &[&str] =
    &["text", "image", "image_url", "document", "file", "thinking", "redacted_thinking", "tool_use", "tool_result"];
/// Characters in one string.
const CHARACTERS: usize = 10_485_760;

pub(crate) fn check_message(message: &Map<String, Value>, place: &str, out: &mut Vec<Finding>) {
    let by_model = message.get("role").is_some_and(|role| role == "assistant");
    match message.get("content").unwrap_or(&Value::Null) {
        Value::String(_) => {}
        Value::Array(parts) if parts.is_empty() => out.push(OR_30.at(place, "content is an empty array")),
        Value::Array(parts) => check_parts(parts, if by_model { OUTPUT_PARTS } else { INPUT_PARTS }, place, out),
        Value::Null => out.push(OR_18.at(place, "content is null or absent")),
        other => out.push(OR_18.at(place, format!("content is {}", kind(other)))),
    }
}

pub(crate) fn check_output(item: &Map<String, Value>, place: &str, out: &mut Vec<Finding>) {
    match item.get("output") {
        Some(Value::String(text)) if text.len() > CHARACTERS && text.chars().count() > CHARACTERS => {
            out.push(OR_26.at(place, format!("{} characters, at most {CHARACTERS}", text.chars().count())));
        }
        Some(Value::Array(parts)) => check_parts(parts, INPUT_PARTS, place, out),
        _ => {}
    }
}

fn check_parts(parts: &[Value], allowed: &[&str], place: &str, out: &mut Vec<Finding>) {
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
            let known = || {
                name.as_str().is_some_and(|name| [INPUT_PARTS, OUTPUT_PARTS, OF_OTHER_WIRES].concat().contains(&name))
            };
            out.push(if name.is_string() && !known() { finding.with_level(Level::Unknown) } else { finding });
        }
        if name == "input_image" {
            check_image(part, &place, out);
        }
        if name == "input_file" && !["file_id", "file_url", "file_data"].iter().any(|key| has(part, key)) {
            out.push(OR_24.at(place, "neither file_id nor file_url nor file_data"));
        }
    }
}

fn check_image(image: &Map<String, Value>, place: &str, out: &mut Vec<Finding>) {
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

fn has(part: &Map<String, Value>, key: &str) -> bool {
    part.get(key).is_some_and(is_filled)
}
