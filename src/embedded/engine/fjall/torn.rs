//! A batch at the end of fjall's journal that a power cut left in parts.
//!
//! A batch is written first and synced then. Of one that is not synced yet, a power cut may leave the beginning and the end,
//! and take a page between them. fjall takes that for damage and does not open. Nobody was promised such a batch, so it is
//! removed. If it was synced, and is damaged, the watermark says that it is missing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

/// What the entries of a journal begin with: fjall 3.1, `journal/entry.rs`.
const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;
const MAGIC: [u8; 4] = *b"FJL\x03";

/// Removes the last batch of the newest journal if it is torn, and nothing whole follows it: whether it did. It reads that
/// journal once.
pub(super) fn remove(folder: &Path) -> io::Result<bool> {
    let Some(path) = newest(folder)? else { return Ok(false) };
    let mut journal = Journal { file: BufReader::new(File::open(&path)?), at: 0 };
    let mut torn = None;
    loop {
        let start = journal.at;
        match journal.batch()? {
            None => break,
            Some(true) if torn.is_some() => return Ok(false),
            Some(true) => {}
            Some(false) => _ = torn.get_or_insert(start),
        }
    }
    let Some(torn) = torn else { return Ok(false) };
    let file = OpenOptions::new().write(true).open(&path)?;
    file.set_len(torn)?;
    file.sync_all()?;
    Ok(true)
}

/// The older journals were synced before it was made.
fn newest(folder: &Path) -> io::Result<Option<PathBuf>> {
    let mut newest: Option<(u64, PathBuf)> = None;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let number = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".jnl")?.parse().ok());
        if let Some(number) = number
            && newest.as_ref().is_none_or(|(other, _)| *other < number)
        {
            newest = Some((number, path));
        }
    }
    Ok(newest.map(|(_, path)| path))
}

/// The lowest byte comes first.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

struct Journal {
    file: BufReader<File>,
    /// Bytes that were read.
    at: u64,
}

impl Journal {
    /// Reads a batch: whether its checksum is right. `None`: what follows is no batch, as far as its form goes.
    ///
    /// Numbers are little-endian. A start has the count of items (u32) and a sequence number (u64). An item has its type
    /// (u8), its compression (u8), its keyspace (u64), the lengths of its key (u16), of its value (u32), and of its value as it
    /// is stored (u32), then the key and the value. A cleared keyspace is an item of its number (u64). The end has the XXH3 of
    /// the items with their tags (u64), and four fixed bytes.
    fn batch(&mut self) -> io::Result<Option<bool>> {
        let Some([START, a, b, c, d, ..]) = self.read::<13>()? else { return Ok(None) };
        let (wanted, mut items) = (number(&[a, b, c, d]), 0_u64);
        let mut hash = Xxh3::new();
        loop {
            match self.read()? {
                Some([ITEM]) => {
                    let Some(head) = self.read::<20>()? else { return Ok(None) };
                    hash.update(&[ITEM]);
                    hash.update(&head);
                    let [.., key, more, _, _, _, _, a, b, c, d] = head;
                    let length = number(&[key, more]) + number(&[a, b, c, d]);
                    if !self.hash(length, &mut hash)? {
                        return Ok(None);
                    }
                }
                Some([CLEAR]) => {
                    hash.update(&[CLEAR]);
                    if !self.hash(8, &mut hash)? {
                        return Ok(None);
                    }
                }
                Some([END]) => {
                    let (Some(sum), Some(MAGIC)) = (self.read::<8>()?, self.read()?) else { return Ok(None) };
                    return Ok(Some(items == wanted && hash.digest() == number(&sum)));
                }
                _ => return Ok(None),
            }
            items = items.saturating_add(1);
        }
    }

    /// The next bytes; `None` if there are fewer.
    fn read<const N: usize>(&mut self) -> io::Result<Option<[u8; N]>> {
        let mut bytes = [0; N];
        match self.file.read_exact(&mut bytes) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
        self.at += N as u64;
        Ok(Some(bytes))
    }

    /// Adds so many bytes to a checksum: whether there are as many.
    fn hash(&mut self, length: u64, hash: &mut Xxh3) -> io::Result<bool> {
        let mut left = length;
        let mut piece = [0; 8192];
        while left > 0 {
            let wanted = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let read = self.file.read(piece.get_mut(..wanted).unwrap_or_default())?;
            if read == 0 {
                return Ok(false);
            }
            hash.update(piece.get(..read).unwrap_or_default());
            left = left.saturating_sub(read as u64);
        }
        self.at += length;
        Ok(true)
    }
}
