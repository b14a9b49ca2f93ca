//! One message: its role, its fields, its name.

use serde_json::{Map, Value};

use super::calls::{NAME, check_calls, check_id};
use super::content::check_content;
use crate::provider::check::finding::Finding;
use crate::provider::check::shape::{Fault, is_filled, kind};
use crate::provider::openai_chat::manner::Manner;
use crate::provider::openai_chat::rules::{OC_03, OC_04, OC_05, OC_18, OC_23, OC_24, OC_25, OC_26, OC_34};
use crate::provider::openai_chat::types::{ROLES, Role};
use crate::provider::text::is_word;

pub(crate) fn check_message(message: &Value, manner: &Manner, place: &str, out: &mut Vec<Finding>) {
    let Some(object) = message.as_object() else {
        return out.push(OC_03.at(place, format!("expected an object, got {}", kind(message))));
    };
    let name = object.get("role").unwrap_or(&Value::Null);
    let Some(role) = ROLES.iter().find(|role| name == role.name) else {
        return out.push(OC_03.at(place, format!("role is {}", kind(name))));
    };
    check_fields(role, object, manner, place, out);
    check_content_is_there(role, object, place, out);
    check_content(role, object, &format!("{place}.content"), out);
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
fn check_fields(role: &Role, message: &Map<String, Value>, manner: &Manner, place: &str, out: &mut Vec<Finding>) {
    let own = manner.types.iter().flat_map(|types| *types).find(|(name, _)| *name == role.name).map(|(_, shape)| shape);
    let is_own = |of: &str| {
        let field = of.strip_prefix(place).and_then(|field| field.strip_prefix('.'));
        field.is_some_and(|field| own.is_some_and(|own| own.knows(field)))
    };
    let content = format!("{place}.content");
    let calls = format!("{place}.tool_calls");
    let judged_elsewhere = |place: &str| {
        (place == content && role.name != "function")
            || (place == calls && message.get("tool_calls").is_some_and(Value::is_null))
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

fn check_content_is_there(role: &Role, message: &Map<String, Value>, place: &str, out: &mut Vec<Finding>) {
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

fn speaks_otherwise(message: &Map<String, Value>) -> bool {
    ["tool_calls", "function_call", "audio"].iter().any(|key| message.get(*key).is_some_and(is_filled))
        || message.get("refusal").and_then(Value::as_str).is_some_and(|refusal| !refusal.is_empty())
}

fn check_name(name: &str, place: &str, out: &mut Vec<Finding>) {
    let refused = |character: char| character.is_whitespace() || "<|\\/>".contains(character);
    if name.is_empty() || name.chars().count() > 64 || name.contains(refused) {
        out.push(OC_23.at(place, format!("name is {name:?}")));
    } else if !is_word(name, NAME) {
        out.push(OC_24.at(place, format!("name is {name:?}")));
    }
}
