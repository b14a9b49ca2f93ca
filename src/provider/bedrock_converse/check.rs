//! Is a Converse request accepted?
//!
//! First the request as a whole. Then one message: its role, its content, its blocks. Then the messages in their sequence: who
//! speaks when, which calls are answered, and where.

use std::collections::HashSet;

use serde_json::Value;

use super::models::is_claude;
use super::rules::{
    BC_01, BC_02, BC_03, BC_04, BC_05, BC_06, BC_07, BC_08, BC_09, BC_10, BC_11, BC_12, BC_13, BC_14, BC_15, BC_16,
    BC_17, BC_18, BC_19, BC_21, BC_22, BC_23, BC_24, BC_25, BC_26, BC_27,
};
use super::types::{KINDS, PARAMETERS};
use crate::provider::check::finding::Level;
use crate::provider::check::findings::Findings;
use crate::provider::check::shape::{Fault, misfits};
use crate::provider::check::value::{Object, items, kind, role, text};
use crate::provider::prompt::media::bytes::decode_base64;
use crate::provider::target::Target;
use crate::provider::text::{is_blank, is_word, is_word_with};

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

/// Images of a message.
const IMAGES: usize = 20;
/// Characters of a tool's id.
const ID: usize = 64;
/// Kinds of the assistant's blocks, and of the user's.
const ASSISTANTS: &[&str] = &["toolUse", "reasoningContent"];
const USERS: &[&str] = &["toolResult", "image", "document", "video"];
/// What an image may be.
const IMAGE_FORMATS: &[&str] = &["png", "jpeg", "gif", "webp"];
/// Characters of a document's name.
pub(crate) const NAME: usize = 200;
/// Documents of a request.
pub(crate) const DOCUMENTS: usize = 5;

fn check_message<'a>(message: &'a Value, place: &str, seen: &mut Seen<'a>, out: &mut Findings) {
    let Some(fields) = message.as_object() else {
        return out.push(BC_03.at(place, format!("expected an object, got {}", kind(message))));
    };
    let role = match fields.get("role").unwrap_or(&Value::Null) {
        Value::String(role) => role.as_str(),
        other => return out.push(BC_03.at(format!("{place}.role"), format!("role is {}", kind(other)))),
    };
    if !["user", "assistant"].contains(&role) {
        let level = if role == "system" { Level::Soft } else { Level::Hard };
        out.push(BC_03.at(format!("{place}.role"), format!("role is {role:?}")).with_level(level));
    }
    let place = format!("{place}.content");
    let blocks = match fields.get("content").unwrap_or(&Value::Null) {
        Value::Array(blocks) if !blocks.is_empty() => blocks,
        Value::Array(_) => return out.push(BC_04.at(place, "no block")),
        other => return out.push(BC_04.at(place, format!("expected an array, got {}", kind(other)))),
    };
    for (i, block) in blocks.iter().enumerate() {
        check_block(block, role, &format!("{place}[{i}]"), seen, out);
    }
    let count = |name: &str| blocks.iter().filter(|block| block.get(name).is_some()).count();
    if count("document") > 0 && count("text") == 0 {
        out.push(BC_18.at(&place, "a document without a text"));
    }
    if count("image") > IMAGES {
        out.push(BC_22.at(place, format!("{} images", count("image"))));
    }
}

pub(crate) fn check_block<'a>(block: &'a Value, role: &str, place: &str, seen: &mut Seen<'a>, out: &mut Findings) {
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

fn check_id(block: &Object, place: &str, seen: &mut Seen<'_>, out: &mut Findings) {
    seen.tools.get_or_insert_with(|| place.to_owned());
    if let Some(id) = block.get("toolUseId").and_then(Value::as_str).filter(|id| !is_word_with(id, ID, b"_.:-")) {
        out.push(BC_12.at(format!("{place}.toolUseId"), format!("id is {id:?}")));
    }
}

fn check_call(call: &Object, place: &str, seen: &mut Seen<'_>, out: &mut Findings) {
    check_id(call, place, seen, out);
    if let Some(name) = call.get("name").and_then(Value::as_str).filter(|name| !is_word(name, TOOL_NAME)) {
        out.push(BC_13.at(format!("{place}.name"), format!("name is {name:?}")));
    }
    if let Some(input) = call.get("input").filter(|input| !input.is_object()) {
        let level = if input.is_string() { Level::Hard } else { Level::Soft };
        out.push(BC_15.at(format!("{place}.input"), format!("input is {}", kind(input))).with_level(level));
    }
}

fn check_result<'a>(result: &'a Object, place: &str, seen: &mut Seen<'a>, out: &mut Findings) {
    check_id(result, place, seen, out);
    let parts = items(result, "content");
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

fn check_reasoning(reasoning: &Object, place: &str, seen: &Seen<'_>, out: &mut Findings) {
    let Some(text) = reasoning.get("reasoningText") else { return };
    if text.get("signature").and_then(Value::as_str).is_none_or(str::is_empty) {
        let level = if is_claude(seen.model) == Some(true) { Level::Hard } else { Level::Soft };
        out.push(BC_23.at(format!("{place}.reasoningText"), "reasoning without a signature").with_level(level));
    }
}

fn check_document<'a>(document: &'a Object, place: &str, seen: &mut Seen<'a>, out: &mut Findings) {
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

fn check_image(image: &Object, place: &str, out: &mut Findings) {
    if let Some(format) = image.get("format").and_then(Value::as_str).filter(|name| !IMAGE_FORMATS.contains(name)) {
        out.push(BC_26.at(format!("{place}.format"), format!("format is {format:?}")));
    }
    check_bytes(image, place, out);
}

fn check_bytes(media: &Object, place: &str, out: &mut Findings) {
    let bytes = media.get("source").and_then(|source| source.get("bytes")).and_then(Value::as_str);
    if bytes.is_some_and(|bytes| bytes.is_empty() || decode_base64(bytes).is_none()) {
        out.push(BC_26.at(format!("{place}.source.bytes"), "not base64"));
    }
}

/// 1 to 200 ASCII letters, digits, hyphens, parentheses, brackets, and white space of which no two stand in a row.
pub(crate) fn is_name(name: &str) -> bool {
    let mut spaced = false;
    let allows = |character: char| {
        let space = character.is_ascii_whitespace();
        let fits = is_name_character(character) && !(space && spaced);
        spaced = space;
        fits
    };
    (1..=NAME).contains(&name.len()) && name.chars().all(allows)
}

pub(crate) fn is_name_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || character.is_ascii_whitespace() || "-()[]".contains(character)
}

/// What counts over the whole request.
#[derive(Default)]
pub(crate) struct Seen<'a> {
    /// The name of the model; most often it is not in the request.
    pub(crate) model: &'a str,
    pub(crate) documents: usize,
    pub(crate) names: HashSet<&'a str>,
    /// The place of a block that needs `toolConfig`.
    pub(crate) tools: Option<String>,
}

impl<'a> Seen<'a> {
    /// Notes the name of a document.
    pub(crate) fn name(&mut self, name: &'a str, place: String, out: &mut Findings) {
        if !self.names.insert(name) {
            out.push(BC_19.at(place, format!("{name:?} is the name of an earlier document")));
        }
    }
}

/// Characters of a tool's name.
const TOOL_NAME: usize = 64;
fn check_text(text: &str, place: String, out: &mut Findings) {
    if is_blank(text) {
        let level = if text.is_empty() { Level::Hard } else { Level::Soft };
        out.push(BC_08.at(place, "text is empty or blank").with_level(level));
    }
}

fn check_sequence(messages: &[&Object], out: &mut Findings) {
    let mut before: Option<&Object> = None;
    for (i, message) in messages.iter().enumerate() {
        let place = format!("messages[{i}]");
        match before.map(role) {
            None if role(message) == "assistant" => {
                out.push(BC_05.at(&place, "the conversation begins with the assistant"));
            }
            Some(last) if last == role(message) => {
                out.push(BC_06.at(&place, format!("two messages of the role {last} in a row")));
            }
            _ => {}
        }
        check_calls(message, messages.get(i + 1).copied(), &place, out);
        check_results(message, before, &place, out);
        before = Some(message);
    }
    if messages.last().is_some_and(|last| role(last) == "assistant") {
        out.push(BC_07.at(format!("messages[{}]", messages.len() - 1), "the conversation ends with the assistant"));
    }
}

/// Calls of tools that the provider runs are answered in their own message.
fn check_calls(message: &Object, next: Option<&Object>, place: &str, out: &mut Findings) {
    let answers: HashSet<&str> =
        next.into_iter().chain([message]).flat_map(|message| ids(message, "toolResult")).map(|(_, id)| id).collect();
    let mut seen = HashSet::new();
    let mut open = Vec::new();
    for (j, id) in ids(message, "toolUse") {
        if !seen.insert(id) {
            let place = format!("{place}.content[{j}].toolUse.toolUseId");
            out.push(BC_11.at(place, format!("{id:?} is the id of an earlier toolUse of the message")));
        }
        if !answers.contains(id) {
            open.push(format!("{id:?}"));
        }
    }
    if !open.is_empty() {
        out.push(BC_09.at(place, format!("no toolResult for {} in the next message", open.join(", "))));
    }
}

fn check_results(message: &Object, before: Option<&Object>, place: &str, out: &mut Findings) {
    let calls: HashSet<&str> =
        before.into_iter().chain([message]).flat_map(|message| ids(message, "toolUse")).map(|(_, id)| id).collect();
    let mut seen = HashSet::new();
    for (j, id) in ids(message, "toolResult") {
        let place = format!("{place}.content[{j}].toolResult.toolUseId");
        if !calls.contains(id) {
            out.push(BC_10.at(place, format!("{id:?} is no toolUse of the message before")));
        } else if !seen.insert(id) {
            out.push(BC_11.at(place, format!("{id:?} is answered already")));
        }
    }
    let is_result = |block: &&Value| block.get("toolResult").is_some();
    let late = blocks(message).iter().skip_while(is_result).any(|block| is_result(&block));
    if late && role(message) == "user" {
        out.push(BC_27.at(place, "a toolResult after another block"));
    }
}

/// The ids of a message's blocks of this kind, with the blocks' positions.
fn ids<'a>(message: &'a Object, kind: &'static str) -> impl Iterator<Item = (usize, &'a str)> {
    let blocks = blocks(message).iter().enumerate();
    blocks.filter_map(move |(j, block)| Some((j, block.get(kind)?.get("toolUseId")?.as_str()?)))
}

fn blocks(message: &Object) -> &[Value] {
    items(message, "content")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_few_characters() {
        for name in ["Document 1", "a-b (2) [x]", &"x".repeat(NAME)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "a.pdf", "a  b", "a_b", "é", &"x".repeat(NAME + 1)] {
            assert!(!is_name(name), "{name}");
        }
    }
}
