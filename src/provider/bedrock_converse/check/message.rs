//! One message: its role, its content, and what its blocks are together.

use serde_json::Value;

use super::block::check_block;
use super::seen::Seen;
use crate::provider::bedrock_converse::rules::{BC_03, BC_04, BC_18, BC_22};
use crate::provider::check::finding::{Finding, Level};
use crate::provider::check::shape::kind;

/// Images of a message.
pub(crate) const IMAGES: usize = 20;

pub(crate) fn check_message<'a>(message: &'a Value, place: &str, seen: &mut Seen<'a>, out: &mut Vec<Finding>) {
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
