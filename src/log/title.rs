//! Titles that messages give.

use crate::history::StoredMessage;
use crate::model::{Body, Message, Role};

/// Characters of a title that is made from the first user text.
const TITLE_CHARS: usize = 80;

/// The title that the first user text gives, and its message.
pub(crate) fn title(messages: &[Message]) -> Option<(u64, String)> {
    (0..).zip(messages).filter(|(_, message)| message.role == Role::User).find_map(|(index, message)| {
        let text = message.chunks.iter().find_map(|chunk| match &chunk.body {
            Body::Text { text, .. } if !text.trim_start().is_empty() => Some(text),
            _ => None,
        });
        Some((index, title_of(text?)))
    })
}

/// The title that stored messages give, and the index of the one that gives it.
pub(crate) fn first_title(messages: &[StoredMessage]) -> Option<(u64, String)> {
    messages.iter().find_map(|stored| {
        let (_, title) = title(std::slice::from_ref(&stored.message))?;
        Some((stored.index, title))
    })
}

/// The first line of a text, shortened.
fn title_of(text: &str) -> String {
    let line = text.trim_start().lines().next().unwrap_or_default().trim_end();
    match line.char_indices().nth(TITLE_CHARS).and_then(|(end, _)| line.get(..end)) {
        Some(start) => format!("{start}…"),
        None => line.to_owned(),
    }
}
