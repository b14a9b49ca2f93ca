//! One content: its role, its fields, its parts.

use serde_json::{Map, Value};

use super::part::check_part;
use crate::provider::check::finding::{Finding, Level};
use crate::provider::check::shape::{Fault, kind};
use crate::provider::gemini::rules::{GM_03, GM_04, GM_15, GM_18, GM_22, GM_28};
use crate::provider::gemini::types::CONTENT;

/// Returns whether it holds inline data.
pub(crate) fn check_content(content: &Value, place: &str, out: &mut Vec<Finding>) -> bool {
    let Some(content) = content.as_object() else {
        out.push(GM_28.at(place, format!("expected an object, got {}", kind(content))));
        return false;
    };
    let place_of_parts = format!("{place}.parts");
    let parts = content.get("parts").and_then(Value::as_array);
    check_fields(content, place, out);
    let role = content.get("role").unwrap_or(&Value::Null);
    if role.is_null() {
        out.push(GM_03.at(format!("{place}.role"), "no role").with_level(Level::Soft));
    } else if !["user", "model", "function"].iter().any(|known| role == known) {
        out.push(GM_03.at(format!("{place}.role"), format!("role is {}", kind(role))));
    }
    let Some(parts) = parts.filter(|parts| !parts.is_empty()) else {
        out.push(GM_04.at(place_of_parts, "missing, not an array, or empty"));
        return false;
    };
    let mut inline = false;
    for (i, part) in parts.iter().enumerate() {
        let place = format!("{place_of_parts}[{i}]");
        match part.as_object() {
            Some(part) => inline |= check_part(part, role, &place, out),
            None => out.push(GM_28.at(place, format!("expected an object, got {}", kind(part)))),
        }
    }
    inline
}

/// Compares with the official type, but for what other rules say better.
fn check_fields(content: &Map<String, Value>, place: &str, out: &mut Vec<Finding>) {
    let parts = format!("{place}.parts");
    for misfit in CONTENT.misfits(content, place) {
        let rule = match (misfit.fault, misfit.place.rsplit('.').next().unwrap_or_default()) {
            (Fault::Unknown, _) => &GM_22,
            (_, "args" | "response") => &GM_15,
            (_, "thoughtSignature" | "thought_signature") => &GM_18,
            _ if misfit.place == parts => &GM_04,
            _ => &GM_28,
        };
        out.push(rule.of(misfit));
    }
}
