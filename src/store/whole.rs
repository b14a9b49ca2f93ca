//! The store as a whole: checks, backups.

use std::path::Path;

use super::{Store, open};
use crate::error::{Error, Result};
use crate::log::{BackupSummary, Health, Size, Verification};
#[cfg(feature = "postgres")]
use crate::log::{Migration, Shards};

impl Store {
    /// Reads everything and compares what can be derived again. `progress` is called with conversations done and in all.
    ///
    /// # Errors
    /// `Io`. What is damaged is no error, but a [`crate::Problem`].
    pub fn verify(&self, mut progress: impl FnMut(u64, u64)) -> Result<Verification> {
        self.log.verify(&mut progress)
    }

    /// What keeps the store from being written, and what was lost: found on opening, or since.
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

    /// Makes the tables and functions of a store in PostgreSQL, or makes older ones those of this version. All of it is done,
    /// or nothing. Programs of the version before go on meanwhile. The URL names a role that may create tables: the role that
    /// opens the store needs less ([`crate::documentation::postgres`]).
    ///
    /// # Errors
    /// `InvalidInput` if the URL names another kind of store; `UnsupportedVersion` if a later program made the tables, and
    /// this one cannot use them; `Io`, also if the role may not create tables; `OutcomeUnknown`: migrate again.
    #[cfg(feature = "postgres")]
    pub fn migrate(url: &str) -> Result<Migration> {
        open::migrate(url)
    }

    /// Where the buckets of a store over several databases are: `shards:FILE`.
    ///
    /// # Errors
    /// `InvalidInput` if the URL names another kind of store, or its list is not that of the store; `Io`.
    #[cfg(feature = "postgres")]
    pub fn shards(url: &str) -> Result<Shards> {
        open::shards(url)
    }

    /// Moves a bucket of a store over several databases to the cluster of a number, while programs go on writing: they wait for
    /// the time in which it is in neither. `wait` is how long messages that are being written in the bucket are waited for.
    /// A move that was cut off goes on with the same call.
    ///
    /// # Errors
    /// `InvalidInput`; `Busy` if messages are still being written, nothing was moved then, or if another program moves the
    /// bucket; `Io`, `OutcomeUnknown`: move it again.
    #[cfg(feature = "postgres")]
    pub fn move_bucket(url: &str, bucket: u64, to: u64, wait: std::time::Duration) -> Result<()> {
        open::move_bucket(url, bucket, to, wait)
    }

    /// Writes everything that is durable to a new file: framed, checksummed, compressed. The store goes on being used. The file
    /// is one moment of all conversations; what is deleted or redacted while it is written may be missing, or redacted, in it.
    /// What is damaged is in it as it is. `progress` is called with conversations done and in all.
    ///
    /// The file is read with the URL `backup:FILE`, all of it in memory, or made a store again by [`Store::restore`],
    /// which is also the way to be rid of bytes that the engine freed and keeps.
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

    /// Makes a new store from a backup, on any engine that has a directory. The file is read twice: nothing is made of a damaged one. `progress`
    /// is called with bytes read and in all.
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
        open::check_backup(file, &mut |done, all| progress(done, 2 * all))?;
        let summary = open::restore(file, url, &mut |done, all| progress(all + done, 2 * all))?;
        // The first opening marks the directory as a store.
        Self::open(url)?.close()?;
        Ok(summary)
    }
}
