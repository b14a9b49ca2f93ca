//! Deletion: the head goes first, then the records in small batches. What a crash cuts off is finished on opening.

use std::ops::ControlFlow;

use super::core::Core;
use super::place::index_ops;
use super::segments::Segment;
use super::state::Pending;
use super::writer::Closed;
use crate::embedded::engine::{Batch, Order};
use crate::error::Result;
use crate::model::{ConversationId, Name};
use crate::record::{self, ForkPoint, Record, Tombstone, key};

/// Keys that are erased in one batch.
const ERASE_KEYS: usize = 256;
/// Bytes of values from which a batch is written: an engine may keep large values in many pieces.
const ERASE_BYTES: usize = 4 * 1024 * 1024;

type Write<'a> = &'a mut dyn FnMut(Batch) -> Result<()>;

impl Core {
    /// Erases a conversation; of one that has forks, what lies behind the highest fork point, and the rest with the last
    /// fork.
    pub(crate) fn delete(&self, name: &Name) -> Result<()> {
        let _structure = self.lock_structure();
        let id = name.id();
        let frozen = self.freeze(id)?;
        let head = frozen.head(name)?;
        let tombstone = key::tombstone(id);
        let value = record::seal(&tombstone, &Tombstone { parent: head.parent, incarnation: head.incarnation })?;
        frozen.close_writers(0, Closed::Deleted);
        let state = self.lock();
        state.check_writable()?;
        let mut pending = Pending { head: Some((id, None)), ..Pending::default() };
        index_ops(id, Some(&head), None, &mut pending.ops);
        pending.ops.push((tombstone, Some(value)));
        self.queue_durable(state, pending)?;
        self.settle(id, &mut |batch| {
            let state = self.lock();
            state.check_writable()?;
            self.queue_durable(state, Pending { ops: batch.ops, rewrites: true, ..Pending::default() })
        })?;
        let reserved = self.tombstone(id)?.is_some();
        self.lock().slot(id).reserved = reserved;
        Ok(())
    }

    /// Erases what is left of a deleted conversation and no fork reads; then, of the one that it was forked from.
    fn settle(&self, id: ConversationId, write: Write<'_>) -> Result<()> {
        let mut next = Some(id);
        while let Some(id) = next.take() {
            let Some(tombstone) = self.tombstone(id)? else { break };
            let keep_to = self.forks(id)?.into_iter().map(|(_, at_seq)| at_seq).max();
            if let Some(keep_to) = keep_to {
                self.erase_behind(id, &tombstone, keep_to, write)?;
                break;
            }
            for kind in [key::RECORD, key::RECEIPT, key::ITEM] {
                let prefix = key::prefix(kind, id);
                self.erase(prefix.clone(), &key::after(&prefix), write)?;
            }
            let mut batch = Batch::default();
            if let Some(parent) = tombstone.parent.map(|parent| parent.id()) {
                batch.remove(key::fork(parent, id));
                next = Some(parent);
            }
            batch.remove(key::tombstone(id));
            write(batch)?;
            self.lock().free(id);
        }
        Ok(())
    }

    /// Erases the entries of a deleted conversation above `keep_to`, its idempotency records, and nothing else.
    fn erase_behind(&self, id: ConversationId, tombstone: &Tombstone, keep_to: u64, write: Write<'_>) -> Result<()> {
        let first = tombstone.first_seq();
        let segment = Segment { conversation: id, first, last: keep_to };
        let next_message_index = self.next_message_index_at(&[segment], keep_to)?;
        let mut cut = None;
        self.record_at(&[segment], keep_to, &mut |record: &Record<'_>| {
            if record.first_seq + record.len() > keep_to + 1 {
                cut = Some(record::truncate(id, record, keep_to, next_message_index)?);
            }
            Ok(())
        })?;
        if let Some((key, value)) = cut {
            let mut batch = Batch::default();
            batch.put(key, value);
            write(batch)?;
        }
        let receipts = key::prefix(key::RECEIPT, id);
        self.erase(receipts.clone(), &key::after(&receipts), write)?;
        for keys in self.items_behind(id, keep_to)?.chunks(ERASE_KEYS) {
            write(Batch { ops: keys.iter().map(|key| (key.clone(), None)).collect() })?;
        }
        self.erase(key::record(id, keep_to + 1), &key::after(&key::prefix(key::RECORD, id)), write)
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

    /// The conversations that were forked from this one, and at which seq.
    pub(super) fn forks(&self, id: ConversationId) -> Result<Vec<(ConversationId, u64)>> {
        let prefix = key::prefix(key::FORK, id);
        let mut forks = Ok(Vec::new());
        self.engine.scan(&prefix..&key::after(&prefix), Order::Ascending, &mut |key, value| {
            let at_seq = ForkPoint::open(key, value).map(|point| point.at_seq);
            match (at_seq, key::parse_fork(key), &mut forks) {
                (Ok(at_seq), Some(child), Ok(forks)) => forks.push((child, at_seq)),
                (Err(error), _, forks) => *forks = Err(error),
                _ => {}
            }
            ControlFlow::Continue(())
        })?;
        forks
    }

    /// Finishes the deletions that a crash cut off. For opening only: nobody else writes.
    pub(super) fn finish_deletions(&self) -> Result<()> {
        for id in self.ids(key::TOMBSTONE)? {
            self.settle(id, &mut |batch| {
                self.engine.rewrite(batch)?;
                self.engine.sync()
            })?;
        }
        Ok(())
    }
}
