//! An engine's files, written again: what was erased may be in freed pages, which an engine keeps until it reuses them.
//!
//! A copy of all keys and values is made in a folder of the store's directory, and compared; then [`super::swap`] puts it in the
//! place of the engine's files.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::contract::{Batch, Engine, RESERVED};
use super::directory::{Directory, MARKER, read, replace};
use super::swap::{COPY, REMOVES, entries, sync};
use super::table;
use crate::error::{Error, Result};
use crate::log::{Order, Vacuumed};

/// Bytes that are written to the copy in one batch.
const BATCH_BYTES: usize = 512 * 1024;

/// Writes the files of the engine that a URL names again. `progress` is called with values copied, and of all, twice as many as
/// there are: each is compared.
pub(crate) fn vacuum(url: &str, progress: &mut dyn FnMut(u64, u64)) -> Result<Vacuumed> {
    let engine = table::open(url)?;
    let no_files = || Error::InvalidInput(format!("{url} has no files that could be written again"));
    let directory = engine.directory().filter(|directory| directory.established()).ok_or_else(no_files)?;
    if let Some(damage) = engine.damage() {
        return Err(Error::Corrupt { conversation: None, seq: None, detail: damage.to_owned() });
    }
    let (path, bytes_before) = (directory.path().to_owned(), directory.bytes()?);
    let folder = path.join(COPY);
    copy(&*engine, &table::inside(url, COPY), progress).and_then(|()| sync_all(&folder)).inspect_err(|_| {
        // Half a copy is of no use. The next opening tries again.
        let _ = fs::remove_dir_all(&folder);
    })?;
    directory.swap()?;
    drop(engine);
    // Who takes the directory first moves the copy.
    let engine = table::open(url)?;
    let bytes_after = engine.directory().map_or(Ok(0), Directory::bytes)?;
    Ok(Vacuumed { bytes_before, bytes_after, set_aside: set_aside(&path)? })
}

fn copy(engine: &dyn Engine, copy_url: &str, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
    let all = count(engine)?;
    let mut done = 0;
    let copy = table::open(copy_url)?;
    let (mut batch, mut bytes) = (Batch::default(), 0);
    each(engine, &mut |key, value| {
        bytes += key.len() + value.len();
        batch.put(key.to_vec(), value.to_vec());
        done += 1;
        if bytes >= BATCH_BYTES {
            bytes = 0;
            copy.write(std::mem::take(&mut batch))?;
            copy.sync()?;
            progress(done, 2 * all);
        }
        Ok(())
    })?;
    copy.write(batch)?;
    copy.sync()?;
    drop(copy);
    // As the next opening finds it.
    let copy = table::open(copy_url)?;
    let differs = || Error::Corrupt {
        conversation: None,
        seq: None,
        detail: "a copy of the store is not what was written: is the disk failing? The store is as it was".to_owned(),
    };
    each(engine, &mut |key, value| {
        done += 1;
        progress(done, 2 * all);
        if copy.get(key)?.as_deref() == Some(value) { Ok(()) } else { Err(differs()) }
    })?;
    if count(&*copy)? == all { Ok(()) } else { Err(differs()) }
}

/// Called with each key and value.
type Each<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Result<()>;

/// Visits all keys and values, until one fails.
fn each(engine: &dyn Engine, visit: Each<'_>) -> Result<()> {
    let mut result = Ok(());
    engine.scan(&[]..&[RESERVED], Order::Ascending, &mut |key, value| {
        result = visit(key, value);
        if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    result
}

fn count(engine: &dyn Engine) -> Result<u64> {
    let mut count = 0;
    engine.keys(&[]..&[RESERVED], Order::Ascending, &mut |_, _| {
        count += 1;
        ControlFlow::Continue(())
    })?;
    Ok(count)
}

/// Makes files, and the names in folders, survive a power cut.
fn sync_all(path: &Path) -> Result<()> {
    if path.is_dir() {
        entries(path)?.iter().try_for_each(|entry| sync_all(entry))?;
    }
    sync(path)
}

/// The copies that were made of a damaged store: they have what it had.
fn set_aside(path: &Path) -> Result<Vec<PathBuf>> {
    let Some((parent, name)) = path.parent().zip(path.file_name()) else { return Ok(Vec::new()) };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let prefix = format!("{}.damaged-", name.to_string_lossy());
    let is_copy = |entry: &PathBuf| entry.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix));
    Ok(entries(parent)?.into_iter().filter(is_copy).collect())
}

impl Directory {
    /// States in the marker, durably, that the copy takes the place of the engine's files.
    fn swap(&self) -> Result<()> {
        let marker = read(&self.path().join(MARKER))?.unwrap_or_default();
        replace(self.path(), &format!("{}\n{REMOVES}\n", marker.trim_end()))
    }
}

#[cfg(test)]
#[cfg(feature = "sled")]
mod tests {
    use super::super::directory::is_journals;
    use super::super::swap::MOVES;
    use super::*;

    /// All that an engine holds.
    type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

    fn pairs(url: &str) -> Pairs {
        let (engine, mut pairs) = (table::open(url).unwrap(), Vec::new());
        each(&*engine, &mut |key, value| {
            pairs.push((key.to_vec(), value.to_vec()));
            Ok(())
        })
        .unwrap();
        pairs
    }

    fn copy_folder(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in entries(from).unwrap() {
            let to = to.join(entry.file_name().unwrap());
            if entry.is_dir() {
                copy_folder(&entry, &to);
            } else {
                fs::copy(&entry, &to).unwrap();
            }
        }
    }

    /// A store with values of many sizes, and a swap that was asked for and not begun.
    fn asked(dir: &Path, name: &str) -> (PathBuf, Pairs) {
        let path = dir.join(name);
        let url = format!("{name}:{}", path.display());
        let engine = table::open(&url).unwrap();
        for (key, length) in (0..).zip([0, 1, 100, 5_000, 16_384, 100_000, 700_000]) {
            let mut batch = Batch::default();
            batch.put(vec![b'c', key], vec![key; length]);
            engine.write(batch).unwrap();
            engine.sync().unwrap();
        }
        engine.directory().unwrap().establish(1, "id").unwrap();
        drop(engine);
        let before = pairs(&url);
        let engine = table::open(&url).unwrap();
        copy(&*engine, &table::inside(&url, COPY), &mut |_, _| ()).unwrap();
        engine.directory().unwrap().swap().unwrap();
        drop(engine);
        (path, before)
    }

    /// Opens a store that was left like this: it holds what it held, and nothing of a swap is left.
    fn opens(name: &str, path: &Path, before: &Pairs, what: &str) {
        assert!(pairs(&format!("{name}:{}", path.display())) == *before, "{name}: {what}");
        assert!(!path.join(COPY).exists(), "{name}: {what}");
        let marker = read(&path.join(MARKER)).unwrap().unwrap();
        assert!(!marker.contains("swap"), "{name}: {what}: {marker}");
    }

    fn names(path: &Path, name: &str) -> Vec<PathBuf> {
        let is_moved = |entry: &PathBuf| {
            let file = entry.file_name().unwrap().to_string_lossy().into_owned();
            is_journals(&file) || file == name || ["db", "conf", "blobs"].contains(&&*file) || file.starts_with("snap.")
        };
        entries(path).unwrap().into_iter().filter(is_moved).collect()
    }

    #[test]
    fn a_swap_that_is_cut_off_anywhere_is_finished() {
        let engines: &[&str] = if cfg!(feature = "fjall") { &["sled", "fjall"] } else { &["sled"] };
        for name in engines {
            let dir = tempfile::tempdir().unwrap();
            let (asked, before) = asked(dir.path(), name);
            let marker = read(&asked.join(MARKER)).unwrap().unwrap();
            let left = dir.path().join("left");
            let again = || {
                let _ = fs::remove_dir_all(&left);
                copy_folder(&asked, &left);
            };
            let mark = |line: &str| replace(&left, &marker.replace(&format!("{REMOVES}\n"), line)).unwrap();
            again();
            mark("");
            opens(name, &left, &before, "a copy that nothing names");
            let olds = names(&asked, name).len();
            assert!(olds > 0);
            for removed in 0..=olds {
                again();
                for old in names(&left, name).iter().take(removed) {
                    if old.is_dir() { fs::remove_dir_all(old) } else { fs::remove_file(old) }.unwrap();
                }
                opens(name, &left, &before, &format!("{removed} of {olds} old files are removed"));
            }
            let news = names(&asked.join(COPY), name).len();
            assert!(news > 0);
            for moved in 0..=news {
                again();
                for old in names(&left, name) {
                    if old.is_dir() { fs::remove_dir_all(&old) } else { fs::remove_file(&old) }.unwrap();
                }
                mark(&format!("{MOVES}\n"));
                for new in names(&left.join(COPY), name).iter().take(moved) {
                    fs::rename(new, left.join(new.file_name().unwrap())).unwrap();
                }
                opens(name, &left, &before, &format!("{moved} of {news} new files are moved"));
                if moved == news {
                    again();
                    fs::remove_dir_all(left.join(COPY)).unwrap();
                    assert!(table::open(&format!("{name}:{}", left.display())).is_err(), "{name}: the copy is gone");
                }
            }
        }
    }
}
