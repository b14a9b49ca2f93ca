//! One conversation: its head against its records, and what hangs on it.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::super::core::Core;
use super::super::items;
use super::super::place::index_keys;
use super::super::read::Item;
use super::super::segments::Segment;
use crate::embedded::engine::Order;
use crate::error::{Error, Result};
use crate::log::{Problem, Verification};
use crate::model::ConversationId;
use crate::record::{self, ForkPoint, Head, Line, Record, key};

impl Core {
    /// Gives the head, if there still is one.
    pub(super) fn verify_conversation(&self, id: ConversationId, found: &mut Verification) -> Result<Option<Head>> {
        let mut passing = Verification::default();
        let head = self.verify_head(id, self.head_for_list(id), &mut passing)?;
        if passing.problems.is_empty() {
            found.entries += passing.entries;
            return Ok(head);
        }
        self.settled(id, || self.verify_head(id, self.stored_head(id), found))
    }

    fn verify_head(
        &self,
        id: ConversationId,
        head: Result<Option<Head>>,
        found: &mut Verification,
    ) -> Result<Option<Head>> {
        let Some(head) = told(id, head, found)?.flatten() else { return Ok(None) };
        let Some(segments) = told(id, self.segments(id, &head), found)? else { return Ok(Some(head)) };
        let Some(own) = segments.last().copied() else { return Ok(Some(head)) };
        let next_message_index = self.verify_records(own, Some(&head), found)?;
        if next_message_index.is_some_and(|next| next != head.next_message_index) {
            found.problems.push(Problem::of(id, "the head's message index is not that of the last record"));
        }
        if self.has_entries_from(id, head.next_seq)? {
            found.problems.push(Problem::of(id, "the head ends before the last record"));
        }
        for index in index_keys(id, &head) {
            if self.engine.get(&index)?.is_none() {
                found.problems.push(Problem::of(id, "it is missing in an index of conversations"));
            }
        }
        if let Some(parent) = head.parent {
            let key = key::fork(parent.id(), id);
            let noted = self.engine.get(&key)?.and_then(|value| ForkPoint::open(&key, &value).ok());
            let expected = ForkPoint { at_seq: parent.at_seq, parent: parent.incarnation, child: head.incarnation };
            if noted != Some(expected) {
                found.problems.push(Problem::of(id, "the conversation that it was forked from does not know of it"));
            }
        }
        self.verify_items(own, &head, found)?;
        self.verify_receipts(id, &head, found)?;
        Ok(Some(head))
    }

    /// Reads the records of a segment. Gives the index of the next message behind the last of them, if it was read.
    pub(super) fn verify_records(
        &self,
        segment: Segment,
        head: Option<&Head>,
        found: &mut Verification,
    ) -> Result<Option<u64>> {
        let id = segment.conversation;
        let mut next_message_index = None;
        self.read(id, &[segment], segment.first..=u64::MAX - 1, Order::Ascending, &mut |item| {
            match item {
                Item::Damaged(error) => {
                    found.problems.push(Problem::from_error(id, &error));
                    next_message_index = None;
                }
                Item::Record { record, .. } => {
                    let origin = record.header.origin.as_ref();
                    let expected = next_message_index.or(origin.map(|origin| origin.first_message_index));
                    verify_record(id, record, expected, found);
                    next_message_index = Some(record.header.next_message_index);
                    if let (Some(origin), Some(head)) = (origin, head)
                        && (&origin.key, origin.parent) != (&head.key, head.parent)
                    {
                        found.problems.push(Problem::of(id, "key or parent differ between head and first record"));
                    }
                }
            }
            ControlFlow::Continue(())
        })?;
        Ok(next_message_index)
    }

    /// Item ids in records that cannot be read are not known: then their index is not judged.
    fn verify_items(&self, own: Segment, head: &Head, found: &mut Verification) -> Result<()> {
        let (id, last) = (own.conversation, head.next_seq - 1);
        let (mut keys, mut is_damaged) = (BTreeSet::new(), false);
        self.read(id, &[own], own.first..=last, Order::Ascending, &mut |item| {
            match item {
                Item::Damaged(_) => is_damaged = true,
                Item::Record { record, .. } => items::keys_of(id, record, last, &mut keys),
            }
            ControlFlow::Continue(())
        })?;
        if !is_damaged && self.item_keys(id, last)? != keys {
            found.problems.push(Problem::of(id, "the index of its item ids is not what its entries give"));
        }
        Ok(())
    }

    fn verify_receipts(&self, id: ConversationId, head: &Head, found: &mut Verification) -> Result<()> {
        let prefix = key::prefix(key::RECEIPT, id);
        self.engine.scan(&prefix..&key::after(&prefix), Order::Ascending, &mut |key, value| {
            match record::open::<record::Receipt>("an idempotency record", key, value) {
                Ok(receipt) if receipt.last_seq < head.next_seq => {}
                Ok(_) => found.problems.push(Problem::of(id, "an idempotency record points behind the last entry")),
                Err(error) => found.problems.push(Problem::from_error(id, &error)),
            }
            ControlFlow::Continue(())
        })
    }
}

/// Reads all entries of a record. `expected` is the index of the first message that may begin in it.
fn verify_record(id: ConversationId, record: &Record<'_>, mut expected: Option<u64>, found: &mut Verification) {
    let mut is_gap = false;
    for line in record.lines() {
        found.entries += 1;
        let read = line.and_then(|(seq, line)| {
            let begins = match &line {
                Line::Chunk(chunk) if chunk.header.is_some() => Some(chunk.message),
                Line::Begin(begin) => Some(begin.message),
                _ => None,
            };
            if let Some(begins) = begins.map(|relative| record.message_index(relative)) {
                is_gap |= expected.is_some_and(|expected| expected != begins);
                expected = Some(begins + 1);
            }
            crate::history::Entry::read(record, seq, &line)
        });
        found.problems.extend(read.err().map(|error| Problem::from_error(id, &error)));
    }
    if is_gap || expected.is_some_and(|expected| expected != record.header.next_message_index) {
        let detail = "the indexes of its messages do not follow those before it".to_owned();
        found.problems.push(Problem { conversation: Some(id), seq: Some(record.first_seq), detail });
    }
}

/// What was read, unless damage kept it from being read: that is a problem.
pub(super) fn told<T>(id: ConversationId, read: Result<T>, found: &mut Verification) -> Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error @ (Error::Corrupt { .. } | Error::UnsupportedVersion { .. })) => {
            found.problems.push(Problem::from_error(id, &error));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
