//! The messages in their sequence: who speaks when, which calls are answered, and where.

use std::collections::HashSet;

use serde_json::Value;

use crate::provider::bedrock_converse::rules::{BC_05, BC_06, BC_07, BC_09, BC_10, BC_11, BC_27};
use crate::provider::check::findings::Findings;
use crate::provider::check::value::{Object, items, role};

pub(crate) fn check_sequence(messages: &[&Object], out: &mut Findings) {
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
