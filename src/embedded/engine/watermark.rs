//! The number of the last durable commit, beside the engine's own files: a store must not open below it.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::error::{Error, Result};

/// The file's name in the store's directory.
const NAME: &str = "watermark";
/// number(8), store id(16), checksum(4)
const BYTES: usize = 28;
/// The number is written in two places in turn: damage to one place leaves the previous number in the other.
const PLACES: [u64; 2] = [0, 4096];

type StoreId = [u8; 16];

/// The file, open.
#[derive(Debug)]
pub(crate) struct Watermark {
    file: Mutex<File>,
    /// The numbers that were found, the highest first.
    found: Vec<(u64, StoreId)>,
    /// The store whose commits are noted.
    store: OnceLock<StoreId>,
}

impl Watermark {
    /// Opens the file, and creates it if it does not exist.
    pub(super) fn open(directory: &Path) -> Result<Self> {
        let path = directory.join(NAME);
        let open = || {
            let mut file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&path)?;
            let mut found = Vec::new();
            for place in PLACES {
                let mut bytes = Vec::new();
                file.seek(SeekFrom::Start(place))?;
                Read::by_ref(&mut file).take(BYTES as u64).read_to_end(&mut bytes)?;
                found.extend(read(&bytes));
            }
            found.sort_unstable_by(|a, b| b.cmp(a));
            Ok((file, found))
        };
        let (file, found) = open().map_err(Error::io(format!("open {}", path.display())))?;
        Ok(Self { file: Mutex::new(file), found, store: OnceLock::new() })
    }

    /// The highest number found for a store. From now on, this store's commits are noted. A file that is torn, damaged
    /// or of another store gives no number.
    pub(crate) fn of(&self, store: &StoreId) -> Option<u64> {
        let store = self.store.get_or_init(|| *store);
        self.found.iter().find(|(_, of)| of == store).map(|(number, _)| *number)
    }

    /// Whether only another store wrote it.
    pub(crate) fn is_of_another(&self, store: &StoreId) -> bool {
        !self.found.is_empty() && self.found.iter().all(|(_, of)| of != store)
    }

    /// Notes a durable commit. Not synced: a power cut may take it back, never raise it.
    pub(crate) fn set(&self, number: u64) -> Result<()> {
        let place = PLACES.get(number as usize % PLACES.len()).copied().unwrap_or_default();
        self.write(place, number)
    }

    /// Writes this number, removes every earlier one, and makes that survive a power cut.
    pub(crate) fn reset(&self, number: u64) -> Result<()> {
        PLACES.iter().try_for_each(|place| self.write(*place, number))?;
        self.sync()
    }

    /// Removes every number, and makes that survive a power cut.
    pub(crate) fn clear(&self) -> Result<()> {
        PLACES.iter().try_for_each(|place| self.write_bytes(*place, &[0; BYTES]))?;
        self.sync()
    }

    fn write(&self, place: u64, number: u64) -> Result<()> {
        let store = self.store.get().copied().unwrap_or_default();
        let mut bytes = [number.to_be_bytes().as_slice(), &store].concat();
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
        self.write_bytes(place, &bytes)
    }

    fn write_bytes(&self, place: u64, bytes: &[u8]) -> Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let write = file.seek(SeekFrom::Start(place)).and_then(|_| file.write_all(bytes));
        write.map_err(Error::io("write the watermark"))
    }

    /// Makes the number survive a power cut.
    pub(crate) fn sync(&self) -> Result<()> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).sync_data().map_err(Error::io("sync the watermark"))
    }
}

fn read(bytes: &[u8]) -> Option<(u64, StoreId)> {
    let (fields, checksum) = bytes.split_last_chunk::<4>()?;
    if bytes.len() != BYTES || crc32fast::hash(fields) != u32::from_be_bytes(*checksum) {
        return None;
    }
    let (number, store) = fields.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*number), store.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: StoreId = [7; 16];

    fn open(dir: &Path) -> Watermark {
        let watermark = Watermark::open(dir).unwrap();
        let _ = watermark.of(&STORE);
        watermark
    }

    fn found(dir: &Path) -> Option<u64> {
        Watermark::open(dir).unwrap().of(&STORE)
    }

    #[test]
    fn the_highest_number_is_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let watermark = open(dir.path());
        assert_eq!(watermark.of(&STORE), None);
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
        let watermark = open(dir.path());
        watermark.reset(6).unwrap();
        watermark.set(7).unwrap();
        let whole = std::fs::read(dir.path().join(NAME)).unwrap();
        for at in [0, 11, 27, PLACES[1] as usize, whole.len() - 1] {
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

    #[test]
    fn the_number_of_another_store_says_nothing() {
        let dir = tempfile::tempdir().unwrap();
        open(dir.path()).reset(9).unwrap();
        let watermark = Watermark::open(dir.path()).unwrap();
        assert!(watermark.is_of_another(&[8; 16]));
        assert!(!watermark.is_of_another(&STORE));
        assert_eq!(watermark.of(&[8; 16]), None);
    }
}
