//! Opening sled on what a crash, or damage, may have left.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::super::directory::Directory;
use super::handle::{Handle, from_sled};
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
const PATIENCE: Duration = Duration::from_secs(5);
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
    let until = Instant::now() + PATIENCE;
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
