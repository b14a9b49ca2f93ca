//! The messages as the provider sees them: those of one role in a row are one turn.

use serde_json::{Map, Value};

use super::block::blocks;
use super::model::{refuses_prefill, takes_system_role};
use super::rules::{AN_04, AN_05, AN_09, AN_34, AN_38};
use super::thinking::check_thinking;
use super::tools::check_tools;
use crate::provider::finding::{Finding, Level};

type Object = Map<String, Value>;

/// What one side says before the other does.
pub(super) struct Turn<'a> {
    pub(super) by_assistant: bool,
    pub(super) blocks: Vec<Block<'a>>,
    /// The positions of its messages.
    pub(super) messages: Vec<usize>,
}

/// A block and its place. Content that is a string is one block of text, without fields.
pub(super) struct Block<'a> {
    pub(super) message: usize,
    pub(super) place: String,
    pub(super) name: &'a str,
    pub(super) fields: Option<&'a Object>,
}

impl<'a> Block<'a> {
    /// Null where there is none.
    pub(super) fn field(&self, name: &str) -> &'a Value {
        self.fields.and_then(|fields| fields.get(name)).unwrap_or(&Value::Null)
    }
}

pub(super) fn check_turns(request: &Object, messages: &[&Object], out: &mut Vec<Finding>) {
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

/// Messages of the role system are no turns, but part them.
fn turns<'a>(messages: &[&'a Object]) -> Vec<Turn<'a>> {
    let mut turns: Vec<Turn> = Vec::new();
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
            None => turns.push(Turn { by_assistant, blocks: said(message, i), messages: vec![i] }),
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
        let name = fields.get("type").and_then(Value::as_str).unwrap_or_default();
        Block { message: i, place, name, fields: Some(fields) }
    });
    blocks.collect()
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
            Some(before) if role(before) != "user" => out.push(AN_04.at(&place, "does not follow a user message")),
            Some(_) => {}
        }
        if messages.get(i + 1).is_some_and(|next| role(next) != "assistant") {
            out.push(AN_04.at(place, "neither last nor before an assistant message"));
        }
    }
}

/// The last message, if the assistant said it: most models do not continue it.
fn check_prefill(model: &str, messages: &[&Object], turns: &[Turn], out: &mut Vec<Finding>) {
    let Some(last) = messages.last().filter(|last| role(last) == "assistant") else { return };
    let Some(turn) = turns.last() else { return };
    let place = format!("messages[{}]", messages.len() - 1);
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

/// The role of a message, empty where it is no string.
pub(in crate::provider) fn role(message: &Object) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or_default()
}
