//! Calls and results, turn by turn.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::turns::{Block, Side};
use crate::provider::anthropic::rules::{AN_10, AN_11, AN_12, AN_13, AN_14, AN_15, AN_35, AN_37};
use crate::provider::anthropic::server_tools::is_server_result;
use crate::provider::check::finding::{Finding, Level};
use crate::provider::check::shape::is_filled;

pub(crate) fn check_tools(request: &Map<String, Value>, turns: &[Side], out: &mut Vec<Finding>) {
    let mut used = HashSet::new();
    let mut before: Option<&Side> = None;
    for (i, turn) in turns.iter().enumerate() {
        if turn.by_assistant {
            check_calls(turn, turns.get(i + 1), &mut used, out);
            check_server_results(turn, out);
        } else {
            check_results(turn, before.filter(|before| before.by_assistant), out);
            check_order(turn, out);
        }
        before = Some(turn);
    }
    let whole = request.keys().any(|name| !["messages", "system"].contains(&name.as_str()));
    let any =
        turns.iter().any(|turn| of(turn, if turn.by_assistant { "tool_use" } else { "tool_result" }).next().is_some());
    if whole && any && !request.get("tools").is_some_and(is_filled) {
        out.push(AN_35.at("tools", "calls in the history, but no tools in the request"));
    }
}

/// `used` holds the ids of earlier calls.
fn check_calls<'a>(turn: &Side<'a>, next: Option<&Side>, used: &mut HashSet<&'a str>, out: &mut Vec<Finding>) {
    let mut here = HashSet::new();
    for call in of(turn, "tool_use") {
        let Some(id) = call.field("id").as_str() else { continue };
        let finding = AN_15.at(format!("{}.id", call.place), format!("{id:?} is the id of an earlier tool_use"));
        if !here.insert(id) {
            out.push(finding);
        } else if used.contains(id) {
            out.push(finding.with_level(Level::Soft));
        }
    }
    used.extend(here);
    let answered: HashSet<_> =
        next.into_iter().flat_map(|next| of(next, "tool_result")).map(|result| result.field("tool_use_id")).collect();
    let open = of(turn, "tool_use").map(|call| call.field("id")).filter(|id| !answered.contains(id));
    let open: Vec<_> = open.map(ToString::to_string).collect();
    if let Some(last) = turn.messages.last().filter(|_| !open.is_empty()) {
        let problem = format!("no tool_result for {} in the next turn", open.join(", "));
        out.push(AN_10.at(format!("messages[{last}]"), problem));
    }
}

fn check_results(turn: &Side, before: Option<&Side>, out: &mut Vec<Finding>) {
    let calls: HashSet<_> =
        before.into_iter().flat_map(|before| of(before, "tool_use")).map(|call| call.field("id")).collect();
    let mut answered = HashSet::new();
    for result in of(turn, "tool_result") {
        let id = result.field("tool_use_id");
        if !calls.contains(id) {
            out.push(AN_13.at(&result.place, format!("{id} is no tool_use of the turn before")));
        } else if !answered.insert(id) {
            out.push(AN_14.at(&result.place, format!("{id} is answered already")));
        }
    }
}

fn check_order(turn: &Side, out: &mut Vec<Finding>) {
    let mut blocks = turn.blocks.iter().skip_while(|block| block.name == "tool_result");
    let other = blocks.next().map(|block| block.name).unwrap_or_default();
    if let Some(late) = blocks.find(|block| block.name == "tool_result") {
        out.push(AN_12.at(&late.place, format!("after a block of type {other:?}")));
    }
    let mut holders: Vec<_> = of(turn, "tool_result").map(|result| result.message).collect();
    holders.dedup();
    if let Some(second) = holders.get(1) {
        out.push(AN_11.at(format!("messages[{second}]"), "tool_results of one turn in another message"));
    }
}

fn check_server_results(turn: &Side, out: &mut Vec<Finding>) {
    let mut called = HashSet::new();
    for block in &turn.blocks {
        if block.name == "server_tool_use" {
            called.insert(block.field("id"));
        } else if is_server_result(block.name) && !called.contains(block.field("tool_use_id")) {
            out.push(AN_37.at(&block.place, "no server_tool_use with its id before it"));
        }
    }
}

fn of<'t, 'a>(turn: &'t Side<'a>, name: &'static str) -> impl Iterator<Item = &'t Block<'a>> {
    turn.blocks.iter().filter(move |block| block.name == name)
}
