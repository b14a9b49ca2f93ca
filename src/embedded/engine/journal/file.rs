//! The journal's file: two regions, filled with zeros when it is made, then written over for ever.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::super::directory::Directory;
use crate::error::{Error, Result};

/// The file's name in the store's directory.
const NAME: &str = "journal";
/// How much a region takes; a multiple of [`PIECE`].
pub(super) const REGION_BYTES: usize = 2 * 1024 * 1024;
/// Bytes of one write when the file is made.
const PIECE: usize = 64 * 1024;

/// What the file holds, if it is as long as two regions of so many bytes.
pub(super) fn read(directory: &Directory, region_bytes: usize) -> Result<Option<Vec<u8>>> {
    let path = directory.path().join(NAME);
    let mut bytes = Vec::new();
    let read = File::open(&path).and_then(|file| file.take(2 * region_bytes as u64).read_to_end(&mut bytes));
    match read {
        Ok(length) => Ok((length == 2 * region_bytes).then_some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(format!("read {}", path.display()))(error)),
    }
}

/// Whether the file is there, as long as two regions of so many bytes.
pub(super) fn is_whole(directory: &Directory, region_bytes: usize) -> bool {
    let path = directory.path().join(NAME);
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() >= 2 * region_bytes as u64)
}

/// The file, open.
#[derive(Debug)]
pub(super) struct Regions {
    file: File,
    /// How much each of the two takes.
    pub(super) bytes: usize,
}

impl Regions {
    pub(super) fn open(directory: &Directory, bytes: usize) -> Result<Self> {
        let path = directory.path().join(NAME);
        let open = File::options().read(true).write(true).open(&path);
        open.map(|file| Self { file, bytes }).map_err(Error::io(format!("open {}", path.display())))
    }

    /// Makes the file, durably: a write into it changes nothing but its content, and a sync writes nothing else. None: the
    /// disk has no room for it.
    pub(super) fn make(directory: &Directory, bytes: usize) -> Result<Option<Self>> {
        let path = directory.path().join(NAME);
        match zeros(&path, 2 * bytes) {
            Ok(file) => {
                directory.sync()?;
                Ok(Some(Self { file, bytes }))
            }
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                fs::remove_file(&path).map_err(Error::io(format!("remove {}", path.display())))?;
                Ok(None)
            }
            Err(error) => Err(Error::io(format!("make {}", path.display()))(error)),
        }
    }

    pub(super) fn write(&mut self, region: usize, at: usize, bytes: &[u8]) -> Result<()> {
        let place = (region * self.bytes + at) as u64;
        let write = self.file.seek(SeekFrom::Start(place)).and_then(|_| self.file.write_all(bytes));
        write.map_err(Error::io("write to the journal"))
    }

    /// Writes what the file holds once more, and syncs: what was read from it may have been in the system's memory alone,
    /// also after a sync that failed.
    pub(super) fn write_again(&mut self) -> Result<()> {
        let mut bytes = Vec::new();
        let read = self.file.rewind().and_then(|()| self.file.read_to_end(&mut bytes));
        read.map_err(Error::io("read the journal"))?;
        self.write(0, 0, &bytes)?;
        self.sync()
    }

    pub(super) fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(Error::io("sync the journal"))
    }
}

fn zeros(path: &Path, bytes: usize) -> io::Result<File> {
    let mut file = File::options().create(true).truncate(true).read(true).write(true).open(path)?;
    let piece = vec![0; PIECE.min(bytes)];
    for _ in 0..bytes / piece.len().max(1) {
        file.write_all(&piece)?;
    }
    file.sync_all()?;
    Ok(file)
}
