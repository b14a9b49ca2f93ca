//! Following a conversation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::embedded::Embedded;
use crate::error::{Error, Result};
use crate::history::Entry;
use crate::model::Name;

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
    log: Arc<Embedded>,
    name: Name,
    /// The conversation that is followed, of those that bear its name one after another.
    incarnation: u64,
    cursor: u64,
    stopped: Arc<AtomicBool>,
}

/// Ends a [`Tail`], from any thread.
#[derive(Clone, Debug)]
pub struct StopHandle {
    log: Arc<Embedded>,
    stopped: Arc<AtomicBool>,
}

impl Tail {
    pub(crate) fn new(log: Arc<Embedded>, name: Name, incarnation: u64, cursor: u64) -> Self {
        Self { log, name, incarnation, cursor, stopped: Arc::default() }
    }

    /// The seq of the last entry that was given.
    #[must_use]
    pub const fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Waits for new entries, up to the timeout. Empty: there were none, or the tail was stopped.
    ///
    /// # Errors
    /// `NotFound` if the conversation was deleted, also if there is another one under its name; `Closed` if the store is closed, and all of it was given; `Corrupt`;
    /// `Io`.
    pub fn next(&mut self, timeout: Duration) -> Result<Vec<Entry>> {
        let core = self.log.core();
        if !core.wait_for(&self.name, self.incarnation, self.cursor, timeout, &self.stopped)? {
            return Ok(Vec::new());
        }
        let range = self.cursor + 1..=u64::MAX - 1;
        let entries =
            core.entries(self.name.id(), &self.name, range, crate::embedded::engine::Order::Ascending, usize::MAX)?;
        if core.published_head(self.name.id())?.is_none_or(|head| head.incarnation != self.incarnation) {
            // What was read may be of another conversation of the same name.
            return Err(Error::no_conversation(&self.name));
        }
        self.cursor = entries.last().map_or(self.cursor, |entry| entry.seq);
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
        self.log.core().wake_tails();
    }
}
