//! The transcript format: one message a line, as JSON. Byte by byte in `docs/format.md`.

mod fields;
mod read;
mod reason;
#[cfg(test)]
mod tests;
mod write;

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};

use super::{Body, Json, Message};

/// One line of a transcript: a message, and the conversation that it belongs to.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The conversation's id or key, if the line names one.
    pub conversation: Option<String>,
    /// The message.
    pub message: Message,
    /// The chunks in which a lone surrogate escape (`\ud83d` without its pair) was replaced by U+FFFD. The text as it was
    /// is kept as their `native`, of wire `transcript`.
    pub replaced_surrogates: Vec<usize>,
}

/// Where and why a text is no transcript line.
#[derive(Debug, thiserror::Error)]
#[error("column {column}: {place}: {problem}")]
pub struct Expected {
    /// 1-based, in characters.
    pub column: usize,
    /// The field: `chunks[2].text`; `line` for the whole.
    pub place: String,
    /// What was expected, or what is wrong.
    pub problem: String,
}

impl Line {
    /// Reads one line.
    ///
    /// # Errors
    /// [`Expected`], with the column and the field.
    pub fn from_json(text: &str) -> Result<Self, Expected> {
        let whole = read::line(text);
        match super::json_text::replace_lone_surrogates(text) {
            // In JSON that is kept as it is they need not be replaced.
            Cow::Owned(readable) if whole.is_err() => {
                let mut line = read::line(&readable)?;
                read::keep_lone_surrogates(text, &mut line);
                Ok(line)
            }
            _ => whole,
        }
    }
}

impl Message {
    /// Reads a message of the transcript format.
    ///
    /// ```
    /// use conversation_store::model::{Message, Role};
    ///
    /// let message = Message::from_json(r#"{"role": "user", "chunks": [{"type": "text", "text": "hello"}]}"#)?;
    /// assert_eq!(message.role, Role::User);
    /// # Ok::<(), conversation_store::model::Expected>(())
    /// ```
    ///
    /// # Errors
    /// [`Expected`], with the column and the field.
    pub fn from_json(text: &str) -> Result<Self, Expected> {
        Line::from_json(text).map(|line| line.message)
    }

    /// The message in the transcript format, on one line.
    ///
    /// # Panics
    /// Never: the format has no value that JSON cannot write.
    #[must_use]
    pub fn to_json(&self) -> String {
        write::to_text(self)
    }
}

impl Serialize for Line {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write::message(self.conversation.as_deref(), &self.message, serializer)
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write::message(None, self, serializer)
    }
}

impl Expected {
    /// At a byte offset of `text`.
    fn at(text: &str, offset: usize, place: impl fmt::Display, problem: impl fmt::Display) -> Self {
        // serde_json may point into a character, at the end of a text that is cut off.
        let start = (0..=offset.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        let column = text.get(..start).unwrap_or_default().chars().count() + 1;
        Self { column, place: place.to_string(), problem: problem.to_string() }
    }
}

/// The wire of a `native` that keeps a transcript's own text.
pub(crate) const TRANSCRIPT: &str = "transcript";

/// Whether the chunk's text was mended when it was read: a lone surrogate escape in it was replaced.
pub(crate) fn was_mended(native: Option<&super::Native>) -> bool {
    native.is_some_and(|native| native.wire == TRANSCRIPT)
}

/// The field of a chunk's item id: a tool call's `id` is the call's own.
const fn id_field(body: &Body) -> &'static str {
    if matches!(body, Body::ToolCall { .. }) { "item_id" } else { "id" }
}

/// JSON that was checked to be JSON a moment ago: [`Json::new`] fails only on depth.
fn json(text: &str) -> Option<Json> {
    Json::new(text).ok()
}
