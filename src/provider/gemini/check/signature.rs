//! The signatures of the current turn: from Gemini 3 on, calls come back with theirs.

use serde_json::{Map, Value};

use super::sequence::Spoken;
use crate::provider::check::finding::{Finding, Level};
use crate::provider::check::shape::{field, is_filled};
use crate::provider::gemini::models::wants_signatures;
use crate::provider::gemini::rules::GM_17;

pub(crate) fn check_signatures(model: &str, turns: &[Spoken], out: &mut Vec<Finding>) {
    let level = match wants_signatures(model) {
        Some(true) => Level::Hard,
        Some(false) => return,
        None => Level::Soft,
    };
    out.extend(unsigned_calls(turns).map(|finding| finding.with_level(level)));
}

/// The first call of each step of the current turn, where it has no signature.
pub(crate) fn unsigned_calls(turns: &[Spoken]) -> impl Iterator<Item = Finding> {
    let start = turns.iter().rposition(|turn| turn.role == "user" && turn.responses.is_empty()).unwrap_or(0);
    let steps = turns.iter().enumerate().skip(start).filter(|(_, turn)| turn.role == "model");
    steps.filter_map(|(i, turn)| {
        let is_call = |part: &Map<String, Value>| field(part, "functionCall").is_some_and(Value::is_object);
        let (j, call) = turn.parts.iter().enumerate().find(|(_, part)| is_call(part))?;
        let unsigned = !field(call, "thoughtSignature").is_some_and(is_filled);
        unsigned.then(|| GM_17.at(format!("contents[{i}].parts[{j}]"), "a step's first call without thoughtSignature"))
    })
}
