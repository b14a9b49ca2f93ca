//! Zip archives. An archive may be hostile: what it unpacks to is bounded, and nothing is written under the names in it.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use zip::ZipArchive;
use zip::result::ZipResult;

use super::values::{ATTACHMENT, FILES};
use crate::error::{Error, Result};

/// The most bytes that the files of an archive may unpack to, and how many times its size.
const UNPACKED: u64 = 64 * 1024 * 1024 * 1024;
const RATIO: u64 = 400;
/// Bytes that every archive may unpack to, whatever its size.
const UNPACKED_ALWAYS: u64 = 256 * 1024 * 1024;

type Opened = ZipArchive<BufReader<File>>;

/// An archive that is read, entry by entry.
pub(crate) struct Archive {
    /// For attachments, which are looked up while a document is read.
    names: RefCell<Opened>,
    /// For documents. To open one, all names of the archive are read: it is kept for the next document.
    spare: RefCell<Option<Opened>>,
    path: PathBuf,
    /// The bytes that it may still unpack to.
    left: RefCell<u64>,
}

/// A file in an archive.
pub(crate) struct Entry {
    pub(crate) index: usize,
    pub(crate) name: String,
    pub(crate) bytes: u64,
}

/// Names of files that are not read, each with its reason.
type PassedOver = Vec<(String, &'static str)>;

impl Archive {
    /// Opens an archive. Gives its files for which `is_wanted` holds.
    pub(crate) fn open(path: &Path, name: &str, is_wanted: fn(&str) -> bool) -> Result<(Self, Vec<Entry>, PassedOver)> {
        let broken =
            |error: &dyn std::fmt::Display| Error::InvalidInput(format!("{name}: not a readable archive: {error}"));
        let file = File::open(path).map_err(|error| broken(&error))?;
        let packed = file.metadata().map_err(|error| broken(&error))?.len();
        let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|error| broken(&error))?;
        if archive.len() > FILES {
            return Err(broken(&format!("it has {} files; at most {FILES} are accepted", archive.len())));
        }
        let (entries, passed_over) = listed(&mut archive, name, is_wanted);
        let most = packed.saturating_mul(RATIO).clamp(UNPACKED_ALWAYS, UNPACKED);
        let (names, spare, left) = (RefCell::new(archive), RefCell::new(None), RefCell::new(most));
        Ok((Self { names, spare, path: path.to_owned(), left }, entries, passed_over))
    }

    /// Reads an entry from its beginning.
    pub(crate) fn read<T>(&self, index: usize, read: impl FnOnce(&mut dyn BufRead) -> T) -> ZipResult<T> {
        let known = self.spare.borrow_mut().take();
        let mut archive = match known {
            Some(archive) => archive,
            None => ZipArchive::new(BufReader::new(File::open(&self.path)?))?,
        };
        let entry = archive.by_index(index)?;
        let found = read(&mut BufReader::with_capacity(1 << 16, Limited { input: entry, left: &self.left }));
        self.spare.replace(Some(archive));
        Ok(found)
    }

    /// The entry whose name is that of this one with an ending.
    pub(crate) fn beside(&self, index: usize, ending: &str) -> Option<usize> {
        let mut archive = self.names.borrow_mut();
        let name = archive.by_index_raw(index).ok()?.name().ok()?.into_owned();
        archive.index_for_name(&format!("{name}{ending}"))
    }

    /// The first file whose name is the wanted one: the name, and the content if it is not too large.
    pub(crate) fn find(&self, is_it: impl Fn(&str) -> bool) -> Option<(String, Vec<u8>)> {
        let mut archive = self.names.borrow_mut();
        let name = archive.file_names().flatten().map(|name| name.into_owned()).find(|name| is_it(name))?;
        let entry = archive.by_name(&name).ok()?;
        if entry.size() > ATTACHMENT {
            return None;
        }
        let mut content = Vec::new();
        Limited { input: entry.take(ATTACHMENT), left: &self.left }.read_to_end(&mut content).ok()?;
        Some((name, content))
    }
}

fn listed(archive: &mut Opened, name: &str, is_wanted: fn(&str) -> bool) -> (Vec<Entry>, PassedOver) {
    let (mut entries, mut passed_over) = (Vec::new(), Vec::new());
    for index in 0..archive.len() {
        let entry = match archive.by_index_raw(index) {
            Ok(entry) => entry,
            Err(error) => {
                passed_over.push((format!("{name}: entry {index}: {error}"), "unreadable"));
                continue;
            }
        };
        let Ok(inner) = entry.name().map(|name| name.into_owned()) else {
            passed_over.push((format!("{name}: entry {index}"), "unreadable"));
            continue;
        };
        if entry.is_dir() || !is_wanted(&inner) {
            continue;
        }
        // Nothing is written under that name, but an archive that tries is not trusted.
        let is_absolute = inner.starts_with('/') || inner.contains(['\\', ':']);
        if is_absolute || entry.enclosed_name().is_none() || entry.is_symlink() {
            passed_over.push((inner, "path_outside_the_archive"));
        } else if entry.encrypted() {
            passed_over.push((inner, "encrypted"));
        } else {
            entries.push(Entry { index, name: inner, bytes: entry.size() });
        }
    }
    (entries, passed_over)
}

/// The bytes that an archive may still unpack to.
struct Limited<'a, R> {
    input: R,
    left: &'a RefCell<u64>,
}

impl<R: Read> Read for Limited<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        let mut left = self.left.borrow_mut();
        *left = left.checked_sub(read as u64).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "the archive unpacks to far more than its size: it may be a zip bomb",
            )
        })?;
        Ok(read)
    }
}
