//! One block of a message, by its kind.

use serde_json::{Map, Value};

use super::document::is_name;
use super::seen::Seen;
use super::text::{TOOL_NAME, check_text};
use crate::provider::bedrock_converse::models::is_claude;
use crate::provider::bedrock_converse::rules::{BC_12, BC_13, BC_15, BC_16, BC_17, BC_19, BC_23, BC_24, BC_25, BC_26};
use crate::provider::bedrock_converse::types::KINDS;
use crate::provider::check::finding::{Finding, Level};
use crate::provider::check::shape::{Fault, kind, misfits};
use crate::provider::prompt::media::bytes::decode_base64;
use crate::provider::text::{is_word, is_word_with};

/// Characters of a tool's id.
const ID: usize = 64;
/// Kinds of the assistant's blocks, and of the user's.
const ASSISTANTS: &[&str] = &["toolUse", "reasoningContent"];
const USERS: &[&str] = &["toolResult", "image", "document", "video"];
/// What an image may be.
const IMAGE_FORMATS: &[&str] = &["png", "jpeg", "gif", "webp"];

pub(crate) fn check_block<'a>(block: &'a Value, role: &str, place: &str, seen: &mut Seen<'a>, out: &mut Vec<Finding>) {
    let Some(fields) = block.as_object() else {
        return out.push(BC_24.at(place, format!("expected an object, got {}", kind(block))));
    };
    let mut kinds = KINDS.iter().filter(|(name, _)| fields.contains_key(*name));
    let (Some((name, types)), other) = (kinds.next(), kinds.next()) else {
        let names: Vec<_> = fields.keys().map(String::as_str).collect();
        return out.push(BC_25.unknown(place, format!("a block of a kind that is not known: {}", names.join(", "))));
    };
    if let Some((other, _)) = other {
        return out.push(BC_24.at(place, format!("{name} and {other} in one block")));
    }
    for unknown in fields.keys().filter(|field| field != name) {
        out.push(BC_25.unknown(format!("{place}.{unknown}"), "a field that is not known"));
    }
    let value = fields.get(*name).unwrap_or(&Value::Null);
    let place = format!("{place}.{name}");
    for misfit in misfits(value, types, &place) {
        let rule = if misfit.fault == Fault::Unknown { &BC_25 } else { &BC_24 };
        out.push(rule.of(misfit));
    }
    // The results of tools that the provider ran stand beside their calls, and name their type.
    let hosted = *name == "toolResult" && value.get("type").is_some_and(|kind| !kind.is_null());
    let wrong_side =
        ASSISTANTS.contains(name) && role == "user" || USERS.contains(name) && role == "assistant" && !hosted;
    if wrong_side {
        out.push(BC_16.at(&place, format!("{name} in a message of the role {role}")));
    }
    match (*name, value) {
        ("text", Value::String(text)) => check_text(text, place, out),
        ("toolUse", Value::Object(call)) => check_call(call, &place, seen, out),
        ("toolResult", Value::Object(result)) => check_result(result, &place, seen, out),
        ("reasoningContent", Value::Object(reasoning)) => check_reasoning(reasoning, &place, seen, out),
        ("document", Value::Object(document)) => check_document(document, &place, seen, out),
        ("image", Value::Object(image)) => check_image(image, &place, out),
        ("video" | "audio", Value::Object(media)) => check_bytes(media, &place, out),
        _ => {}
    }
}

fn check_id(block: &Map<String, Value>, place: &str, seen: &mut Seen<'_>, out: &mut Vec<Finding>) {
    seen.tools.get_or_insert_with(|| place.to_owned());
    if let Some(id) = block.get("toolUseId").and_then(Value::as_str).filter(|id| !is_word_with(id, ID, b"_.:-")) {
        out.push(BC_12.at(format!("{place}.toolUseId"), format!("id is {id:?}")));
    }
}

fn check_call(call: &Map<String, Value>, place: &str, seen: &mut Seen<'_>, out: &mut Vec<Finding>) {
    check_id(call, place, seen, out);
    if let Some(name) = call.get("name").and_then(Value::as_str).filter(|name| !is_word(name, TOOL_NAME)) {
        out.push(BC_13.at(format!("{place}.name"), format!("name is {name:?}")));
    }
    if let Some(input) = call.get("input").filter(|input| !input.is_object()) {
        let level = if input.is_string() { Level::Hard } else { Level::Soft };
        out.push(BC_15.at(format!("{place}.input"), format!("input is {}", kind(input))).with_level(level));
    }
}

fn check_result<'a>(result: &'a Map<String, Value>, place: &str, seen: &mut Seen<'a>, out: &mut Vec<Finding>) {
    check_id(result, place, seen, out);
    let parts = result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if parts.is_empty() && result.get("status").is_some_and(|status| status == "error") {
        out.push(BC_17.at(format!("{place}.content"), "a failure without content"));
    }
    for (i, part) in parts.iter().enumerate() {
        let place = format!("{place}.content[{i}]");
        match part.as_object().and_then(|part| part.iter().next()) {
            Some((name, Value::String(text))) if name == "text" => check_text(text, format!("{place}.text"), out),
            Some((name, Value::Object(image))) if name == "image" => check_image(image, &format!("{place}.image"), out),
            Some((name, Value::Object(document))) if name == "document" => {
                check_document(document, &format!("{place}.document"), seen, out);
            }
            _ => {}
        }
    }
}

fn check_reasoning(reasoning: &Map<String, Value>, place: &str, seen: &Seen<'_>, out: &mut Vec<Finding>) {
    let Some(text) = reasoning.get("reasoningText") else { return };
    if text.get("signature").and_then(Value::as_str).is_none_or(str::is_empty) {
        let level = if is_claude(seen.model) == Some(true) { Level::Hard } else { Level::Soft };
        out.push(BC_23.at(format!("{place}.reasoningText"), "reasoning without a signature").with_level(level));
    }
}

fn check_document<'a>(document: &'a Map<String, Value>, place: &str, seen: &mut Seen<'a>, out: &mut Vec<Finding>) {
    seen.documents += 1;
    if let Some(name) = document.get("name").and_then(Value::as_str) {
        let place = format!("{place}.name");
        if !is_name(name) {
            out.push(BC_19.at(&place, format!("name is {name:?}")));
        }
        seen.name(name, place, out);
    }
    check_bytes(document, place, out);
}

fn check_image(image: &Map<String, Value>, place: &str, out: &mut Vec<Finding>) {
    if let Some(format) = image.get("format").and_then(Value::as_str).filter(|name| !IMAGE_FORMATS.contains(name)) {
        out.push(BC_26.at(format!("{place}.format"), format!("format is {format:?}")));
    }
    check_bytes(image, place, out);
}

fn check_bytes(media: &Map<String, Value>, place: &str, out: &mut Vec<Finding>) {
    let bytes = media.get("source").and_then(|source| source.get("bytes")).and_then(Value::as_str);
    if bytes.is_some_and(|bytes| bytes.is_empty() || decode_base64(bytes).is_none()) {
        out.push(BC_26.at(format!("{place}.source.bytes"), "not base64"));
    }
}
