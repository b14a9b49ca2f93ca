//! The messages in their sequence: which calls are answered, and where. What dialects ask of messages, too.

use std::collections::{HashMap, HashSet};

use crate::provider::check::finding::Level;
use crate::provider::check::findings::Findings;
use crate::provider::check::value::{Object, items, objects, role};
use crate::provider::openai_chat::manner::{Ends, Manner};
use crate::provider::openai_chat::rules::{OC_07, OC_08, OC_09, OC_11, OC_26, OC_27, OC_29, OC_35};
use serde_json::Value;

pub(crate) fn check_sequence(messages: &[&Object], manner: &Manner, out: &mut Findings) {
    let mut used = HashMap::new();
    let mut begun = false;
    let mut function_call = None;
    let mut rest = messages.iter().enumerate().peekable();
    while let Some((i, message)) = rest.next() {
        let place = format!("messages[{i}]");
        match role(message) {
            "system" | "developer" if begun => out.push(OC_35.at(&place, "the conversation has begun before it")),
            "system" | "developer" => {}
            _ => begun = true,
        }
        match role(message) {
            "tool" => out.push(OC_08.at(&place, "no assistant message with tool_calls opens its run")),
            "function" => check_function(message, function_call, &place, out),
            _ => {}
        }
        function_call = message.get("function_call").and_then(|call| call.get("name"));
        let ids = if role(message) == "assistant" { call_ids(message) } else { Vec::new() };
        if ids.is_empty() {
            continue;
        }
        check_reuse(&ids, i, &mut used, out);
        let mut answers = Vec::new();
        while let Some((j, answer)) = rest.next_if(|(_, next)| role(next) == "tool") {
            answers.push((j, answer.get("tool_call_id").unwrap_or(&Value::Null)));
        }
        let next = rest.peek().map(|(j, next)| format!("messages[{j}], of role {:?}", role(next)));
        check_answers(i, &ids, &answers, &next.unwrap_or_else(|| "the conversation ends".to_owned()), out);
    }
    let goes_on = |last: &Object| manner.order.ends == Ends::AskingOrPrefix && is_prefix(last);
    let last = messages.last().filter(|last| role(last) == "assistant" && call_ids(last).is_empty());
    if last.is_some_and(|last| !goes_on(last)) {
        out.push(OC_29.at(format!("messages[{}]", messages.len() - 1), "the conversation ends with the assistant"));
    }
}

/// The tool messages after message `i`, against its calls.
fn check_answers(i: usize, ids: &[&Value], answers: &[(usize, &Value)], end: &str, out: &mut Findings) {
    let mut position = HashMap::new();
    for (j, id) in ids.iter().enumerate() {
        position.entry(*id).or_insert(j);
    }
    let mut answered = HashSet::new();
    for (j, id) in answers {
        let place = format!("messages[{j}].tool_call_id");
        if !position.contains_key(id) {
            out.push(OC_08.at(place, format!("{id} is no call of messages[{i}]")));
        } else if !answered.insert(*id) {
            out.push(OC_09.at(place, format!("{id} is answered already")));
        }
    }
    let place = format!("messages[{i}].tool_calls");
    let missing: Vec<_> = ids.iter().filter(|id| !answered.contains(*id)).map(ToString::to_string).collect();
    if !missing.is_empty() {
        out.push(OC_07.at(&place, format!("no tool message for {} before {end}", missing.join(", "))));
    }
    if !answers.iter().filter_map(|(_, id)| position.get(id)).is_sorted() {
        out.push(OC_27.at(place, "its tool messages are in another order"));
    }
}

/// `used` holds the ids of earlier messages, and where they stand.
fn check_reuse<'a>(ids: &[&'a Value], i: usize, used: &mut HashMap<&'a Value, usize>, out: &mut Findings) {
    for (j, id) in ids.iter().enumerate() {
        if let Some(earlier) = used.get(id) {
            let problem = format!("{id} is the id of a call of messages[{earlier}]");
            out.push(OC_11.at(format!("messages[{i}].tool_calls[{j}].id"), problem));
        }
    }
    used.extend(ids.iter().filter(|id| id.is_string()).map(|id| (*id, i)));
}

fn check_function(message: &Object, call: Option<&Value>, place: &str, out: &mut Findings) {
    let finding = OC_26.at(place, "does not answer a function_call directly before it, by name");
    match call {
        None => out.push(finding.with_level(Level::Hard)),
        Some(name) if Some(name) != message.get("name") => out.push(finding),
        Some(_) => {}
    }
}

/// The ids of a message's calls as they stand, null where there is none. No calls, no ids.
pub(crate) fn call_ids(message: &Object) -> Vec<&Value> {
    calls(message).map(|(_, call)| call.get("id").unwrap_or(&Value::Null)).collect()
}

/// The calls of a message that are objects, and their positions.
pub(crate) fn calls(message: &Object) -> impl Iterator<Item = (usize, &Object)> {
    objects(items(message, "tool_calls"))
}

/// Whether the assistant is to go on with the text: Mistral's field.
pub(crate) fn is_prefix(message: &Object) -> bool {
    message.get("prefix") == Some(&Value::Bool(true))
}

/// Is thinking on? The request says so; else the name of its model shows it, or a message that has thought.
pub(crate) fn is_thinking(request: &Value, messages: &[&Object], models: &[&str]) -> bool {
    if let Some(thinking) = request.get("thinking").filter(|thinking| thinking.is_object()) {
        return thinking.get("type").is_some_and(|mode| mode == "enabled");
    }
    let model = request.get("model").and_then(Value::as_str).unwrap_or_default();
    models.iter().any(|name| model.contains(name))
        || messages.iter().any(|message| message.get("reasoning_content").is_some_and(Value::is_string))
}
