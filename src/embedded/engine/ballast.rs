//! Room that is kept for a full disk: an engine must write a little before it can be read.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The file's name in the store's directory.
const NAME: &str = "ballast";
/// The name of a file that is made to look for room, and removed.
const TRIAL: &str = "ballast.trial";
/// Bytes of one write.
const PIECE: usize = 64 * 1024;

fn path(directory: &Path) -> PathBuf {
    directory.join(NAME)
}

/// Reserves this many bytes of room, or a little more, unless they are reserved already. A disk without that room is no
/// error: the store works, but a later full disk is worse.
pub(super) fn keep(directory: &Path, bytes: u64) {
    let path = path(directory);
    let found = fs::metadata(&path).map(|found| found.len());
    if found.as_ref().is_ok_and(|found| *found >= bytes) {
        return;
    }
    // What is left of it is still better than none.
    if write(&path, bytes).is_err() && found.is_err() {
        let _ = fs::remove_file(&path);
    }
}

/// Keeps what is left of the room on a full disk. The part that is gone cannot be recovered.
pub(super) fn keep_the_rest(directory: &Path, bytes: u64) {
    let path = path(directory);
    if fs::metadata(&path).is_ok_and(|found| found.len() >= bytes) {
        return;
    }
    let _ = write(&path, bytes);
}

fn write(path: &Path, bytes: u64) -> io::Result<()> {
    fill(path, bytes)?.sync_all()
}

fn fill(path: &Path, bytes: u64) -> io::Result<File> {
    // Bytes that a file system cannot store as a hole, or compress away.
    let pattern: Vec<u8> = (0..PIECE).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let mut file = File::create(path)?;
    for _ in 0..bytes.div_ceil(PIECE as u64) {
        file.write_all(&pattern)?;
    }
    Ok(file)
}

/// Fails if the disk has no room for so many bytes.
pub(super) fn check_room(directory: &Path, bytes: u64) -> io::Result<()> {
    let path = directory.join(TRIAL);
    // Not synced: a file system that allocates later still counts the bytes when they are written.
    let written = fill(&path, bytes);
    let _ = fs::remove_file(&path);
    written.map(drop)
}

/// Releases the room. False: there was none.
pub(super) fn release(directory: &Path) -> io::Result<bool> {
    match fs::remove_file(path(directory)) {
        Ok(()) => {
            // A file system with a journal gives the room to others once the journal has the removal.
            File::open(directory)?.sync_all()?;
            Ok(true)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
