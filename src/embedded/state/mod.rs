//! What the log's one lock protects: [`State`], of parts that guard their own fields.
//!
//! The other rooms change it, under the lock that `commit` owns; nothing here knows them. No I/O happens here.

mod order;
mod queue;
mod redactions;
mod slots;
mod writer;

use std::sync::Arc;

use self::order::{ListOrder, MayLag, without_lag};
use self::queue::Queue;
use self::redactions::Redactions;
use self::slots::Slots;
use self::writer::Collecting;
use crate::error::{Error, Result};
use crate::log::followers::Followers;
use crate::model::ConversationId;
use crate::record::{Commit, Head, Lag};

pub(in crate::embedded) use order::LAG as LONGEST_LAG;
pub(crate) use queue::{Pending, Room, Signal, Unsealed, Waiter};
pub(crate) use slots::Existence;
pub(crate) use writer::Writer;

/// Everything that the log's one lock protects, in parts that guard their own fields; here is what concerns several of
/// them. No I/O happens while it is held.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) queue: Queue,
    pub(crate) slots: Slots,
    pub(crate) order: ListOrder,
    pub(crate) collecting: Collecting,
    pub(crate) life: Life,
    /// What was redacted since the store was opened.
    pub(crate) redactions: Redactions,
    /// Who is woken when something is published.
    pub(crate) followers: Followers,
    /// The last commit that is published.
    commit: Commit,
    /// How many conversations were created since the store was opened.
    created: u64,
    /// How many wait for something to be published.
    pub(crate) tailing: usize,
    /// How many wait for room in the queue, or for a conversation that is frozen.
    pub(crate) waiting: usize,
}

/// Whether the store takes writes, and why not.
#[derive(Debug, Default)]
pub(crate) struct Life {
    phase: Phase,
    /// Why writing has ended: a commit failed.
    poisoned: Option<String>,
    /// Why the store was opened read-only.
    blocked: Option<Blocked>,
}

/// The phase of a store's life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It accepts writes.
    #[default]
    Open,
    /// It accepts no more writes; those that it accepted are being made durable.
    Closing,
    /// Nothing happens any more.
    Closed,
}

/// Why a store was opened read-only.
#[derive(Debug)]
pub(crate) enum Blocked {
    /// The caller wants it so.
    ReadOnly,
    /// The disk was full.
    DiskFull,
    /// Acknowledged data is missing: the newest commit that is there, and the newest that was acknowledged.
    WentBack { from: u64, to: u64 },
    /// What belongs to the store as a whole is damaged: nobody can know whether anything is missing.
    Damaged(String),
}

impl Blocked {
    fn error(&self) -> Error {
        match self {
            Self::ReadOnly => Error::ReadOnly,
            Self::DiskFull => Error::Io {
                action: "the disk was full when the store was opened: make room, then open it again to write"
                    .to_owned(),
                source: std::io::ErrorKind::StorageFull.into(),
            },
            Self::WentBack { from, to } => Error::WentBack { from: *from, to: *to },
            Self::Damaged(detail) => Error::Corrupt { conversation: None, seq: None, detail: detail.clone() },
        }
    }
}

impl Life {
    /// Fails if a write failed.
    pub(crate) fn check_sound(&self) -> Result<()> {
        self.poisoned().map_or(Ok(()), |cause| Err(Error::Poisoned { cause: cause.clone() }))
    }

    /// Fails if no more writes are accepted.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.check_sound()?;
        if !self.is_open() {
            return Err(Error::Closed);
        }
        self.blocked.as_ref().map_or(Ok(()), |blocked| Err(blocked.error()))
    }

    pub(crate) fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// Why writing has ended, if a commit failed.
    pub(crate) const fn poisoned(&self) -> Option<&String> {
        self.poisoned.as_ref()
    }

    /// Why the store was opened read-only, if it was.
    pub(crate) const fn blocked(&self) -> Option<&Blocked> {
        self.blocked.as_ref()
    }

    pub(crate) fn enter(&mut self, phase: Phase) {
        self.phase = phase;
    }
}

impl State {
    /// The state of a store that was opened after this commit.
    pub(crate) fn after(commit: Commit, blocked: Option<Blocked>) -> Self {
        let life = Life { blocked, ..Life::default() };
        Self { commit, life, redactions: Redactions::after(commit.number), ..Self::default() }
    }

    /// The last commit that is published.
    pub(crate) const fn last_commit(&self) -> Commit {
        self.commit
    }

    /// The last commit that readers see: any, if its number may be damaged.
    pub(crate) fn readable_through(&self) -> u64 {
        if self.life.blocked.is_some() { u64::MAX } else { self.commit.number }
    }

    /// The last commit is this one. For opening only: nobody else writes.
    pub(crate) fn set_last_commit(&mut self, commit: Commit) {
        self.commit = commit;
    }

    /// Counts a conversation that is created now; returns how many were since the store was opened.
    pub(crate) fn count_created(&mut self) -> u64 {
        self.created += 1;
        self.created
    }

    /// Drops the slots that nobody needs, if there are more than `limit`.
    pub(crate) fn evict(&mut self, limit: usize) {
        let Self { slots, order, .. } = self;
        slots.evict(limit, |id| order.needs(id));
    }

    /// Whether the deltas that a writer collected may be queued now.
    pub(crate) fn may_queue(&mut self, writer: &Writer, room: Room) -> bool {
        let is_full = room == Room::Bounded && self.queue.hold_back();
        let is_frozen = self.slots.hold_back(writer.name().id());
        !is_full && !is_frozen
    }

    /// Puts a write into the queue; its conversation's queued head becomes the write's.
    pub(crate) fn push(&mut self, mut pending: Pending) {
        if let Some((id, head)) = &pending.head {
            pending.before = self.slots.queue(*id, head.clone());
        }
        self.queue.push(pending);
    }

    /// How far the place of a conversation in the list will be from its activity at this time. `before`: its queued head.
    pub(crate) fn lag(&mut self, id: ConversationId, before: &Head, now: i64) -> Lag {
        let Some(lag) = order::lag(before, now) else { return Lag::default() };
        if !self.order.lags(id) {
            let Self { slots, order, .. } = self;
            match order.may_lag(now, |id| slots.heads(id)) {
                MayLag::Yes => {}
                MayLag::After(due, head) => self.end_lag(due, &head),
                MayLag::No => return Lag::default(),
            }
            self.order.let_lag([id]);
        }
        lag
    }

    /// Queues the move of a conversation that lags to the place of its last activity.
    pub(crate) fn end_lag(&mut self, id: ConversationId, head: &Arc<Head>) {
        if let Some(head) = without_lag(head) {
            self.push(Pending { head: Some((id, Some(Arc::new(head)))), ..Pending::default() });
        }
    }

    /// Takes the next batch from the queue; from now on its commit is under way.
    pub(crate) fn begin_commit(&mut self) -> Vec<Pending> {
        let batch = self.queue.take();
        self.order.begin_commit(batch.iter().filter_map(|pending| pending.head.as_ref().map(|(id, _)| *id)));
        batch
    }

    /// Shows a batch to readers that this commit made durable.
    pub(crate) fn publish(&mut self, commit: Commit, batch: &mut [Pending]) {
        self.order.end_commit();
        self.commit = commit;
        for pending in batch {
            for owner in pending.redacts.drain(..) {
                self.redactions.note(owner, commit.number);
            }
            let Some((id, head)) = pending.head.take() else { continue };
            self.followers.notify(id);
            self.slots.publish(id, head, pending.receipt.as_ref(), pending.finishes);
            if let Some(heads) = self.slots.heads(id) {
                self.order.publish(id, heads);
            }
        }
    }

    /// Ends writing after a failed commit. Its writes and the queued ones are void: returns the writes, so that the
    /// threads that wait get the error.
    pub(crate) fn fail(&mut self, mut batch: Vec<Pending>, cause: String) -> Vec<Pending> {
        self.life.poisoned = Some(cause);
        batch.extend(self.queue.void());
        self.collecting.clear();
        for (id, _) in batch.iter_mut().filter_map(|pending| pending.head.take()) {
            self.slots.fail(id);
        }
        batch
    }

    /// How many threads wait for room or a frozen conversation, and how many for something to be published.
    #[cfg(test)]
    pub(crate) const fn waiters(&self) -> (usize, usize) {
        (self.waiting, self.tailing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: ConversationId = ConversationId::from_bytes([7; 16]);

    /// Whether a slot stays where there are too many, after something happened.
    fn stays(change: impl FnOnce(&mut State)) -> bool {
        let mut state = State::default();
        state.slots.load(ID, None, false);
        change(&mut state);
        state.evict(0);
        state.slots.get(ID).is_some()
    }

    #[test]
    fn a_slot_stays_while_the_engine_may_have_what_readers_must_not_see() {
        let write = || Pending { head: Some((ID, None)), ..Pending::default() };
        assert!(!stays(|_| ()));
        assert!(stays(|state| state.order.let_lag([ID])));
        assert!(stays(|state| {
            state.push(write());
            let batch = state.begin_commit();
            state.fail(batch, "the disk is gone".to_owned());
        }));
        assert!(!stays(|state| {
            state.push(write());
            let mut batch = state.begin_commit();
            state.publish(Commit::default(), &mut batch);
        }));
    }
}
