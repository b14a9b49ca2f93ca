//! sled 0.34.7. Its flush is no fsync: `docs/durability.md` says what was measured, and why each line here is needed.

mod handle;
mod opening;
mod watch;

use std::fs::File;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;

use super::url::{cache_bytes, syncs};
use super::{Batch, Directory, Engine, Order, Url, Visit};
use crate::error::{Error, Result};
use handle::Handle;

const NAME: &str = "sled";
const LOG: &str = "db";
const DEFAULT_CACHE_BYTES: u64 = 64 * 1024 * 1024;
/// sled's cache notes accesses in 256 queues and evicts nothing before a queue has 64 of them, however large the pages are
/// (`lru.rs`). So a value is accessed once for each so many of its bytes: else large ones would fill the memory.
const BYTES_OF_AN_ACCESS: usize = 16 * 1024;

#[derive(Debug)]
pub(crate) struct Sled {
    handle: Handle,
    /// sled's log, through a handle of our own: what makes a flush survive a power cut.
    log: File,
    /// False for throw-away stores only.
    syncs: bool,
    /// Dropped last, and with it the lock.
    directory: Directory,
}

pub(super) fn open(path: &Path, url: &Url) -> Result<Arc<dyn Engine>> {
    url.check_options(&["cache_mb", "sync"])?;
    let syncs = syncs(url)?;
    let cache = url.option("cache_mb").map(cache_bytes).transpose()?.unwrap_or(DEFAULT_CACHE_BYTES);
    let mut directory = Directory::take(path, NAME, opening::is_sleds)?;
    let handle = opening::open(&mut directory, cache)?;
    let log_path = path.join(LOG);
    let log = File::options().read(true).write(true).open(&log_path);
    let log = log.map_err(Error::io(format!("open {}", log_path.display())))?;
    directory.sync()?;
    Ok(Arc::new(Sled { handle, log, syncs, directory }))
}

impl Sled {
    fn call<T>(&self, action: &str, call: impl FnOnce(&sled::Tree) -> sled::Result<T>) -> Result<T> {
        self.handle.call(self.directory.path(), action, call)
    }

    /// Lets the cache know how large a value is that was read or written.
    fn weigh(&self, key: &[u8], bytes: usize) -> Result<()> {
        (0..bytes / BYTES_OF_AN_ACCESS).try_for_each(|_| self.call("read", |tree| tree.contains_key(key)).map(|_| ()))
    }
}

impl Engine for Sled {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let Some(value) = self.call("read", |tree| tree.get(key))? else { return Ok(None) };
        self.weigh(key, value.len())?;
        Ok(Some(value.to_vec()))
    }

    fn scan(&self, range: Range<&[u8]>, order: Order, visit: Visit<'_>) -> Result<()> {
        if range.start >= range.end {
            return Ok(());
        }
        let mut pairs = self.call("read", |tree| Ok(tree.range(range)))?;
        loop {
            let pair = self.call("read", |_| match order {
                Order::Ascending => pairs.next().transpose(),
                Order::Descending => pairs.next_back().transpose(),
            })?;
            let Some((key, value)) = pair else { return Ok(()) };
            self.weigh(&key, value.len())?;
            if visit(&key, &value) == ControlFlow::Break(()) {
                return Ok(());
            }
        }
    }

    fn write(&self, batch: Batch) -> Result<()> {
        let (mut sleds, mut large) = (sled::Batch::default(), Vec::new());
        for (key, value) in batch.ops {
            match value {
                Some(value) => {
                    if value.len() >= BYTES_OF_AN_ACCESS {
                        large.push((key.clone(), value.len()));
                    }
                    sleds.insert(key, value);
                }
                None => sleds.remove(key),
            }
        }
        self.call("write", |tree| tree.apply_batch(sleds))?;
        large.iter().try_for_each(|(key, bytes)| self.weigh(key, *bytes))
    }

    fn sync(&self) -> Result<()> {
        self.handle.flush(self.directory.path())?;
        if self.syncs {
            self.log.sync_data().map_err(Error::io("sync the store's log"))?;
        }
        Ok(())
    }

    fn directory(&self) -> Option<&Directory> {
        Some(&self.directory)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::super::conformance;
    use super::*;

    #[test]
    fn conforms() {
        let (dir, url) = conformance::place(NAME);
        conformance::run(&*open(dir.path(), &url).unwrap());
    }

    #[test]
    fn a_cut_off_snapshot_does_not_keep_a_store_from_opening() {
        let (dir, url) = conformance::place(NAME);
        drop(open(dir.path(), &url).unwrap());
        fs::write(dir.path().join("snap.0000000000000001.generating"), b"cut off").unwrap();
        drop(open(dir.path(), &url).unwrap());
    }

    #[test]
    fn settings_that_a_crash_left_torn_do_not_keep_a_store_from_opening() {
        let (dir, url) = conformance::place(NAME);
        drop(open(dir.path(), &url).unwrap());
        let settings = dir.path().join("conf");
        let whole = fs::read(&settings).unwrap();
        for length in [0, 8, 9, 30, 59, whole.len() - 1] {
            fs::write(&settings, &whole[..length]).unwrap();
            drop(open(dir.path(), &url).unwrap());
            assert_eq!(fs::read(&settings).unwrap(), whole);
        }
    }

    #[test]
    fn sleds_own_lock_is_waited_for() {
        let (dir, url) = conformance::place(NAME);
        drop(open(dir.path(), &url).unwrap());
        let log = File::open(dir.path().join("db")).unwrap();
        while log.try_lock().is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::scope(|scope| {
            let opening = scope.spawn(|| open(dir.path(), &url).map(drop));
            std::thread::sleep(Duration::from_millis(50));
            assert!(!opening.is_finished());
            log.unlock().unwrap();
            opening.join().unwrap().unwrap();
        });
    }
}
