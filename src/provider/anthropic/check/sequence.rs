//! The messages in their sequence: who begins, who ends, and what follows what.

use serde_json::Value;

use super::thinking::check_thinking;
use super::tools::check_tools;
use super::turns::{Object, Side, role, turns};
use crate::provider::anthropic::models::{refuses_prefill, takes_system_role};
use crate::provider::anthropic::rules::{AN_04, AN_05, AN_09, AN_34, AN_38};
use crate::provider::check::finding::{Finding, Level};

pub(crate) fn check_turns(request: &Object, messages: &[&Object], out: &mut Vec<Finding>) {
    let model = request.get("model").and_then(Value::as_str).unwrap_or_default();
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

fn check_system(model: &str, messages: &[&Object], out: &mut Vec<Finding>) {
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
fn check_prefill(model: &str, messages: &[&Object], turns: &[Side], out: &mut Vec<Finding>) {
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
