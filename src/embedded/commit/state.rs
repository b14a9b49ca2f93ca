//! What the log keeps in memory: the queue, and the heads of the conversations in use.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use crate::embedded::appending::writer::Writer;
use crate::embedded::catalogue::deferred::{self, Heads, Lagging};
use crate::embedded::catalogue::moves::Moves;
use crate::embedded::families::redactions::Redactions;
use crate::embedded::sync::{self, Thread};
use crate::error::{Error, Result};
use crate::log::followers::Followers;
use crate::model::{ConversationId, Name};
use crate::record::{self, Commit, Head, Lag};

/// Everything that the log's one lock protects. No I/O happens while it is held.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) queue: VecDeque<Pending>,
    pub(crate) queued_bytes: usize,
    pub(crate) capacity: Capacity,
    /// How many writes at the front of the queue have waited for a window: the next commit takes them all.
    pub(crate) due: usize,
    /// Writers with deltas that are not queued yet, in the order in which they began to collect.
    pub(crate) collecting: BTreeMap<u64, Arc<Writer>>,
    /// How often a writer began to collect.
    pub(crate) collected: u64,
    /// Deltas wait for room.
    pub(crate) held_back: bool,
    /// A thread leads a commit, or was woken to lead one.
    pub(crate) led: bool,
    /// How many waited during or since the last commit: they are likely to write again.
    pub(crate) crowd: usize,
    /// How long the next commit waits for them.
    pub(crate) patience: Duration,
    /// The leader waits for them now.
    pub(crate) gathers: bool,
    pub(crate) slots: HashMap<ConversationId, Slot>,
    /// How often slots were dropped, or names became free: a head that was read before such an event cannot be trusted
    /// after it.
    pub(crate) generation: u64,
    /// How many slots were loaded.
    pub(crate) loaded: u64,
    pub(crate) poisoned: Option<String>,
    /// Why the store was opened read-only.
    pub(crate) blocked: Option<Blocked>,
    pub(crate) phase: Phase,
    /// The last commit that is published.
    pub(crate) commit: Commit,
    /// What was redacted since the store was opened.
    pub(crate) redactions: Redactions,
    /// Which conversations the last commits moved in the list.
    pub(crate) moves: Moves,
    /// Which conversations are not at their places in the list.
    pub(crate) lagging: Lagging,
    /// How many conversations were created since the store was opened.
    pub(crate) made: u64,
    /// Who is woken when something is published.
    pub(crate) followers: Followers,
    /// How many wait for something to be published.
    pub(crate) tailing: usize,
    /// How many wait for room in the queue, or for a conversation that is frozen.
    pub(crate) waiting: usize,
}

/// Bytes that may wait in the queue before a buffered append blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacity(pub(crate) usize);

impl Default for Capacity {
    fn default() -> Self {
        Self(QUEUE_BYTES)
    }
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

/// Whether deltas wait when the queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Bounded,
    /// The writer is gone, or the store closes: there is little left, and nothing follows it.
    Unbounded,
}

/// At most this many writes in one commit, except for those that are due.
const COMMIT_WRITES: usize = 256;
/// At most this many bytes in one commit, unless a single write has more; writes that are due are not counted.
const COMMIT_BYTES: usize = 128 * 1024;
/// A commit of this many writes waits for no more: their own work then takes longer than the disk.
const COMPANY: usize = 16;
const QUEUE_BYTES: usize = 4 * 1024 * 1024;
/// Writes that may wait in the queue before a buffered append blocks.
const QUEUE_WRITES: usize = 16 * 1024;
/// At most this many bytes of due writes in one commit, unless a single one has more: all that may be buffered, and as
/// much of durable writes.
const DUE_BYTES: usize = 2 * QUEUE_BYTES;

/// The problem of a store that has no watermark.
pub(crate) const UNMARKED: &str = "its file `watermark` is damaged or missing: nobody can know whether \
                                   acknowledged data was lost; `verify --accept-loss` goes on with what is there";

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
    pub(crate) fn error(&self) -> Error {
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

/// A conversation in use.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    /// The head with everything that is queued; absent if there is no such conversation.
    pub(crate) queued: Option<Arc<Head>>,
    /// The head that readers see: all of it is durable.
    pub(crate) published: Option<Arc<Head>>,
    /// How many queued writes are not published yet.
    pub(crate) pending: usize,
    /// How many calls need this slot to stay.
    pub(crate) pins: usize,
    /// How many commits were published.
    pub(crate) published_count: u64,
    /// Receipts that are queued and not published yet, by digest of their idempotency key.
    pub(crate) receipts: HashMap<[u8; 16], record::Receipt>,
    /// Writers that live, by message index.
    pub(crate) writers: HashMap<u64, Arc<Writer>>,
    /// It was deleted, but forks still read its first entries: its id cannot be used again yet.
    pub(crate) reserved: bool,
    /// The conversation is being deleted or forked: writes wait.
    pub(crate) frozen: bool,
    /// Deltas wait for it to be unfrozen.
    pub(crate) held_back: bool,
}

impl Slot {
    /// Fails if the conversation belongs to another owner than the name states.
    pub(crate) fn check_owner(&self, name: &Name) -> Result<()> {
        match &self.queued {
            Some(head) if !name.allows(&head.owner) => Err(Error::no_conversation(name)),
            _ => Ok(()),
        }
    }

    /// Fails if a new conversation cannot be created here.
    pub(crate) fn check_free(&self, conversation: &Name) -> Result<()> {
        if !self.reserved || self.queued.is_some() {
            return Ok(());
        }
        Err(Error::SharedByForks { conversation: conversation.clone() })
    }

    fn heads(&self) -> Heads<'_> {
        Heads { queued: self.queued.as_ref(), published: self.published.as_ref(), frozen: self.frozen }
    }

    fn is_idle(&self) -> bool {
        self.pending == 0 && self.pins == 0 && self.writers.is_empty() && !self.frozen
    }
}

/// A record that is not encoded yet: that happens without the lock.
#[derive(Debug)]
pub(crate) struct Unsealed {
    pub(crate) conversation: ConversationId,
    pub(crate) first_seq: u64,
    pub(crate) header: record::Header,
    pub(crate) body: record::Body,
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
    /// The thread that waits for it to be durable.
    pub(crate) waiter: Option<Arc<Waiter>>,
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

impl State {
    /// Fails if a write failed.
    pub(crate) fn check_sound(&self) -> Result<()> {
        let poisoned = self.poisoned.as_ref();
        poisoned.map_or(Ok(()), |cause| Err(Error::Poisoned { cause: cause.clone() }))
    }

    /// Fails if no more writes are accepted.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.check_sound()?;
        if self.phase != Phase::Open {
            return Err(Error::Closed);
        }
        self.blocked.as_ref().map_or(Ok(()), |blocked| Err(blocked.error()))
    }

    /// The slot of a conversation that was pinned.
    pub(crate) fn slot(&mut self, id: ConversationId) -> &mut Slot {
        self.slots.entry(id).or_default()
    }

    /// Drops the slots that nobody needs, if there are more than `limit`.
    pub(crate) fn evict(&mut self, limit: usize) {
        if self.slots.len() > limit {
            let Self { slots, lagging, moves, .. } = self;
            // Of a commit that failed the engine may have what is not durable: readers see the slots.
            let is_needed = |id: ConversationId| lagging.contains(id) || moves.is_unsettled(id);
            slots.retain(|id, slot| !slot.is_idle() || is_needed(*id));
            self.generation += 1;
        }
    }

    /// The name of a deleted conversation is free: no fork reads its entries any more.
    pub(crate) fn free(&mut self, id: ConversationId) {
        self.generation += 1;
        if let Some(slot) = self.slots.get_mut(&id) {
            slot.reserved = false;
        }
    }

    /// Whether a buffered write must wait.
    pub(crate) fn is_full(&self) -> bool {
        self.queued_bytes > self.capacity.0 || self.queue.len() > QUEUE_WRITES
    }

    /// Whether nothing may be queued for a conversation now.
    pub(crate) fn is_frozen(&self, id: ConversationId) -> bool {
        self.slots.get(&id).is_some_and(|slot| slot.frozen)
    }

    /// Fails if a writer's message is closed.
    pub(crate) fn check_live(&self, writer: &Writer) -> Result<()> {
        let slot = self.slots.get(&writer.name.id());
        let live = slot.and_then(|slot| slot.writers.get(&writer.message_index));
        if live.is_some_and(|live| std::ptr::eq(&**live, writer)) { Ok(()) } else { Err(writer.error()) }
    }

    /// Adds a writer to those that collect. Returns its place among them.
    pub(crate) fn collect_from(&mut self, writer: &Arc<Writer>) -> u64 {
        self.collected += 1;
        self.collecting.insert(self.collected, Arc::clone(writer));
        self.collected
    }

    /// Removes a writer, if it has a place, from those that collect.
    pub(crate) fn collect_no_more(&mut self, place: Option<u64>) {
        if let Some(place) = place {
            self.collecting.remove(&place);
        }
    }

    /// Removes a writer from those that live.
    pub(crate) fn remove(&mut self, writer: &Writer) {
        if self.check_live(writer).is_ok() {
            self.slot(writer.name.id()).writers.remove(&writer.message_index);
        }
    }

    /// Whether the deltas that a writer collected may be queued now.
    pub(crate) fn may_queue(&mut self, writer: &Writer, room: Room) -> bool {
        let is_full = room == Room::Bounded && self.is_full();
        self.held_back |= is_full;
        let slot = self.slots.get_mut(&writer.name.id()).filter(|slot| slot.frozen);
        let is_frozen = slot.map(|slot| slot.held_back = true).is_some();
        !is_full && !is_frozen
    }

    /// Puts a write into the queue; its conversation's queued head becomes the write's.
    pub(crate) fn push(&mut self, mut pending: Pending) {
        if let Some((id, head)) = &pending.head {
            let (id, head) = (*id, head.clone());
            let slot = self.slot(id);
            pending.before = std::mem::replace(&mut slot.queued, head);
            slot.pending += 1;
        }
        self.queued_bytes += pending.bytes;
        self.queue.push_back(pending);
    }

    /// How far the place of a conversation in the list will be from its activity at this time. `before`: its queued head.
    pub(crate) fn lag(&mut self, id: ConversationId, before: &Head, now: i64) -> Lag {
        let Some(lag) = deferred::stay(before, now) else { return Lag::default() };
        if !self.lagging.contains(id) {
            match self.lagging.room(now, |id| self.slots.get(&id).map(Slot::heads)) {
                deferred::Room::Free => {}
                deferred::Room::After(due, head) => self.catch_up(due, &head),
                deferred::Room::None => return Lag::default(),
            }
            self.lagging.extend([id]);
        }
        lag
    }

    /// Queues the move of a conversation to the place of its last activity, if it is not there.
    pub(crate) fn catch_up(&mut self, id: ConversationId, head: &Arc<Head>) {
        if let Some(head) = deferred::caught_up(head) {
            self.push(Pending { head: Some((id, Some(Arc::new(head)))), ..Pending::default() });
        }
    }

    /// Whether the next commit has everything that it may wait for, or as much as it takes.
    pub(crate) fn is_gathered(&self) -> bool {
        self.queue.len() >= self.crowd.min(COMPANY) || self.queued_bytes >= COMMIT_BYTES
    }

    /// Takes the next batch from the queue: what is due, otherwise as much as a commit takes; at least one write.
    pub(crate) fn take(&mut self) -> Vec<Pending> {
        let (mut batch, mut size) = (Vec::new(), 0);
        while let Some(pending) = self.queue.front() {
            size += pending.bytes;
            let is_due = batch.len() < self.due;
            let fits = if is_due { size <= DUE_BYTES } else { size <= COMMIT_BYTES && batch.len() < COMMIT_WRITES };
            if !batch.is_empty() && !fits {
                break;
            }
            batch.extend(self.queue.pop_front());
        }
        self.due = self.due.saturating_sub(batch.len());
        self.queued_bytes -= batch.iter().map(|pending| pending.bytes).sum::<usize>();
        batch
    }

    /// Shows a durable batch to readers.
    pub(crate) fn publish(&mut self, batch: &mut [Pending]) {
        for pending in batch {
            for owner in pending.redacts.drain(..) {
                self.redactions.note(owner, self.commit.number);
            }
            let Some((id, head)) = pending.head.take() else { continue };
            self.followers.notify(id);
            let slot = self.slots.entry(id).or_default();
            slot.published = head;
            self.lagging.publish(id, slot.heads());
            slot.pending = slot.pending.saturating_sub(1);
            slot.published_count += 1;
            if let Some(digest) = &pending.receipt {
                slot.receipts.remove(digest);
            }
            if let Some(message_index) = &pending.finishes {
                slot.writers.remove(message_index);
            }
        }
    }

    /// Ends writing after a failed commit. Its writes and the queued ones are void: returns the writes, so that the
    /// threads that wait get the error.
    pub(crate) fn fail(&mut self, mut batch: Vec<Pending>, cause: String) -> Vec<Pending> {
        self.poisoned = Some(cause);
        batch.extend(self.queue.drain(..));
        (self.queued_bytes, self.due, self.held_back) = (0, 0, false);
        self.collecting.clear();
        for (id, _) in batch.iter_mut().filter_map(|pending| pending.head.take()) {
            let slot = self.slot(id);
            slot.queued.clone_from(&slot.published);
            slot.pending = slot.pending.saturating_sub(1);
            slot.receipts.clear();
        }
        batch
    }
}
