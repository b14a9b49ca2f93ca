//! The contents in their sequence: which calls are answered, where, and whether the current turn bears its signatures.

use crate::provider::check::finding::{Finding, Level};
use crate::provider::check::findings::Findings;
use crate::provider::check::value::{Object, field, is_filled};
use crate::provider::gemini::models::{refuses_model_last, wants_signatures};
use crate::provider::gemini::rules::{GM_07, GM_08, GM_09, GM_11, GM_12, GM_13, GM_14, GM_17, GM_24};
use serde_json::Value;

/// A content: who says it, and which functions it calls or answers.
pub(crate) struct Spoken<'a> {
    /// Without a role it is the user's; empty where it is no string.
    pub(crate) role: &'a str,
    pub(crate) parts: Vec<&'a Object>,
    pub(crate) calls: Vec<&'a Object>,
    pub(crate) responses: Vec<&'a Object>,
}

/// The contents of a request; `None` where they are no sequence: not an array, empty, or not all of them objects with
/// parts that are objects.
pub(crate) fn turns(request: &Value) -> Option<Vec<Spoken<'_>>> {
    let contents = request.get("contents")?.as_array().filter(|contents| !contents.is_empty())?;
    contents.iter().map(turn).collect()
}

fn turn(content: &Value) -> Option<Spoken<'_>> {
    let role = match content.as_object()?.get("role").unwrap_or(&Value::Null) {
        Value::Null => "user",
        role => role.as_str().unwrap_or_default(),
    };
    let parts: Vec<_> = content.get("parts")?.as_array()?.iter().map(Value::as_object).collect::<Option<_>>()?;
    let functions = |name| parts.iter().filter_map(|part| field(part, name)?.as_object()).collect();
    Some(Spoken { role, calls: functions("functionCall"), responses: functions("functionResponse"), parts })
}

pub(crate) fn check_sequence(model: &str, turns: &[Spoken], out: &mut Findings) {
    let mut before: Option<&Spoken> = None;
    // The calls of the model's contents in a row up to here: they are one turn.
    let mut calls: Vec<&Object> = Vec::new();
    let mut by_model_only = true;
    for (i, turn) in turns.iter().enumerate() {
        let place = format!("contents[{i}]");
        if turn.role == "model" {
            if before.is_some_and(|before| before.role != "model") {
                calls.clear();
            }
            calls.extend(&turn.calls);
            if by_model_only && !turn.calls.is_empty() {
                out.push(GM_07.at(&place, "its functionCall is in the first turn"));
            }
            match turns.get(i + 1) {
                _ if calls.is_empty() => {}
                Some(next) if next.role == "model" => {}
                Some(_) => {
                    let given = turns.iter().skip(i + 1);
                    let given = given.take_while(|turn| turn.role != "model" && !turn.responses.is_empty());
                    check_responses(&calls, &given.collect::<Vec<_>>(), &format!("contents[{}]", i + 1), out);
                }
                None => {
                    let problem = "the conversation ends with calls that are not answered";
                    out.push(GM_12.at(&place, problem).with_level(Level::Hard));
                }
            }
        }
        if !turn.responses.is_empty() {
            if calls.is_empty() || turn.role == "model" {
                out.push(GM_09.at(&place, "no turn with calls right before it"));
            }
            if turn.responses.len() != turn.parts.len() {
                out.push(GM_24.at(&place, "function responses beside other parts"));
            }
        }
        if let Some(problem) = before.and_then(|before| in_a_row(before, turn)) {
            out.push(GM_14.at(place, problem));
        }
        if turn.role != "model" {
            by_model_only = false;
            // What follows responses may be more of them.
            if turn.responses.is_empty() {
                calls.clear();
            }
        }
        before = Some(turn);
    }
    check_ends(model, turns, out);
}

/// `given`: the contents with responses that follow the calls.
fn check_responses(calls: &[&Object], given: &[&Spoken], place: &str, out: &mut Findings) {
    let responses: Vec<&Object> = given.iter().flat_map(|turn| turn.responses.iter().copied()).collect();
    if calls.len() != responses.len() {
        let problem = format!("{} calls before it, but {} function responses in it", calls.len(), responses.len());
        return out.push(GM_08.at(place, problem));
    }
    if given.len() > 1 {
        let problem = format!("the calls' responses are in {} contents", given.len());
        out.push(GM_08.at(place, problem).with_level(Level::Soft));
    }
    for (call, response) in calls.iter().zip(responses) {
        let of = |function: &Object, key: &str| function.get(key).cloned().unwrap_or_default();
        let (name, id) = (of(call, "name"), of(call, "id"));
        if of(response, "name") != name {
            out.push(GM_11.at(place, format!("a response of {} in the place of {name}", of(response, "name"))));
        }
        let other_id = of(response, "id");
        if is_text(&id) && is_text(&other_id) && id != other_id {
            out.push(GM_11.at(place, format!("a response with id {other_id} in the place of {id}")));
        }
    }
}

fn in_a_row(before: &Spoken, turn: &Spoken) -> Option<String> {
    let answers = |turn: &Spoken| !turn.responses.is_empty();
    if before.role == turn.role && !answers(before) && !answers(turn) {
        Some(format!("two contents of the role {} in a row", turn.role))
    } else if ["user", "function"].contains(&before.role) && turn.role == "user" && answers(before) && !answers(turn) {
        Some("a user content directly after function responses".to_owned())
    } else {
        None
    }
}

fn check_ends(model: &str, turns: &[Spoken], out: &mut Findings) {
    if let Some(first) = turns.first().filter(|first| first.role != "user") {
        out.push(GM_13.at("contents[0]", format!("the first content is of the role {}", first.role)));
    }
    if turns.last().is_some_and(|last| last.role == "model" && last.calls.is_empty()) {
        let level = if refuses_model_last(model) == Some(true) { Level::Hard } else { Level::Soft };
        let place = format!("contents[{}]", turns.len() - 1);
        out.push(GM_12.at(place, "the conversation ends with the model").with_level(level));
    }
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

pub(crate) fn check_signatures(model: &str, turns: &[Spoken], out: &mut Findings) {
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
        let is_call = |part: &Object| field(part, "functionCall").is_some_and(Value::is_object);
        let (j, call) = turn.parts.iter().enumerate().find(|(_, part)| is_call(part))?;
        let unsigned = !field(call, "thoughtSignature").is_some_and(is_filled);
        unsigned.then(|| GM_17.at(format!("contents[{i}].parts[{j}]"), "a step's first call without thoughtSignature"))
    })
}
