//! Whose records were redacted, and when: what forks read of them has changed.

use std::collections::HashMap;

use crate::model::ConversationId;

/// Conversations that are remembered individually.
const REMEMBERED: usize = 10_000;

/// The last redactions since the store was opened.
#[derive(Debug, Default)]
pub(crate) struct Redactions {
    /// Redactions up to this commit are not remembered: a reader from before it may have read anything.
    forgotten: u64,
    /// The last commit that redacted something, in any log.
    latest: u64,
    /// The last commit that redacted something in the log of a conversation.
    by_owner: HashMap<ConversationId, u64>,
}

impl Redactions {
    /// Those after this commit.
    pub(crate) fn after(commit: u64) -> Self {
        Self { forgotten: commit, latest: commit, by_owner: HashMap::new() }
    }

    /// The last commit that redacted something.
    pub(crate) const fn latest(&self) -> u64 {
        self.latest
    }

    /// Notes that a commit redacted something in a conversation's log.
    pub(crate) fn note(&mut self, conversation: ConversationId, commit: u64) {
        if self.by_owner.len() >= REMEMBERED && !self.by_owner.contains_key(&conversation) {
            (self.forgotten, self.by_owner) = (self.latest, HashMap::new());
        }
        self.latest = self.latest.max(commit);
        self.by_owner.insert(conversation, commit);
    }

    /// Whether a later commit may have redacted something in one of these logs.
    pub(crate) fn concern(&self, commit: u64, mut logs: impl Iterator<Item = ConversationId>) -> bool {
        commit < self.forgotten || logs.any(|log| self.by_owner.get(&log).is_some_and(|last| *last > commit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> ConversationId {
        ConversationId::from_bytes((number as u128).to_be_bytes())
    }

    #[test]
    fn a_redaction_concerns_who_read_its_log_before_it() {
        let mut redactions = Redactions::after(7);
        redactions.note(id(1), 9);
        let concern = |commit, log| redactions.concern(commit, std::iter::once(id(log)));
        assert_eq!([8, 9, 10].map(|commit| concern(commit, 1)), [true, false, false]);
        assert!(!concern(8, 2));
        // Redactions before the store was opened are not known.
        assert_eq!([6, 7].map(|commit| concern(commit, 2)), [true, false]);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_forgetting_misses_nothing() {
        let mut redactions = Redactions::default();
        for number in 1..=3 * REMEMBERED {
            redactions.note(id(number), number as u64);
            assert!(redactions.by_owner.len() <= REMEMBERED);
            assert!(redactions.concern(number as u64 - 1, std::iter::once(id(number))));
        }
        for number in 1..=3 * REMEMBERED {
            assert!(redactions.concern(number as u64 - 1, std::iter::once(id(number))), "{number}");
        }
    }
}
