//! Answers that were cut short, and go on in the next message.

use super::group::{MessageState, StoredMessage};
use crate::model::{Body, FinishReason, Role};

/// What is to go on of an answer.
pub(super) enum Rest {
    Text,
    Turn,
}

/// What of an answer is still to come, as it says itself.
pub(super) fn rest(stored: &StoredMessage) -> Option<Rest> {
    let chunks = &stored.message.chunks;
    let has_text = || chunks.iter().any(|chunk| matches!(&chunk.body, Body::Text { text, .. } if !text.is_empty()));
    match &stored.message.finish_reason {
        Some(FinishReason::Length | FinishReason::Interrupted) if has_text() => Some(Rest::Text),
        Some(FinishReason::Other(word)) if word == "pause_turn" => Some(Rest::Turn),
        _ => None,
    }
}

impl StoredMessage {
    /// Whether this message goes on with the answer of the one before it, which was cut short: people read both as one.
    ///
    /// ```
    /// use conversation_store::model::{Chunk, FinishReason, Message};
    /// # use conversation_store::Store;
    /// # let store = Store::open("memory:")?;
    /// let mut half = Message::assistant([Chunk::text("A cold ni")]);
    /// half.finish_reason = Some(FinishReason::Length);
    /// store.append("chat", &[half, Message::assistant([Chunk::text("ght.")])])?;
    /// let messages = store.load_raw("chat")?;
    /// assert!(messages[1].continues(&messages[0]));
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    #[must_use]
    pub fn continues(&self, before: &Self) -> bool {
        let is_answer =
            |stored: &Self| stored.message.role == Role::Assistant && stored.state != MessageState::Synthetic;
        is_answer(self) && is_answer(before) && rest(before).is_some()
    }
}
