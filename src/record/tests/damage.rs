//! What becomes of bytes that are damaged, cut off, newer, or noise.

use proptest::prelude::*;

use super::super::{Body, Head, Record, VERSION, key, open};
use super::{ID, SEQ, entries, header, is_corrupt, origin, read, sealed, small_values};
use crate::error::Error;
use crate::model::{ConversationId, Message};

/// Sets a record's checksum right again.
pub(super) fn mend(bytes: &mut [u8]) {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&key::record(ID, SEQ));
    hasher.update(&bytes[..2]);
    hasher.update(&bytes[6..]);
    bytes[2..6].copy_from_slice(&hasher.finalize().to_be_bytes());
}

proptest! {
    #[test]
    fn noise_is_an_error(noise in prop::collection::vec(any::<u8>(), 0..200), flags in 0..2_u8) {
        prop_assert!(read(&noise).is_err());
        // Even with a version and a checksum that fit it is no record that makes a reader fall.
        let mut noise = [vec![VERSION, flags, 0, 0, 0, 0], noise].concat();
        mend(&mut noise);
        let _ = read(&noise);
    }

    #[test]
    fn noise_among_the_entries_is_an_error(
        at in any::<prop::sample::Index>(),
        noise in prop::collection::vec(any::<u8>(), 1..9),
        kind in any::<prop::sample::Index>(),
    ) {
        let mut entries = entries();
        let (_, body) = entries.swap_remove(kind.index(entries.len()));
        let mut bytes = sealed(&header(Some(origin())), body);
        let at = 6 + at.index(bytes.len() - 6);
        let end = bytes.len().min(at + noise.len());
        bytes[at..end].copy_from_slice(&noise[..end - at]);
        mend(&mut bytes);
        // Whatever it says now: it is read, or it is an error.
        let _ = read(&bytes);
    }

    #[test]
    fn noise_is_no_small_value(noise in prop::collection::vec(any::<u8>(), 0..80)) {
        for (_, key, _) in small_values() {
            prop_assert!(open::<Head>("a head", &key, &noise).is_err());
        }
    }
}

#[test]
fn an_unknown_version_is_a_typed_error() {
    let mut record = sealed(&header(None), Body::messages(&[Message::user("a")], 0).unwrap());
    let (key, mut head) = small_values().into_iter().map(|(_, key, bytes)| (key, bytes)).next().unwrap();
    for version in 0..=u8::MAX {
        (record[0], head[0]) = (version, version);
        mend(&mut record);
        let results = [read(&record).map(drop), open::<Head>("a head", &key, &head).map(drop)];
        for result in results {
            match version {
                0 => assert!(is_corrupt(&result), "{result:?}"),
                1 => assert!(result.is_ok(), "{result:?}"),
                _ => assert!(
                    matches!(result, Err(Error::UnsupportedVersion { found, supported: 1, .. }) if found == u32::from(version)),
                    "{result:?}"
                ),
            }
        }
    }
}

#[test]
fn a_flipped_bit_is_corruption() {
    let flipped = |bytes: &[u8], check: &dyn Fn(&[u8]) -> bool| {
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(check(&bytes), "bit {bit}");
        }
    };
    for (_, body) in entries() {
        flipped(&sealed(&header(Some(origin())), body), &|bytes| match read(bytes) {
            // The version is the one byte that says more.
            Err(Error::UnsupportedVersion { .. }) => bytes[0] > 1,
            result => is_corrupt(&result),
        });
    }
    for (_, key, bytes) in small_values() {
        flipped(&bytes, &|bytes| match open::<Head>("a value", &key, bytes) {
            Err(Error::UnsupportedVersion { .. }) => bytes[0] > 1,
            result => is_corrupt(&result),
        });
    }
}

#[test]
fn a_value_under_another_key_is_corruption() {
    let bytes = sealed(&header(None), Body::messages(&[Message::user("a")], 0).unwrap());
    assert!(Record::open(ID, SEQ, &bytes).is_ok());
    assert!(is_corrupt(&Record::open(ID, SEQ + 1, &bytes)));
    assert!(is_corrupt(&Record::open(ConversationId::from_bytes([0; 16]), SEQ, &bytes)));
    let (_, key, head) = small_values().swap_remove(0);
    assert!(open::<Head>("a head", &key, &head).is_ok());
    assert!(is_corrupt(&open::<Head>("a head", &key::head(ConversationId::from_bytes([0; 16])), &head)));
}

#[test]
fn a_value_that_is_cut_off_is_corruption() {
    for (_, body) in entries() {
        let bytes = sealed(&header(Some(origin())), body);
        for length in 0..bytes.len() {
            assert!(is_corrupt(&read(&bytes[..length])), "{length} bytes");
            // A checksum over what is left does not make it whole.
            let mut cut = bytes[..length].to_vec();
            if length >= 6 {
                mend(&mut cut);
                let _ = read(&cut);
            }
        }
    }
    for (_, key, bytes) in small_values() {
        for length in 0..bytes.len() {
            assert!(is_corrupt(&open::<Head>("a value", &key, &bytes[..length])), "{length} bytes");
        }
    }
}
