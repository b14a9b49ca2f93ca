//! The frames of a backup file: keys and values, compressed, each frame with its checksum. Described in
//! `docs/format.md`.

use std::io::{self, Read, Write};

use crate::error::{Error, Result};

const MAGIC: &[u8; 8] = b"CONVBKUP";
const VERSION: u32 = 1;
/// Bytes of pairs from which a frame is written.
const FRAME_BYTES: usize = 1024 * 1024;
/// The most bytes that a frame may claim: one pair is at most a part of a record and its key.
const MAX_FRAME_BYTES: usize = 4 * FRAME_BYTES;
/// raw length(4), stored length(4), checksum(4)
const FRAME_HEADER: usize = 12;

/// What a reader calls: with key, value, and the bytes read so far.
type Visit<'a> = &'a mut dyn FnMut(&[u8], &[u8], u64) -> Result<()>;

/// Writes pairs into frames.
#[derive(Debug)]
pub(crate) struct Writer<W> {
    out: W,
    frame: Vec<u8>,
    pairs: u64,
}

impl<W: Write> Writer<W> {
    pub(crate) fn new(mut out: W) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        out.write_all(&VERSION.to_be_bytes())?;
        Ok(Self { out, frame: Vec::new(), pairs: 0 })
    }

    pub(crate) fn pair(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        let length = |length: usize| u32::try_from(length).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge));
        self.frame.extend_from_slice(&length(key.len())?.to_be_bytes());
        self.frame.extend_from_slice(&length(value.len())?.to_be_bytes());
        self.frame.extend_from_slice(key);
        self.frame.extend_from_slice(value);
        self.pairs += 1;
        if self.frame.len() >= FRAME_BYTES { self.write_frame() } else { Ok(()) }
    }

    /// Writes what is left, and the end, without which a backup is cut off.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        if !self.frame.is_empty() {
            self.write_frame()?;
        }
        let pairs = self.pairs.to_be_bytes();
        self.write(0, &pairs)?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn write_frame(&mut self) -> io::Result<()> {
        let frame = std::mem::take(&mut self.frame);
        let stored = lz4_flex::block::compress(&frame);
        self.write(frame.len(), &stored)
    }

    fn write(&mut self, raw: usize, stored: &[u8]) -> io::Result<()> {
        let length = |length: usize| u32::try_from(length).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge));
        let lengths = [length(raw)?.to_be_bytes(), length(stored.len())?.to_be_bytes()].concat();
        self.out.write_all(&lengths)?;
        self.out.write_all(&checksum(&lengths, stored).to_be_bytes())?;
        self.out.write_all(stored)
    }
}

/// Reads all pairs of a backup, in order.
pub(crate) fn read(mut input: impl Read, visit: Visit<'_>) -> Result<()> {
    let start: [u8; 12] = take(&mut input)?;
    let (magic, version) = start.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err(Error::InvalidInput("this is no backup of a conversation store".to_owned()));
    }
    let version = version.first_chunk().copied().map_or(0, u32::from_be_bytes);
    if version != VERSION {
        return Err(Error::UnsupportedVersion { what: "the backup".to_owned(), found: version, supported: VERSION });
    }
    let (mut bytes, mut pairs) = (start.len() as u64, 0_u64);
    loop {
        let header: [u8; FRAME_HEADER] = take(&mut input)?;
        let number = |at: usize| {
            let bytes = header.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
            u32::from_be_bytes(bytes)
        };
        let (raw, stored_bytes, expected) = (number(0) as usize, number(4) as usize, number(8));
        if raw > MAX_FRAME_BYTES || stored_bytes > 2 * MAX_FRAME_BYTES {
            return Err(damaged("a frame claims more bytes than a frame has"));
        }
        let mut stored = vec![0; stored_bytes];
        input.read_exact(&mut stored).map_err(cut_off)?;
        bytes += (FRAME_HEADER + stored_bytes) as u64;
        if checksum(header.split_at(8).0, &stored) != expected {
            return Err(damaged("the checksum of a frame does not match"));
        }
        if raw == 0 {
            let promised = stored.first_chunk().copied().map_or(0, u64::from_be_bytes);
            return if promised == pairs { Ok(()) } else { Err(damaged("frames are missing")) };
        }
        let frame = lz4_flex::block::decompress(&stored, raw).map_err(|error| damaged(&error.to_string()))?;
        pairs += read_frame(&frame, bytes, visit)?;
    }
}

fn read_frame(mut frame: &[u8], bytes: u64, visit: Visit<'_>) -> Result<u64> {
    let mut pairs = 0;
    while let Some((key_length, rest)) = frame.split_first_chunk::<4>() {
        let pair = rest.split_first_chunk::<4>().and_then(|(value_length, rest)| {
            let (key, rest) = rest.split_at_checked(u32::from_be_bytes(*key_length) as usize)?;
            let (value, rest) = rest.split_at_checked(u32::from_be_bytes(*value_length) as usize)?;
            Some((key, value, rest))
        });
        let Some((key, value, rest)) = pair else { return Err(damaged("a pair is cut off")) };
        visit(key, value, bytes)?;
        (frame, pairs) = (rest, pairs + 1);
    }
    Ok(pairs)
}

fn checksum(lengths: &[u8], stored: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(lengths);
    hasher.update(stored);
    hasher.finalize()
}

fn take<const N: usize>(input: &mut impl Read) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes).map_err(cut_off)?;
    Ok(bytes)
}

fn cut_off(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => damaged("it is cut off: it has no end"),
        _ => Error::io("read the backup")(error),
    }
}

fn damaged(detail: &str) -> Error {
    Error::Corrupt { conversation: None, seq: None, detail: format!("the backup: {detail}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

    fn written() -> (Pairs, Vec<u8>) {
        let pairs: Pairs = (0..300_u32).map(|i| (i.to_be_bytes().to_vec(), vec![i as u8; 9000])).collect();
        let mut writer = Writer::new(Vec::new()).unwrap();
        for (key, value) in &pairs {
            writer.pair(key, value).unwrap();
        }
        let bytes = writer.finish().unwrap();
        (pairs, bytes)
    }

    fn all(bytes: &[u8]) -> Result<Pairs> {
        let mut found = Vec::new();
        read(bytes, &mut |key, value, _| {
            found.push((key.to_vec(), value.to_vec()));
            Ok(())
        })?;
        Ok(found)
    }

    #[test]
    fn pairs_come_back() {
        let (pairs, bytes) = written();
        assert!(bytes.len() < 300 * 9000 / 10, "it is compressed");
        assert_eq!(all(&bytes).unwrap(), pairs);
        let empty = Writer::new(Vec::new()).unwrap().finish().unwrap();
        assert_eq!(all(&empty).unwrap(), []);
    }

    #[test]
    fn a_backup_that_is_cut_off_or_flipped_is_no_backup() {
        let (_, bytes) = written();
        for length in (0..bytes.len()).step_by(97) {
            assert!(all(&bytes[..length]).is_err(), "{length}");
        }
        for at in (0..bytes.len()).step_by(41) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            assert!(all(&flipped).is_err(), "{at}");
        }
    }
}
