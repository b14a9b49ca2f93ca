//! Thinking at the end of the conversation: there it must be given back as it came.

use serde_json::{Map, Value};

use super::block::is_thinking;
use super::turns::Side;
use crate::provider::anthropic::rules::{AN_23, AN_26};
use crate::provider::check::finding::{Finding, Level};

pub(crate) fn check_thinking(request: &Map<String, Value>, turns: &[Side], out: &mut Vec<Finding>) {
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
