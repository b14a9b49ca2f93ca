//! Following a conversation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
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

/// Numbers followers: no two of a process have the same.
static FOLLOWERS: AtomicU64 = AtomicU64::new(0);

/// The number of a new follower.
pub(crate) fn number_follower() -> u64 {
    FOLLOWERS.fetch_add(1, Ordering::Relaxed)
}

/// Follows a conversation: gives its entries as they become durable, each once, in order.
///
/// At most 1,000 entries come at once, and no more after the first MiB of them: a follower that reads slowly costs no more
/// memory than one that reads at once.
///
/// [`Tail::next`] blocks. Async code uses [`Tail::poll_next`], which needs no thread while it waits; with the feature
/// `stream` a tail is a `Stream` of `Result<Vec<Entry>>`. A poll reads new entries itself: they were just written, so they
/// are in memory as a rule.
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
    follower: u64,
    stopped: Arc<AtomicBool>,
}

/// Ends a [`Tail`], from any thread.
#[derive(Clone, Debug)]
pub struct StopHandle {
    log: Arc<dyn Log>,
    name: Name,
    follower: u64,
    stopped: Arc<AtomicBool>,
}

impl Tail {
    pub(crate) fn new(log: Arc<dyn Log>, name: Name, incarnation: u64, seq: u64) -> Self {
        Self { log, name, incarnation, seq, follower: number_follower(), stopped: Arc::default() }
    }

    /// Where it is: after the last entry that was given.
    #[must_use]
    pub const fn cursor(&self) -> Cursor {
        Cursor { seq: self.seq, incarnation: Some(self.incarnation) }
    }

    /// Waits for new entries, up to the timeout. Returns an empty list if there were none, or if the tail was stopped.
    ///
    /// # Errors
    /// `NotFound` if the conversation was deleted, also if there is another one under its name; `Closed` if the store is
    /// closed and all of it was given; `Corrupt`; `Io`.
    pub fn next(&mut self, timeout: Duration) -> Result<Vec<Entry>> {
        let news = self
            .log
            .wait_for(&self.wait(timeout))
            .and_then(|is_news| if is_news { self.read() } else { Ok(Vec::new()) });
        news.map_err(|error| error.named(&self.name))
    }

    /// Returns new entries, or arranges for the task to be woken when there are some. `None` means that the tail was stopped,
    /// or that the store is closed and everything was returned. Nothing comes after an error.
    ///
    /// # Errors
    /// `NotFound` if the conversation was deleted, also if there is another one under its name; `Corrupt`; `Io`.
    pub fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Vec<Entry>>>> {
        if self.stopped.load(Ordering::Acquire) {
            return Poll::Ready(None);
        }
        let news = self.log.poll_for(&self.wait(Duration::ZERO), self.follower, context.waker());
        // A handle may have stopped it while it asked.
        if news.is_pending() && !self.stopped.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        let entries = match news {
            Poll::Pending | Poll::Ready(Err(Error::Closed)) => None,
            Poll::Ready(news) => Some(news.and_then(|()| self.read()).map_err(|error| error.named(&self.name))),
        };
        if !matches!(entries, Some(Ok(_))) {
            self.stopped.store(true, Ordering::Release);
        }
        Poll::Ready(entries)
    }

    /// As [`Tail::poll_next`], without reading: the entries are there for [`Tail::read`].
    #[cfg(feature = "server")]
    pub(crate) fn poll_news(&self, context: &mut Context<'_>) -> Poll<Result<()>> {
        let news = self.log.poll_for(&self.wait(Duration::ZERO), self.follower, context.waker());
        news.map_err(|error| error.named(&self.name))
    }

    fn wait(&self, timeout: Duration) -> Wait<'_> {
        Wait { name: &self.name, incarnation: self.incarnation, seq: self.seq, timeout, stopped: &self.stopped }
    }

    /// The entries that are there, after those that were given.
    pub(crate) fn read(&mut self) -> Result<Vec<Entry>> {
        let view = reading::view(&*self.log, &self.name)?;
        if view.head.incarnation != self.incarnation {
            // There is another conversation under its name.
            return Err(Error::no_conversation(&self.name));
        }
        let seqs = self.seq + 1..=LAST_SEQ;
        let entries = reading::entries_of(&*self.log, &view, seqs, Order::Ascending, ENTRIES, BYTES)?;
        self.seq = entries.last().map_or(self.seq, |entry| entry.seq);
        Ok(entries)
    }

    /// A handle that ends the tail, also while it waits.
    #[must_use]
    pub fn stop_handle(&self) -> StopHandle {
        let (log, name, stopped) = (Arc::clone(&self.log), self.name.clone(), Arc::clone(&self.stopped));
        StopHandle { log, name, follower: self.follower, stopped }
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        self.log.wake(&self.name, self.follower);
    }
}

#[cfg(feature = "stream")]
impl futures_core::Stream for Tail {
    type Item = Result<Vec<Entry>>;

    fn poll_next(mut self: std::pin::Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Tail::poll_next(&mut self, context)
    }
}

impl StopHandle {
    /// Ends the tail: a waiting [`Tail::next`] returns at once, and so do all later ones.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        self.log.wake(&self.name, self.follower);
    }
}
