//! sled's tree, with large values in pieces.
//!
//! Large values, in pieces: sled keeps up to 17 values in a leaf and writes a leaf as one; its cache keeps at least 256
//! leaves, of any size.
//!
//! A value of more than [`PIECE_BYTES`] bytes, or one that begins with [`MARK`], is stored as the mark, its length (4),
//! and as much of it as fits. The rest is stored in pieces under keys of their own: [`RESERVED`], the value's key, the
//! piece's number (4), from 0. Numbers are big endian. Everything that belongs to a value is written in one batch.

use std::collections::HashMap;
use std::fs::File;
use std::ops::{ControlFlow, Range};
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

use super::handle::Handle;
use crate::embedded::engine::contract::{LARGE_BYTES, RESERVED, check_key, length_of};
use crate::embedded::engine::directory::Directory;
use crate::error::{Error, Result};
use crate::log::Order;

/// sled's cache notes accesses in 256 queues and evicts nothing before a queue has 64 of them, whatever the size of the
/// pages (`lru.rs`). So a value is accessed once for each this many of its bytes; without that, large values would fill
/// the memory.
const BYTES_OF_AN_ACCESS: usize = PIECE_BYTES;
/// The locks of large values. While one is replaced in many steps, with syncs, the readers of few others wait.
const LOCKS: usize = 64;

/// Called by a walk over the tree with a key and what is stored under it.
type VisitStored<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>>;
/// Called with the keys of pieces, and the pieces.
type VisitPieces<'a> = &'a mut dyn FnMut(sled::IVec, sled::IVec) -> Result<()>;

/// sled, in its directory.
#[derive(Debug)]
pub(super) struct Sled {
    handle: Handle,
    /// sled's log, through our own handle: this makes a flush survive a power cut.
    log: File,
    /// A key has one of them: held (shared) while the pieces of its value are read; held alone while they are replaced.
    pub(super) reading: [RwLock<()>; LOCKS],
    /// False for throw-away stores only.
    syncs: bool,
    /// Dropped last, which releases the lock.
    pub(super) directory: Directory,
}

/// Nobody reads the pieces of a value while others replace them.
pub(super) fn alone(lock: &RwLock<()>) -> RwLockWriteGuard<'_, ()> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

impl Sled {
    pub(super) fn new(handle: Handle, log: File, syncs: bool, directory: Directory) -> Self {
        let reading = std::array::from_fn(|_| RwLock::default());
        Self { handle, log, reading, syncs, directory }
    }

    /// The lock of a large value.
    pub(super) fn lock_of(&self, key: &[u8]) -> &RwLock<()> {
        let [first, ..] = &self.reading;
        self.reading.get(crc32fast::hash(key) as usize % LOCKS).unwrap_or(first)
    }

    pub(super) fn call<T>(&self, action: &str, call: impl FnOnce(&sled::Tree) -> sled::Result<T>) -> Result<T> {
        self.handle.call(self.directory.path(), action, call)
    }

    /// Reports to the cache the size of a value that was read or written.
    pub(super) fn weigh(&self, key: &[u8], bytes: usize) -> Result<()> {
        (0..bytes / BYTES_OF_AN_ACCESS).try_for_each(|_| self.call("read", |tree| tree.contains_key(key)).map(|_| ()))
    }

    /// Visits what is stored in a range, without the pieces of large values.
    pub(super) fn walk(&self, range: Range<&[u8]>, order: Order, visit: VisitStored<'_>) -> Result<()> {
        // The pieces come after all keys of the log.
        let range = range.start..range.end.min(&[RESERVED]);
        if range.start >= range.end {
            return Ok(());
        }
        let mut pairs = self.call("read", |tree| Ok(tree.range(range)))?;
        loop {
            let pair = self.call("read", |_| match order {
                Order::Ascending => pairs.next().transpose(),
                Order::Descending => pairs.next_back().transpose(),
            })?;
            let Some((key, stored)) = pair else { return Ok(()) };
            self.weigh(&key, stored.len())?;
            if visit(&key, &stored)?.is_break() {
                return Ok(());
            }
        }
    }

    /// The value under a key that has pieces, or had them a moment ago: everything that is there of it, and the length
    /// that it should have.
    pub(super) fn join(&self, key: &[u8]) -> Result<Option<(Vec<u8>, usize)>> {
        let _no_other = self.lock_of(key).read().unwrap_or_else(PoisonError::into_inner);
        let Some(stored) = self.call("read", |tree| tree.get(key))? else { return Ok(None) };
        let Some((length, first)) = first(&stored) else { return Ok(Some((stored.to_vec(), stored.len()))) };
        let mut value = first.to_vec();
        // A vector that grows by itself takes twice as much. A length is reserved if the value reaches to it: it may be damaged.
        if let Some(last) = last_piece(length)
            && self.call("read", |tree| tree.contains_key(piece_key(key, last)))?
        {
            value.reserve_exact(length.saturating_sub(first.len()));
        }
        self.pieces(key, 0, &mut |_, piece| {
            value.extend_from_slice(&piece);
            Ok(())
        })?;
        Ok(Some((value, length)))
    }

    /// Visits the pieces of a value that are stored under keys of their own, from this number on.
    pub(super) fn pieces(&self, key: &[u8], number: u32, visit: VisitPieces<'_>) -> Result<()> {
        let (start, end) = piece_keys(key, number);
        let mut pieces = self.call("read", |tree| Ok(tree.range(start..end)))?;
        while let Some((piece_key, piece)) = self.call("read", |_| pieces.next().transpose())? {
            // Pieces of a longer key that begins with this one may be among them.
            if is_piece_of(key, &piece_key) {
                self.weigh(&piece_key, piece.len())?;
                visit(piece_key, piece)?;
            }
        }
        Ok(())
    }

    pub(super) fn apply(&self, cutter: Cutter) -> Result<()> {
        self.call("write", |tree| tree.apply_batch(cutter.batch))?;
        cutter.large.iter().try_for_each(|key| self.weigh(key, PIECE_BYTES))
    }

    /// Makes everything that was written survive a power cut.
    pub(super) fn flush(&self) -> Result<()> {
        self.handle.flush(self.directory.path())?;
        if self.syncs {
            self.log.sync_data().map_err(Error::io("sync the store's log"))?;
        }
        Ok(())
    }
}

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

/// The number of the last piece that a value of this length has under a key of its own, if it has any.
fn last_piece(length: usize) -> Option<u32> {
    let rest = length.checked_sub(FIRST_BYTES + 1)?;
    u32::try_from(rest / PIECE_BYTES).ok()
}

/// The keys of all pieces that a value may have from this number on: from the first key, up to but not including the second.
fn piece_keys(key: &[u8], number: u32) -> (Vec<u8>, Vec<u8>) {
    (piece_key(key, number), piece_key(key, u32::MAX))
}

/// Whether a key in that range belongs to this value.
fn is_piece_of(key: &[u8], piece_key: &[u8]) -> bool {
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
