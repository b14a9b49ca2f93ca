//! The content of a message: a string, or parts.

use serde_json::{Map, Value};

use crate::provider::check::finding::{Finding, Level};
use crate::provider::check::shape::{is_filled, kind};
use crate::provider::openai_chat::rules::{OC_06, OC_19, OC_20, OC_21, OC_22, OC_28, OC_30, OC_31, OC_33};
use crate::provider::openai_chat::types::{ROLES, Role};
use crate::provider::prompt::media::bytes::{UrlFault, decode_base64, image_url_fault};
use crate::provider::text::is_blank;

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

pub(crate) fn check_content(role: &Role, message: &Map<String, Value>, place: &str, out: &mut Vec<Finding>) {
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
        Some(Value::Array(parts)) => check_parts(role, parts, place, out),
        _ => {}
    }
}

fn check_parts(role: &Role, parts: &[Value], place: &str, out: &mut Vec<Finding>) {
    if parts.is_empty() {
        out.push(OC_06.at(place, "content is an empty array"));
    }
    for (i, part) in parts.iter().enumerate() {
        check_part(role, part, &format!("{place}[{i}]"), out);
    }
    let refusals = parts.iter().filter(|part| part.get("type").is_some_and(|kind| kind == "refusal")).count();
    if refusals > 0 && parts.len() > 1 {
        out.push(OC_30.at(place, "refusal beside other parts"));
    }
}

fn check_part(role: &Role, part: &Value, place: &str, out: &mut Vec<Finding>) {
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
        "image_url" => check_image(part.get("image_url"), &format!("{place}.image_url"), out),
        "input_audio" => check_audio(part.get("input_audio"), &format!("{place}.input_audio"), out),
        "file" => check_file(part.get("file"), &format!("{place}.file"), out),
        _ => {}
    }
}

fn check_image(image: Option<&Value>, place: &str, out: &mut Vec<Finding>) {
    let Some(image) = image.and_then(Value::as_object) else {
        return out.push(OC_21.at(place, format!("expected an object, got {}", kind(image.unwrap_or(&Value::Null)))));
    };
    let place = format!("{place}.url");
    let Some(url) = image.get("url").and_then(Value::as_str) else {
        return out.push(OC_21.at(place, "url is missing, or not a string"));
    };
    match image_url_fault(url) {
        Some(fault @ UrlFault::Payload) => out.push(OC_22.at(place, fault.to_string())),
        Some(fault) => out.push(OC_21.at(place, fault.to_string())),
        None => {}
    }
}

fn check_audio(audio: Option<&Value>, place: &str, out: &mut Vec<Finding>) {
    let Some(audio) = audio.and_then(Value::as_object) else { return };
    if audio.get("data").and_then(Value::as_str).and_then(decode_base64).is_none() {
        out.push(OC_22.at(format!("{place}.data"), "data is not base64"));
    }
}

fn check_file(file: Option<&Value>, place: &str, out: &mut Vec<Finding>) {
    let Some(file) = file.and_then(Value::as_object) else { return };
    let has = |key| file.get(key).is_some_and(is_filled);
    if !(has("file_id") || has("file_data") && has("filename")) {
        out.push(OC_31.at(place, "neither file_id nor file_data with filename"));
    }
}
