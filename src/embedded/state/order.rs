//! What the order of the list does not show: which conversations moved in it while somebody read it, and which have not
//! moved yet.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use crate::model::ConversationId;
use crate::record::{Head, Lag};

/// From this number of conversations on, those that no reader needs are forgotten.
const REMEMBERED: usize = 4096;
/// The longest time between the place of a conversation and its last activity, in microseconds.
pub(in crate::embedded) const LAG: u64 = 1_000_000;
/// At most this many conversations lag: each page of the list reads all of their heads.
const MOST: usize = 64;

/// The conversations that a reader of the list looks at besides those that it meets.
#[derive(Debug, Default)]
pub(crate) struct ListOrder {
    recent: RecentMoves,
    lagging: Lagging,
}

/// The conversations that moved while somebody read the list, and those of the last commit.
///
/// A conversation moves to the top. A reader that has passed the top does not find it there, and later does not find it at
/// its old place either. So the reader looks here when it has finished.
#[derive(Debug, Default)]
struct RecentMoves {
    /// The number of each conversation's last move.
    moved: HashMap<ConversationId, u64>,
    /// The number of the last move.
    last: u64,
    /// The last move before the commit under way.
    settled: u64,
    /// How many readers began after each move.
    readers: BTreeMap<u64, usize>,
}

/// The conversations whose place is not that of their last activity, as stored or as queued.
///
/// A move in the list takes as long as the rest of a small append. So a conversation that moved less than a second ago stays
/// at its place, and its head states how far that is from its last activity. A page of the list looks at these conversations
/// too.
#[derive(Debug, Default)]
struct Lagging {
    ids: HashSet<ConversationId>,
    /// There is no room for another one before this time.
    full_until: i64,
}

/// The heads of a conversation in use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heads<'a> {
    pub(crate) queued: Option<&'a Arc<Head>>,
    pub(crate) published: Option<&'a Arc<Head>>,
    /// Nothing may be queued for it now.
    pub(crate) frozen: bool,
}

/// Whether one more conversation may lag.
pub(crate) enum MayLag {
    Yes,
    /// This one has to move first, which has this head.
    After(ConversationId, Arc<Head>),
    No,
}

impl ListOrder {
    /// A commit begins, which moves these.
    pub(crate) fn begin_commit(&mut self, conversations: impl Iterator<Item = ConversationId>) {
        self.recent.begin(conversations);
    }

    /// What the commit moved is published.
    pub(crate) fn end_commit(&mut self) {
        self.recent.end();
    }

    /// A reader of the list begins. Returns its mark.
    pub(crate) fn begin_reading(&mut self) -> u64 {
        self.recent.begin_reading()
    }

    /// The reader with this mark has finished. Returns the conversations that it may have missed.
    pub(crate) fn end_reading(&mut self, mark: u64) -> BTreeSet<ConversationId> {
        let mut missed: BTreeSet<_> = self.recent.end_reading(mark).into_iter().collect();
        missed.extend(&self.lagging.ids);
        missed
    }

    /// Whether the engine may have a place or a head of this conversation that readers must not see: it lags, or a commit that
    /// is under way or failed moves it.
    pub(crate) fn needs(&self, id: ConversationId) -> bool {
        self.lagging.ids.contains(&id) || self.recent.is_unsettled(id)
    }

    /// Whether a conversation lags.
    pub(crate) fn lags(&self, id: ConversationId) -> bool {
        self.lagging.ids.contains(&id)
    }

    /// These lag from now on.
    pub(crate) fn let_lag(&mut self, ids: impl IntoIterator<Item = ConversationId>) {
        self.lagging.ids.extend(ids);
    }

    /// Whether one more conversation may lag at this time. `heads`: those of a conversation in use.
    pub(crate) fn may_lag<'a>(&mut self, now: i64, heads: impl Fn(ConversationId) -> Option<Heads<'a>>) -> MayLag {
        self.lagging.may_lag(now, heads)
    }

    /// A head of the conversation was published.
    pub(crate) fn publish(&mut self, id: ConversationId, heads: Heads<'_>) {
        if !self.lagging.ids.is_empty() && !any_lags(heads) {
            self.lagging.ids.remove(&id);
        }
    }
}

impl RecentMoves {
    /// A commit begins, which moves these.
    fn begin(&mut self, conversations: impl Iterator<Item = ConversationId>) {
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
    fn end(&mut self) {
        self.settled = self.last;
    }

    /// Whether the commit under way, or the one that failed, moves a conversation.
    fn is_unsettled(&self, conversation: ConversationId) -> bool {
        self.moved.get(&conversation).is_some_and(|number| *number > self.settled)
    }

    /// A reader begins. Returns its mark: all that moves from now on, or in the commit under way, is after it.
    fn begin_reading(&mut self) -> u64 {
        *self.readers.entry(self.settled).or_default() += 1;
        self.settled
    }

    /// The reader with this mark has finished. Returns the conversations that moved since it began.
    fn end_reading(&mut self, mark: u64) -> Vec<ConversationId> {
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

impl Lagging {
    /// Whether one more conversation may lag at this time. `heads`: those of a conversation in use.
    fn may_lag<'a>(&mut self, now: i64, heads: impl Fn(ConversationId) -> Option<Heads<'a>>) -> MayLag {
        if self.ids.len() < MOST {
            return MayLag::Yes;
        }
        if now < self.full_until {
            return MayLag::No;
        }
        self.ids.retain(|id| heads(*id).is_some_and(any_lags));
        let mut oldest = now;
        for id in &self.ids {
            let heads = heads(*id).filter(|heads| !heads.frozen);
            let Some(head) = heads.and_then(|heads| heads.queued).filter(|head| is_lagging(head)) else { continue };
            let listed = head.listed();
            if now.abs_diff(listed) >= LAG {
                return MayLag::After(*id, Arc::clone(head));
            }
            oldest = oldest.min(listed);
        }
        if self.ids.len() < MOST {
            return MayLag::Yes;
        }
        self.full_until = oldest.saturating_add_unsigned(LAG);
        MayLag::No
    }
}

/// How far a conversation lags that does not move at this time, if that is not too far. `before`: its queued head.
pub(crate) fn lag(before: &Head, now: i64) -> Option<Lag> {
    Some(now.abs_diff(before.listed())).filter(|lag| (1..LAG).contains(lag)).map(Lag)
}

/// The head of a conversation that lags, once it has moved to the place of its last activity.
pub(crate) fn without_lag(head: &Arc<Head>) -> Option<Head> {
    is_lagging(head).then(|| Head { lag: Lag::default(), ..Head::clone(head) })
}

fn is_lagging(head: &Arc<Head>) -> bool {
    head.lag != Lag::default()
}

fn any_lags(heads: Heads<'_>) -> bool {
    [heads.queued, heads.published].into_iter().flatten().any(is_lagging)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> ConversationId {
        ConversationId::from_bytes((number as u128).to_be_bytes())
    }

    fn end(moves: &mut RecentMoves, mark: u64) -> Vec<ConversationId> {
        let mut moved = moves.end_reading(mark);
        moved.sort_unstable();
        moved
    }

    #[test]
    fn what_a_commit_under_way_moves_is_after_each_mark() {
        let mut moves = RecentMoves::default();
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
        let mut moves = RecentMoves::default();
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
