//! Backups: a store as one file, whatever its log is. Described in `docs/format.md`.
//!
//! A backup is the pairs of keys and values that an embedded log has (`frames` writes and reads them). The file is there whole,
//! under its name, or not at all. Each log has its half: `embedded/recovery/backup.rs`, `postgres/backup.rs`, and `remote/`, which
//! receives a file that a server wrote.

mod frames;

use std::fs::{self, File};
use std::io::{BufReader, BufWriter};
use std::path::Path;

use self::frames::Visit;
use crate::error::{Error, Result};
use crate::log::BackupSummary;
use crate::model::ConversationId;
use crate::record::{Body, Header, Origin, seal_record};

/// A backup that is being written.
pub(crate) struct Out {
    pairs: frames::Writer<BufWriter<File>>,
    shown: String,
}

impl Out {
    /// Adds a key and its value.
    pub(crate) fn pair(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.pairs.pair(key, value).map_err(|error| failed(&self.shown, error))
    }

    fn finish(self) -> Result<()> {
        let Self { pairs, shown } = self;
        let finish = || pairs.finish()?.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all();
        finish().map_err(|error| failed(&shown, error))
    }
}

/// Writes a backup to a new file. `fill` gives how many conversations it wrote, and how many of them cannot be read.
pub(crate) fn write(path: &Path, fill: impl FnOnce(&mut Out) -> Result<(u64, u64)>) -> Result<BackupSummary> {
    place(path, |partial| {
        let shown = partial.display().to_string();
        let pairs = File::create_new(partial).and_then(|file| frames::Writer::new(BufWriter::new(file)));
        let mut out = Out { pairs: pairs.map_err(|error| failed(&shown, error))?, shown };
        let counts = fill(&mut out)?;
        out.finish().map(|()| counts)
    })
}

/// As [`write`], of a backup whose bytes come from elsewhere: they are read through before the file has its name.
#[cfg(feature = "client")]
pub(crate) fn receive(path: &Path, fill: impl FnOnce(&mut File) -> Result<(u64, u64)>) -> Result<BackupSummary> {
    place(path, |partial| {
        let shown = partial.display().to_string();
        let mut file = File::create_new(partial).map_err(|error| failed(&shown, error))?;
        let counts = fill(&mut file)?;
        file.sync_all().map_err(|error| failed(&shown, error))?;
        check(partial, &mut |_, _| ()).map(|()| counts)
    })
}

/// Gives a file a name that no other file has. An empty file takes the name first, and the rename then replaces that
/// file.
fn rename(from: &Path, to: &Path) -> Result<()> {
    match File::create_new(to) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Err(exists(to)),
        created => created.map_err(Error::io(format!("create {}", to.display())))?,
    };
    fs::rename(from, to).map_err(|error| {
        let _ = fs::remove_file(to);
        Error::io(format!("rename {} to {}", from.display(), to.display()))(error)
    })
}

/// Makes a file under another name first, so that it is there whole or not at all.
fn place(path: &Path, fill: impl FnOnce(&Path) -> Result<(u64, u64)>) -> Result<BackupSummary> {
    if path.exists() {
        return Err(exists(path));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let partial = path.with_file_name(format!(".{name}.{}.partial", ConversationId::new()));
    let result = fill(&partial).and_then(|(conversations, unreadable)| {
        // Unlike a rename, this never takes the place of a file that was made meanwhile.
        match fs::hard_link(&partial, path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Err(exists(path)),
            // Not every file system has links.
            Err(_) => rename(&partial, path)?,
            Ok(()) => {
                let _ = fs::remove_file(&partial);
            }
        }
        let bytes = fs::metadata(path).map_err(Error::io(format!("read {}", path.display())))?.len();
        sync_parent(path)?;
        Ok(BackupSummary { conversations, unreadable, bytes })
    });
    if result.is_err() {
        let _ = fs::remove_file(&partial);
    }
    result
}

fn failed(shown: &str, error: std::io::Error) -> Error {
    Error::io(format!("write the backup {shown}"))(error)
}

fn exists(path: &Path) -> Error {
    Error::InvalidInput(format!("{} exists already: name a new file", path.display()))
}

fn sync_parent(path: &Path) -> Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let sync = File::open(parent).and_then(|parent| parent.sync_all());
    sync.map_err(Error::io(format!("sync {}", parent.display())))
}

/// A backup to be read.
pub(crate) struct Backup {
    input: BufReader<File>,
    bytes: u64,
}

impl Backup {
    /// The bytes of the file.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads all pairs, in order: `visit` is called with each key, its value, and the bytes read so far.
    pub(crate) fn read(self, visit: Visit<'_>) -> Result<()> {
        frames::read(self.input, visit)
    }
}

/// Opens a backup to be read.
pub(crate) fn open(path: &Path) -> Result<Backup> {
    let shown = path.display();
    let file = File::open(path).map_err(Error::io(format!("open the backup {shown}")))?;
    let bytes = file.metadata().map_err(Error::io(format!("read {shown}")))?.len();
    Ok(Backup { input: BufReader::new(file), bytes })
}

/// Reads a backup from end to end, so that damage is reported before anything is restored. `progress` is called with
/// bytes read, and of the file.
pub(crate) fn check(path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
    let backup = open(path)?;
    let all = backup.bytes();
    backup.read(&mut |_, _, bytes| {
        progress(bytes, all);
        Ok(())
    })
}

/// The error of a backup that does not say which store it is of.
pub(crate) fn without_marker() -> Error {
    Error::Corrupt { conversation: None, seq: None, detail: "the backup has no marker".to_owned() }
}

/// The record of a fork without entries: it says what the fork was made with.
pub(crate) fn fork_record(
    id: ConversationId,
    first_seq: u64,
    origin: Origin,
    commit: u64,
    deleted: bool,
) -> Result<(Vec<u8>, Vec<u8>)> {
    let (time, base) = (origin.created, origin.first_message_index);
    let header = Header { time, base, next_message_index: base, commit, cut: false, deleted, origin: Some(origin) };
    seal_record(id, first_seq, &header, Body::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_made_meanwhile_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to, other) = (dir.path().join("from"), dir.path().join("to"), dir.path().join("other"));
        fs::write(&from, "new").unwrap();
        fs::write(&other, "old").unwrap();
        assert!(matches!(rename(&from, &other), Err(Error::InvalidInput(_))));
        assert_eq!(fs::read(&other).unwrap(), b"old");
        rename(&from, &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"new");
        assert!(rename(&from, &dir.path().join("none")).is_err());
        assert!(!dir.path().join("none").exists());
    }
}
