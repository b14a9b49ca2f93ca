//! A copy of an engine's files takes their place.
//!
//! A line of the marker asks for it. The next who takes the directory does it, under the directory's lock, and goes on where a
//! crash stopped another. Until the line is there, the store is as it was, and a copy that is found is removed.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The folder of the copy.
pub(super) const COPY: &str = "compacted";
/// The line of the marker while the engine's old files are removed.
pub(super) const REMOVES: &str = "needs swap 1";
/// The line of the marker while the files of the copy are moved to where those were.
pub(super) const MOVES: &str = "needs swap 2";

/// Finishes a swap that the marker asks for, and removes a copy that it does not ask for. The directory is locked. `is_swapped`:
/// which files are the engine's and the journal's. `replace` replaces the marker, durably. Gives the marker as it is then.
pub(super) fn finish(
    path: &Path,
    marker: String,
    is_swapped: &dyn Fn(&str) -> bool,
    replace: &dyn Fn(&str) -> Result<()>,
) -> Result<String> {
    let folder = path.join(COPY);
    let is_moved = |entry: &&PathBuf| entry.file_name().is_some_and(|name| is_swapped(&name.to_string_lossy()));
    let failed = |what: &str, path: &Path| Error::io(format!("{what} {}", path.display()));
    let mut marker = marker;
    if has(&marker, REMOVES) {
        if !folder.is_dir() {
            let detail = format!("{}: the folder {COPY}, which its marker names, is missing", path.display());
            return Err(Error::Corrupt { conversation: None, seq: None, detail });
        }
        for entry in entries(path)?.iter().filter(is_moved) {
            let removed = if entry.is_dir() { fs::remove_dir_all(entry) } else { fs::remove_file(entry) };
            removed.map_err(failed("remove", entry))?;
        }
        sync(path)?;
        marker = marker.replace(REMOVES, MOVES);
        replace(&marker)?;
    }
    if has(&marker, MOVES) {
        if folder.is_dir() {
            for entry in entries(&folder)?.iter().filter(is_moved) {
                let to = path.join(entry.file_name().unwrap_or_default());
                fs::rename(entry, &to).map_err(failed("move", entry))?;
            }
            sync(&folder)?;
            sync(path)?;
        }
        let lines: Vec<&str> = marker.lines().filter(|line| *line != MOVES).collect();
        marker = lines.join("\n") + "\n";
        replace(&marker)?;
    }
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(failed("remove", &folder))?;
    }
    Ok(marker)
}

fn has(marker: &str, line: &str) -> bool {
    marker.lines().any(|found| found == line)
}

/// What is in a folder.
pub(super) fn entries(path: &Path) -> Result<Vec<PathBuf>> {
    let list = || fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
    list().map_err(Error::io(format!("list {}", path.display())))
}

/// Makes a file, or the names in a folder, survive a power cut.
pub(super) fn sync(path: &Path) -> Result<()> {
    let synced = File::open(path).and_then(|file| file.sync_all());
    synced.map_err(Error::io(format!("sync {}", path.display())))
}
