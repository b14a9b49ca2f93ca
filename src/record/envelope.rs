//! What all values have in common: the version, the checksum, the bounds of numbers; texts and lists; and the envelope of small
//! values (heads, receipts, store data).

use bincode::de::read::SliceReader;
use bincode::de::{BorrowDecode, BorrowDecoder, DecoderImpl};
use bincode::enc::{Encode, Encoder};
use bincode::error::{DecodeError, EncodeError};

use crate::error::{Error, Result};

/// The version of all values that this crate writes.
pub(crate) const VERSION: u8 = 1;

/// No seq and no message index is larger: what is reckoned from stored numbers stays a number.
pub(crate) const MAX_NUMBER: u64 = u64::MAX / 2;

/// The most bytes that one value may claim to hold: more than any record has.
const DECODE_LIMIT: usize = 256 * 1024 * 1024;

/// What most small values take at most.
const USUAL_BYTES: usize = 128;
const CHECKSUM_AT: usize = 1;
const BODY_AT: usize = 5;

pub(super) const CONFIG: bincode::config::Configuration = bincode::config::standard();

/// The bytes of a value under `key`.
pub(crate) fn seal(key: &[u8], value: &impl Encode) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    bytes.extend_from_slice(&[VERSION, 0, 0, 0, 0]);
    bincode::encode_into_std_write(value, &mut bytes, CONFIG)
        .map_err(|error| Error::InvalidInput(format!("cannot be encoded: {error}")))?;
    let checksum = checksum(key, &[bytes.get(BODY_AT..).unwrap_or_default()]);
    if let Some(place) = bytes.get_mut(CHECKSUM_AT..BODY_AT) {
        place.copy_from_slice(&checksum.to_be_bytes());
    }
    Ok(bytes)
}

/// The value in the bytes under `key`; `what` it is, for the error.
pub(crate) fn open<'a, T: BorrowDecode<'a, ()>>(what: &str, key: &[u8], bytes: &'a [u8]) -> Result<T> {
    check_version(what, bytes)?;
    let (stored, body) =
        bytes.get(CHECKSUM_AT..).and_then(<[u8]>::split_first_chunk::<4>).ok_or_else(|| short(what))?;
    if u32::from_be_bytes(*stored) != checksum(key, &[body]) {
        return Err(corrupt(format!("{what}: the checksum does not match")));
    }
    decode(what, body)
}

pub(super) fn check_version(what: &str, bytes: &[u8]) -> Result<()> {
    match bytes.first() {
        Some(&VERSION) => Ok(()),
        Some(&found) if found > VERSION => {
            Err(Error::UnsupportedVersion { what: what.to_owned(), found: found.into(), supported: VERSION.into() })
        }
        Some(found) => Err(corrupt(format!("{what}: version {found} does not exist"))),
        None => Err(short(what)),
    }
}

/// That something is not of this version, and cannot be passed over.
pub(crate) fn newer(what: String) -> Error {
    let supported = u32::from(VERSION);
    Error::UnsupportedVersion { what, found: supported + 1, supported }
}

/// The value at the start of `bytes`. What comes after it is of a later program: fields are added at the end.
pub(super) fn decode<'a, T: BorrowDecode<'a, ()>>(what: &str, bytes: &'a [u8]) -> Result<T> {
    let mut decoder = DecoderImpl::new(SliceReader::new(bytes), CONFIG.with_limit::<DECODE_LIMIT>(), ());
    T::borrow_decode(&mut decoder).map_err(|error| corrupt(format!("{what}: {error}")))
}

/// As [`decode`], for types that make no room for what they have not read: texts that are borrowed, and
/// [`List`].
#[inline]
pub(super) fn decode_entry<'a, T: BorrowDecode<'a, ()>>(what: &str, bytes: &'a [u8]) -> Result<T> {
    let mut decoder = DecoderImpl::new(SliceReader::new(bytes), CONFIG, ());
    T::borrow_decode(&mut decoder).map_err(|error| corrupt(format!("{what}: {error}")))
}

/// The checksum of a value: of its key and its bytes, so that a value under a wrong key is found too.
pub(super) fn checksum(key: &[u8], parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key);
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize()
}

/// Fails on a stored number that nobody wrote.
pub(crate) fn check_number(what: &str, number: u64) -> Result<()> {
    if number <= MAX_NUMBER { Ok(()) } else { Err(corrupt(format!("{what}: {number} is out of range"))) }
}

pub(super) fn short(what: &str) -> Error {
    corrupt(format!("{what}: the value is cut off"))
}

pub(super) fn corrupt(detail: String) -> Error {
    Error::Corrupt { conversation: None, seq: None, detail }
}

/// A text that may be long. It is stored as a `str` is; when it is read, more bytes are checked at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Text<'a>(pub(crate) &'a str);

impl Encode for Text<'_> {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        self.0.encode(encoder)
    }
}

impl<'de: 'a, 'a, C> BorrowDecode<'de, C> for Text<'a> {
    fn borrow_decode<D: BorrowDecoder<'de, Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let bytes = <&[u8]>::borrow_decode(decoder)?;
        if let Ok(text) = simdutf8::basic::from_utf8(bytes) {
            return Ok(Text(text));
        }
        // It says where the text breaks off.
        std::str::from_utf8(bytes).map(Text).map_err(|inner| DecodeError::Utf8 { inner })
    }
}

/// A list. It is stored as a `Vec` is. When it is read, room is made for the items that are there, and not for the number of
/// items that it claims to have, so entries are read without a limit: bincode checks a limit with each of their fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self(items.into_iter().collect())
    }
}

impl<T: Encode> Encode for List<T> {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        self.0.encode(encoder)
    }
}

impl<'de, C, T: BorrowDecode<'de, C>> BorrowDecode<'de, C> for List<T> {
    fn borrow_decode<D: BorrowDecoder<'de, Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let count = u64::borrow_decode(decoder)?;
        (0..count).map(|_| T::borrow_decode(decoder)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::envelope::{CONFIG, decode, decode_entry};
    use super::*;

    #[test]
    fn a_text_is_stored_as_a_str_and_refused_as_one() {
        for length in [0, 1, 63, 64, 800, 70_000] {
            let text = "aä€😀".repeat(length / 10 + 1);
            let bytes = bincode::encode_to_vec(Text(&text), CONFIG).unwrap();
            assert_eq!(bytes, bincode::encode_to_vec(text.as_str(), CONFIG).unwrap());
            assert_eq!(decode::<Text<'_>>("a text", &bytes).unwrap(), Text(&text));
            for at in [bytes.len() - 1, bytes.len() - text.len() / 2, bytes.len() - text.len()] {
                let mut broken = bytes.clone();
                broken[at] = 0xff;
                let error = decode::<Text<'_>>("a text", &broken).unwrap_err().to_string();
                assert_eq!(error, decode::<&str>("a text", &broken).unwrap_err().to_string());
            }
        }
    }

    #[test]
    fn a_list_is_stored_as_a_vec() {
        for items in [vec![], vec!["a"], vec!["one", "", "three"]] {
            let bytes = bincode::encode_to_vec(List(items.clone()), CONFIG).unwrap();
            assert_eq!(bytes, bincode::encode_to_vec(&items, CONFIG).unwrap());
            assert_eq!(decode::<Vec<&str>>("a list", &bytes).unwrap(), items);
            assert_eq!(decode_entry::<List<&str>>("a list", &bytes).unwrap(), List(items));
        }
    }

    #[test]
    fn a_list_that_claims_more_than_it_has_is_refused() {
        for claimed in [2, 1_000_000, u64::MAX] {
            let mut bytes = bincode::encode_to_vec(claimed, CONFIG).unwrap();
            bytes.extend(bincode::encode_to_vec("one", CONFIG).unwrap());
            let error = decode_entry::<List<&str>>("a list", &bytes).unwrap_err().to_string();
            assert!(error.contains("a list"), "{error}");
        }
    }
}
