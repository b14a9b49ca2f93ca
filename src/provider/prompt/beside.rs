//! What stood beside the content of an answer, and was kept as a chunk because it came at the end: no part of what was said.

use std::borrow::Cow;

use crate::history::StoredMessage;
use crate::model::{Body, Chunk};

/// The kinds of such chunks. Which stop sequence ended an answer, and in which container its code ran, Anthropic tells at its
/// end; what begins so stood beside the message of a chat's answer.
const KINDS: &[&str] = &["stop_sequence", "stop_details", "container"];
const BEGINNINGS: &[&str] = &["choice.", "response."];

/// The messages without it. No prompt holds it, and no report speaks of it.
pub(crate) fn without(messages: Cow<'_, [StoredMessage]>) -> Cow<'_, [StoredMessage]> {
    if !messages.iter().any(|stored| stored.message.chunks.iter().any(is_beside)) {
        return messages;
    }
    let content = |stored: &StoredMessage| {
        stored.select(|at| stored.message.chunks.get(at).is_some_and(|chunk| !is_beside(chunk)))
    };
    Cow::Owned(messages.iter().map(content).collect())
}

fn is_beside(chunk: &Chunk) -> bool {
    let Body::Opaque { kind, .. } = &chunk.body else { return false };
    KINDS.contains(&kind.as_str()) || BEGINNINGS.iter().any(|begins| kind.starts_with(begins))
}
