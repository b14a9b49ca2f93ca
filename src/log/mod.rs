//! Appends into batches, and records back out: heads, group commit, the listing index.
//!
//! Data flows one way: `append`, `writer` and `lifecycle` resolve a write against the queued head and queue it ([`state`]);
//! `commit` writes and syncs batches and publishes their heads; `read` and `list` see what is published.

mod append;
mod backup;
mod commit;
mod compact;
mod delete;
mod health;
mod items;
mod lifecycle;
mod limits;
mod list;
mod open;
mod read;
mod rebuild;
mod redact;
mod state;
mod tags;
#[cfg(test)]
mod tests;
mod ticker;
mod verify;
mod writer;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::engine::{Engine, Order};
use crate::error::{Error, Result};
use crate::model::{ConversationId, Timestamp};
use crate::record::{Head, Record, Tombstone, key};

pub use append::{AppendOptions, Durability, ExpectedHead, Receipt};
pub use backup::BackupSummary;
pub(crate) use backup::{check as check_backup, restore};
pub use health::Health;
pub use items::Item;
pub use limits::Limits;
pub use list::{Cursor, ListItem, ListPage, ListQuery};
pub(crate) use open::Opening;
pub use redact::Redaction;
use state::State;
use ticker::Ticker;
pub use verify::{Problem, Verification};
pub(crate) use writer::Writer;

/// The store's key of its last commit.
const COMMIT: &str = "commit";
/// The store's key of its marker.
const STORE: &str = "store";
/// The store's key of its epoch: how often it was opened.
const EPOCH: &str = "epoch";

/// Slots of idle conversations that are kept, so that their heads need not be read again.
const IDLE_SLOTS: usize = 10_000;
/// Bytes that may wait in the queue before a buffered append blocks.
const QUEUE_BYTES: usize = 32 * 1024 * 1024;

/// Where the store's times come from.
pub(crate) type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The log of all conversations, on an engine.
pub(crate) struct Log {
    core: Arc<Core>,
    background: Mutex<Option<JoinHandle<()>>>,
}

/// What the log's threads share.
pub(crate) struct Core {
    engine: Arc<dyn Engine>,
    clock: Clock,
    epoch: u64,
    /// What opening found.
    health: Health,
    state: Mutex<State>,
    /// Writers with deltas that are not queued yet.
    buffering: Mutex<Vec<Arc<Writer>>>,
    ticker: Ticker,
    /// The leader has gathered what it waits for.
    gathered: Condvar,
    /// There is room in the queue again, or a conversation is no longer frozen.
    room: Condvar,
    /// Something was published.
    published: Condvar,
    /// One fork or deletion at a time.
    structure: Mutex<()>,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("engine", &self.core.engine)
            .field("epoch", &self.core.epoch)
            .finish_non_exhaustive()
    }
}

impl Log {
    /// Opens the log on an engine. `window` is how long a buffered write may wait.
    pub(crate) fn open(engine: Arc<dyn Engine>, clock: Clock, window: Duration, opening: Opening) -> Result<Self> {
        let core = Arc::new(open::open(engine, clock, opening)?);
        let background = std::thread::Builder::new().name("conversation-store".to_owned()).spawn({
            let core = Arc::clone(&core);
            move || {
                while core.ticker.wait(window) {
                    core.queue_buffers();
                    core.lead_if_idle();
                }
            }
        });
        let background = background.map_err(Error::io("start the store's background thread"))?;
        Ok(Self { core, background: Mutex::new(Some(background)) })
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Returns once all that was written before is durable.
    pub(crate) fn flush(&self) -> Result<()> {
        self.core.queue_buffers();
        self.core.sync()
    }

    /// Makes everything durable and takes no more writes. A second call does nothing.
    pub(crate) fn close(&self) -> Result<()> {
        let result = self.flush().and_then(|()| match self.core.engine.directory() {
            Some(directory) => directory.watermark().sync(),
            None => Ok(()),
        });
        self.core.lock().closed = true;
        self.core.ticker.stop();
        let background = self.background.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(background) = background {
            // The thread's function does not panic; if it did, there is nothing left to do for it.
            let _ = background.join();
        }
        result
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let _ = self.close();
    }
}

/// Keeps a conversation's slot in memory.
struct Pin<'a> {
    core: &'a Core,
    id: ConversationId,
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.core.lock().slot(self.id).pins -= 1;
    }
}

impl Core {
    /// Waits until the published head lies behind a seq. False: the timeout passed, or it was stopped.
    pub(crate) fn wait_for(
        &self,
        id: ConversationId,
        seq: u64,
        timeout: Duration,
        stopped: &std::sync::atomic::AtomicBool,
    ) -> Result<bool> {
        let _pin = self.pin(id)?;
        let mut state = self.lock();
        state.tailing += 1;
        let mut news = false;
        let waited = self.published.wait_timeout_while(state, timeout, |state| {
            // A conversation that is gone is news too: reading it says so.
            news = state.slot(id).published.as_ref().is_none_or(|head| head.next_seq > seq + 1);
            !news && !stopped.load(std::sync::atomic::Ordering::Acquire)
        });
        (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.tailing -= 1;
        drop(state);
        Ok(news)
    }

    /// Lets every waiting tail look again.
    pub(crate) fn wake_tails(&self) {
        let _state = self.lock();
        self.published.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panicked while it held the lock left the state as it was between two whole steps, or the panic
        // came from a defect; poisoning every reader for it would help nobody.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> i64 {
        (self.clock)().as_micros()
    }

    /// Loads the conversation's slot and keeps it in memory.
    fn pin(&self, id: ConversationId) -> Result<Pin<'_>> {
        let mut state = self.lock();
        loop {
            if let Some(slot) = state.slots.get_mut(&id) {
                slot.pins += 1;
                return Ok(Pin { core: self, id });
            }
            let evictions = state.evictions;
            drop(state);
            let head = self.sound_head(id)?.map(Arc::new);
            let reserved = head.is_none() && self.tombstone(id)?.is_some();
            state = self.lock();
            if state.evictions == evictions && !state.slots.contains_key(&id) {
                state.evict(IDLE_SLOTS);
                let slot = state.slot(id);
                slot.queued.clone_from(&head);
                slot.published = head;
                slot.reserved = reserved;
            }
        }
    }

    /// The head that readers see, and the messages whose writers live: both as of one moment, so that a message that is
    /// finished meanwhile is not taken for one that was interrupted.
    fn published(&self, id: ConversationId) -> Result<Option<(Arc<Head>, Vec<u64>)>> {
        let _pin = self.pin(id)?;
        let mut state = self.lock();
        let slot = state.slot(id);
        Ok(slot.published.clone().map(|head| (head, slot.writers.keys().copied().collect())))
    }

    /// The head that readers see.
    fn published_head(&self, id: ConversationId) -> Result<Option<Arc<Head>>> {
        let _pin = self.pin(id)?;
        Ok(self.lock().slot(id).published.clone())
    }

    /// The head in the engine: it may be ahead of what is durable. One that is damaged or missing is derived from the
    /// records.
    fn stored_head(&self, id: ConversationId) -> Result<Option<Head>> {
        self.stored_head_or(id, Self::derived_head)
    }

    /// The head in the engine, or what is derived in place of one that is damaged or missing.
    fn stored_head_or(
        &self,
        id: ConversationId,
        derived: impl FnOnce(&Self, ConversationId) -> Result<Option<Head>>,
    ) -> Result<Option<Head>> {
        let key = key::head(id);
        let Some(bytes) = self.engine.get(&key)? else {
            let is_lost = self.has_any(&key::prefix(key::RECORD, id))? && self.tombstone(id)?.is_none();
            return if is_lost { derived(self, id) } else { Ok(None) };
        };
        match Head::open(&key, &bytes) {
            Ok(head) => Ok(Some(head)),
            Err(Error::Corrupt { detail, .. }) => match derived(self, id)? {
                Some(head) => Ok(Some(head)),
                None => Err(Error::Corrupt { conversation: Some(id), seq: None, detail }),
            },
            Err(error) => Err(error),
        }
    }

    /// The head in the engine, unless it ends before the records do: what would be appended behind it would overwrite
    /// them.
    fn sound_head(&self, id: ConversationId) -> Result<Option<Head>> {
        match self.stored_head(id)? {
            Some(head) if self.has_entries_from(id, head.next_seq)? => {
                Ok(self.derived_head(id)?.filter(|derived| derived.next_seq > head.next_seq).or(Some(head)))
            }
            head => Ok(head),
        }
    }

    /// Whether a conversation has entries of its own from this seq on.
    fn has_entries_from(&self, id: ConversationId, seq: u64) -> Result<bool> {
        let mut found = false;
        let start = key::record(id, seq);
        self.engine.scan(&start..&key::after(&key::prefix(key::RECORD, id)), Order::Ascending, &mut |key, value| {
            // The origin of a fork is a record without entries: it stands where the first one will.
            let first_seq = key::parse_record(key).map_or(seq, |(_, first_seq)| first_seq);
            found = first_seq > seq || Record::open(id, first_seq, value).map_or(true, |record| record.len() > 0);
            if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(found)
    }

    /// Whether there is a key that begins like this.
    fn has_any(&self, prefix: &[u8]) -> Result<bool> {
        let mut found = false;
        self.engine.scan(prefix..&key::after(prefix), Order::Ascending, &mut |_, _| {
            found = true;
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// What is known of a conversation that was deleted, while something of it is left.
    fn tombstone(&self, id: ConversationId) -> Result<Option<Tombstone>> {
        let key = key::tombstone(id);
        let bytes = self.engine.get(&key)?;
        bytes.map(|bytes| Tombstone::open(&key, &bytes)).transpose()
    }
}
