//! Which conversations the last commits moved in the list. A reader of the list passes the place to which one moves, and then
//! no longer finds it where it was: it looks here for those.

use std::collections::VecDeque;

use crate::model::ConversationId;

/// Conversations that are remembered, beside those of the commit under way.
const REMEMBERED: usize = 4096;

/// The conversations that the last commits wrote, in order, each once for every write.
#[derive(Debug, Default)]
pub(super) struct Moves {
    moved: VecDeque<ConversationId>,
    /// How many were forgotten.
    forgotten: u64,
    /// How many had moved before the commit under way.
    settled: u64,
}

impl Moves {
    /// A commit begins, which writes these.
    pub(super) fn begin(&mut self, conversations: impl Iterator<Item = ConversationId>) {
        let excess = self.moved.len().saturating_sub(REMEMBERED);
        self.moved.drain(..excess);
        self.forgotten += excess as u64;
        self.settled = self.total();
        self.moved.extend(conversations);
    }

    /// What the commit wrote is published.
    pub(super) fn end(&mut self) {
        self.settled = self.total();
    }

    /// What moves from now on, or moves just now, is after this mark.
    pub(super) const fn mark(&self) -> u64 {
        self.settled
    }

    /// What has moved since a mark; nothing is known if that is too long ago.
    pub(super) fn since(&self, mark: u64) -> Option<impl Iterator<Item = ConversationId>> {
        let skipped = usize::try_from(mark.checked_sub(self.forgotten)?).ok()?;
        Some(self.moved.iter().skip(skipped).copied())
    }

    fn total(&self) -> u64 {
        self.forgotten + self.moved.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> ConversationId {
        ConversationId::from_bytes((number as u128).to_be_bytes())
    }

    fn since(moves: &Moves, mark: u64) -> Option<Vec<ConversationId>> {
        moves.since(mark).map(Iterator::collect)
    }

    #[test]
    fn what_a_commit_under_way_moves_is_after_each_mark() {
        let mut moves = Moves::default();
        let before = moves.mark();
        moves.begin([id(1), id(2)].into_iter());
        let during = moves.mark();
        moves.end();
        let after = moves.mark();
        moves.begin([id(3)].into_iter());
        assert_eq!([before, during].map(|mark| since(&moves, mark)), [(); 2].map(|()| Some(vec![id(1), id(2), id(3)])));
        assert_eq!(since(&moves, after), Some(vec![id(3)]));
    }

    #[test]
    fn memory_is_bounded_and_what_is_forgotten_is_known_to_be() {
        let mut moves = Moves::default();
        let mark = moves.mark();
        for number in 0..10 {
            moves.begin((0..REMEMBERED).map(|at| id(number * REMEMBERED + at)));
            moves.end();
            assert!(moves.moved.len() <= 2 * REMEMBERED);
        }
        assert_eq!(since(&moves, mark), None);
        assert_eq!(since(&moves, moves.mark()), Some(Vec::new()));
    }
}
