//! The items in their sequence: which calls are answered, and what reasoning belongs to.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::item::item_type;
use crate::provider::check::finding::Level;
use crate::provider::check::findings::Findings;
use crate::provider::check::value::{Object, is_filled};
use crate::provider::openai_responses::rules::{OR_04, OR_05, OR_06, OR_07, OR_08, OR_09};
use crate::provider::openai_responses::types::ITEMS;

/// What the server's own ids begin with.
const SERVER_IDS: &[&str] = &["fc_", "msg_"];

/// `continues`: earlier items are on the server. `stored`: the server may keep the items of this request.
pub(crate) fn check_sequence(items: &[&Object], continues: bool, stored: bool, out: &mut Findings) {
    check_ids(items, out);
    check_pairs(items, continues, out);
    check_reasoning(items, stored, out);
}

fn check_ids(items: &[&Object], out: &mut Findings) {
    let mut seen = HashMap::new();
    for (i, item) in items.iter().enumerate() {
        let Some(id) = text(item, "id") else { continue };
        if let Some(earlier) = seen.insert(id, i) {
            out.push(OR_06.at(format!("input[{i}].id"), format!("{id:?} is the id of input[{earlier}]")));
        }
    }
}

/// A call and its output have one key: the type of the output and the call_id.
fn check_pairs(items: &[&Object], continues: bool, out: &mut Findings) {
    let (mut calls, mut outputs) = (HashMap::new(), HashMap::new());
    // Calls that no type of output is known for: any may answer them.
    let mut others = HashSet::new();
    for (i, item) in items.iter().enumerate() {
        if item_type(item).is_none_or(|of| of.by_model && of.output.is_empty()) {
            others.extend(text(item, "call_id"));
        }
        let (Some(of), Some(id)) = (item_type(item), text(item, "call_id")) else { continue };
        let place = format!("input[{i}].call_id");
        if !of.output.is_empty() {
            let earlier = *calls.entry((of.output, id)).or_insert(i);
            if earlier != i {
                out.push(OR_07.at(place, format!("{id:?} is the call_id of input[{earlier}]")));
            }
        } else if ITEMS.iter().any(|call| call.output == of.name) {
            let earlier = *outputs.entry((of.name, id)).or_insert(i);
            if earlier != i {
                out.push(OR_07.at(&place, format!("input[{earlier}] is an output for {id:?} too")));
            }
            if !continues && !calls.contains_key(&(of.name, id)) && !others.contains(id) {
                out.push(OR_05.at(place, format!("no call with call_id {id:?} before it")));
            }
        }
    }
    let mut open: Vec<_> =
        calls.into_iter().filter(|(key, i)| outputs.get(key).is_none_or(|output| output < i)).collect();
    open.sort_by_key(|(_, i)| *i);
    for ((output, id), i) in open {
        out.push(OR_04.at(format!("input[{i}]"), format!("no {output} for call_id {id:?} after it")));
    }
}

fn check_reasoning(items: &[&Object], stored: bool, out: &mut Findings) {
    let any = items.iter().any(|item| is_reasoning(item));
    // Reasoning comes before this item, in the same turn of the model.
    let mut reasoned = false;
    for (i, item) in items.iter().enumerate() {
        let place = format!("input[{i}]");
        if is_reasoning(item) {
            let level = if text(item, "id").is_some_and(|id| !id.is_empty()) { Level::Hard } else { Level::Soft };
            match items.get(i + 1) {
                None => out.push(OR_08.at(place, "nothing follows the reasoning").with_level(level)),
                Some(next) if !is_by_model(next) => {
                    out.push(OR_08.at(place, "what follows the reasoning is not of the model").with_level(level));
                }
                Some(next) if next.contains_key("role") && !next.get("id").is_some_and(is_filled) => {
                    let level = if stored { level } else { Level::Soft };
                    out.push(OR_08.at(place, "the message after the reasoning has no id").with_level(level));
                }
                Some(_) => {}
            }
        } else if any && !reasoned && is_by_model(item) && bears_server_id(item) {
            out.push(OR_09.at(place, "no reasoning before it in its turn"));
        }
        reasoned = is_reasoning(item) || (reasoned && is_by_model(item));
    }
}

fn is_reasoning(item: &Object) -> bool {
    item_type(item).is_some_and(|of| of.name == "reasoning")
}

fn is_by_model(item: &Object) -> bool {
    // A type that is not known may be the model's.
    item_type(item).map_or(text(item, "type").is_some(), |of| {
        of.by_model || (of.name == "message" && text(item, "role") == Some("assistant"))
    })
}

fn bears_server_id(item: &Object) -> bool {
    item_type(item).is_some_and(|of| ["function_call", "message"].contains(&of.name))
        && text(item, "id").is_some_and(|id| SERVER_IDS.iter().any(|prefix| id.starts_with(prefix)))
}

fn text<'a>(item: &'a Object, key: &str) -> Option<&'a str> {
    item.get(key).and_then(Value::as_str)
}
