//! One message: its role, its fields, its content as a whole.

use serde_json::{Map, Value};

use super::block::{Seen, check_block, is_thinking};
use crate::provider::anthropic::rules::{AN_03, AN_04, AN_06, AN_08, AN_18, AN_21, AN_24, AN_25, AN_27, AN_33, AN_41};
use crate::provider::anthropic::server_tools::is_server_result;
use crate::provider::anthropic::types::{ROLES, is_known};
use crate::provider::check::finding::{Finding, Level};
use crate::provider::check::shape::{Fault, Shape, kind};
use crate::provider::text::is_blank;

/// `last`: it is the last of the conversation.
pub(crate) fn check_message<'a>(
    message: &'a Value,
    place: &str,
    last: bool,
    seen: &mut Seen<'a>,
    out: &mut Vec<Finding>,
) {
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
fn check_fields(shape: &'static Shape, role: &str, message: &Map<String, Value>, place: &str, out: &mut Vec<Finding>) {
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

fn check_emptiness(role: &str, last: bool, place: &str, out: &mut Vec<Finding>) {
    if !(last && role == "assistant") {
        out.push(AN_06.at(place, "content is empty"));
    }
}

fn check_system(blocks: &[Value], place: &str, out: &mut Vec<Finding>) {
    let blocks = || blocks.iter().enumerate().filter_map(|(i, block)| Some((i, block.as_object()?)));
    let strange = |block: &Map<String, Value>| {
        block.get("type").and_then(Value::as_str).is_none_or(|name| name != "text" && is_known(name))
    };
    if blocks().any(|(_, block)| strange(block)) {
        out.push(AN_04.at(place, "another block than text"));
    }
    for (i, _) in blocks().filter(|(_, block)| block.get("cache_control").is_some_and(|mark| !mark.is_null())) {
        out.push(AN_27.at(format!("{place}[{i}]"), "in a message of the role system"));
    }
}

/// Thinking comes first, and is not all; after a server's tool the model may think again.
fn check_order(blocks: &[Value], place: &str, out: &mut Vec<Finding>) {
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
