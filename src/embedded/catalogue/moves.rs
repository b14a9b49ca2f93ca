//! Which conversations moved in the list while somebody read it.
//!
//! A conversation moves to the top. A reader that has passed the top does not find it there, and later does not find it at
//! its old place either. So the reader looks here when it has finished.

use std::collections::{BTreeMap, HashMap};

use crate::model::ConversationId;

/// From this number of conversations on, those that no reader needs are forgotten.
const REMEMBERED: usize = 4096;

/// The conversations that moved while somebody read the list, and those of the last commit.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    /// The number of each conversation's last move.
    moved: HashMap<ConversationId, u64>,
    /// The number of the last move.
    last: u64,
    /// The last move before the commit under way.
    settled: u64,
    /// How many readers began after each move.
    readers: BTreeMap<u64, usize>,
}

impl Moves {
    /// A commit begins, which moves these.
    pub(crate) fn begin(&mut self, conversations: impl Iterator<Item = ConversationId>) {
        self.settled = self.last;
        if self.readers.is_empty() {
            self.moved.clear();
        }
        for conversation in conversations {
            self.last += 1;
            self.moved.insert(conversation, self.last);
        }
    }

    /// What the commit moved is published.
    pub(crate) fn end(&mut self) {
        self.settled = self.last;
    }

    /// Whether the commit under way, or the one that failed, moves a conversation.
    pub(crate) fn is_unsettled(&self, conversation: ConversationId) -> bool {
        self.moved.get(&conversation).is_some_and(|number| *number > self.settled)
    }

    /// A reader begins. Returns its mark: all that moves from now on, or in the commit under way, is after it.
    pub(crate) fn begin_reading(&mut self) -> u64 {
        *self.readers.entry(self.settled).or_default() += 1;
        self.settled
    }

    /// The reader with this mark has finished. Returns the conversations that moved since it began.
    pub(crate) fn end_reading(&mut self, mark: u64) -> Vec<ConversationId> {
        let moved = self.moved.iter().filter(|(_, number)| **number > mark).map(|(id, _)| *id).collect();
        if let Some(count) = self.readers.get_mut(&mark) {
            *count -= 1;
            if *count == 0 {
                self.readers.remove(&mark);
            }
        }
        if self.moved.len() > REMEMBERED {
            let oldest = self.readers.keys().next().map_or(self.settled, |oldest| *oldest.min(&self.settled));
            self.moved.retain(|_, number| *number > oldest);
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> ConversationId {
        ConversationId::from_bytes((number as u128).to_be_bytes())
    }

    fn end(moves: &mut Moves, mark: u64) -> Vec<ConversationId> {
        let mut moved = moves.end_reading(mark);
        moved.sort_unstable();
        moved
    }

    #[test]
    fn what_a_commit_under_way_moves_is_after_each_mark() {
        let mut moves = Moves::default();
        let before = moves.begin_reading();
        moves.begin([id(1), id(2)].into_iter());
        let during = moves.begin_reading();
        moves.end();
        let after = moves.begin_reading();
        moves.begin([id(3), id(1)].into_iter());
        assert_eq!([before, during].map(|mark| end(&mut moves, mark)), [(); 2].map(|()| vec![id(1), id(2), id(3)]));
        assert_eq!(end(&mut moves, after), [id(1), id(3)]);
    }

    #[test]
    fn nothing_is_missed_however_much_moves_and_what_nobody_asks_for_is_forgotten() {
        let mut moves = Moves::default();
        let first = moves.begin_reading();
        let mut second = moves.begin_reading();
        for number in 0..10 {
            moves.begin((0..REMEMBERED).map(|at| id(number * REMEMBERED + at)));
            moves.end();
            moves.end_reading(second);
            second = moves.begin_reading();
        }
        assert_eq!(end(&mut moves, first).len(), 10 * REMEMBERED);
        assert!(moves.moved.is_empty());
        assert_eq!(end(&mut moves, second), []);
        // Without readers only the last commit is remembered.
        (0..10).for_each(|number| moves.begin((0..100).map(|at| id(number * 100 + at))));
        assert_eq!((moves.moved.len(), moves.readers.len()), (100, 0));
    }
}
