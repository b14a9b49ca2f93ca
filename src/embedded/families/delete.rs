//! Deletion: the head is removed first, then the records in small batches. The next opening finishes what a crash
//! interrupted.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use super::{Families, Write};
use crate::embedded::engine::{Batch, Engine, Order};
use crate::embedded::state::Pending;
use crate::embedded::stored::{self, damage_of};
use crate::error::{Error, Result};
use crate::history::Cursor;
use crate::log::append::check_end;
use crate::log::segments::{Segment, Segmented};
use crate::log::writer::Closed;
use crate::log::{Reading, fork};
use crate::model::{ConversationId, Name};
use crate::record::{self, Head, Replacement, Tombstone, key};

/// Keys that are erased in one batch.
const ERASE_KEYS: usize = 256;
/// Bytes of values from which a batch is written: an engine may keep large values in many pieces.
const ERASE_BYTES: usize = 4 * 1024 * 1024;

/// A deletion in progress, for those who count what is there.
struct Deleting<'a>(&'a Families);

impl<'a> Deleting<'a> {
    fn begin(families: &'a Families) -> Self {
        families.deleting.fetch_add(1, Ordering::AcqRel);
        families.deletions.fetch_add(1, Ordering::AcqRel);
        Self(families)
    }
}

impl Drop for Deleting<'_> {
    fn drop(&mut self) {
        self.0.deleting.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Families {
    /// Erases a conversation. If it has forks, erases what comes after the highest fork point now, and the rest with
    /// the last fork. With a cursor, only if the conversation ends there.
    pub(crate) fn delete(&self, name: &Name, at: Option<Cursor>) -> Result<()> {
        let id = name.id();
        let write = &mut |batch| self.commit.write_durable(batch);
        self.commit.lock().life.check_writable()?;
        self.prove_fork_points(write)?;
        let mut parents = HashSet::new();
        let (_held, frozen) = loop {
            let held = self.hold(&parents.iter().copied().chain([id]).collect::<Vec<_>>())?;
            match damage_of(self.freeze(id))? {
                Ok(frozen) => break (held, frozen),
                // Nothing states what it was, so nothing of it is in use. What it was forked from knows of it.
                Err(damage) if at.is_none() => {
                    let known = self.parents_of(id)?;
                    if known.is_subset(&parents) {
                        return self.delete_unknown(name, damage, &known, write);
                    }
                    parents = known;
                }
                Err(error) => return Err(error),
            }
        };
        let _erasing = Deleting::begin(self);
        let head = frozen.head(name)?;
        check_end(name, Some(&head), at)?;
        let tombstone = key::tombstone(id);
        let value = record::seal(&tombstone, &Tombstone { parent: head.parent, incarnation: head.incarnation })?;
        let mut pending = Pending { head: Some((id, None)), rewrites: true, ..Pending::default() };
        pending.ops.push((tombstone, Some(value)));
        if stored::forks(&*self.engine, id)?.iter().any(|fork| fork.at_seq >= head.first_seq()) {
            pending.ops.extend(marked_deleted(&*self.engine, id, &head)?);
        }
        let mut state = self.commit.open_state()?;
        frozen.close_writers(&mut state, 0, Closed::Deleted);
        self.commit.queue_durable(state, pending)?;
        // It is deleted from here on. Its name is free once nothing of it is left.
        self.commit.lock().slots.slot(id).reserve(true);
        self.settle(id, write)?;
        let reserved = stored::tombstone(&*self.engine, id)?.is_some();
        self.commit.lock().slots.slot(id).reserve(reserved);
        Ok(())
    }

    /// Erases what is left of a conversation when neither its head nor its first record states what it was, unless it
    /// may belong to another owner. The list still states the owner. Where that is lost too, a key proves it: the id is
    /// the digest of both.
    fn delete_unknown(
        &self,
        name: &Name,
        damage: Error,
        parents: &HashSet<ConversationId>,
        write: Write<'_>,
    ) -> Result<()> {
        let id = name.id();
        let _erasing = Deleting::begin(self);
        let (mut batch, mut owners) = (Batch::default(), Vec::new());
        for kind in key::INDEXES {
            self.engine.scan(&[kind]..&key::after(&[kind]), Order::Ascending, &mut |key, _| {
                if key::conversation(key) == Some(id) {
                    owners.extend(key::parse_index(key).map(|(owner, ..)| owner));
                    batch.remove(key.to_vec());
                }
                ControlFlow::Continue(())
            })?;
        }
        // An id without an owner means a conversation of any owner.
        if name.owner().is_some() || name.key().is_some() {
            let owner = record::digest(name.owner().unwrap_or_default().as_bytes());
            if owners.iter().any(|of| *of != owner) {
                return Err(Error::no_conversation(name));
            }
            if owners.is_empty() && name.key().is_none() {
                return Err(damage);
            }
        }
        let tombstone = key::tombstone(id);
        let value = record::seal(&tombstone, &Tombstone { parent: None, incarnation: u64::MAX })?;
        batch.put(tombstone, value);
        batch.remove(key::head(id));
        parents.iter().for_each(|parent| batch.remove(key::fork(*parent, id)));
        write(batch)?;
        self.settle(id, write)?;
        parents.iter().try_for_each(|parent| self.settle(*parent, write))
    }

    /// The conversations that know a conversation as their fork.
    fn parents_of(&self, id: ConversationId) -> Result<HashSet<ConversationId>> {
        let mut parents = HashSet::new();
        self.engine.keys(&[key::FORK]..&key::after(&[key::FORK]), Order::Ascending, &mut |key, _| {
            if key::parse_fork(key) == Some(id) {
                parents.extend(key::parse_id(key));
            }
            ControlFlow::Continue(())
        })?;
        Ok(parents)
    }

    /// Erases what is left of a deleted conversation and no fork reads; then the same of its parent.
    fn settle(&self, id: ConversationId, write: Write<'_>) -> Result<()> {
        let mut next = Some(id);
        while let Some(id) = next.take() {
            // What nothing identifies stays, and `verify` reports it.
            let Some(tombstone) = damage_of(stored::tombstone(&*self.engine, id))?.unwrap_or_default() else { break };
            let keep_to = stored::forks(&*self.engine, id)?.into_iter().map(|fork| fork.at_seq).max();
            if let Some(keep_to) = keep_to {
                erase_after(&*self.engine, id, &tombstone, keep_to, write)?;
                break;
            }
            for kind in [key::RECORD, key::RECEIPT, key::ITEM] {
                let prefix = key::prefix(kind, id);
                erase(&*self.engine, prefix.clone(), &key::after(&prefix), write)?;
            }
            let mut batch = Batch::default();
            if let Some(parent) = tombstone.parent.filter(|parent| parent.at_seq > 0) {
                batch.remove(key::fork(parent.id(), id));
                next = Some(parent.id());
            }
            batch.remove(key::tombstone(id));
            write(batch)?;
            self.commit.lock().slots.free(id);
        }
        Ok(())
    }

    /// Finishes the deletions that a crash interrupted. For opening only: nobody else writes. `write`: how. Nothing is erased
    /// before it is proved that no fork reads it.
    pub(crate) fn finish_deletions(&self, write: Write<'_>) -> Result<()> {
        let mut unsettled = Vec::new();
        for id in stored::conversations_with(&*self.engine, key::TOMBSTONE)? {
            if damage_of(is_unsettled(&*self.engine, id))?.unwrap_or(false) {
                unsettled.push(id);
            }
        }
        if unsettled.is_empty() {
            return Ok(());
        }
        self.prove_fork_points(write)?;
        for id in unsettled {
            // What cannot be read stays, and `verify` reports it.
            let _ = damage_of(self.settle(id, write))?;
        }
        Ok(())
    }

    /// How many deletions were begun since the store was opened, and whether one is under way.
    pub(crate) fn deletions(&self) -> (u64, bool) {
        let begun = self.deletions.load(Ordering::Acquire);
        (begun, self.deleting.load(Ordering::Acquire) > 0)
    }
}

/// The first record of a conversation, marked, so that a lost tombstone does not bring the conversation back. None
/// if that record cannot be read.
fn marked_deleted(engine: &dyn Engine, id: ConversationId, head: &Head) -> Result<Replacement> {
    let first = head.first_seq();
    let own = Segment { conversation: id, first, last: first, incarnation: head.incarnation, through: u64::MAX };
    let mut marked = Ok(Replacement::new());
    engine.read(&[own], first..=first, Order::Ascending, &mut |item| {
        if let Reading::Record { record, .. } = item
            && record.first_seq == first
        {
            marked = record::mark_deleted(id, record).map(|(key, value)| vec![(key, Some(value))]);
        }
        ControlFlow::Continue(())
    })?;
    marked
}

/// Erases the entries of a deleted conversation above `keep_to`, and its idempotency records; nothing else. A
/// record that cannot be read stays.
fn erase_after(
    engine: &dyn Engine,
    id: ConversationId,
    tombstone: &Tombstone,
    keep_to: u64,
    write: Write<'_>,
) -> Result<()> {
    let receipts = key::prefix(key::RECEIPT, id);
    erase(engine, receipts.clone(), &key::after(&receipts), write)?;
    let after = keep_to.saturating_add(1);
    if has_record_from(engine, id, after)? || is_cut_short(engine, id, tombstone, keep_to)? {
        if let Ok(ops) = damage_of(truncated(engine, id, tombstone, keep_to))?
            && !ops.is_empty()
        {
            write(Batch { ops })?;
        }
        erase(engine, key::record(id, after), &key::after(&key::prefix(key::RECORD, id)), write)?;
    }
    for keys in stored::items_behind(engine, id, keep_to)?.chunks(ERASE_KEYS) {
        write(Batch { ops: keys.iter().map(|key| (key.clone(), None)).collect() })?;
    }
    Ok(())
}

/// Whether something of a deleted conversation is left that no known fork reads.
fn is_unsettled(engine: &dyn Engine, id: ConversationId) -> Result<bool> {
    let Some(tombstone) = stored::tombstone(engine, id)? else { return Ok(false) };
    let Some(keep_to) = stored::forks(engine, id)?.into_iter().map(|fork| fork.at_seq).max() else { return Ok(true) };
    Ok(has_record_from(engine, id, keep_to.saturating_add(1))?
        || stored::has_any(engine, &key::prefix(key::RECEIPT, id))?
        || is_cut_short(engine, id, &tombstone, keep_to)?)
}

fn has_record_from(engine: &dyn Engine, id: ConversationId, seq: u64) -> Result<bool> {
    let mut found = false;
    let end = key::after(&key::prefix(key::RECORD, id));
    engine.scan(&key::record(id, seq)..&end, Order::Ascending, &mut |_, _| {
        found = true;
        ControlFlow::Break(())
    })?;
    Ok(found)
}

/// Whether the record that holds `keep_to` continues after it.
fn is_cut_short(engine: &dyn Engine, id: ConversationId, tombstone: &Tombstone, keep_to: u64) -> Result<bool> {
    let kept = [kept(id, tombstone, keep_to)];
    let goes_on = engine
        .records(&kept)
        .record(keep_to, "a record", |record| Ok(Some(record.first_seq + record.len() > keep_to.saturating_add(1))));
    Ok(damage_of(goes_on)?.unwrap_or(false))
}

/// The record that holds `keep_to`, without what comes after it.
fn truncated(engine: &dyn Engine, id: ConversationId, tombstone: &Tombstone, keep_to: u64) -> Result<Replacement> {
    let segments = [kept(id, tombstone, keep_to)];
    let records = engine.records(&segments);
    let next_message_index = fork::next_message_index_at(&records, keep_to)?;
    records.record(keep_to, "a record", |record| {
        if record.first_seq + record.len() <= keep_to + 1 {
            return Ok(Some(Replacement::new()));
        }
        let (header, body) = record::truncate(record, keep_to, next_message_index)?;
        let (key, value) = record::seal_record(id, record.first_seq, &header, body)?;
        Ok(Some(vec![(key, Some(value))]))
    })
}

/// Removes a range of keys, in batches.
fn erase(engine: &dyn Engine, start: Vec<u8>, end: &[u8], write: Write<'_>) -> Result<()> {
    loop {
        let (mut batch, mut bytes) = (Batch::default(), 0);
        engine.keys(&start..end, Order::Ascending, &mut |key, length| {
            batch.remove(key.to_vec());
            bytes += length;
            let is_full = batch.ops.len() == ERASE_KEYS || bytes >= ERASE_BYTES;
            if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if batch.ops.is_empty() {
            return Ok(());
        }
        write(batch)?;
    }
}

/// The entries of a deleted conversation that forks read.
const fn kept(id: ConversationId, tombstone: &Tombstone, keep_to: u64) -> Segment {
    let first = match tombstone.parent {
        Some(parent) => parent.at_seq + 1,
        None => 1,
    };
    Segment { conversation: id, first, last: keep_to, incarnation: tombstone.incarnation, through: u64::MAX }
}
