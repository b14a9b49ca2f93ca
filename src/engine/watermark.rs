//! The number of the last durable commit, beside the engine's own files: what a store must not open below.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::error::{Error, Result};

/// The file's name in the store's directory.
const NAME: &str = "watermark";
/// number(8), checksum(4)
const BYTES: usize = 12;

/// The file, open.
#[derive(Debug)]
pub(crate) struct Watermark {
    file: Mutex<File>,
    found: Option<u64>,
}

impl Watermark {
    /// Opens the file, creating it if it is not there.
    pub(super) fn open(directory: &Path) -> Result<Self> {
        let path = directory.join(NAME);
        let open = || {
            let mut file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&path)?;
            let mut bytes = Vec::new();
            Read::by_ref(&mut file).take(BYTES as u64).read_to_end(&mut bytes)?;
            Ok((file, read(&bytes)))
        };
        let (file, found) = open().map_err(Error::io(format!("open {}", path.display())))?;
        Ok(Self { file: Mutex::new(file), found })
    }

    /// The number that was found. A file that a crash left torn says nothing.
    pub(crate) const fn found(&self) -> Option<u64> {
        self.found
    }

    /// Notes a durable commit. Not synced: a power cut may take it back, never raise it.
    pub(crate) fn set(&self, number: u64) -> Result<()> {
        let number = number.to_be_bytes();
        let mut bytes = [0; BYTES];
        for (place, byte) in bytes.iter_mut().zip(number.into_iter().chain(crc32fast::hash(&number).to_be_bytes())) {
            *place = byte;
        }
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let write = file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(&bytes));
        write.map_err(Error::io("write the watermark"))
    }

    /// Makes the number survive a power cut.
    pub(crate) fn sync(&self) -> Result<()> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).sync_data().map_err(Error::io("sync the watermark"))
    }
}

fn read(bytes: &[u8]) -> Option<u64> {
    let (number, checksum) = bytes.split_first_chunk::<8>()?;
    let checksum = u32::from_be_bytes(checksum.try_into().ok()?);
    (crc32fast::hash(number) == checksum).then(|| u64::from_be_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_found_again_and_a_torn_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let watermark = Watermark::open(dir.path()).unwrap();
        assert_eq!(watermark.found(), None);
        watermark.set(7).unwrap();
        watermark.set(300).unwrap();
        watermark.sync().unwrap();
        assert_eq!(Watermark::open(dir.path()).unwrap().found(), Some(300));
        for bytes in [&b"torn"[..], &[0; BYTES - 1], &[1; BYTES]] {
            std::fs::write(dir.path().join(NAME), bytes).unwrap();
            assert_eq!(Watermark::open(dir.path()).unwrap().found(), None);
        }
    }
}
