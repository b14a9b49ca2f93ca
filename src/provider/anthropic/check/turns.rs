//! The messages as the provider sees them: those of one role in a row are one turn.

use serde_json::{Map, Value};

use super::block::blocks;

pub(crate) type Object = Map<String, Value>;

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
pub(crate) fn turns<'a>(messages: &[&'a Object]) -> Vec<Side<'a>> {
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
        let name = fields.get("type").and_then(Value::as_str).unwrap_or_default();
        Block { message: i, place, name, fields: Some(fields) }
    });
    blocks.collect()
}

/// The role of a message, empty where it is no string.
pub(crate) fn role(message: &Object) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or_default()
}
