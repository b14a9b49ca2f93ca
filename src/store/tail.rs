//! Following a conversation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::history::{Cursor, Entry};
use crate::log::reading::{self, LAST_SEQ};
use crate::log::{Log, Order, Wait};
use crate::model::Name;

/// The most entries that come at once.
const ENTRIES: usize = 1_000;
/// No more entries come at once after so many bytes of them.
const BYTES: usize = 1024 * 1024;

/// Follows a conversation: gives its entries as they become durable, each once, in order.
///
/// ```
/// use std::time::Duration;
/// use conversation_store::Store;
/// use conversation_store::model::Message;
///
/// let store = Store::open("memory:")?;
/// store.append("chat", &[Message::user("one")])?;
/// let mut tail = store.tail("chat", 0)?;
/// assert_eq!(tail.next(Duration::ZERO)?.len(), 1);
/// assert_eq!(tail.next(Duration::ZERO)?.len(), 0);
/// store.append("chat", &[Message::user("two")])?;
/// assert_eq!(tail.next(Duration::from_secs(1))?.len(), 1);
/// # Ok::<(), conversation_store::Error>(())
/// ```
#[derive(Debug)]
pub struct Tail {
    log: Arc<dyn Log>,
    name: Name,
    /// The conversation that is followed, of those that bear its name one after another.
    incarnation: u64,
    /// The seq of the last entry that was given.
    seq: u64,
    stopped: Arc<AtomicBool>,
}

/// Ends a [`Tail`], from any thread.
#[derive(Clone, Debug)]
pub struct StopHandle {
    log: Arc<dyn Log>,
    stopped: Arc<AtomicBool>,
}

impl Tail {
    pub(crate) fn new(log: Arc<dyn Log>, name: Name, incarnation: u64, seq: u64) -> Self {
        Self { log, name, incarnation, seq, stopped: Arc::default() }
    }

    /// Where it is: after the last entry that was given.
    #[must_use]
    pub const fn cursor(&self) -> Cursor {
        Cursor { seq: self.seq, incarnation: Some(self.incarnation) }
    }

    /// Waits for new entries, up to the timeout. Empty: there were none, or the tail was stopped.
    ///
    /// # Errors
    /// `NotFound` if the conversation was deleted, also if there is another one under its name; `Closed` if the store is closed, and all of it was given; `Corrupt`;
    /// `Io`.
    pub fn next(&mut self, timeout: Duration) -> Result<Vec<Entry>> {
        let (name, incarnation, seq) = (&self.name, self.incarnation, self.seq);
        if !self.log.wait_for(&Wait { name, incarnation, seq, timeout, stopped: &self.stopped })? {
            return Ok(Vec::new());
        }
        let view = reading::view(&*self.log, name)?;
        if view.head.incarnation != incarnation {
            // There is another conversation under its name.
            return Err(Error::no_conversation(name));
        }
        let entries = reading::entries_of(&*self.log, &view, seq + 1..=LAST_SEQ, Order::Ascending, ENTRIES, BYTES)?;
        self.seq = entries.last().map_or(seq, |entry| entry.seq);
        Ok(entries)
    }

    /// A handle that ends the tail, also while it waits.
    #[must_use]
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle { log: Arc::clone(&self.log), stopped: Arc::clone(&self.stopped) }
    }
}

impl StopHandle {
    /// Ends the tail: a waiting [`Tail::next`] returns at once, and so do all later ones.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.log.wake();
    }
}
