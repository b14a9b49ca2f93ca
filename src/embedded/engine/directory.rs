//! The directory of an engine: who holds it, and what its marker states.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::ballast;
use super::swap::{self, sync};
use super::watermark::Watermark;
use crate::error::{Error, Result};

/// The name of the marker file: present once the store's first commit is durable.
pub(crate) const MARKER: &str = "CONVERSATION-STORE";
const LOCK: &str = "lock";
/// How often a store that is locked is tried again, and after how long.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(5);
/// Names the copy of a store that did not open as it was, until the store's content has been compared with what can be
/// derived.
const DAMAGED: &str = "damaged";
/// There while a backup is restored into the directory.
const RESTORING: &str = "restoring";
/// The files that are not the engine's.
const OWN: &[&str] = &[
    MARKER,
    MARKER_DRAFT,
    LOCK,
    DAMAGED,
    RESTORING,
    swap::COPY,
    "watermark",
    "ballast",
    "ballast.trial",
    "journal",
    "journal.large",
];
/// A marker that is being replaced.
const MARKER_DRAFT: &str = "CONVERSATION-STORE.new";
/// What a line of the marker begins with that names what a program must support.
const NEEDS: &str = "needs ";
/// The line of the marker of a store that has a journal: a program that knows of none would see an older state.
const NEEDS_JOURNAL: &str = "needs journal";

/// Bytes that a full disk must still have for an engine to be opened, unless the engine needs more.
const RESERVE: u64 = 4 * 1024 * 1024;

/// A directory that this process holds until the value is dropped.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    engine: &'static str,
    _lock: File,
    established: bool,
    /// The id of the store that the marker names.
    store: Option<String>,
    watermark: Watermark,
    /// Where the store was copied to before it was opened in spite of damage.
    set_aside: Option<PathBuf>,
    /// Whether a program must read a journal to open the store.
    needs_journal: AtomicBool,
    /// The room for a full disk had to be released to open this store, or the disk has none for what the store has to
    /// write.
    disk_full: AtomicBool,
    /// Bytes that a full disk must still have for this store to be opened.
    reserve: u64,
}

impl Directory {
    /// Takes the directory, and creates it if it does not exist.
    ///
    /// # Errors
    /// `Busy` if another process holds it; `InvalidInput` if it is no store, or a store of another engine;
    /// `UnsupportedVersion` if a newer version wrote it. `restores`: it is marked as being restored, if nothing is in it.
    /// `leftovers` decides which files an interrupted creation may have left.
    pub(crate) fn take(path: &Path, engine: &'static str, restores: bool, leftovers: fn(&str) -> bool) -> Result<Self> {
        let shown = path.display();
        if path.exists() && !path.is_dir() {
            return Err(Error::InvalidInput(format!(
                "{shown} is a file, not a conversation store: a store is a directory"
            )));
        }
        create(path)?;
        if read(&path.join(MARKER))?.is_none() {
            check_leftovers(path, leftovers)?;
        }
        let lock = lock(path)?;
        // Until now another process may have replaced it.
        let marker = read(&path.join(MARKER))?;
        let restoring = path.join(RESTORING);
        if restoring.exists() {
            return Err(half_restored(&shown.to_string()));
        }
        if restores && Self::is_vacant(path)? {
            write(&restoring, b"")?;
            sync(path)?;
        }
        let marker = match marker {
            Some(marker) => {
                check_marker(path, engine, &marker)?;
                let is_swapped = |name: &str| leftovers(name) || is_journals(name);
                Some(swap::finish(path, marker, &is_swapped, &|marker| replace(path, marker))?)
            }
            None => None,
        };
        let established = marker.is_some();
        let needs_journal = marker.as_deref().is_some_and(|marker| marker.lines().any(|line| line == NEEDS_JOURNAL));
        let store = marker.as_deref().and_then(|marker| field(marker, "store ")).map(str::to_owned);
        let watermark = Watermark::open(path)?;
        let set_aside = read(&path.join(DAMAGED))?.map(PathBuf::from);
        let path = path.to_owned();
        Ok(Self {
            path,
            engine,
            _lock: lock,
            established,
            store,
            watermark,
            set_aside,
            needs_journal: AtomicBool::new(needs_journal),
            disk_full: AtomicBool::new(false),
            reserve: RESERVE,
        })
    }

    /// Whether nothing is there, or only an empty directory.
    pub(super) fn is_vacant(path: &Path) -> Result<bool> {
        match fs::read_dir(path) {
            Ok(mut entries) => Ok(entries.all(|entry| entry.is_ok_and(|entry| entry.file_name() == LOCK))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
            // A file: taking it reports that.
            Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Ok(false),
            Err(error) => Err(Error::io(format!("list {}", path.display()))(error)),
        }
    }

    /// The bytes of its files.
    pub(crate) fn bytes(&self) -> Result<u64> {
        bytes(&self.path).map_err(Error::io(format!("measure {}", self.path.display())))
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a store existed here before this opening.
    pub(crate) const fn established(&self) -> bool {
        self.established
    }

    /// The id of the store that existed here before this opening, if the marker names one.
    pub(crate) fn store(&self) -> Option<&str> {
        self.store.as_deref()
    }

    /// The number of the last durable commit, as noted beside the engine's files.
    pub(crate) const fn watermark(&self) -> &Watermark {
        &self.watermark
    }

    /// Whether the disk was full when the store was opened.
    pub(crate) fn disk_full(&self) -> bool {
        self.disk_full.load(Ordering::Relaxed)
    }

    /// Notes that the disk is full.
    pub(super) fn note_full(&self) {
        self.disk_full.store(true, Ordering::Relaxed);
    }

    /// Fails if the disk has no room for so many bytes.
    pub(super) fn check_room(&self, bytes: u64) -> Result<()> {
        ballast::check_room(&self.path, bytes).map_err(Error::io("look for room on the disk"))
    }

    /// Whether the disk has room for so many bytes.
    pub(super) fn has_room(&self, bytes: u64) -> Result<bool> {
        match self.check_room(bytes) {
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::StorageFull => Ok(false),
            checked => checked.map(|()| true),
        }
    }

    /// Whether the marker states that the store has a journal.
    pub(super) fn needs_journal(&self) -> bool {
        self.needs_journal.load(Ordering::Relaxed)
    }

    /// States in the marker, durably, that the store has a journal. A store without a marker gets that line with it.
    pub(super) fn need_journal(&self) -> Result<()> {
        if self.needs_journal.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let Some(marker) = read(&self.path.join(MARKER))? else { return Ok(()) };
        self.mark(&format!("{}\n{NEEDS_JOURNAL}\n", marker.trim_end()))
    }

    /// Puts a marker in the place of the one before, durably: a crash leaves one or the other.
    fn mark(&self, text: &str) -> Result<()> {
        replace(&self.path, text)?;
        self.sync()
    }

    /// Where the store was copied to before it was opened in spite of damage, now or earlier, if its content has not
    /// been made consistent since.
    pub(crate) fn set_aside(&self) -> Option<&Path> {
        self.set_aside.as_deref()
    }

    /// Notes for later openings that the store is opened in spite of damage.
    #[cfg(feature = "sled")]
    pub(super) fn note_damage(&mut self, copy: &Path) -> Result<()> {
        let path = self.path.join(DAMAGED);
        write(&path, copy.display().to_string().as_bytes())?;
        self.sync()?;
        self.set_aside = Some(copy.to_owned());
        Ok(())
    }

    /// Notes that the store's content is consistent.
    pub(crate) fn repaired(&self) -> Result<()> {
        remove(&self.path.join(DAMAGED))
    }

    /// Sets how many bytes a full disk must still have for this store to be opened.
    #[cfg(feature = "sled")]
    pub(super) fn set_reserve(&mut self, bytes: u64) {
        self.reserve = bytes;
    }

    /// Reserves the room that a full disk will need, unless it is reserved already.
    pub(crate) fn keep_ballast(&self) {
        ballast::keep(&self.path, self.reserve);
    }

    /// Opens the store; on a full disk a second time, with the room that was reserved for that.
    pub(super) fn open_within<T>(&mut self, open: impl Fn() -> Result<T>) -> Result<T> {
        match open() {
            Err(Error::Io { source, action }) if source.kind() == io::ErrorKind::StorageFull => {
                let released = ballast::release(&self.path).map_err(Error::io("give back the ballast"))?;
                if !released {
                    return Err(Error::Io { action, source });
                }
                self.note_full();
                open()
            }
            result => result,
        }
    }

    /// Notes that a backup was restored into it, whole.
    pub(crate) fn restored(&self) -> Result<()> {
        remove(&self.path.join(RESTORING))?;
        self.sync()
    }

    /// Makes the names in the directory, and its own name, survive a power cut.
    pub(crate) fn sync(&self) -> Result<()> {
        let parent = self.path.canonicalize().ok().and_then(|path| path.parent().map(Path::to_owned));
        [Some(self.path.clone()), parent].into_iter().flatten().try_for_each(|path| sync(&path))
    }

    /// Writes the marker: from now on, an empty store here is a damaged one.
    pub(crate) fn establish(&self, format_version: u32, store_id: &str) -> Result<()> {
        let mut text =
            format!("conversation-store\nformat {format_version}\nengine {}\nstore {store_id}\n", self.engine);
        if self.needs_journal.load(Ordering::Relaxed) {
            text.push_str(NEEDS_JOURNAL);
            text.push('\n');
        }
        self.mark(&text)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if self.disk_full() {
            // Nothing was written, so most of the room is still there: the next opening will need it too.
            ballast::keep_the_rest(&self.path, self.reserve);
        }
    }
}

/// Removes a file, if it is there.
fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::io(format!("remove {}", path.display()))(error))
        }
        _ => Ok(()),
    }
}

/// Puts a marker in the place of a directory's, durably: a crash leaves one or the other.
pub(super) fn replace(directory: &Path, marker: &str) -> Result<()> {
    let (path, draft) = (directory.join(MARKER), directory.join(MARKER_DRAFT));
    write(&draft, marker.as_bytes())?;
    fs::rename(&draft, &path).map_err(Error::io(format!("replace {}", path.display())))?;
    sync(directory)
}

/// Whether a file is the journal's: it goes with the engine's.
pub(super) fn is_journals(name: &str) -> bool {
    name.starts_with("journal")
}

/// The error of a store that a restore left half done.
pub(crate) fn half_restored(place: &str) -> Error {
    Error::InvalidInput(format!("{place}: a restore into it was interrupted: remove it, then restore again"))
}

/// Creates a directory and those above it. The names of those survive a power cut; its own does after [`Directory::sync`].
fn create(path: &Path) -> Result<()> {
    if path.exists() {
        return Ok(());
    }
    let shown = path.display();
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent.filter(|parent| !parent.exists()) {
        create(parent)?;
        let above = parent.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        sync(above)?;
    }
    match fs::create_dir(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(Error::io(format!("create the store directory {shown}"))(error))
        }
        _ => Ok(()),
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let write = || {
        let mut file = File::create(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().map_err(Error::io(format!("write {}", path.display())))
}

/// The text of a file, if it exists.
pub(super) fn read(path: &Path) -> Result<Option<String>> {
    match fs::read(path) {
        // A file that a crash left empty states nothing; the engine's own data decides.
        Ok(bytes) if bytes.is_empty() => Ok(None),
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(format!("read {}", path.display()))(error)),
    }
}

fn check_leftovers(path: &Path, leftovers: fn(&str) -> bool) -> Result<()> {
    let list = || -> io::Result<Vec<String>> {
        fs::read_dir(path)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    };
    let names = list().map_err(Error::io(format!("list {}", path.display())))?;
    match names.iter().find(|name| !OWN.contains(&name.as_str()) && !leftovers(name)) {
        None => Ok(()),
        Some(name) => Err(Error::InvalidInput(format!(
            "{} is not a conversation store: it holds {name:?} and no file {MARKER}; name a new or empty directory",
            path.display()
        ))),
    }
}

fn lock(path: &Path) -> Result<File> {
    let lock_path = path.join(LOCK);
    let action = format!("lock {}", lock_path.display());
    let open = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&lock_path);
    let mut file = open.map_err(Error::io(action.clone()))?;
    let mut tries = 0;
    let locked = loop {
        match file.try_lock() {
            // A process that is being started holds what its parent held, until its program runs.
            Err(TryLockError::WouldBlock) if tries < TRIES => tries += 1,
            locked => break locked,
        }
        std::thread::sleep(PAUSE);
    };
    match locked {
        Ok(()) => {
            // The holder's process id, for the error of the next one. A failure to write it changes nothing.
            let _ = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| write!(file, "{}", std::process::id()));
            Ok(file)
        }
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            let _ = file.read_to_string(&mut holder);
            let holder = if holder.is_empty() { "another process".to_owned() } else { format!("process {holder}") };
            Err(Error::Busy(format!(
                "{holder} holds the store {}: one process can open a store at a time",
                path.display()
            )))
        }
        Err(TryLockError::Error(error)) => Err(Error::io(action)(error)),
    }
}

/// A field of the marker.
fn field<'a>(marker: &'a str, name: &str) -> Option<&'a str> {
    marker.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

fn check_marker(path: &Path, engine: &str, marker: &str) -> Result<()> {
    let shown = path.display();
    let field = |name: &str| field(marker, name);
    if marker.lines().next() != Some("conversation-store") {
        return Err(Error::InvalidInput(format!(
            "{shown} is not a conversation store: its file {MARKER} was not written by this program; if that \
             file is damaged, remove it and open the store again: the data has all that the file had"
        )));
    }
    let supported = u32::from(crate::record::VERSION);
    match field("format ").map(str::parse::<u32>) {
        Some(Ok(found)) if found > supported => {
            return Err(Error::UnsupportedVersion { what: format!("the store {shown}"), found, supported });
        }
        Some(Ok(_)) => {}
        _ => {
            return Err(Error::Corrupt {
                conversation: None,
                seq: None,
                detail: format!(
                    "{shown}/{MARKER} names no format version: remove that file and open the store again; the data has all \
                     that the file had"
                ),
            });
        }
    }
    let known = [NEEDS_JOURNAL, swap::REMOVES, swap::MOVES];
    let mut needs = marker.lines().filter(|line| line.starts_with(NEEDS) && !known.contains(line));
    if let Some(needed) = needs.next().and_then(|line| line.strip_prefix(NEEDS)) {
        return Err(crate::record::newer(format!("the store {shown}, which needs {:?},", needed.trim())));
    }
    match field("engine ") {
        Some(found) if found != engine => {
            Err(Error::InvalidInput(format!("{shown} was written by the engine {found}: name it as {found}:{shown}")))
        }
        _ => Ok(()),
    }
}
/// The bytes of a folder's files. One that goes meanwhile has none.
fn bytes(folder: &Path) -> io::Result<u64> {
    let mut all = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        all += match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes(&entry.path())?,
            Ok(metadata) => metadata.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_held_for_a_moment_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let got = (0..5).any(|_| {
            let held = lock(dir.path()).unwrap();
            let holder = std::thread::spawn(move || {
                std::thread::sleep(PAUSE);
                drop(held);
            });
            let got = lock(dir.path());
            holder.join().unwrap();
            got.is_ok()
        });
        assert!(got, "it was not to be had, each time");
        let _held = lock(dir.path()).unwrap();
        assert!(matches!(lock(dir.path()), Err(Error::Busy(_))));
    }
}
