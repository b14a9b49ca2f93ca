//! The queue of writes, and the threads that wait for theirs: one of them leads, and commits for all.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use crate::embedded::sync::{self, Thread};
use crate::model::ConversationId;
use crate::record::{Body, Head, Header};

/// At most this many writes in one commit, except for those that are due.
const COMMIT_WRITES: usize = 256;
/// At most this many bytes in one commit, unless a single write has more; writes that are due are not counted.
const COMMIT_BYTES: usize = 128 * 1024;
/// A commit of this many writes waits for no more: their own work then takes longer than the disk.
const COMPANY: usize = 16;
/// Bytes that may wait in the queue before a buffered append blocks.
const QUEUE_BYTES: usize = 4 * 1024 * 1024;
/// Writes that may wait in the queue before a buffered append blocks.
const QUEUE_WRITES: usize = 16 * 1024;
/// At most this many bytes of due writes in one commit, unless a single one has more: all that may be buffered, and as
/// much of durable writes.
const DUE_BYTES: usize = 2 * QUEUE_BYTES;
/// The longest time that a commit waits for more writers; never more than a quarter of the commit before it.
const PATIENCE: Duration = Duration::from_micros(200);

/// A record that is not encoded yet: that happens without the lock.
#[derive(Debug)]
pub(crate) struct Unsealed {
    pub(crate) conversation: ConversationId,
    pub(crate) first_seq: u64,
    pub(crate) header: Header,
    pub(crate) body: Body,
}

/// A write in the queue.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    pub(crate) record: Option<Unsealed>,
    pub(crate) ops: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    pub(crate) bytes: usize,
    /// Whether the ops may replace or remove large values.
    pub(crate) rewrites: bool,
    /// The conversation, and its head after this write (absent: it is deleted).
    pub(crate) head: Option<(ConversationId, Option<Arc<Head>>)>,
    /// The head before this write: set when it is queued.
    pub(crate) before: Option<Arc<Head>>,
    /// The idempotency key's digest, if there is one.
    pub(crate) receipt: Option<[u8; 16]>,
    /// The conversations in whose logs this write redacts something.
    pub(crate) redacts: Vec<ConversationId>,
    /// The message that this write finishes.
    pub(crate) finishes: Option<u64>,
    /// The thread that waits for it to be durable: set when it is queued.
    pub(crate) waiter: Option<Arc<Waiter>>,
}

/// Whether deltas wait when the queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Bounded,
    /// The writer is gone, or the store closes: there is little left, and nothing follows it.
    Unbounded,
}

/// The writes that wait for a commit, and who leads it.
#[derive(Debug)]
pub(crate) struct Queue {
    pending: VecDeque<Pending>,
    bytes: usize,
    /// Bytes that may wait before a buffered append blocks.
    capacity: usize,
    /// How many writes at the front have waited for a window: the next commit takes them all.
    due: usize,
    /// Deltas wait for room.
    held_back: bool,
    /// A thread leads a commit, or was woken to lead one.
    led: bool,
    /// How many waited during or since the last commit: they are likely to write again.
    crowd: usize,
    /// How long the next commit waits for them.
    patience: Duration,
    /// The leader waits for them now.
    gathers: bool,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            pending: VecDeque::new(),
            bytes: 0,
            capacity: QUEUE_BYTES,
            due: 0,
            held_back: false,
            led: false,
            crowd: 0,
            patience: Duration::ZERO,
            gathers: false,
        }
    }
}

impl Queue {
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Whether nothing is queued, and nothing is being committed.
    pub(crate) fn is_idle(&self) -> bool {
        self.pending.is_empty() && !self.led
    }

    /// Whether a buffered write must wait.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes > self.capacity || self.pending.len() > QUEUE_WRITES
    }

    /// As [`Queue::is_full`]; if so, deltas wait for room from now on.
    pub(crate) fn hold_back(&mut self) -> bool {
        let is_full = self.is_full();
        self.held_back |= is_full;
        is_full
    }

    /// True if there is room again for deltas that waited: they wait no more.
    pub(crate) fn release_held_back(&mut self) -> bool {
        let released = self.held_back && !self.is_full();
        self.held_back &= !released;
        released
    }

    pub(crate) fn push(&mut self, pending: Pending) {
        self.bytes += pending.bytes;
        self.pending.push_back(pending);
    }

    /// Takes the next batch: what is due, otherwise as much as a commit takes; at least one write.
    pub(crate) fn take(&mut self) -> Vec<Pending> {
        let (mut batch, mut size) = (Vec::new(), 0);
        while let Some(pending) = self.pending.front() {
            size += pending.bytes;
            let is_due = batch.len() < self.due;
            let fits = if is_due { size <= DUE_BYTES } else { size <= COMMIT_BYTES && batch.len() < COMMIT_WRITES };
            if !batch.is_empty() && !fits {
                break;
            }
            batch.extend(self.pending.pop_front());
        }
        self.due = self.due.saturating_sub(batch.len());
        self.bytes -= batch.iter().map(|pending| pending.bytes).sum::<usize>();
        batch
    }

    /// Takes everything: none of it will be committed.
    pub(crate) fn void(&mut self) -> impl Iterator<Item = Pending> {
        (self.bytes, self.due, self.held_back) = (0, 0, false);
        self.pending.drain(..)
    }

    /// All that is queued is due. True: the caller leads from now on, and must commit it.
    pub(crate) fn lead_due(&mut self) -> bool {
        self.due = self.pending.len();
        self.due > 0 && self.lead()
    }

    /// Whether writes are due that the last commit did not take.
    pub(crate) const fn is_late(&self) -> bool {
        self.due > 0
    }

    /// True: nobody led, and the caller leads from now on.
    pub(crate) fn lead(&mut self) -> bool {
        !std::mem::replace(&mut self.led, true)
    }

    /// The leader stops. Returns who leads next: the first thread that waits for a queued write.
    pub(crate) fn hand_over(&mut self) -> Option<Arc<Waiter>> {
        let next = self.pending.iter().find_map(|pending| pending.waiter.clone());
        self.led = next.is_some();
        next
    }

    /// Whether the next commit has everything that it may wait for, or as much as it takes.
    pub(crate) fn is_gathered(&self) -> bool {
        self.pending.len() >= self.crowd.min(COMPANY) || self.bytes >= COMMIT_BYTES
    }

    /// Whether the leader waits, and need not wait any more.
    pub(crate) fn is_awaited(&self) -> bool {
        self.gathers && self.is_gathered()
    }

    /// How long the leader waits for others, if it should. From now on it waits.
    pub(crate) fn begin_gathering(&mut self) -> Option<Duration> {
        self.gathers = !self.is_gathered();
        self.gathers.then_some(self.patience)
    }

    pub(crate) fn end_gathering(&mut self) {
        self.gathers = false;
    }

    /// Notes how many threads wait now, after a commit of this batch that took so long.
    pub(crate) fn note_crowd(&mut self, batch: &[Pending], taken: Duration) {
        self.crowd = batch.iter().chain(&self.pending).filter(|pending| pending.waiter.is_some()).count();
        self.patience = (taken / 4).min(PATIENCE);
    }

    #[cfg(test)]
    pub(crate) fn set_capacity(&mut self, bytes: usize) {
        self.capacity = bytes;
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

const WAITING: u8 = 0;
const LEADER: u8 = 1;
const DONE: u8 = 2;
const UNKNOWN: u8 = 3;
const FAILED: u8 = 4;

/// A thread that waits for its write.
#[derive(Debug)]
pub(crate) struct Waiter {
    state: AtomicU8,
    thread: Thread,
}

/// What a waiting thread is woken with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    Lead,
    Done,
    /// The commit with its write failed.
    Unknown,
    /// An earlier commit failed: its write was not begun.
    Failed,
}

impl Waiter {
    /// For the thread that calls.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { state: AtomicU8::new(WAITING), thread: sync::current() })
    }

    pub(crate) fn tell(&self, signal: Signal) {
        let state = match signal {
            Signal::Lead => LEADER,
            Signal::Done => DONE,
            Signal::Unknown => UNKNOWN,
            Signal::Failed => FAILED,
        };
        self.state.store(state, Ordering::Release);
        self.thread.unpark();
    }

    /// The last signal.
    pub(crate) fn signal(&self) -> Option<Signal> {
        match self.state.load(Ordering::Acquire) {
            LEADER => Some(Signal::Lead),
            DONE => Some(Signal::Done),
            UNKNOWN => Some(Signal::Unknown),
            FAILED => Some(Signal::Failed),
            _ => None,
        }
    }

    /// Blocks until there is a signal.
    pub(crate) fn wait(&self) -> Signal {
        loop {
            match self.signal() {
                Some(signal) => return signal,
                None => sync::park(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(writes: usize, bytes: usize) -> Queue {
        let mut queue = Queue::default();
        (0..writes).for_each(|_| queue.push(Pending { bytes, ..Pending::default() }));
        queue
    }

    #[test]
    fn a_commit_takes_what_is_due_whole_and_else_as_much_as_it_may() {
        let mut writes = queue(COMMIT_WRITES + 9, 1);
        assert_eq!([(); 3].map(|()| writes.take().len()), [COMMIT_WRITES, 9, 0]);
        let mut large = queue(2, COMMIT_BYTES + 1);
        assert_eq!([(); 3].map(|()| large.take().len()), [1, 1, 0]);
        let mut due = queue(COMMIT_WRITES + 9, 1);
        assert!(due.lead_due() && !due.lead_due());
        due.push(Pending::default());
        assert_eq!(due.take().len(), COMMIT_WRITES + 9);
        assert_eq!((due.is_late(), due.take().len(), due.bytes()), (false, 1, 0));
    }

    #[test]
    fn deltas_that_wait_for_room_are_told_of_it_once() {
        let mut queue = queue(1, 11);
        queue.set_capacity(10);
        assert!(queue.hold_back() && !queue.release_held_back());
        queue.take();
        assert!(queue.release_held_back() && !queue.release_held_back());
    }

    #[test]
    fn the_first_who_waits_leads_next() {
        let mut queue = queue(1, 1);
        let waiters = [(); 2].map(|()| Waiter::new());
        for waiter in &waiters {
            queue.push(Pending { waiter: Some(Arc::clone(waiter)), ..Pending::default() });
        }
        assert!(queue.lead() && !queue.lead());
        assert!(queue.hand_over().is_some_and(|next| Arc::ptr_eq(&next, &waiters[0])));
        assert!(!queue.lead());
        queue.take();
        assert!(queue.hand_over().is_none() && queue.lead());
    }
}
