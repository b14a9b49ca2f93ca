//! Large values, in pieces: sled keeps up to 17 values in a leaf and writes a leaf as one; its cache keeps at least 256
//! leaves, of any size.
//!
//! A value of more than [`PIECE_BYTES`] bytes, or one that begins with [`MARK`], is stored as the mark, its length (4),
//! and as much of it as fits. The rest is stored in pieces under keys of their own: [`RESERVED`], the value's key, the
//! piece's number (4), from 0. Numbers are big endian. Everything that belongs to a value is written in one batch.

use std::collections::HashMap;

use super::super::contract::{LARGE_BYTES, RESERVED, check_key, length_of};
use crate::error::Result;

/// The most bytes in one value of sled's.
pub(super) const PIECE_BYTES: usize = LARGE_BYTES;
const MARK: u8 = 0xff;
/// mark(1), length(4)
const HEADER_BYTES: usize = 5;
/// How much of a large value is stored with its length.
const FIRST_BYTES: usize = PIECE_BYTES - HEADER_BYTES;

/// Whether a stored value is only the first piece of one.
pub(super) fn is_cut(stored: &[u8]) -> bool {
    stored.first() == Some(&MARK)
}

/// The length of a value that was cut, and the piece that is stored with the length. None if it was not cut.
pub(super) fn first(stored: &[u8]) -> Option<(usize, &[u8])> {
    let rest = stored.strip_prefix(&[MARK])?;
    let (length, first) = rest.split_first_chunk().unwrap_or((&[u8::MAX; 4], &[]));
    Some((u32::from_be_bytes(*length) as usize, first))
}

/// A value that has to be cut: what is stored under its key, and the rest. None if it is stored as it is.
pub(super) fn split(value: &[u8]) -> Result<Option<(Vec<u8>, &[u8])>> {
    if value.len() <= PIECE_BYTES && !is_cut(value) {
        return Ok(None);
    }
    let length = length_of(value)?;
    let (first, rest) = value.split_at(value.len().min(FIRST_BYTES));
    Ok(Some(([&[MARK][..], &length.to_be_bytes(), first].concat(), rest)))
}

pub(super) fn piece_key(key: &[u8], number: u32) -> Vec<u8> {
    [&[RESERVED], key, &number.to_be_bytes()].concat()
}

/// The keys of all pieces that a value may have from this number on: from the first key, up to but not including the second.
pub(super) fn piece_keys(key: &[u8], number: u32) -> (Vec<u8>, Vec<u8>) {
    (piece_key(key, number), piece_key(key, u32::MAX))
}

/// Whether a key in that range belongs to this value.
pub(super) fn is_piece_of(key: &[u8], piece_key: &[u8]) -> bool {
    piece_key.len() == key.len() + size_of_val(&RESERVED) + size_of::<u32>()
}

/// A batch of sled's under construction.
#[derive(Default)]
pub(super) struct Cutter {
    pub(super) batch: sled::Batch,
    /// How many pieces each cut value of this batch has.
    cut: HashMap<Vec<u8>, u32>,
    /// The stored values that are as large as a piece.
    pub(super) large: Vec<Vec<u8>>,
}

impl Cutter {
    /// Puts or removes a value. `old`: the keys of the pieces that the tree holds of the old value.
    pub(super) fn add(&mut self, key: Vec<u8>, value: Option<Vec<u8>>, old: Vec<sled::IVec>) -> Result<()> {
        check_key(&key)?;
        old.into_iter().for_each(|piece| self.batch.remove(piece));
        self.remove_earlier(&key);
        let Some(value) = value else {
            self.batch.remove(key);
            return Ok(());
        };
        let Some((first, rest)) = split(&value)? else {
            self.store(key, value.into());
            return Ok(());
        };
        let mut pieces = 0;
        for piece in rest.chunks(PIECE_BYTES) {
            self.store(piece_key(&key, pieces), piece.into());
            pieces += 1;
        }
        self.store(key.clone(), first.into());
        self.cut.insert(key, pieces);
        Ok(())
    }

    /// Removes the pieces of a value that was put under the same key earlier in this batch.
    fn remove_earlier(&mut self, key: &[u8]) {
        let pieces = if self.cut.is_empty() { 0 } else { self.cut.remove(key).unwrap_or(0) };
        for number in 0..pieces {
            self.batch.remove(piece_key(key, number));
        }
    }

    pub(super) fn store(&mut self, key: Vec<u8>, value: sled::IVec) {
        if value.len() >= PIECE_BYTES {
            self.large.push(key.clone());
        }
        self.batch.insert(key, value);
    }
}
