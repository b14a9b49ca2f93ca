//! Heads, indexes and fork points, derived again from the records.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::core::Core;
use super::damage::damage_of;
use super::heads::Standing;
use super::read::Item;
use super::segments::Segment;
use crate::embedded::engine::{Batch, Order};
use crate::error::Result;
use crate::log::replay::Names;
use crate::log::replay::{first_head, replay};
use crate::model::ConversationId;
use crate::record::{self, Commit, Head, Record, index_keys, key};

/// Conversations that are rebuilt in one batch.
const REBUILD_BATCH: usize = 256;

impl Core {
    /// The head that the records of a conversation give, if any can be read. `known`: a readable head of it; what the
    /// records do not state is taken from there. Seqs of damaged records at the end are not counted.
    pub(super) fn derived_head(&self, id: ConversationId, known: Option<&Head>) -> Result<Option<Head>> {
        self.derived_head_at(id, known, u64::MAX)
    }

    /// The same, as it was after a commit.
    pub(super) fn derived_head_at(
        &self,
        id: ConversationId,
        known: Option<&Head>,
        through: u64,
    ) -> Result<Option<Head>> {
        let incarnation = known.map_or(0, |head| head.incarnation);
        let mut all = Segment { incarnation, through, ..Segment::all(id) };
        let mut head: Option<Head> = None;
        let mut names = Names::default();
        if incarnation == 0 {
            let origin = self.origin(id)?.and_then(|header| header.origin);
            all.incarnation = origin.map_or(0, |origin| origin.incarnation);
        }
        self.read(id, &[all], 1..=all.last, Order::Ascending, &mut |item| {
            let Item::Record { record, last, .. } = item else { return ControlFlow::Continue(()) };
            replay(head.get_or_insert_with(|| first_head(record, known)), record);
            names.read(record, last);
            ControlFlow::Continue(())
        })?;
        let Some(mut head) = head else { return Ok(None) };
        self.give_names(id, &mut head, names, through)?;
        Ok(Some(head))
    }

    /// The head of a fork that has only its origin.
    pub(super) fn head_of_origin(&self, id: ConversationId, origin: &Record<'_>, through: u64) -> Result<Head> {
        let mut head = first_head(origin, None);
        self.give_names(id, &mut head, Names::default(), through)?;
        Ok(head)
    }

    /// Title and tags from the entries of these segments, as far as these can be read.
    pub(super) fn names(&self, id: ConversationId, segments: &[Segment], last: u64) -> Result<Names> {
        let mut names = Names::default();
        self.read(id, segments, 1..=last, Order::Ascending, &mut |item| {
            if let Item::Record { record, last, .. } = item {
                names.read(record, last);
            }
            ControlFlow::Continue(())
        })?;
        Ok(names)
    }

    /// `own`: what its own records give.
    fn give_names(&self, id: ConversationId, head: &mut Head, own: Names, through: u64) -> Result<()> {
        let mut names = own;
        if head.parent.is_some_and(|parent| parent.at_seq > 0) {
            // A fork has title and tags of its parent, as they were at the fork point.
            let segments = self.segments_through(id, head, through)?;
            names = self.names(id, &segments, head.next_seq - 1)?;
        }
        names.give(head);
        Ok(())
    }

    /// Makes the content of a damaged store consistent, if this store was damaged, or if its loss is accepted. For
    /// opening only: nobody else writes.
    pub(super) fn repair(&self, accept_loss: bool) -> Result<()> {
        if self.beside().set_aside().is_some() || accept_loss {
            self.rebuild_all(accept_loss)?;
        }
        // What is missing stays a problem until the loss is accepted.
        if accept_loss {
            self.recount()?;
        }
        self.beside().repaired()
    }

    /// Accepts what is there as everything that was.
    fn recount(&self) -> Result<()> {
        let mut commit = Commit { number: self.lock().commit.number, ..Commit::default() };
        for id in self.ids(key::HEAD)? {
            if let Ok(Standing::Alive(head)) = damage_of(self.standing(id))? {
                commit.count(None, Some(&head));
            }
        }
        let key = key::meta(key::COMMIT);
        let mut batch = Batch::default();
        let value = record::seal(&key, &commit)?;
        batch.put(key, value);
        self.write_now(batch)?;
        self.lock().commit = commit;
        Ok(())
    }

    /// Writes the heads and index entries that differ from what the records give. A head that promises more than the
    /// records hold stays, unless the loss is accepted: reading reports what is missing. Data that identifies no
    /// conversation stays as it is.
    pub(super) fn rebuild_all(&self, accept_loss: bool) -> Result<()> {
        let mut ids: BTreeSet<ConversationId> = self.ids(key::RECORD)?;
        ids.extend(self.ids(key::HEAD)?);
        let mut batch = Batch::default();
        for id in ids {
            if let Ok(Standing::Alive(head)) = damage_of(self.standing(id))? {
                self.rebuild(id, *head, accept_loss, &mut batch)?;
            }
            if batch.ops.len() >= REBUILD_BATCH {
                self.write_now(std::mem::take(&mut batch))?;
            }
        }
        self.write_now(batch)?;
        let mut batch = Batch::default();
        for id in self.ids(key::ITEM)? {
            // It belongs to no owner: there are no records of it.
            if matches!(damage_of(self.standing(id))?, Ok(Standing::Vacant)) {
                self.rebuild_items(id, &mut batch)?;
            }
        }
        self.remove_stray_index_entries(&mut batch)?;
        self.write_now(batch)
    }

    /// Writes a batch at once. For opening only: nobody else writes.
    pub(super) fn write_now(&self, batch: Batch) -> Result<()> {
        if batch.ops.is_empty() {
            return Ok(());
        }
        self.engine.rewrite(batch)?;
        self.engine.sync()
    }

    /// `sound`: the head that is used.
    fn rebuild(&self, id: ConversationId, sound: Head, accept_loss: bool, batch: &mut Batch) -> Result<()> {
        self.rebuild_items(id, batch)?;
        let mut head = sound.clone();
        if let Some(derived) = self.derived_head(id, Some(&sound))? {
            // For messages that cannot be read, nobody knows whether they were finished.
            head.open.clone_from(&derived.open);
            head.interrupted.clone_from(&derived.interrupted);
            let ends = |head: &Head| (head.next_seq, head.next_message_index, head.last_hide, head.last_meta);
            let promises_more = sound.next_seq > derived.next_seq;
            if if promises_more { accept_loss } else { ends(&sound) != ends(&derived) } {
                head = derived;
            }
        } else if accept_loss && sound.next_seq > sound.first_seq() {
            // A fork that has none of its own entries left.
            if let Some(parent) = sound.parent {
                head.next_seq = parent.at_seq + 1;
                let segments = self.segments(id, &head)?;
                head.next_message_index = self.next_message_index_at(&segments, parent.at_seq)?;
            }
        }
        let head_key = key::head(id);
        let value = record::seal(&head_key, &head)?;
        if self.engine.get(&head_key)?.as_ref() != Some(&value) {
            batch.put(head_key, value);
        }
        if accept_loss {
            for key in self.unproved_receipts(id, &head)? {
                batch.remove(key);
            }
        }
        for index in index_keys(id, &head) {
            if self.engine.get(&index)?.is_none() {
                batch.put(index, Vec::new());
            }
        }
        Ok(())
    }

    fn rebuild_items(&self, id: ConversationId, batch: &mut Batch) -> Result<()> {
        let (stored, derived) = (self.item_keys(id, u64::MAX)?, self.derived_item_keys(id)?);
        stored.difference(&derived).for_each(|stray| batch.remove(stray.clone()));
        derived.difference(&stored).for_each(|missing| batch.put(missing.clone(), Vec::new()));
        Ok(())
    }

    fn remove_stray_index_entries(&self, batch: &mut Batch) -> Result<()> {
        for kind in key::INDEXES {
            let mut keys = Vec::new();
            self.engine.scan(&[kind]..&key::after(&[kind]), Order::Ascending, &mut |key, _| {
                keys.push(key.to_vec());
                ControlFlow::Continue(())
            })?;
            for key in keys {
                let standing = key::conversation(&key).map(|id| (id, damage_of(self.standing(id))));
                let stays = match standing {
                    None => false,
                    Some((id, standing)) => match standing? {
                        Ok(Standing::Alive(head)) => index_keys(id, &head).contains(&key),
                        Ok(Standing::Vacant | Standing::Deleted(_)) => false,
                        // Nothing identifies it.
                        Err(_) => true,
                    },
                };
                if !stays {
                    batch.remove(key);
                }
            }
        }
        Ok(())
    }
}
