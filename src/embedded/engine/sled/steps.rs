//! What the journal gives sled, in steps.
//!
//! sled opens after a power cut if less than one of its segments was not synced. So it gets small batches, each few of them
//! followed by a sync: `docs/durability.md` has what was measured. A removal counts as much as what it removes, because sled
//! writes a leaf again for it.

use super::super::contract::{Operation, check_key};
use super::tree::{self, Cutter, PIECE_BYTES, Sled, alone};
use crate::error::Result;

/// The most bytes of a batch: while sled writes one it may let nobody read.
const BATCH_BYTES: usize = 256 * 1024;
/// The most bytes that sled has and did not sync.
const UNSYNCED_BYTES: usize = 768 * 1024;

/// The room that the disk must have before the first of them: sled writes three to seven bytes for one.
const ROOM_BYTES: u64 = 8 * UNSYNCED_BYTES as u64;

/// Steps under way.
pub(super) struct Steps<'a> {
    engine: &'a Sled,
    batch: Cutter,
    /// Bytes of the batch.
    batched: usize,
    /// Bytes of the batches that were written and not synced.
    unsynced: usize,
    /// The keys that were written or removed since the last sync.
    touched: Vec<sled::IVec>,
}

impl<'a> Steps<'a> {
    pub(super) fn new(engine: &'a Sled) -> Self {
        Self { engine, batch: Cutter::default(), batched: 0, unsynced: 0, touched: Vec::new() }
    }

    pub(super) fn take(&mut self, operation: Operation<'_>) -> Result<()> {
        let Operation { key, value, rewrites } = operation;
        check_key(key)?;
        let cut = value.map(tree::split).transpose()?.flatten();
        if !rewrites && cut.is_none() {
            return match value {
                Some(value) => self.store(key.to_vec(), value),
                None => self.remove(key.into(), 0),
            };
        }
        let _alone = alone(self.engine.lock_of(key));
        if value.is_none() {
            let stored = self.engine.call("read", |tree| tree.get(key))?;
            self.remove(key.into(), stored.map_or(0, |stored| stored.len()))?;
        }
        let mut is_cut = cut.is_some();
        let (first, rest) = cut.unzip();
        let mut pieces = 0;
        for piece in rest.unwrap_or_default().chunks(PIECE_BYTES) {
            self.store(tree::piece_key(key, pieces), piece)?;
            pieces += 1;
        }
        if rewrites {
            let engine = self.engine;
            engine.pieces(key, pieces, &mut |piece_key, piece| {
                is_cut = true;
                self.remove(piece_key, piece.len())
            })?;
        }
        // A value that is new stays invisible until all of it is there.
        if let Some(value) = first.as_deref().or(value) {
            self.store(key.to_vec(), value)?;
        }
        // A reader of pieces sees either all of the old ones or all of the new ones.
        if is_cut { self.write() } else { Ok(()) }
    }

    /// Writes what is left, then `last`, durably.
    pub(super) fn end(mut self, last: (Vec<u8>, Vec<u8>)) -> Result<()> {
        // It is in one batch with all that is not synced yet.
        if self.unsynced > 0 {
            self.sync()?;
        }
        self.touched.push(last.0.as_slice().into());
        self.batch.store(last.0, last.1.into());
        self.write()?;
        self.sync()
    }

    /// Stores a value of at most a piece.
    fn store(&mut self, key: Vec<u8>, value: &[u8]) -> Result<()> {
        self.reserve(key.len() + value.len())?;
        self.touched.push(key.as_slice().into());
        self.batch.store(key, value.into());
        Ok(())
    }

    /// Removes a value of so many bytes.
    fn remove(&mut self, key: sled::IVec, bytes: usize) -> Result<()> {
        self.reserve(key.len() + bytes)?;
        self.touched.push(key.clone());
        self.batch.batch.remove(key);
        Ok(())
    }

    /// Lets the batch become larger by so many bytes, or begins another one.
    fn reserve(&mut self, bytes: usize) -> Result<()> {
        if self.batched > 0 && self.batched + bytes > BATCH_BYTES {
            self.write()?;
        }
        if self.batched == 0 && self.unsynced > 0 && self.unsynced + bytes.max(BATCH_BYTES) > UNSYNCED_BYTES {
            self.sync()?;
        }
        // Once a write of sled's fails, it does not read what is not in its cache.
        if self.batched == 0 && self.unsynced == 0 {
            self.engine.directory.check_room(ROOM_BYTES)?;
        }
        self.batched += bytes;
        Ok(())
    }

    /// A reader splits and merges the leaves that it meets, and that may need a write: on a full disk it could not read. So
    /// all of that is done before the sync.
    fn sync(&mut self) -> Result<()> {
        let touched = std::mem::take(&mut self.touched);
        self.engine.call("write", |tree| touched.iter().try_for_each(|key| tree.contains_key(key).map(drop)))?;
        self.unsynced = 0;
        self.engine.flush()
    }

    fn write(&mut self) -> Result<()> {
        self.unsynced += std::mem::take(&mut self.batched);
        self.engine.apply(std::mem::take(&mut self.batch))
    }
}
