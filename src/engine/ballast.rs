//! Room that is kept for a full disk: an engine has to write a little before it can be read.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The file's name in the store's directory.
const NAME: &str = "ballast";
const BYTES: usize = 4 * 1024 * 1024;

fn path(directory: &Path) -> PathBuf {
    directory.join(NAME)
}

/// Keeps the room, if it is not kept yet. A disk without it is no error: the store works, but a later full disk is worse.
pub(super) fn keep(directory: &Path) {
    let path = path(directory);
    if fs::metadata(&path).is_ok_and(|found| found.len() == BYTES as u64) {
        return;
    }
    // Bytes that a file system cannot leave out as a hole, or compress away.
    let pattern: Vec<u8> = (0..BYTES).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let written = File::create(&path).and_then(|mut file| file.write_all(&pattern).and_then(|()| file.sync_all()));
    if written.is_err() {
        let _ = fs::remove_file(&path);
    }
}

/// Gives the room back. False: there was none.
pub(super) fn release(directory: &Path) -> io::Result<bool> {
    match fs::remove_file(path(directory)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
