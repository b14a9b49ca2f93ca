//! A call that was recorded, as it is now: its answer, and the other answers to the same question.

use super::book::Entry;
use super::fetched::is_queued;
use crate::history::{MessageState, StoredMessage};
use crate::model::{FinishReason, Json, Name};

/// A call that was recorded, as it is now.
pub(super) struct Recorded {
    pub(super) entry: Entry,
    pub(super) name: Name,
    pub(super) next_message: u64,
    pub(super) last_seq: u64,
    pub(super) answer: Option<Answer>,
    /// Whether its end is noted in the book.
    pub(super) has_ended: bool,
}

pub(super) struct Answer {
    pub(super) stored: StoredMessage,
    pub(super) is_open: bool,
    pub(super) is_cut: bool,
    pub(super) is_lost: bool,
}

impl Recorded {
    /// Whether there is no answer that a client takes for one.
    pub(super) fn has_failed(&self) -> bool {
        self.answer.as_ref().is_none_or(|answer| answer.is_cut)
    }

    pub(super) fn runs(&self) -> bool {
        self.answer.as_ref().map_or(!self.has_ended, |answer| answer.is_open)
    }
}

impl Answer {
    pub(super) fn of(stored: StoredMessage) -> Self {
        let is_open = stored.state == MessageState::Streaming;
        let is_lost = stored.state == MessageState::Interrupted;
        let reason = stored.message.finish_reason.as_ref();
        let has_failed = matches!(reason, Some(FinishReason::Interrupted | FinishReason::Error));
        let is_cut = is_open || is_lost || has_failed || is_queued(reason) || is_undelivered(&stored);
        Self { stored, is_open, is_cut, is_lost }
    }

    /// The same, of a call that is being recorded here: what has no end is still written.
    pub(super) fn that_runs(self) -> Self {
        Self { is_open: self.is_open || self.is_lost, is_lost: false, ..self }
    }
}

/// Whether the client was gone before the end of the answer.
fn is_undelivered(stored: &StoredMessage) -> bool {
    stored.message.metadata.extra.get("convo_end").is_some_and(|end: &Json| {
        serde_json::from_str::<serde_json::Value>(end.as_str())
            .is_ok_and(|end| end.get("delivered") == Some(&false.into()))
    })
}

/// Whether an answer has ended, and not as answers do.
pub(super) fn has_failed(stored: &StoredMessage) -> bool {
    let answer = Answer::of(stored.clone());
    answer.is_cut && !answer.is_open
}

/// The calls of the same place: attempts of one another.
pub(super) fn siblings<'r>(recorded: &Recorded, asked: &'r [Recorded]) -> Vec<&'r Recorded> {
    let is_sibling = |other: &&Recorded| {
        other.entry.conversation == recorded.entry.conversation && other.entry.from == recorded.entry.from
    };
    asked.iter().filter(is_sibling).collect()
}

/// Whether nothing follows a call in its conversation but its answer and other attempts.
pub(super) fn is_last(recorded: &Recorded, siblings: &[&Recorded]) -> bool {
    let answers = siblings.iter().filter_map(|sibling| Some(sibling.answer.as_ref()?.stored.index));
    let kept = siblings.iter().flat_map(|sibling| sibling.entry.kept.iter().copied());
    let after = answers.chain(kept).max().map_or(recorded.entry.from, |last| last.saturating_add(1));
    recorded.next_message <= after.max(recorded.entry.from)
}
