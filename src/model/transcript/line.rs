//! A line of a transcript, and what keeps a text from being one.

use std::fmt;

use crate::json;
use crate::model::{Body, Json, Message, Native};

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

impl Expected {
    /// At a byte offset of `text`.
    pub(super) fn at(text: &str, offset: usize, place: impl fmt::Display, problem: impl fmt::Display) -> Self {
        // serde_json may point into a character, at the end of a text that is cut off.
        let column = text.get(..json::boundary(text, offset)).unwrap_or_default().chars().count() + 1;
        Self { column, place: place.to_string(), problem: problem.to_string() }
    }
}

/// The wire of a `native` that keeps a transcript's own text.
pub(crate) const TRANSCRIPT: &str = "transcript";

/// Whether the chunk's text was mended when it was read: a lone surrogate escape in it was replaced.
pub(crate) fn was_mended(native: Option<&Native>) -> bool {
    native.is_some_and(|native| native.wire == TRANSCRIPT)
}

/// The field of a chunk's item id: a tool call's `id` is the call's own.
pub(super) const fn id_field(body: &Body) -> &'static str {
    if matches!(body, Body::ToolCall { .. }) { "item_id" } else { "id" }
}

/// JSON that was checked to be JSON a moment ago: [`Json::new`] fails only on depth.
pub(super) fn json(text: &str) -> Option<Json> {
    Json::new(text).ok()
}
