//! Titles that messages give: the first line of the first text of a user's message that was appended whole.

use crate::model::{Body, Message, Role};
use crate::record::{self, REDACTED};

/// Characters of a title that is made from the first user text.
const TITLE_CHARS: usize = 80;

/// The title that the first user text gives, and its message.
pub(crate) fn title(messages: &[Message]) -> Option<(u64, String)> {
    (0..).zip(messages).filter(|(_, message)| message.role == Role::User).find_map(|(index, message)| {
        let text = message.chunks.iter().find_map(|chunk| match &chunk.body {
            Body::Text { text, .. } if !is_blank(text) => Some(text),
            _ => None,
        });
        Some((index, title_of(text?)))
    })
}

/// The title that a stored chunk gives. Those of streamed messages give none, as their first words are seldom a line.
pub(crate) fn title_of_chunk(line: &record::ChunkLine<'_>) -> Option<String> {
    let is_users = record::role(line.role).is_ok_and(|role| role == Role::User);
    line.text().filter(|text| is_users && !is_blank(text)).map(title_of)
}

/// Whether a title is what a redaction leaves.
pub(crate) fn is_redacted(title: &str) -> bool {
    title == REDACTED
}

fn is_blank(text: &str) -> bool {
    text.trim_start().is_empty()
}

/// The first line of a text, shortened.
fn title_of(text: &str) -> String {
    let line = text.trim_start().lines().next().unwrap_or_default().trim_end();
    match line.char_indices().nth(TITLE_CHARS).and_then(|(end, _)| line.get(..end)) {
        Some(start) => format!("{start}…"),
        None => line.to_owned(),
    }
}
