//! sled's tree, with large values in pieces.

use std::fs::File;
use std::ops::{ControlFlow, Range};
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

use super::super::contract::RESERVED;
use super::super::directory::Directory;
use super::cut::{self, Cutter};
use super::handle::Handle;
use crate::error::{Error, Result};
use crate::log::Order;

/// sled's cache notes accesses in 256 queues and evicts nothing before a queue has 64 of them, whatever the size of the
/// pages (`lru.rs`). So a value is accessed once for each this many of its bytes; without that, large values would fill
/// the memory.
const BYTES_OF_AN_ACCESS: usize = cut::PIECE_BYTES;
/// The locks of large values. While one is replaced in many steps, with syncs, the readers of few others wait.
const LOCKS: usize = 64;
/// The most memory that is reserved for a large value before it is read: its length may be damaged.
const MOST_AHEAD: usize = 1024 * 1024;

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
        let Some((length, first)) = cut::first(&stored) else { return Ok(Some((stored.to_vec(), stored.len()))) };
        let mut value = Vec::with_capacity(length.min(MOST_AHEAD));
        value.extend_from_slice(first);
        self.pieces(key, 0, &mut |_, piece| {
            value.extend_from_slice(&piece);
            Ok(())
        })?;
        Ok(Some((value, length)))
    }

    /// Visits the pieces of a value that are stored under keys of their own, from this number on.
    pub(super) fn pieces(&self, key: &[u8], number: u32, visit: VisitPieces<'_>) -> Result<()> {
        let (start, end) = cut::piece_keys(key, number);
        let mut pieces = self.call("read", |tree| Ok(tree.range(start..end)))?;
        while let Some((piece_key, piece)) = self.call("read", |_| pieces.next().transpose())? {
            // Pieces of a longer key that begins with this one may be among them.
            if cut::is_piece_of(key, &piece_key) {
                self.weigh(&piece_key, piece.len())?;
                visit(piece_key, piece)?;
            }
        }
        Ok(())
    }

    pub(super) fn apply(&self, cutter: Cutter) -> Result<()> {
        self.call("write", |tree| tree.apply_batch(cutter.batch))?;
        cutter.large.iter().try_for_each(|key| self.weigh(key, cut::PIECE_BYTES))
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
