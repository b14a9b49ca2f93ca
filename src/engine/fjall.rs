//! fjall: a log-structured engine, for stores that are written more than they are read.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::url::cache_bytes;
use super::{Batch, Directory, Engine, Order, Url, Visit};
use crate::error::{Error, Result};

const NAME: &str = "fjall";
/// fjall's own folder in the store's directory.
const FOLDER: &str = "fjall";
const DEFAULT_CACHE_BYTES: u64 = 32 * 1024 * 1024;

pub(crate) struct Fjall {
    keyspace: Keyspace,
    db: Database,
    /// Dropped last, and with it the lock.
    directory: Directory,
}

pub(super) fn open(path: &Path, url: &Url) -> Result<Arc<dyn Engine>> {
    url.check_options(&["cache_mb"])?;
    let cache = url.option("cache_mb").map(cache_bytes).transpose()?.unwrap_or(DEFAULT_CACHE_BYTES);
    let mut directory = Directory::take(path, NAME, |name| name == FOLDER)?;
    let folder = path.join(FOLDER);
    let (db, keyspace) = directory.open_within(|| {
        let db = Database::builder(&folder)
            .cache_size(cache)
            // The committer syncs once for all that it writes.
            .manual_journal_persist(true)
            .open()
            .map_err(|error| from_fjall("open", path, error))?;
        let keyspace = db.keyspace("store", || KeyspaceCreateOptions::default().manual_journal_persist(true));
        let keyspace = keyspace.map_err(|error| from_fjall("open", path, error))?;
        Ok((db, keyspace))
    })?;
    directory.sync()?;
    Ok(Arc::new(Fjall { keyspace, db, directory }))
}

fn from_fjall(action: &str, path: &Path, error: fjall::Error) -> Error {
    let action = format!("{action} the store {}", path.display());
    match error {
        fjall::Error::Io(source) => Error::Io { action, source },
        fjall::Error::Storage(fjall::LsmError::Io(source)) => Error::Io { action, source },
        error => Error::Corrupt { conversation: None, seq: None, detail: format!("{action}: {error}") },
    }
}

impl Fjall {
    fn error(&self, action: &str) -> impl FnOnce(fjall::Error) -> Error {
        move |error| from_fjall(action, self.directory.path(), error)
    }
}

impl std::fmt::Debug for Fjall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fjall").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl Engine for Fjall {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.keyspace.get(key).map(|value| value.map(|value| value.to_vec())).map_err(self.error("read"))
    }

    fn scan(&self, range: Range<&[u8]>, order: Order, visit: Visit<'_>) -> Result<()> {
        if range.start >= range.end {
            return Ok(());
        }
        let mut pairs = self.keyspace.range(range);
        loop {
            let pair = match order {
                Order::Ascending => pairs.next(),
                Order::Descending => pairs.next_back(),
            };
            let Some(pair) = pair else { return Ok(()) };
            let (key, value) = pair.into_inner().map_err(self.error("read"))?;
            if visit(&key, &value) == ControlFlow::Break(()) {
                return Ok(());
            }
        }
    }

    fn write(&self, batch: Batch) -> Result<()> {
        // All writes of a batch have one sequence number: of two for one key, fjall would not know the later one.
        let last: BTreeMap<Vec<u8>, Option<Vec<u8>>> = batch.ops.into_iter().collect();
        let mut batch = self.db.batch();
        for (key, value) in last {
            match value {
                Some(value) => batch.insert(&self.keyspace, key, value),
                None => batch.remove(&self.keyspace, key),
            }
        }
        batch.commit().map_err(self.error("write"))
    }

    fn sync(&self) -> Result<()> {
        self.db.persist(PersistMode::SyncData).map_err(self.error("sync"))
    }

    fn directory(&self) -> Option<&Directory> {
        Some(&self.directory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conforms() {
        let dir = tempfile::tempdir().unwrap();
        let url = Url::parse(&format!("fjall:{}", dir.path().display())).unwrap();
        super::super::conformance::run(&*open(dir.path(), &url).unwrap());
    }
}
