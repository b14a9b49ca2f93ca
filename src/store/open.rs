//! How a store is opened, which log it uses, and what concerns it as a whole. To add a log: a row in [`open`].

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::Store;
use crate::backup;
use crate::embedded::{self, Embedded, engine};
use crate::error::{Error, Result};
use crate::log::{BackupSummary, Clock, Health, Log, Opening, Size, Vacuumed, Verification};
#[cfg(feature = "postgres")]
use crate::log::{Migration, Shards};
use crate::model::Timestamp;
#[cfg(feature = "postgres")]
use crate::postgres::{
    self, Postgres,
    cluster::{self, Sharded},
};
#[cfg(feature = "client")]
use crate::remote::client::{Client, is_http};

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

    /// Sets where the store's times come from. Those of a server's store come from the server. The function is called while the
    /// store holds its lock: it must be quick, and must not call the store.
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
        let log = open(url, Arc::clone(&self.clock), self.window, self.opening, self.create)?;
        Ok(Store { log })
    }
}

/// Opens the log that a URL names.
fn open(url: &str, clock: Clock, window: Duration, opening: Opening, create: bool) -> Result<Arc<dyn Log>> {
    #[cfg(feature = "postgres")]
    if postgres::is_postgres(url) {
        return Ok(Arc::new(Postgres::open(url, clock, window, opening, create)?));
    }
    #[cfg(feature = "postgres")]
    if cluster::is_sharded(url) {
        return Ok(Arc::new(Sharded::open(url, clock, window, opening, create)?));
    }
    #[cfg(feature = "client")]
    if is_http(url) {
        return Ok(Arc::new(Client::open(url, opening)?));
    }
    if (!create || opening.read_only) && engine::is_vacant(url)? {
        return Err(Error::NotFound { what: format!("a store at {url}") });
    }
    Ok(Arc::new(Embedded::open(engine::open(url)?, clock, window, opening)?))
}

impl Store {
    /// Reads everything, derives again what can be derived, and compares. `progress` is called with the conversations
    /// done and in all.
    ///
    /// # Errors
    /// `Io`. Damage is not an error here: the result has a [`crate::Problem`] for it.
    pub fn verify(&self, mut progress: impl FnMut(u64, u64)) -> Result<Verification> {
        self.log.verify(&mut progress)
    }

    /// What prevents writing to the store, and what was lost, as far as the opening found it, or a call since then.
    ///
    /// ```
    /// # let store = conversation_store::Store::open("memory:")?;
    /// assert_eq!(store.health(), conversation_store::Health::default());
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    #[must_use]
    pub fn health(&self) -> Health {
        self.log.health()
    }

    /// How much the store holds. Reads no conversation.
    ///
    /// ```
    /// # use conversation_store::{Store, model::Message};
    /// let store = Store::open("memory:")?;
    /// store.append("chat", &[Message::user("hello")])?;
    /// assert_eq!(store.size()?.conversations, 1);
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Io`; `OutcomeUnknown` if the database does not answer.
    pub fn size(&self) -> Result<Size> {
        self.log.size()
    }

    /// Creates the tables and functions of a store in PostgreSQL, or updates older ones to this version. Either all of it is
    /// done, or nothing. Programs of the version before keep working meanwhile. The URL names a role that may create tables.
    /// The role that opens the store needs less ([`crate::documentation::postgres`]).
    ///
    /// # Errors
    /// `InvalidInput` if the URL names another kind of store; `UnsupportedVersion` if a later program made the tables, and
    /// this one cannot use them; `Io`, also if the role may not create tables; `OutcomeUnknown`: migrate again.
    #[cfg(feature = "postgres")]
    pub fn migrate(url: &str) -> Result<Migration> {
        if postgres::is_postgres(url) {
            return postgres::migrate(url);
        }
        if cluster::is_sharded(url) {
            return cluster::migrate(url);
        }
        Err(Error::InvalidInput("only a store in PostgreSQL has tables to migrate: name one".to_owned()))
    }

    /// Where the buckets of a store over several databases are: `shards:FILE`.
    ///
    /// # Errors
    /// `InvalidInput` if the URL names another kind of store, or its list is not that of the store; `Io`.
    #[cfg(feature = "postgres")]
    pub fn shards(url: &str) -> Result<Shards> {
        check_sharded(url)?;
        cluster::status(url)
    }

    /// Moves a bucket of a store over several databases to the cluster with this number. Programs go on writing, and wait while
    /// the bucket is in neither cluster. `wait` is how long the move waits for messages that are being written in the bucket.
    /// If a move was cut off, the same call continues it.
    ///
    /// # Errors
    /// `InvalidInput`; `Busy` if messages are still being written (then nothing was moved), or if another program moves
    /// the bucket; `Io` and `OutcomeUnknown`: move it again.
    #[cfg(feature = "postgres")]
    pub fn move_bucket(url: &str, bucket: u64, to: u64, wait: Duration) -> Result<()> {
        check_sharded(url)?;
        cluster::move_bucket(url, bucket, to, wait)
    }

    /// Writes everything that is durable to a new file: framed, checksummed, compressed. The store can be used meanwhile. The
    /// file has all conversations as they were at one moment. What is deleted or redacted during the backup may be missing or
    /// redacted in the file. Damaged data is copied as it is. `progress` is called with conversations done and in all.
    ///
    /// To read the file, open the URL `backup:FILE`: all of it is then in memory. [`Store::restore`] makes a store of
    /// it again, also on another engine.
    ///
    /// ```
    /// # use conversation_store::{Store, model::Message};
    /// # let dir = std::env::temp_dir().join(format!("backup-example-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let file = dir.join("chats.backup");
    /// # let _ = std::fs::remove_file(&file);
    /// let store = Store::open("memory:")?;
    /// store.append("chat", &[Message::user("hello")])?;
    /// store.backup(&file, |_, _| ())?;
    /// let backup = Store::open(&format!("backup:{}", file.display()))?;
    /// assert_eq!(backup.load("chat")?.messages().len(), 1);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` if the file exists; `Io`.
    pub fn backup(&self, file: impl AsRef<Path>, mut progress: impl FnMut(u64, u64)) -> Result<BackupSummary> {
        self.log.backup(file.as_ref(), &mut progress)
    }

    /// Makes a new store from a backup, on any engine that has a directory. The file is read twice, so that nothing is made of
    /// a damaged one. `progress` is called with bytes read and in all.
    ///
    /// # Errors
    /// `InvalidInput` if there is a store at the URL, or it is `memory:`; `Corrupt` if the backup is damaged or cut off; `Io`.
    pub fn restore(file: impl AsRef<Path>, url: &str, mut progress: impl FnMut(u64, u64)) -> Result<BackupSummary> {
        let file = file.as_ref();
        if url.starts_with("memory:") {
            let shown = file.display();
            let text =
                format!("a store in memory would be gone at once: open backup:{shown} to read the backup as it is");
            return Err(Error::InvalidInput(text));
        }
        backup::check(file, &mut |done, all| progress(done, 2 * all))?;
        let summary = restore(file, url, &mut |done, all| progress(all + done, 2 * all))?;
        // The first opening marks the directory as a store.
        Self::open(url)?.close()?;
        Ok(summary)
    }
}

impl Store {
    /// Writes the store's files again, without what was erased: an engine keeps freed bytes until it reuses them. Nothing else
    /// may have the store open, and the disk needs room for a second copy. If it is interrupted, the store is as it was, or the
    /// next opening finishes the work. `progress` is called with how much is done, and how much there is in all.
    ///
    /// In PostgreSQL it is `VACUUM FULL` of the tables: it needs the role that owns them, and locks each while it is written.
    ///
    /// ```no_run
    /// use conversation_store::Store;
    ///
    /// let store = Store::open("sled:./convo.db")?;
    /// store.redact("chat", 0, None)?;
    /// store.close()?;
    /// drop(store);
    /// Store::vacuum("sled:./convo.db", |_, _| ())?;
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound`; `Busy` while a process has the store open; `InvalidInput` for a server's store and for one without files;
    /// `Corrupt`; `Io`.
    pub fn vacuum(url: &str, mut progress: impl FnMut(u64, u64)) -> Result<Vacuumed> {
        #[cfg(feature = "postgres")]
        if postgres::is_postgres(url) {
            return postgres::vacuum(url, &mut progress);
        }
        #[cfg(feature = "postgres")]
        if cluster::is_sharded(url) {
            return cluster::vacuum(url, &mut progress);
        }
        #[cfg(feature = "client")]
        if is_http(url) {
            let message =
                "a server's store is written again where it is, while no server has it open: name the store itself";
            return Err(Error::InvalidInput(message.to_owned()));
        }
        // What a crash left is finished first.
        let store = StoreOptions::new().with_create(false).open(url)?;
        store.close()?;
        drop(store);
        engine::vacuum(url, &mut progress)
    }
}

#[cfg(feature = "postgres")]
fn check_sharded(url: &str) -> Result<()> {
    if cluster::is_sharded(url) {
        return Ok(());
    }
    Err(Error::InvalidInput("only a store over several databases has buckets: name its list, `shards:FILE`".to_owned()))
}

/// Fills a new log with a backup. `progress` is called with bytes read, and of the file.
fn restore(file: &Path, url: &str, progress: &mut dyn FnMut(u64, u64)) -> Result<BackupSummary> {
    #[cfg(feature = "postgres")]
    if postgres::is_postgres(url) {
        return postgres::restore(file, url, progress);
    }
    #[cfg(feature = "postgres")]
    if cluster::is_sharded(url) {
        return cluster::restore(file, url, progress);
    }
    #[cfg(feature = "client")]
    if is_http(url) {
        let message = "a backup is made a store where the store is, not through a server: name the store itself";
        return Err(Error::InvalidInput(message.to_owned()));
    }
    embedded::restore(file, &engine::open_to_restore(url)?, progress)
}
