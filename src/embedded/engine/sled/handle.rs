//! The one way to sled: it is opened on what a crash or damage may have left, its panics stop here, its errors become ours,
//! and a flush that would wait for ever is woken.
//!
//! A flush of sled's may wait for a write that has failed already: sled notes the error, and wakes nobody
//! (`exit_reservation` in its `pagecache/logger.rs`). A thread that flushes after that gets the error at once, and
//! wakes those who wait. [`Watch`] does so for the one that commits.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fmt, fs, io};

use super::super::contract::{damaged, guarded};
use super::super::directory::Directory;
use crate::error::{Error, Result};

/// sled's log.
pub(super) const LOG: &str = "db";
const SNAPSHOT: &str = "snap.";
/// sled overwrites a freed segment in place; the larger the segment, the later. The size also sets from when on sled
/// keeps a value in its own file, which it never syncs: a quarter of a segment.
const SEGMENT_BYTES: usize = 8 * 1024 * 1024;
/// Room for the small files of an opening.
const SPARE_BYTES: u64 = 2 * 1024 * 1024;
/// How long to wait for sled's own lock: its threads may hold it for a moment after a store was dropped (spacejam/sled
/// #1289). No other process of ours has it, because the directory's lock is taken first.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);
/// sled's settings: constants, and their checksum. sled writes the file in two steps, never syncs it, and does not open
/// after the first step alone.
const SETTINGS: &str = "conf";

pub(super) fn open(directory: &mut Directory, cache: u64) -> Result<Handle> {
    let path = directory.path().to_owned();
    // On opening, sled fills the last segment with zeros, and writes a snapshot, larger than the one before.
    directory.set_reserve(SEGMENT_BYTES as u64 + 2 * snapshot_bytes(&path) + SPARE_BYTES);
    match directory.open_within(|| open_db(&path, cache)) {
        Err(Error::Corrupt { .. }) if has_snapshot(&path) => {
            // The snapshot only makes opening faster: without it the whole log is read.
            set_aside(directory)?;
            directory.open_within(|| open_db(&path, cache))
        }
        result => result,
    }
}

fn open_db(path: &Path, cache: u64) -> Result<Handle> {
    // An earlier attempt may have left them too.
    remove_cut_off_snapshots(path)?;
    remove_torn_settings(path)?;
    let config = sled::Config::new()
        .path(path)
        .segment_size(SEGMENT_BYTES)
        .cache_capacity(cache)
        // The committer flushes every write: sled's own clock would leave writes unsynced in between.
        .flush_every_ms(None);
    open_unlocked(&config, path)
}

fn snapshot_bytes(path: &Path) -> u64 {
    let names = file_names(path).unwrap_or_default();
    let snapshots = names.iter().filter(|name| name.starts_with(SNAPSHOT));
    snapshots.filter_map(|name| fs::metadata(path.join(name)).ok()).map(|found| found.len()).sum()
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

fn open_unlocked(config: &sled::Config, path: &Path) -> Result<Handle> {
    let until = Instant::now() + LOCK_PATIENCE;
    loop {
        match Handle::open(config, path)? {
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
pub(super) fn is_sleds(name: &str) -> bool {
    [LOG, SETTINGS, "blobs"].contains(&name) || name.starts_with(SNAPSHOT)
}

/// A crash during sled's opening leaves these, and sled then refuses to open. Nothing reads them.
fn remove_cut_off_snapshots(path: &Path) -> Result<()> {
    for name in file_names(path)?.iter().filter(|name| name.starts_with(SNAPSHOT) && name.ends_with(".generating")) {
        let path = path.join(name);
        fs::remove_file(&path).map_err(Error::io(format!("remove {}", path.display())))?;
    }
    Ok(())
}

/// Settings whose checksum does not match: sled writes them again, with the same constants.
fn remove_torn_settings(path: &Path) -> Result<()> {
    let path = path.join(SETTINGS);
    let Ok(bytes) = fs::read(&path) else { return Ok(()) };
    match bytes.split_last_chunk() {
        // Its lowest byte comes first.
        Some((settings, &[a, b, c, d])) if crc32fast::hash(settings) == u32::from_be_bytes([d, c, b, a]) => Ok(()),
        _ => fs::remove_file(&path).map_err(Error::io(format!("remove {}", path.display()))),
    }
}

/// An open sled. It panics when it meets damage or a failing disk.
pub(super) struct Handle {
    /// Dropped first: its thread has the store open too. Absent only during the drop.
    watch: Option<Watch>,
    /// Absent only during the drop.
    db: Option<sled::Db>,
}

/// Without the stored data: sled would print all of it.
impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("watch", &self.watch).finish_non_exhaustive()
    }
}

impl Handle {
    pub(super) fn open(config: &sled::Config, path: &Path) -> Result<sled::Result<Self>> {
        let db = match guarded(path, "open", || config.open())? {
            Ok(db) => db,
            Err(error) => return Ok(Err(error)),
        };
        let watch = Watch::start(config.clone(), db.clone())?;
        Ok(Ok(Self { watch: Some(watch), db: Some(db) }))
    }

    /// Hands everything to the operating system.
    pub(super) fn flush(&self, path: &Path) -> Result<()> {
        let flush = || self.call(path, "flush", |tree| tree.flush()).map(|_| ());
        self.watch.as_ref().map_or_else(flush, |watch| watch.flush(flush))
    }

    pub(super) fn call<T>(
        &self,
        path: &Path,
        action: &str,
        call: impl FnOnce(&sled::Tree) -> sled::Result<T>,
    ) -> Result<T> {
        let tree = self.db.as_deref().ok_or_else(|| damaged(path, "it is closed"))?;
        guarded(path, action, || call(tree))?.map_err(|error| from_sled(action, path, error))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        drop(self.watch.take());
        let db = self.db.take();
        // What was acknowledged is on the disk. sled syncs once more, and panics if it cannot.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(db)));
    }
}

fn from_sled(action: &str, path: &Path, error: sled::Error) -> Error {
    match error {
        sled::Error::Io(source) => {
            Error::Io { action: format!("{action} the store {}", path.display()), source: plain(source) }
        }
        error => damaged(path, &format!("{action}: {error}")),
    }
}

/// The operating system's error that sled turned into text: `Os { code: 28, kind: ..`.
fn plain(error: io::Error) -> io::Error {
    let text = error.to_string();
    let code = text.strip_prefix("Os { code: ").and_then(|rest| rest.split(',').next()?.parse().ok());
    code.map_or(error, io::Error::from_raw_os_error)
}

/// How long a flush may wait before this thread checks it.
const FLUSH_PATIENCE: Duration = Duration::from_millis(250);

/// The thread. It sleeps while nothing is flushed.
#[derive(Debug)]
struct Watch {
    flushes: Arc<Flushes>,
    /// Absent only during the drop.
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Flushes {
    begun: AtomicU64,
    ended: AtomicU64,
    sleeps: AtomicBool,
    stop: AtomicBool,
}

impl Watch {
    pub(super) fn start(config: sled::Config, db: sled::Db) -> Result<Self> {
        let flushes = Arc::new(Flushes::default());
        let watched = Arc::clone(&flushes);
        let thread = thread::Builder::new().name("conversation-store-sled".to_owned());
        let thread = thread.spawn(move || watched.watch(&config, &db)).map_err(Error::io("start a thread for sled"))?;
        Ok(Self { flushes, thread: Some(thread) })
    }

    /// Flushes, watched.
    pub(super) fn flush<T>(&self, flush: impl FnOnce() -> T) -> T {
        self.flushes.begun.fetch_add(1, Ordering::SeqCst);
        if self.flushes.sleeps.swap(false, Ordering::SeqCst) {
            self.wake();
        }
        let flushed = flush();
        self.flushes.ended.fetch_add(1, Ordering::SeqCst);
        flushed
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.flushes.stop.store(true, Ordering::SeqCst);
        self.wake();
        if let Some(thread) = self.thread.take() {
            // It catches sled's panics.
            let _ = thread.join();
        }
    }
}

impl Flushes {
    fn watch(&self, config: &sled::Config, db: &sled::Db) {
        let mut seen = 0;
        while !self.stop.load(Ordering::SeqCst) {
            let begun = self.begun.load(Ordering::SeqCst);
            let is_waiting = self.ended.load(Ordering::SeqCst) < begun;
            if is_waiting && begun == seen && config.global_error().is_err() {
                // It fails at once; that is its only purpose.
                let _ = catch_unwind(AssertUnwindSafe(|| db.flush()));
            }
            if is_waiting || begun != seen {
                seen = begun;
                thread::park_timeout(FLUSH_PATIENCE);
                continue;
            }
            self.sleeps.store(true, Ordering::SeqCst);
            if self.begun.load(Ordering::SeqCst) == seen {
                thread::park();
            }
            self.sleeps.store(false, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_operating_system_read_as_such() {
        for error in [io::Error::from_raw_os_error(28), io::Error::other("something else")] {
            let cloned = sled::Error::Io(io::Error::new(error.kind(), format!("{error:?}")));
            let Error::Io { source, .. } = from_sled("flush", Path::new("db"), cloned) else { panic!("an I/O error") };
            assert_eq!(source.raw_os_error(), error.raw_os_error());
        }
    }
}
