//! Deletion: the head is removed first, then the records in small batches. The next opening finishes what a crash
//! interrupted.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use super::core::Core;
use super::damage::damage_of;
use super::read::Item;
use super::segments::Segment;
use super::state::Pending;
use super::writer::Closed;
use crate::embedded::engine::{Batch, Order};
use crate::error::{Error, Result};
use crate::history::Cursor;
use crate::log::append::check_end;
use crate::model::{ConversationId, Name};
use crate::record::{self, Head, Record, Replacement, Tombstone, key};

/// Keys that are erased in one batch.
const ERASE_KEYS: usize = 256;
/// Bytes of values from which a batch is written: an engine may keep large values in many pieces.
const ERASE_BYTES: usize = 4 * 1024 * 1024;

/// A deletion in progress, for those who count what is there.
struct Erasing<'a>(&'a Core);

impl<'a> Erasing<'a> {
    fn begin(core: &'a Core) -> Self {
        core.erasing.fetch_add(1, Ordering::AcqRel);
        core.erased.fetch_add(1, Ordering::AcqRel);
        Self(core)
    }
}

impl Drop for Erasing<'_> {
    fn drop(&mut self) {
        self.0.erasing.fetch_sub(1, Ordering::AcqRel);
    }
}

type Write<'a> = &'a mut dyn FnMut(Batch) -> Result<()>;

impl Core {
    /// Erases a conversation. If it has forks, erases what comes after the highest fork point now, and the rest with
    /// the last fork. With a cursor, only if the conversation ends there.
    pub(crate) fn delete(&self, name: &Name, at: Option<Cursor>) -> Result<()> {
        let id = name.id();
        let write = &mut |batch: Batch| {
            let state = self.lock();
            state.check_writable()?;
            self.queue_durable(state, Pending { ops: batch.ops, rewrites: true, ..Pending::default() })
        };
        self.lock().check_writable()?;
        self.prove_fork_points(write)?;
        let _held = self.hold(&[id])?;
        let _erasing = Erasing::begin(self);
        let frozen = match damage_of(self.freeze(id))? {
            Ok(frozen) => frozen,
            // Nothing states what it was, so nothing of it is in use.
            Err(damage) if at.is_none() => return self.delete_unknown(name, damage, write),
            Err(error) => return Err(error),
        };
        let head = frozen.head(name)?;
        check_end(name, &head, at)?;
        let tombstone = key::tombstone(id);
        let value = record::seal(&tombstone, &Tombstone { parent: head.parent, incarnation: head.incarnation })?;
        let mut pending = Pending { head: Some((id, None)), rewrites: true, ..Pending::default() };
        pending.ops.push((tombstone, Some(value)));
        if self.forks(id)?.iter().any(|fork| fork.at_seq >= head.first_seq()) {
            pending.ops.extend(self.marked_deleted(id, &head)?);
        }
        let mut state = self.lock();
        state.check_writable()?;
        frozen.close_writers(&mut state, 0, Closed::Deleted);
        self.queue_durable(state, pending)?;
        // It is deleted from here on. Its name is free once nothing of it is left.
        self.lock().slot(id).reserved = true;
        self.settle(id, write)?;
        let reserved = self.tombstone(id)?.is_some();
        self.lock().slot(id).reserved = reserved;
        Ok(())
    }

    /// Erases what is left of a conversation when neither its head nor its first record states what it was, unless it
    /// may belong to another owner. The list still states the owner. Where that is lost too, a key proves it: the id is
    /// the digest of both.
    fn delete_unknown(&self, name: &Name, damage: Error, write: Write<'_>) -> Result<()> {
        let id = name.id();
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
        write(batch)?;
        self.settle(id, write)
    }

    /// The first record of a conversation, marked, so that a lost tombstone does not bring the conversation back. None
    /// if that record cannot be read.
    fn marked_deleted(&self, id: ConversationId, head: &Head) -> Result<Replacement> {
        let first = head.first_seq();
        let own = Segment { conversation: id, first, last: first, incarnation: head.incarnation, through: u64::MAX };
        let mut marked = Ok(Replacement::new());
        self.read(id, &[own], first..=first, Order::Ascending, &mut |item| {
            if let Item::Record { record, .. } = item
                && record.first_seq == first
            {
                marked = record::mark_deleted(id, record).map(|(key, value)| vec![(key, Some(value))]);
            }
            ControlFlow::Continue(())
        })?;
        marked
    }

    /// Erases what is left of a deleted conversation and no fork reads; then the same of its parent.
    fn settle(&self, id: ConversationId, write: Write<'_>) -> Result<()> {
        let mut next = Some(id);
        while let Some(id) = next.take() {
            // What nothing identifies stays, and `verify` reports it.
            let Some(tombstone) = damage_of(self.tombstone(id))?.unwrap_or_default() else { break };
            let keep_to = self.forks(id)?.into_iter().map(|fork| fork.at_seq).max();
            if let Some(keep_to) = keep_to {
                self.erase_after(id, &tombstone, keep_to, write)?;
                break;
            }
            for kind in [key::RECORD, key::RECEIPT, key::ITEM] {
                let prefix = key::prefix(kind, id);
                self.erase(prefix.clone(), &key::after(&prefix), write)?;
            }
            let mut batch = Batch::default();
            if let Some(parent) = tombstone.parent.filter(|parent| parent.at_seq > 0) {
                batch.remove(key::fork(parent.id(), id));
                next = Some(parent.id());
            }
            batch.remove(key::tombstone(id));
            write(batch)?;
            self.lock().free(id);
        }
        Ok(())
    }

    /// Erases the entries of a deleted conversation above `keep_to`, and its idempotency records; nothing else. A
    /// record that cannot be read stays.
    fn erase_after(&self, id: ConversationId, tombstone: &Tombstone, keep_to: u64, write: Write<'_>) -> Result<()> {
        let receipts = key::prefix(key::RECEIPT, id);
        self.erase(receipts.clone(), &key::after(&receipts), write)?;
        let after = keep_to.saturating_add(1);
        if self.has_record_from(id, after)? || self.is_cut_short(id, tombstone, keep_to)? {
            if let Ok(ops) = damage_of(self.truncated(id, tombstone, keep_to))?
                && !ops.is_empty()
            {
                write(Batch { ops })?;
            }
            self.erase(key::record(id, after), &key::after(&key::prefix(key::RECORD, id)), write)?;
        }
        for keys in self.items_behind(id, keep_to)?.chunks(ERASE_KEYS) {
            write(Batch { ops: keys.iter().map(|key| (key.clone(), None)).collect() })?;
        }
        Ok(())
    }

    /// Whether something of a deleted conversation is left that no known fork reads.
    fn is_unsettled(&self, id: ConversationId) -> Result<bool> {
        let Some(tombstone) = self.tombstone(id)? else { return Ok(false) };
        let Some(keep_to) = self.forks(id)?.into_iter().map(|fork| fork.at_seq).max() else { return Ok(true) };
        Ok(self.has_record_from(id, keep_to.saturating_add(1))?
            || self.has_any(&key::prefix(key::RECEIPT, id))?
            || self.is_cut_short(id, &tombstone, keep_to)?)
    }

    fn has_record_from(&self, id: ConversationId, seq: u64) -> Result<bool> {
        let mut found = false;
        let end = key::after(&key::prefix(key::RECORD, id));
        self.engine.scan(&key::record(id, seq)..&end, Order::Ascending, &mut |_, _| {
            found = true;
            ControlFlow::Break(())
        })?;
        Ok(found)
    }

    /// Whether the record that holds `keep_to` continues after it.
    fn is_cut_short(&self, id: ConversationId, tombstone: &Tombstone, keep_to: u64) -> Result<bool> {
        let mut goes_on = false;
        let read = self.record_at(&[kept(id, tombstone, keep_to)], keep_to, &mut |record: &Record<'_>| {
            goes_on = record.first_seq + record.len() > keep_to.saturating_add(1);
            Ok(())
        });
        Ok(damage_of(read)?.is_ok() && goes_on)
    }

    /// The record that holds `keep_to`, without what comes after it.
    fn truncated(&self, id: ConversationId, tombstone: &Tombstone, keep_to: u64) -> Result<Replacement> {
        let segment = kept(id, tombstone, keep_to);
        let next_message_index = self.next_message_index_at(&[segment], keep_to)?;
        let mut cut = Ok(Replacement::new());
        self.record_at(&[segment], keep_to, &mut |record: &Record<'_>| {
            if record.first_seq + record.len() > keep_to + 1 {
                let truncated = record::truncate(record, keep_to, next_message_index);
                let sealed =
                    truncated.and_then(|(header, body)| record::seal_record(id, record.first_seq, &header, body));
                cut = sealed.map(|(key, value)| vec![(key, Some(value))]);
            }
            Ok(())
        })?;
        cut
    }

    /// Removes a range of keys, in batches.
    fn erase(&self, start: Vec<u8>, end: &[u8], write: Write<'_>) -> Result<()> {
        loop {
            let (mut batch, mut bytes) = (Batch::default(), 0);
            self.engine.keys(&start..end, Order::Ascending, &mut |key, length| {
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

    /// Finishes the deletions that a crash interrupted. For opening only: nobody else writes. Nothing is erased before
    /// it is proved that no fork reads it.
    pub(super) fn finish_deletions(&self) -> Result<()> {
        let mut unsettled = Vec::new();
        for id in self.ids(key::TOMBSTONE)? {
            if damage_of(self.is_unsettled(id))?.unwrap_or(false) {
                unsettled.push(id);
            }
        }
        if unsettled.is_empty() {
            return Ok(());
        }
        let write = &mut |batch| self.write_now(batch);
        self.prove_fork_points(write)?;
        for id in unsettled {
            // What cannot be read stays, and `verify` reports it.
            let _ = damage_of(self.settle(id, write))?;
        }
        Ok(())
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
