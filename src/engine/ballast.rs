//! Room that is kept for a full disk: an engine has to write a little before it can be read.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The file's name in the store's directory.
const NAME: &str = "ballast";
const BYTES: usize = 4 * 1024 * 1024;
/// Bytes of one write.
const PIECE: usize = 4096;

fn path(directory: &Path) -> PathBuf {
    directory.join(NAME)
}

/// Keeps the room, if it is not kept yet. A disk without it is no error: the store works, but a later full disk is worse.
pub(super) fn keep(directory: &Path) {
    let path = path(directory);
    if fs::metadata(&path).is_ok_and(|found| found.len() == BYTES as u64) {
        return;
    }
    if write(&path).is_err() {
        let _ = fs::remove_file(&path);
    }
}

/// Keeps what is left of the room on a full disk. That some of it is gone cannot be helped.
pub(super) fn keep_the_rest(directory: &Path) {
    let _ = write(&path(directory));
}

fn write(path: &Path) -> io::Result<()> {
    // Bytes that a file system cannot leave out as a hole, or compress away.
    let pattern: Vec<u8> = (0..BYTES).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let mut file = File::create(path)?;
    for piece in pattern.chunks(PIECE) {
        file.write_all(piece)?;
    }
    file.sync_all()
}

/// Gives the room back. False: there was none.
pub(super) fn release(directory: &Path) -> io::Result<bool> {
    match fs::remove_file(path(directory)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
