//! A journal before an engine: a commit is one write and one sync of a file that exists already.
//!
//! A batch goes to the journal's file (`file`) and to a layer in memory (`layer`), with which every read is merged. The
//! engine gets a layer when a region of the file is full, in steps, and notes how far it came (`checkpoint`). Opening reads from
//! the file what the engine does not have yet. Nothing is written before the first batch: an
//! opening that only reads leaves everything as it is.

mod checkpoint;
mod file;
mod layer;
#[cfg(test)]
mod tests;

use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use super::contract::{Batch, Engine, RESERVED, Visit, VisitKeys};
use super::directory::Directory;
use super::url::{Url, syncs};
use crate::error::{Error, Result};
use crate::log::Order;
use checkpoint::{Checkpoints, Failure, Id, Job, Note, checkpoint};
use file::{REGION_BYTES, Regions, Replay};
use layer::{Cursor, Last, Layers};

/// The room that the engine needs for each byte that it does not have yet.
const ROOM: u64 = 3;
/// The most bytes of values that what is in a region replaces or removes, unless a single batch has more: the engine has to
/// write about as much for them, and what comes next waits for that.
const REPLACED_BYTES: usize = 8 * 1024 * 1024;

#[derive(Debug)]
struct Journal {
    layers: Arc<RwLock<Layers>>,
    writing: Mutex<Writing>,
    /// Why records that were acknowledged are missing.
    damage: Option<String>,
    /// Why the engine did not get what is in the journal.
    failure: Failure,
    region_bytes: usize,
    /// False for throw-away stores only.
    syncs: bool,
    /// Dropped last.
    engine: Arc<dyn Engine>,
}

/// Where the next batch goes.
#[derive(Debug)]
enum Writing {
    /// Nothing was written since the opening.
    Nothing { note: Option<Note>, replay: Replay },
    /// To the file.
    Journaled(Tail),
    /// To the engine: there is no room for the file.
    Direct,
    /// Nowhere: an earlier write failed.
    Failed,
}

/// The end of the journal.
#[derive(Debug)]
struct Tail {
    regions: Regions,
    checkpoints: Checkpoints,
    journal: Id,
    /// Of this use of the region.
    epoch: Id,
    /// Of the last record.
    number: u64,
    region: usize,
    at: usize,
    /// Bytes of the engine's values that the records of the region replace or remove.
    replaced: usize,
    /// The file has records that are not synced.
    unsynced: bool,
    /// The last record refers to the file of a large batch.
    is_large: bool,
}

/// Puts a journal before an engine. One without a directory stays as it is.
pub(super) fn before(engine: Arc<dyn Engine>, url: &Url) -> Result<Arc<dyn Engine>> {
    before_with(engine, syncs(url)?, REGION_BYTES)
}

fn before_with(engine: Arc<dyn Engine>, syncs: bool, region_bytes: usize) -> Result<Arc<dyn Engine>> {
    let Some(directory) = engine.directory() else { return Ok(engine) };
    let note = match Note::read(&*engine) {
        Err(Error::Corrupt { .. }) => None,
        note => note?,
    };
    let mut replay = Replay::default();
    match &note {
        Some(note) if note.closed => replay.number = note.number,
        Some(note) => match file::read(directory, region_bytes)? {
            Some(bytes) => {
                let (first, second) = bytes.split_at(bytes.len() / 2);
                replay = file::replay(note, [first, second], &file::read_large(directory)?);
            }
            None => {
                replay.number = note.number;
                replay.damage = Some("its journal is missing, or shorter than it was".to_owned());
            }
        },
        None if directory.needs_journal() => {
            replay.damage = Some("what it notes about its journal is damaged or missing".to_owned());
        }
        None => {}
    }
    if !replay.layer.is_empty() && !directory.has_room(replay.layer.bytes() * ROOM)? {
        directory.note_full();
    }
    let frozen = std::mem::take(&mut replay.layer);
    let layers = Layers { frozen: (!frozen.is_empty()).then(|| Arc::new(frozen)), ..Layers::default() };
    let damage = replay.damage.clone();
    let layers = Arc::new(RwLock::new(layers));
    let writing = Mutex::new(Writing::Nothing { note, replay });
    Ok(Arc::new(Journal { layers, writing, damage, failure: Arc::default(), region_bytes, syncs, engine }))
}

fn new_id() -> Id {
    *uuid::Uuid::now_v7().as_bytes()
}

impl Journal {
    fn layers(&self) -> Layers {
        self.layers.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn lock(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes with a journal that is ready. After an error nothing more is written.
    fn with_tail<T>(
        &self,
        direct: impl FnOnce() -> Result<T>,
        journaled: impl FnOnce(&mut Tail) -> Result<T>,
    ) -> Result<T> {
        let mut writing = self.lock();
        let result = match &mut *writing {
            Writing::Journaled(tail) => journaled(tail),
            Writing::Direct => return direct(),
            Writing::Failed => return Err(Error::io("write")(std::io::Error::other("an earlier write failed"))),
            Writing::Nothing { note, replay } => {
                let (note, replay) = (*note, std::mem::take(replay));
                match self.begin(note, &replay) {
                    Ok(Some(mut tail)) => {
                        let result = journaled(&mut tail);
                        *writing = Writing::Journaled(tail);
                        result
                    }
                    Ok(None) => {
                        *writing = Writing::Direct;
                        return direct();
                    }
                    Err(error) => Err(error),
                }
            }
        };
        if result.is_err() {
            *writing = Writing::Failed;
        }
        result
    }

    /// Makes the journal ready for the first batch. None: there is no room for it.
    fn begin(&self, note: Option<Note>, replay: &Replay) -> Result<Option<Tail>> {
        let Some(directory) = self.engine.directory() else { return Ok(None) };
        let found = note.filter(|_| file::is_whole(directory, self.region_bytes));
        let regions = match found {
            Some(_) => Some(Regions::open(directory, self.region_bytes)?),
            None => Regions::make(directory, self.region_bytes)?,
        };
        let noted = note.map_or(0, |note| note.number);
        let Some(mut regions) = regions else {
            if let Some(note) = note.filter(|note| !note.closed) {
                Note { closed: true, ..note }.write(&*self.engine)?;
            }
            return Ok(None);
        };
        // What a closed journal holds is never read again, whatever becomes of the engine's note.
        let journal = found.filter(|note| !note.closed).map_or_else(new_id, |note| note.journal);
        let number = replay.number.max(noted);
        if number > noted {
            // A power cut may interrupt the checkpoint, and must find all of it in the file. After damage, no later opening
            // may find the records that follow it, so it is made before the first new one.
            file::write_large_again(directory)?;
            regions.write_again()?;
            let layer = self.layers().frozen.unwrap_or_default();
            checkpoint(&*self.engine, &Job { layer, note: Note { journal, number, closed: false } })?;
            self.layers.write().unwrap_or_else(PoisonError::into_inner).frozen = None;
        } else if found.is_none_or(|note| note.closed) {
            Note { journal, number, closed: false }.write(&*self.engine)?;
        }
        file::remove_large(directory);
        directory.need_journal()?;
        let (layers, engine) = (Arc::clone(&self.layers), Arc::clone(&self.engine));
        let made = move || {
            layers.write().unwrap_or_else(PoisonError::into_inner).frozen = None;
            engine.directory().into_iter().for_each(file::remove_large);
        };
        let checkpoints = Checkpoints::start(Arc::clone(&self.engine), Arc::clone(&self.failure), made)?;
        let (epoch, region, at, replaced) = (new_id(), 0, 0, 0);
        let (unsynced, is_large) = (false, false);
        Ok(Some(Tail { regions, checkpoints, journal, epoch, number, region, at, replaced, unsynced, is_large }))
    }

    /// What the engine read. Once it did not get what is in the journal, that is why it cannot read, too.
    fn explain<T>(&self, read: Result<T>) -> Result<T> {
        read.map_err(|error| match self.failure.get() {
            Some(cause) => Error::Poisoned { cause: cause.to_string() },
            None => error,
        })
    }

    /// Writes a batch to the engine alone: there is no journal.
    fn give(&self, batch: Batch, rewrites: bool) -> Result<()> {
        if rewrites { self.engine.rewrite(batch) } else { self.engine.write(batch) }
    }

    fn put(&self, batch: Batch, rewrites: bool) -> Result<()> {
        batch.check()?;
        let bytes = file::bytes_of(&batch);
        let batch = std::cell::Cell::new(batch);
        self.with_tail(
            || {
                if let Some(directory) = self.engine.directory() {
                    directory.check_room(bytes as u64 * ROOM)?;
                }
                self.give(batch.take(), rewrites)
            },
            |tail| {
                tail.checkpoints.check()?;
                // A torn record ends the replay, so no later one may reach the disk before it.
                self.sync_file(tail)?;
                let batch = batch.take();
                let replaced = if rewrites { self.replaced(&batch)? } else { 0 };
                let is_large = bytes > tail.regions.bytes;
                let is_heavy = tail.replaced > 0 && tail.replaced + replaced > REPLACED_BYTES;
                if is_large {
                    // There is one file for large batches.
                    self.drain(tail)?;
                } else if tail.is_large || is_heavy || tail.at + bytes > tail.regions.bytes {
                    self.switch(tail)?;
                }
                let (names, number) = ([&tail.journal, &tail.epoch], tail.number + 1);
                let record = match self.engine.directory() {
                    Some(directory) if is_large => file::write_large(directory, names, number, &batch, rewrites)?,
                    _ => file::encode(names[0], names[1], number, &batch, rewrites),
                };
                tail.regions.write(tail.region, tail.at, &record)?;
                (tail.number, tail.at, tail.unsynced) = (number, tail.at + record.len(), true);
                (tail.is_large, tail.replaced) = (is_large, tail.replaced + replaced);
                self.layers().active.apply(batch, rewrites);
                Ok(())
            },
        )
    }

    /// The bytes of the engine's values that a batch replaces or removes.
    fn replaced(&self, batch: &Batch) -> Result<usize> {
        let mut bytes = 0;
        for (key, _) in &batch.ops {
            let after = [key.as_slice(), &[0]].concat();
            self.engine.keys(key.as_slice()..&after, Order::Ascending, &mut |_, length| {
                bytes += length;
                ControlFlow::Break(())
            })?;
        }
        Ok(bytes)
    }

    /// Goes on in the other region, once the engine has what that holds.
    fn switch(&self, tail: &mut Tail) -> Result<()> {
        tail.checkpoints.wait()?;
        let mut layers = self.layers.write().unwrap_or_else(PoisonError::into_inner);
        let layer = std::mem::take(&mut layers.active);
        layers.frozen = Some(Arc::clone(&layer));
        drop(layers);
        tail.checkpoints.begin(Job { layer, note: Note { journal: tail.journal, number: tail.number, closed: false } });
        (tail.region, tail.at, tail.epoch) = (1 - tail.region, 0, new_id());
        (tail.replaced, tail.is_large) = (0, false);
        Ok(())
    }

    /// Gives the engine everything.
    fn drain(&self, tail: &mut Tail) -> Result<()> {
        if tail.at > 0 {
            self.switch(tail)?;
        }
        tail.checkpoints.wait()
    }

    fn sync_file(&self, tail: &mut Tail) -> Result<()> {
        if self.syncs && tail.unsynced {
            tail.regions.sync()?;
        }
        tail.unsynced = false;
        Ok(())
    }

    /// Gives the engine everything, for an opening that has nothing to replay. What fails stays in the file.
    fn close(&self) -> Result<()> {
        let Writing::Journaled(mut tail) = std::mem::replace(&mut *self.lock(), Writing::Failed) else { return Ok(()) };
        tail.checkpoints.wait()?;
        self.sync_file(&mut tail)?;
        let note = Note { journal: tail.journal, number: tail.number, closed: true };
        checkpoint(&*self.engine, &Job { layer: self.layers().active, note })?;
        self.engine.directory().into_iter().for_each(file::remove_large);
        Ok(())
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // The next opening replays what the engine did not get.
        let _ = self.close();
    }
}

impl Engine for Journal {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.layers().get(key) {
            Some(Last { value, .. }) => Ok(value.map(|value| value.to_vec())),
            None => self.explain(self.engine.get(key)),
        }
    }

    fn scan(&self, range: Range<&[u8]>, order: Order, visit: Visit<'_>) -> Result<()> {
        let range = range.start..range.end.min(&[RESERVED]);
        let mut cursor = Cursor::new(self.layers(), range.clone(), order);
        let mut flow = ControlFlow::Continue(());
        let read = self.engine.scan(range, order, &mut |key, value| {
            flow = match cursor.show_to(Some(key), visit) {
                ControlFlow::Continue(false) => visit(key, value),
                shown => shown.map_continue(|_| ()),
            };
            flow
        });
        self.explain(read)?;
        if flow.is_continue() {
            let _ = cursor.show_to(None, visit);
        }
        Ok(())
    }

    fn keys(&self, range: Range<&[u8]>, order: Order, visit: VisitKeys<'_>) -> Result<()> {
        let range = range.start..range.end.min(&[RESERVED]);
        let mut cursor = Cursor::new(self.layers(), range.clone(), order);
        let mut flow = ControlFlow::Continue(());
        let read = self.engine.keys(range, order, &mut |key, length| {
            flow = match cursor.show_to(Some(key), &mut |key, value| visit(key, value.len())) {
                ControlFlow::Continue(false) => visit(key, length),
                shown => shown.map_continue(|_| ()),
            };
            flow
        });
        self.explain(read)?;
        if flow.is_continue() {
            let _ = cursor.show_to(None, &mut |key, value| visit(key, value.len()));
        }
        Ok(())
    }

    fn write(&self, batch: Batch) -> Result<()> {
        self.put(batch, false)
    }

    fn rewrite(&self, batch: Batch) -> Result<()> {
        self.put(batch, true)
    }

    fn sync(&self) -> Result<()> {
        self.with_tail(
            || self.engine.sync(),
            |tail| {
                self.sync_file(tail)?;
                // Its bytes need not stay in memory.
                if tail.is_large { self.switch(tail) } else { Ok(()) }
            },
        )
    }

    fn is_read_only(&self) -> bool {
        self.engine.is_read_only()
    }

    fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    fn failure(&self) -> Option<String> {
        self.failure.get().map(Error::to_string)
    }

    fn directory(&self) -> Option<&Directory> {
        self.engine.directory()
    }
}
