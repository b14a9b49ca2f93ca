//! sled 0.34.7. Its flush is no fsync: `docs/durability.md` says what was measured, and why each line here is needed.

use std::fs::{self, File};
use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::url::cache_bytes;
use super::{Batch, Directory, Engine, Order, Url, Visit};
use crate::error::{Error, Result};

const NAME: &str = "sled";
const LOG: &str = "db";
const SNAPSHOT: &str = "snap.";
/// A freed segment is overwritten in place; the larger it is, the later. It also lifts the size from which sled keeps a
/// value in a file of its own, which it never syncs: a quarter of a segment.
const SEGMENT_BYTES: usize = 8 * 1024 * 1024;
const DEFAULT_CACHE_BYTES: u64 = 64 * 1024 * 1024;
/// How long sled's own lock is waited for: its threads may hold it for a moment after a store was dropped
/// (spacejam/sled #1289). No other process of ours has it, since the directory's lock is taken first.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Sled {
    tree: sled::Tree,
    db: sled::Db,
    /// sled's log, through a handle of our own: what makes a flush survive a power cut.
    log: File,
    /// False for throw-away stores only: a power cut takes what was acknowledged, or the store.
    syncs: bool,
    /// Dropped last, and with it the lock.
    directory: Directory,
}

pub(super) fn open(path: &Path, url: &Url) -> Result<Arc<dyn Engine>> {
    url.check_options(&["cache_mb", "sync"])?;
    let syncs = match url.option("sync") {
        None | Some("always") => true,
        Some("never") => false,
        Some(other) => return Err(Error::InvalidInput(format!("sync={other}: expected always or never"))),
    };
    let cache = url.option("cache_mb").map(cache_bytes).transpose()?.unwrap_or(DEFAULT_CACHE_BYTES);
    let mut directory = Directory::take(path, NAME, is_sleds)?;
    remove_cut_off_snapshots(path)?;
    let db = match directory.open_within(|| open_db(path, cache)) {
        Err(Error::Corrupt { .. }) if has_snapshot(path) => {
            // The snapshot is only there to open faster: without it the whole log is read.
            set_aside(&mut directory)?;
            directory.open_within(|| open_db(path, cache))?
        }
        result => result?,
    };
    let log_path = path.join(LOG);
    let log = File::options().read(true).write(true).open(&log_path);
    let log = log.map_err(Error::io(format!("open {}", log_path.display())))?;
    directory.sync()?;
    Ok(Arc::new(Sled { tree: (*db).clone(), db, log, syncs, directory }))
}

fn open_db(path: &Path, cache: u64) -> Result<sled::Db> {
    let config = sled::Config::new()
        .path(path)
        .segment_size(SEGMENT_BYTES)
        .cache_capacity(cache)
        // Every write is flushed by the committer: sled's own clock would leave writes unsynced in between.
        .flush_every_ms(None);
    open_unlocked(&config, path)
}

fn has_snapshot(path: &Path) -> bool {
    file_names(path).is_ok_and(|names| names.iter().any(|name| name.starts_with(SNAPSHOT)))
}

/// Copies the directory beside itself, notes that, then removes the snapshots in it.
fn set_aside(directory: &mut Directory) -> Result<()> {
    let path = directory.path().to_owned();
    let mut copy = path.as_os_str().to_owned();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros());
    copy.push(format!(".damaged-{now}"));
    let copy = Path::new(&copy);
    let names = file_names(&path)?;
    let set_aside = || {
        fs::create_dir(copy)?;
        for name in names.iter().filter(|name| path.join(name).is_file()) {
            fs::copy(path.join(name), copy.join(name))?;
        }
        Ok(())
    };
    set_aside().map_err(|error| {
        // Half a copy is of no use.
        let _ = fs::remove_dir_all(copy);
        Error::io(format!("set the damaged store {} aside as {}", path.display(), copy.display()))(error)
    })?;
    directory.note_damage(copy)?;
    for name in names.iter().filter(|name| name.starts_with(SNAPSHOT)) {
        let snapshot = path.join(name);
        fs::remove_file(&snapshot).map_err(Error::io(format!("remove {}", snapshot.display())))?;
    }
    Ok(())
}

fn file_names(path: &Path) -> Result<Vec<String>> {
    let names = || -> std::io::Result<Vec<String>> {
        fs::read_dir(path)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    };
    names().map_err(Error::io(format!("list {}", path.display())))
}

fn open_unlocked(config: &sled::Config, path: &Path) -> Result<sled::Db> {
    let until = Instant::now() + PATIENCE;
    loop {
        let db = catch_unwind(AssertUnwindSafe(|| config.open()))
            .map_err(|_| damaged(path, "sled panicked while opening it"))?;
        match db {
            Err(sled::Error::Io(error)) if error.to_string().contains("could not acquire lock") => {
                if Instant::now() > until {
                    return Err(Error::Busy(format!("{}: another program holds sled's lock", path.display())));
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            db => return db.map_err(|error| from_sled("open", path, error)),
        }
    }
}

/// The names that sled gives its files.
fn is_sleds(name: &str) -> bool {
    [LOG, "conf", "blobs"].contains(&name) || name.starts_with(SNAPSHOT)
}

/// A crash while sled was opening leaves these, and sled then refuses to open. Nothing reads them.
fn remove_cut_off_snapshots(path: &Path) -> Result<()> {
    for name in file_names(path)?.iter().filter(|name| name.starts_with(SNAPSHOT) && name.ends_with(".generating")) {
        let path = path.join(name);
        fs::remove_file(&path).map_err(Error::io(format!("remove {}", path.display())))?;
    }
    Ok(())
}

fn damaged(path: &Path, detail: &str) -> Error {
    let detail = format!("{}: {detail}", path.display());
    Error::Corrupt { conversation: None, seq: None, detail }
}

fn from_sled(action: &str, path: &Path, error: sled::Error) -> Error {
    match error {
        sled::Error::Io(source) => Error::Io { action: format!("{action} the store {}", path.display()), source },
        error => damaged(path, &format!("{action}: {error}")),
    }
}

impl Sled {
    fn error(&self, action: &str) -> impl FnOnce(sled::Error) -> Error {
        move |error| from_sled(action, self.directory.path(), error)
    }
}

impl Engine for Sled {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.tree.get(key).map(|value| value.map(|value| value.to_vec())).map_err(self.error("read"))
    }

    fn scan(&self, range: Range<&[u8]>, order: Order, visit: Visit<'_>) -> Result<()> {
        if range.start >= range.end {
            return Ok(());
        }
        let mut pairs = self.tree.range(range);
        loop {
            let pair = match order {
                Order::Ascending => pairs.next(),
                Order::Descending => pairs.next_back(),
            };
            let Some(pair) = pair else { return Ok(()) };
            let (key, value) = pair.map_err(self.error("read"))?;
            if visit(&key, &value) == ControlFlow::Break(()) {
                return Ok(());
            }
        }
    }

    fn write(&self, batch: Batch) -> Result<()> {
        let mut sleds = sled::Batch::default();
        for (key, value) in batch.ops {
            match value {
                Some(value) => sleds.insert(key, value),
                None => sleds.remove(key),
            }
        }
        self.tree.apply_batch(sleds).map_err(self.error("write"))
    }

    fn sync(&self) -> Result<()> {
        self.db.flush().map_err(self.error("flush"))?;
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
    use super::*;

    #[test]
    fn conforms() {
        let dir = tempfile::tempdir().unwrap();
        let url = Url::parse(&format!("sled:{}", dir.path().display())).unwrap();
        super::super::conformance::run(&*open(dir.path(), &url).unwrap());
    }

    #[test]
    fn a_cut_off_snapshot_does_not_keep_a_store_from_opening() {
        let dir = tempfile::tempdir().unwrap();
        let url = Url::parse(&format!("sled:{}", dir.path().display())).unwrap();
        drop(open(dir.path(), &url).unwrap());
        fs::write(dir.path().join("snap.0000000000000001.generating"), b"cut off").unwrap();
        drop(open(dir.path(), &url).unwrap());
    }

    #[test]
    fn sleds_own_lock_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let url = Url::parse(&format!("sled:{}", dir.path().display())).unwrap();
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
