//! How a store is opened.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Store;
use crate::error::Result;
use crate::log::{Clock, Opening};
use crate::model::Timestamp;

/// How a store is opened.
///
/// ```
/// use std::time::Duration;
/// use conversation_store::StoreOptions;
///
/// let store = StoreOptions::new().with_window(Duration::from_millis(50)).open("memory:")?;
/// # let _ = store;
/// # Ok::<(), conversation_store::Error>(())
/// ```
#[derive(Clone)]
pub struct StoreOptions {
    window: Duration,
    opening: Opening,
    clock: Clock,
    create: bool,
}

impl fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreOptions")
            .field("window", &self.window)
            .field("create", &self.create)
            .finish_non_exhaustive()
    }
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl StoreOptions {
    /// A window of 25 ms, the system's clock; a store that is not there is created.
    #[must_use]
    pub fn new() -> Self {
        let (window, opening) = (Duration::from_millis(25), Opening::default());
        Self { window, opening, clock: Arc::new(Timestamp::now), create: true }
    }

    /// Sets how long a buffered append, or a writer's delta, may wait before it is made durable.
    ///
    /// It is durable, at the latest, after the window and two commits: the one that is under way when the window ends, and
    /// its own. Where a commit takes longer than the window, or a single append has more than 4 MiB, it may be three. A
    /// commit takes as long as the disk needs for a sync; a crash may take what was appended in that time. The deltas of a
    /// conversation's streams wait while a title, a fork, a redaction or a verification of it is under way.
    #[must_use]
    pub const fn with_window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// Sets whether a store that is not there is created. `memory:` always is.
    ///
    /// ```
    /// use conversation_store::{Error, StoreOptions};
    ///
    /// let opened = StoreOptions::new().with_create(false).open("sled:no/such/directory");
    /// assert!(matches!(opened, Err(Error::NotFound { .. })));
    /// ```
    #[must_use]
    pub const fn with_create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Opens for reading only: nothing is written, not even that the store was opened, and nothing is created. What a crash
    /// left half deleted is not finished.
    #[must_use]
    pub const fn with_read_only(mut self, read_only: bool) -> Self {
        self.opening.read_only = read_only;
        self
    }

    /// Goes on writing a store that lost acknowledged data ([`crate::Error::WentBack`]): what is there is made consistent.
    #[must_use]
    pub const fn with_accept_loss(mut self, accept_loss: bool) -> Self {
        self.opening.accept_loss = accept_loss;
        self
    }

    /// Sets where the store's times come from. Those of a server's store come from the server. The function is called while the store holds its lock: it must be quick, and
    /// must not call the store.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Opens a store, creating it if there is none, unless that is switched off.
    ///
    /// # Errors
    /// As [`Store::open`]; `NotFound` if there is none and it is not to be created, or only read.
    pub fn open(&self, url: &str) -> Result<Store> {
        let log = super::open::open(url, Arc::clone(&self.clock), self.window, self.opening, self.create)?;
        Ok(Store { log })
    }
}
