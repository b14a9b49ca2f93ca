//! How bytes differ from others: what of them is there, and what is new.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;

/// The bytes by which a place is found.
const KEY: usize = 16;
/// The fewest bytes that are taken from where the last ones ended.
const NEXT: usize = 6;
/// The most places that are known.
const PLACES: usize = 1 << 18;

/// How bytes differ from a dictionary.
pub(super) fn encode(dictionary: &[u8], bytes: &[u8]) -> Vec<u8> {
    let places = places(dictionary);
    let mut steps = Steps::default();
    let (mut at, mut new) = (0, 0);
    while at < bytes.len() {
        let rest = bytes.get(at..).unwrap_or_default();
        let next = (steps.expected, alike(dictionary, steps.expected, rest));
        let found = if next.1 >= NEXT.max(KEY) || at == new && next.1 >= NEXT {
            next
        } else {
            let place = rest.first_chunk::<KEY>().and_then(|key| places.get(key)).copied();
            place.map_or((0, 0), |place| (place, alike(dictionary, place, rest)))
        };
        let (mut place, mut length) = found;
        if length == 0 {
            at += 1;
            continue;
        }
        // What comes before it may be alike, too.
        while at > new && place > 0 && dictionary.get(place - 1) == bytes.get(at - 1) {
            (place, at, length) = (place - 1, at - 1, length + 1);
        }
        steps.copy(bytes.get(new..at).unwrap_or_default(), place, length);
        at += length;
        new = at;
    }
    steps.end(bytes.get(new..).unwrap_or_default())
}

/// The bytes again; `None` if they were compared with another dictionary, or are more than so many.
pub(super) fn decode(dictionary: &[u8], delta: &[u8], most: usize) -> Option<Vec<u8>> {
    let mut steps = Vec::new();
    DeflateDecoder::new(delta).take(most.saturating_mul(2) as u64).read_to_end(&mut steps).ok()?;
    let (mut bytes, mut steps, mut expected) = (Vec::new(), steps.as_slice(), 0_usize);
    while !steps.is_empty() {
        let length = usize::try_from(take(&mut steps)?).ok()?;
        let (new, rest) = steps.split_at_checked(length)?;
        bytes.extend_from_slice(new);
        steps = rest;
        if steps.is_empty() || bytes.len() > most {
            break;
        }
        let moved = take(&mut steps)?;
        let length = usize::try_from(take(&mut steps)?).ok()?;
        let moved = i64::try_from(moved >> 1).ok()? ^ -i64::try_from(moved & 1).ok()?;
        let place = expected.checked_add_signed(isize::try_from(moved).ok()?)?;
        expected = place.checked_add(length)?;
        bytes.extend_from_slice(dictionary.get(place..expected)?);
        if bytes.len() > most {
            break;
        }
    }
    Some(bytes).filter(|bytes| bytes.len() <= most)
}

/// Where bytes of the dictionary are found: all of a short one, and of a long one some.
fn places(dictionary: &[u8]) -> HashMap<&[u8; KEY], usize> {
    let step = KEY.max(dictionary.len() / PLACES);
    let keys = (0..dictionary.len()).step_by(step);
    // The first of equal ones counts.
    keys.rev().filter_map(|at| Some((dictionary.get(at..)?.first_chunk()?, at))).collect()
}

/// How many bytes are the same.
fn alike(dictionary: &[u8], place: usize, bytes: &[u8]) -> usize {
    let there = dictionary.get(place..).unwrap_or_default();
    there.iter().zip(bytes).take_while(|(was, is)| was == is).count()
}

/// New bytes and copies in turn.
#[derive(Default)]
struct Steps {
    written: Vec<u8>,
    /// Where the last copy ended.
    expected: usize,
}

impl Steps {
    fn copy(&mut self, new: &[u8], place: usize, length: usize) {
        self.add(new);
        let moved = i64::try_from(place).unwrap_or(i64::MAX) - i64::try_from(self.expected).unwrap_or(i64::MAX);
        // The sign is the last bit.
        self.number((moved.unsigned_abs() << 1).saturating_sub(u64::from(moved < 0)));
        self.number(length as u64);
        self.expected = place + length;
    }

    fn add(&mut self, new: &[u8]) {
        self.number(new.len() as u64);
        self.written.extend_from_slice(new);
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.written.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.written.push(number as u8);
    }

    fn end(mut self, new: &[u8]) -> Vec<u8> {
        if !new.is_empty() {
            self.add(new);
        }
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        // Nothing that is written into memory fails.
        let _ = encoder.write_all(&self.written);
        encoder.finish().unwrap_or_default()
    }
}

/// Takes a number off.
fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_what_is_there_costs_little() {
        let long: Vec<u8> = (0..50_000_u32).flat_map(|n| (n.wrapping_mul(2_654_435_761) >> 7).to_be_bytes()).collect();
        let mut changed = long.clone();
        changed.splice(70_001..70_050, *b"inserted");
        changed.drain(10_003..10_020);
        changed.extend_from_slice(b"at the end");
        let moved = [&long[100_000..], b"-", &long[..100_000]].concat();
        let table: [(&[u8], &[u8], usize); 9] = [
            (b"", b"", 4),
            (b"", b"abc", 8),
            (b"abc", b"", 4),
            (&long, &long, 16),
            (&long, &changed, 64),
            (&long, &moved, 32),
            (&changed, &long, 128),
            (b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", &[b'a'; 5_000], 600),
            (b"x", &[0xff; 100], 32),
        ];
        for (number, (dictionary, bytes, most)) in table.into_iter().enumerate() {
            let delta = encode(dictionary, bytes);
            assert!(delta.len() <= most, "{number}: {}", delta.len());
            assert_eq!(decode(dictionary, &delta, bytes.len()).as_deref(), Some(bytes), "{number}");
            if !bytes.is_empty() {
                assert_eq!(decode(dictionary, &delta, bytes.len() - 1), None, "{number}");
            }
        }
        assert_eq!(decode(&long[..1_000], &encode(&long, &moved), moved.len()), None);
    }
}
