//! The messages in their sequence: who begins, who ends, which calls are answered, where thinking is.

use std::collections::HashSet;

use serde_json::Value;

use super::message::{blocks, is_thinking};
use crate::provider::anthropic::models::{refuses_prefill, takes_system_role};
use crate::provider::anthropic::rules::{
    AN_04, AN_05, AN_09, AN_10, AN_11, AN_12, AN_13, AN_14, AN_15, AN_23, AN_26, AN_34, AN_35, AN_37, AN_38,
};
use crate::provider::anthropic::types::is_server_result;
use crate::provider::check::finding::Level;
use crate::provider::check::findings::Findings;
use crate::provider::check::value::{Object, is_filled, role, text};

pub(crate) fn check_turns(request: &Object, messages: &[&Object], out: &mut Findings) {
    let model = text(request, "model");
    check_system(model, messages, out);
    let turns = turns(messages);
    let Some(first) = turns.first() else { return };
    if let Some(i) = first.messages.first().filter(|_| first.by_assistant) {
        out.push(AN_05.at(format!("messages[{i}]"), "the conversation begins with the assistant"));
    }
    for i in turns.iter().flat_map(|turn| turn.messages.iter().skip(1)) {
        out.push(AN_38.at(format!("messages[{i}]"), "merged with the message before it"));
    }
    check_tools(request, &turns, out);
    check_thinking(request, &turns, out);
    check_prefill(model, messages, &turns, out);
}

fn check_system(model: &str, messages: &[&Object], out: &mut Findings) {
    for (i, _) in messages.iter().enumerate().filter(|(_, message)| role(message) == "system") {
        let place = format!("messages[{i}]");
        match takes_system_role(model) {
            Some(true) => {}
            Some(false) => out.push(AN_04.at(&place, format!("{model} does not take the role system"))),
            None => {
                out.push(AN_04.at(&place, "only models from Opus 4.8 on take the role system").with_level(Level::Soft));
            }
        }
        match i.checked_sub(1).and_then(|before| messages.get(before)) {
            None => out.push(AN_04.at(&place, "the first message")),
            Some(before) if !["user", "system"].contains(&role(before)) => {
                out.push(AN_04.at(&place, "does not follow a user message"));
            }
            Some(_) => {}
        }
        if messages.get(i + 1).is_some_and(|next| !["assistant", "system"].contains(&role(next))) {
            out.push(AN_04.at(place, "neither last nor before an assistant message"));
        }
    }
}

/// The last message, if the assistant said it: most models do not continue it.
fn check_prefill(model: &str, messages: &[&Object], turns: &[Side], out: &mut Findings) {
    let Some(last) = messages.last().filter(|last| role(last) == "assistant") else { return };
    let Some(turn) = turns.last() else { return };
    let place = format!("messages[{}]", messages.len() - 1);
    if turn.blocks.last().is_some_and(|block| block.name != "tool_use" && block.name.ends_with("tool_use")) {
        // A paused turn, which every model goes on with.
        return;
    }
    match refuses_prefill(model) {
        Some(true) => out.push(AN_34.at(&place, format!("{model} does not continue an assistant message"))),
        Some(false) => {}
        None if turn.blocks.is_empty() => {}
        None => {
            let problem = "Claude 4.6 and later do not continue an assistant message";
            out.push(AN_34.at(&place, problem).with_level(Level::Soft));
        }
    }
    let (place, text) = match (last.get("content"), turn.blocks.last()) {
        (Some(text @ Value::String(_)), _) => (format!("{place}.content"), text),
        (_, Some(block)) if block.name == "text" => (format!("{}.text", block.place), block.field("text")),
        _ => return,
    };
    if text.as_str().is_some_and(|text| text.trim_end() != text) {
        out.push(AN_09.at(place, "text ends with white space"));
    }
}

/// What one side says before the other does.
pub(crate) struct Side<'a> {
    pub(crate) by_assistant: bool,
    pub(crate) blocks: Vec<Block<'a>>,
    /// The positions of its messages.
    pub(crate) messages: Vec<usize>,
}

/// A block and its place. Content that is a string is one block of text, without fields.
pub(crate) struct Block<'a> {
    pub(crate) message: usize,
    pub(crate) place: String,
    pub(crate) name: &'a str,
    pub(crate) fields: Option<&'a Object>,
}

impl<'a> Block<'a> {
    /// Null where there is none.
    pub(crate) fn field(&self, name: &str) -> &'a Value {
        self.fields.and_then(|fields| fields.get(name)).unwrap_or(&Value::Null)
    }
}

/// Messages of the role system are no turns, but part them.
fn turns<'a>(messages: &[&'a Object]) -> Vec<Side<'a>> {
    let mut turns: Vec<Side> = Vec::new();
    let mut parted = true;
    for (i, message) in messages.iter().enumerate() {
        let by_assistant = match role(message) {
            "user" => false,
            "assistant" => true,
            "system" => {
                parted = true;
                continue;
            }
            _ => continue,
        };
        match turns.last_mut().filter(|turn| !parted && turn.by_assistant == by_assistant) {
            Some(turn) => {
                turn.blocks.extend(said(message, i));
                turn.messages.push(i);
            }
            None => turns.push(Side { by_assistant, blocks: said(message, i), messages: vec![i] }),
        }
        parted = false;
    }
    turns
}

fn said<'a>(message: &'a Object, i: usize) -> Vec<Block<'a>> {
    if message.get("content").is_some_and(Value::is_string) {
        return vec![Block { message: i, place: format!("messages[{i}].content[0]"), name: "text", fields: None }];
    }
    let blocks = blocks(message, i).map(|(place, fields)| {
        let name = text(fields, "type");
        Block { message: i, place, name, fields: Some(fields) }
    });
    blocks.collect()
}

fn check_tools(request: &Object, turns: &[Side], out: &mut Findings) {
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
fn check_calls<'a>(turn: &Side<'a>, next: Option<&Side>, used: &mut HashSet<&'a str>, out: &mut Findings) {
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

fn check_results(turn: &Side, before: Option<&Side>, out: &mut Findings) {
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

fn check_order(turn: &Side, out: &mut Findings) {
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

fn check_server_results(turn: &Side, out: &mut Findings) {
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

fn check_thinking(request: &Object, turns: &[Side], out: &mut Findings) {
    let Some((at, turn)) = current(turns) else { return };
    let Some(first) = turn.blocks.first() else { return };
    let mode = request.get("thinking").and_then(|thinking| thinking.get("type")?.as_str());
    // Without interleaved thinking only the first turn of the tool loop begins with it.
    let begins = begins_with_thinking(turn) || turns.get(first_of_loop(turns, at)).is_some_and(begins_with_thinking);
    let level = match mode {
        Some("enabled") => Some(Level::Hard),
        None | Some("adaptive") if turns.iter().any(thinks) => Some(Level::Soft),
        _ => None,
    };
    if let Some(level) = level.filter(|_| !begins) {
        out.push(AN_23.at(&first.place, "the current turn does not begin with thinking").with_level(level));
    }
    if mode == Some("disabled") && thinks(turn) {
        let level = if at + 1 == turns.len() { Level::Hard } else { Level::Soft };
        out.push(AN_26.at(&first.place, "thinking in the final position, while it is disabled").with_level(level));
    }
}

/// The assistant's turn that goes on: the last one, but for the results of its tools. With its position.
fn current<'t, 'a>(turns: &'t [Side<'a>]) -> Option<(usize, &'t Side<'a>)> {
    let mut from_end = turns.iter().enumerate().rev();
    match from_end.next() {
        Some((_, last)) if !last.by_assistant && holds_results(last) => from_end.next(),
        last => last.filter(|(_, last)| last.by_assistant),
    }
}

/// Back from an assistant's turn, as long as only results of tools stand between.
fn first_of_loop(turns: &[Side], mut at: usize) -> usize {
    while at >= 2 && turns.get(at - 1).is_some_and(holds_results) {
        at -= 2;
    }
    at
}

fn holds_results(turn: &Side) -> bool {
    !turn.blocks.is_empty() && turn.blocks.iter().all(|block| block.name == "tool_result")
}

fn begins_with_thinking(turn: &Side) -> bool {
    turn.blocks.first().is_some_and(|block| is_thinking(block.name))
}

fn thinks(turn: &Side) -> bool {
    turn.blocks.iter().any(|block| is_thinking(block.name))
}
