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
/// The number is written here and there in turn: what damages one place leaves the number before it in the other.
const PLACES: [u64; 2] = [0, 4096];

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
            let mut found = None;
            for place in PLACES {
                let mut bytes = Vec::new();
                file.seek(SeekFrom::Start(place))?;
                Read::by_ref(&mut file).take(BYTES as u64).read_to_end(&mut bytes)?;
                found = found.max(read(&bytes));
            }
            Ok((file, found))
        };
        let (file, found) = open().map_err(Error::io(format!("open {}", path.display())))?;
        Ok(Self { file: Mutex::new(file), found })
    }

    /// The highest number that was found. A file that is torn or damaged says nothing.
    pub(crate) const fn found(&self) -> Option<u64> {
        self.found
    }

    /// Notes a durable commit. Not synced: a power cut may take it back, never raise it.
    pub(crate) fn set(&self, number: u64) -> Result<()> {
        let place = PLACES.get(number as usize % PLACES.len()).copied().unwrap_or_default();
        self.write(place, number)
    }

    /// Says this number, and nothing else that was said before, and makes that survive a power cut.
    pub(crate) fn reset(&self, number: u64) -> Result<()> {
        PLACES.iter().try_for_each(|place| self.write(*place, number))?;
        self.sync()
    }

    fn write(&self, place: u64, number: u64) -> Result<()> {
        let number = number.to_be_bytes();
        let mut bytes = [0; BYTES];
        for (place, byte) in bytes.iter_mut().zip(number.into_iter().chain(crc32fast::hash(&number).to_be_bytes())) {
            *place = byte;
        }
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let write = file.seek(SeekFrom::Start(place)).and_then(|_| file.write_all(&bytes));
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

    fn found(dir: &Path) -> Option<u64> {
        Watermark::open(dir).unwrap().found()
    }

    #[test]
    fn the_highest_number_is_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let watermark = Watermark::open(dir.path()).unwrap();
        assert_eq!(watermark.found(), None);
        for number in [7, 8, 9, 300, 301] {
            watermark.set(number).unwrap();
            assert_eq!(found(dir.path()), Some(number));
        }
        watermark.reset(5).unwrap();
        assert_eq!(found(dir.path()), Some(5));
    }

    #[test]
    fn damage_leaves_the_number_before_or_none() {
        let dir = tempfile::tempdir().unwrap();
        let watermark = Watermark::open(dir.path()).unwrap();
        watermark.reset(6).unwrap();
        watermark.set(7).unwrap();
        let whole = std::fs::read(dir.path().join(NAME)).unwrap();
        for at in [0, 11, PLACES[1] as usize, whole.len() - 1] {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            std::fs::write(dir.path().join(NAME), flipped).unwrap();
            assert_eq!(found(dir.path()), Some(if at < BYTES { 7 } else { 6 }));
        }
        for length in [0, 1, BYTES - 1, BYTES, whole.len() - 1] {
            std::fs::write(dir.path().join(NAME), &whole[..length]).unwrap();
            assert_eq!(found(dir.path()), (length >= BYTES).then_some(6));
        }
        std::fs::write(dir.path().join(NAME), vec![0; whole.len()]).unwrap();
        assert_eq!(found(dir.path()), None, "zeros are no number");
    }
}
