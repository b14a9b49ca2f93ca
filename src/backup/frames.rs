//! The frames of a backup file: keys and values, compressed, each frame with its checksum. Described in
//! `docs/format.md`.

use std::io;
use std::io::{Read, Write};

use crate::error::{Error, Result};

const MAGIC: &[u8; 8] = b"CONVBKUP";
const VERSION: u32 = 1;
/// Bytes of a frame before compression. A pair may begin in one frame and end in another. A damaged length is believed
/// up to this size only, because it is read before its checksum.
const FRAME_BYTES: usize = 1024 * 1024;
/// The most bytes of a frame after compression: LZ4 makes noise a little larger.
const STORED_BYTES: usize = FRAME_BYTES + FRAME_BYTES / 8;
/// raw length(4), stored length(4), checksum(4)
const FRAME_HEADER: usize = 12;

/// Called with each key, its value, and the bytes read so far.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(&[u8], &[u8], u64) -> Result<()>;

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
        let lengths = [length(key.len())?.to_be_bytes(), length(value.len())?.to_be_bytes()];
        self.pairs += 1;
        [lengths.as_flattened(), key, value].into_iter().try_for_each(|bytes| self.put(bytes))
    }

    fn put(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let room = FRAME_BYTES - self.frame.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.frame.extend_from_slice(now);
            if self.frame.len() == FRAME_BYTES {
                self.write_frame()?;
            }
            bytes = later;
        }
        Ok(())
    }

    /// Writes what is left, and the end mark. Without the mark a backup counts as cut off.
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
        let stored = lz4_flex::block::compress(&self.frame);
        self.write(self.frame.len(), &stored)?;
        self.frame.clear();
        Ok(())
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
        return Err(Error::InvalidInput("the file is not a backup of a conversation store".to_owned()));
    }
    let version = version.first_chunk().copied().map_or(0, u32::from_be_bytes);
    if version != VERSION {
        return Err(Error::UnsupportedVersion { what: "the backup".to_owned(), found: version, supported: VERSION });
    }
    let (mut bytes, mut pairs) = (start.len() as u64, 0_u64);
    // The beginning of a pair that ends in a later frame.
    let mut begun = Vec::new();
    loop {
        let header: [u8; FRAME_HEADER] = take(&mut input)?;
        let number = |at: usize| {
            let bytes = header.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
            u32::from_be_bytes(bytes)
        };
        let (raw, stored_bytes, expected) = (number(0) as usize, number(4) as usize, number(8));
        if raw > FRAME_BYTES || stored_bytes > STORED_BYTES {
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
            let is_whole = begun.is_empty() && promised == pairs;
            return if is_whole { Ok(()) } else { Err(damaged("frames are missing")) };
        }
        let frame = lz4_flex::block::decompress(&stored, raw).map_err(|error| damaged(&error.to_string()))?;
        if begun.is_empty() {
            let rest = read_pairs(&frame, bytes, &mut pairs, visit)?;
            begun.extend_from_slice(rest);
        } else {
            begun.extend_from_slice(&frame);
            let rest = read_pairs(&begun, bytes, &mut pairs, visit)?.len();
            begun.drain(..begun.len() - rest);
        }
    }
}

/// Visits the complete pairs and returns the rest.
fn read_pairs<'a>(mut bytes: &'a [u8], read: u64, pairs: &mut u64, visit: Visit<'_>) -> Result<&'a [u8]> {
    while let Some((key, value, rest)) = pair(bytes) {
        visit(key, value, read)?;
        *pairs += 1;
        bytes = rest;
    }
    Ok(bytes)
}

/// The pair at the start of `bytes`, if it is complete, and what follows it.
fn pair(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (key_length, rest) = bytes.split_first_chunk::<4>()?;
    let (value_length, rest) = rest.split_first_chunk::<4>()?;
    let (key, rest) = rest.split_at_checked(u32::from_be_bytes(*key_length) as usize)?;
    let (value, rest) = rest.split_at_checked(u32::from_be_bytes(*value_length) as usize)?;
    Some((key, value, rest))
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
        io::ErrorKind::UnexpectedEof => damaged("it is cut off: its end is missing"),
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

    #[test]
    fn pairs_of_any_size_come_back_and_no_frame_is_larger_for_it() {
        let noise = |length: usize| -> Vec<u8> {
            let mut state = length as u64;
            let next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            };
            std::iter::repeat_with(next).take(length).collect()
        };
        let lengths = [0, FRAME_BYTES - 20, 1, FRAME_BYTES, 5 * FRAME_BYTES + 7, 0, 3, FRAME_BYTES - 9, 9];
        let pairs: Pairs = (0..).zip(lengths).map(|(key, length)| (vec![key; 3], noise(length))).collect();
        for count in 0..=pairs.len() {
            let pairs = &pairs[..count];
            let mut writer = Writer::new(Vec::new()).unwrap();
            for (key, value) in pairs {
                writer.pair(key, value).unwrap();
            }
            let bytes = writer.finish().unwrap();
            assert!(all(&bytes).unwrap() == pairs, "{count}");
            for (raw, stored) in frames(&bytes) {
                assert!(raw <= FRAME_BYTES && stored <= STORED_BYTES, "{raw} {stored}");
            }
        }
    }

    /// The lengths of a file's frames.
    fn frames(mut bytes: &[u8]) -> Vec<(usize, usize)> {
        let mut frames = Vec::new();
        bytes = &bytes[12..];
        while !bytes.is_empty() {
            let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
            frames.push((number(0), number(4)));
            bytes = &bytes[FRAME_HEADER + number(4)..];
        }
        frames
    }

    /// The allocations that a reader asks for: counts what is requested before a frame's checksum is read.
    struct Asked<'a> {
        bytes: &'a [u8],
        most: usize,
    }

    impl Read for Asked<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.most = self.most.max(buffer.len());
            self.bytes.read(buffer)
        }
    }

    #[test]
    fn a_length_that_is_damaged_claims_no_memory() {
        let (_, bytes) = written();
        for at in 12..20 {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                let mut input = Asked { bytes: &damaged, most: 0 };
                assert!(read(&mut input, &mut |_, _, _| Ok(())).is_err());
                assert!(input.most <= STORED_BYTES, "byte {at}, bit {bit}: {}", input.most);
            }
        }
    }

    #[test]
    fn a_pair_without_its_end_is_no_pair() {
        // All checksums fit, but the last pair claims more than there is.
        let mut writer = Writer::new(Vec::new()).unwrap();
        writer.pair(b"key", &[7; 100]).unwrap();
        writer.put(&[0, 0, 0, 1, u8::MAX, u8::MAX, u8::MAX, u8::MAX, 7, 7]).unwrap();
        assert!(all(&writer.finish().unwrap()).is_err());
    }
}
