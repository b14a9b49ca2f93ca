//! fjall: a log-structured engine, for stores that are written more than they are read.

mod torn;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;

use fjall::config::PartitioningPolicy;
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::contract::{Batch, Engine, Visit, guarded};
use super::directory::Directory;
use super::url::{Url, cache_bytes, syncs};
use crate::error::{Error, Result};
use crate::log::Order;

const NAME: &str = "fjall";
/// fjall's own folder in the store's directory.
const FOLDER: &str = "fjall";
/// The file that marks the folder as a database, and its length. It is synced before anything is written.
const VERSION: &str = "version";
const VERSION_BYTES: u64 = 4;
/// What fjall creates before that: files without data, and a folder without files.
const CREATED: [&str; 3] = ["lock", "0.jnl", VERSION];
const KEYSPACES: &str = "keyspaces";
const DEFAULT_CACHE_BYTES: u64 = 32 * 1024 * 1024;
/// Files that it keeps open: a process may have few, and needs some for connections.
const FILES: usize = 128;

struct Fjall {
    keyspace: Keyspace,
    db: Database,
    /// False for throw-away stores only.
    syncs: bool,
    /// Dropped last, which releases the lock.
    directory: Directory,
}

pub(super) fn open(path: &Path, url: &Url) -> Result<Arc<dyn Engine>> {
    url.check_options(&["cache_mb", "sync"])?;
    let syncs = syncs(url)?;
    let cache = url.option("cache_mb").map(cache_bytes).transpose()?.unwrap_or(DEFAULT_CACHE_BYTES);
    let mut directory = Directory::take(path, NAME, url.restores(), |name| name == FOLDER)?;
    let folder = path.join(FOLDER);
    if !directory.established() {
        remove_cut_off_creation(&folder)?;
    }
    let database = || {
        let builder = Database::builder(&folder).cache_size(cache).max_cached_files(Some(FILES));
        // The committer syncs once for everything that it writes.
        builder.manual_journal_persist(true).open()
    };
    let open = || {
        let db = match database() {
            Err(fjall::Error::JournalRecovery(_))
                if torn::remove(&folder).map_err(Error::io("read fjall's journal"))? =>
            {
                database()
            }
            opened => opened,
        };
        let db = db.map_err(|error| from_fjall("open", path, error))?;
        let keyspace = db.keyspace("store", || {
            let options = KeyspaceCreateOptions::default().manual_journal_persist(true);
            options.filter_block_partitioning_policy(in_parts()).index_block_partitioning_policy(in_parts())
        });
        let keyspace = keyspace.map_err(|error| from_fjall("open", path, error))?;
        Ok((db, keyspace))
    };
    let (db, keyspace) = directory.open_within(|| guarded(path, "open", open)?)?;
    directory.sync()?;
    Ok(Arc::new(Fjall { keyspace, db, syncs, directory }))
}

/// Below the first level, a table's filter and index are read in parts of 4 KiB. Whole they grow with the table: those of a
/// store of some gigabytes have no room in the cache, and each look-up would read them again.
fn in_parts() -> PartitioningPolicy {
    PartitioningPolicy::new([false, true])
}

/// A crash while fjall was creating its files leaves some of them, and fjall then refuses to create them.
fn remove_cut_off_creation(folder: &Path) -> Result<()> {
    let is_whole = fs::metadata(folder.join(VERSION)).is_ok_and(|version| version.len() >= VERSION_BYTES);
    if is_whole || !folder.exists() {
        return Ok(());
    }
    let list = || fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>();
    let mut names = list().map_err(Error::io(format!("list {}", folder.display())))?;
    if let Some(other) =
        names.iter().find(|name| **name != KEYSPACES && !CREATED.iter().any(|created| *name == created))
    {
        return Err(Error::InvalidInput(format!(
            "{} is not a conversation store: its folder {FOLDER} holds {other:?}; name a new or empty directory",
            folder.parent().unwrap_or(folder).display()
        )));
    }
    // What shows that more was created goes first.
    names.sort_unstable_by_key(|name| *name != KEYSPACES);
    let remove = |name: &OsString| {
        let path = folder.join(name);
        // That folder is still empty, or this fails.
        if *name == KEYSPACES { fs::remove_dir(path) } else { fs::remove_file(path) }
    };
    let removed = names.iter().try_for_each(remove).and_then(|()| fs::remove_dir(folder));
    removed.map_err(Error::io(format!("remove {}", folder.display())))
}

fn from_fjall(action: &str, path: &Path, error: fjall::Error) -> Error {
    let action = format!("{action} the store {}", path.display());
    match error {
        fjall::Error::Io(source) => Error::Io { action, source },
        fjall::Error::Storage(fjall::LsmError::Io(source)) => Error::Io { action, source },
        // It says so of every write after one of its own failed, for want of file handles or of room: nothing is damaged.
        fjall::Error::Poisoned => Error::Poisoned { cause: format!("{action}: a write of fjall's own failed before") },
        error => Error::Corrupt { conversation: None, seq: None, detail: format!("{action}: {error}") },
    }
}

impl Fjall {
    fn call<T>(&self, action: &str, call: impl FnOnce() -> fjall::Result<T>) -> Result<T> {
        let path = self.directory.path();
        guarded(path, action, call)?.map_err(|error| from_fjall(action, path, error))
    }
}

impl std::fmt::Debug for Fjall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fjall").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl Engine for Fjall {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.call("read", || self.keyspace.get(key)).map(|value| value.map(|value| value.to_vec()))
    }

    fn scan(&self, range: Range<&[u8]>, order: Order, visit: Visit<'_>) -> Result<()> {
        if range.start >= range.end {
            return Ok(());
        }
        let mut pairs = self.call("read", || Ok(self.keyspace.range(range)))?;
        loop {
            let pair = self.call("read", || {
                let pair = match order {
                    Order::Ascending => pairs.next(),
                    Order::Descending => pairs.next_back(),
                };
                pair.map(fjall::Guard::into_inner).transpose()
            })?;
            let Some((key, value)) = pair else { return Ok(()) };
            if visit(&key, &value) == ControlFlow::Break(()) {
                return Ok(());
            }
        }
    }

    fn write(&self, batch: Batch) -> Result<()> {
        // All writes of a batch have one sequence number: of two writes to one key, fjall would not know the later one.
        let last: BTreeMap<Vec<u8>, Option<Vec<u8>>> = batch.ops.into_iter().collect();
        let mut batch = self.db.batch();
        for (key, value) in last {
            match value {
                Some(value) => batch.insert(&self.keyspace, key, value),
                None => batch.remove(&self.keyspace, key),
            }
        }
        self.call("write", || batch.commit())
    }

    fn sync(&self) -> Result<()> {
        let mode = if self.syncs { PersistMode::SyncData } else { PersistMode::Buffer };
        self.call("sync", || self.db.persist(mode))
    }

    fn directory(&self) -> Option<&Directory> {
        Some(&self.directory)
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance;
    use super::*;

    #[test]
    fn conforms() {
        let (dir, url) = conformance::place(NAME);
        conformance::run_within(open(dir.path(), &url).unwrap());
    }

    /// What is in a store of which three batches were written, after some bytes of its journal were lost.
    fn after_loss(lost: impl Fn(usize) -> Range<usize>) -> Result<Vec<usize>> {
        const STEP: usize = 64 * 1024;
        let (dir, url) = conformance::place(NAME);
        let value = |at: usize| vec![b'a' + u8::try_from(at).unwrap(); 40_000];
        let engine = open(dir.path(), &url).unwrap();
        for at in 0..3 {
            let ops = vec![(vec![b'k', u8::try_from(at).unwrap()], Some(value(at)))];
            engine.write(Batch { ops }).unwrap();
            engine.sync().unwrap();
        }
        drop(engine);
        let journal = dir.path().join(FOLDER).join("0.jnl");
        let mut bytes = fs::read(&journal).unwrap();
        // Nearly all of it is room for more: that is passed over in large steps.
        let room = bytes.rchunks_exact(STEP).take_while(|step| **step == [0; STEP]).count() * STEP;
        let written = bytes.len() - room;
        let length = written - bytes[..written].iter().rev().take_while(|byte| **byte == 0).count();
        bytes[lost(length)].fill(0);
        fs::write(&journal, bytes).unwrap();
        let engine = open(dir.path(), &url)?;
        let mut found = Vec::new();
        engine.scan(b"k"..b"l", Order::Ascending, &mut |key, read| {
            assert_eq!(read, value(usize::from(key[1])));
            found.push(usize::from(key[1]));
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    #[test]
    fn a_batch_that_a_power_cut_left_in_parts_is_none() {
        // In its item's head, its value, its checksum, and what comes last.
        for back in [40_036, 40_025, 40_019, 39_000, 20_000, 10, 4] {
            assert_eq!(after_loss(|length| length - back..length).unwrap(), [0, 1], "{back} to the end");
            let found = after_loss(|length| length - back..length - back + 4).unwrap();
            assert_eq!(found, [0, 1], "4 from {back}");
        }
        // Nothing of what was promised goes with what is damaged before it.
        let lost = after_loss(|length| length / 2..length / 2 + 4);
        assert!(matches!(lost, Err(Error::Corrupt { .. })), "{lost:?}");
    }

    #[test]
    fn an_engine_that_takes_no_more_writes_is_not_damaged() {
        let error = from_fjall("write", Path::new("store"), fjall::Error::Poisoned);
        assert!(matches!(error, Error::Poisoned { .. }), "{error:?}");
    }

    #[test]
    fn a_creation_that_was_cut_off_begins_anew() {
        let (dir, url) = conformance::place(NAME);
        let folder = dir.path().join(FOLDER);
        for version in [None, Some(&b""[..]), Some(b"FJL")] {
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("0.jnl"), "").unwrap();
            version.inspect(|bytes| fs::write(folder.join(VERSION), bytes).unwrap());
            drop(open(dir.path(), &url).unwrap());
            assert_eq!(fs::metadata(folder.join(VERSION)).unwrap().len(), VERSION_BYTES);
        }
    }
}
