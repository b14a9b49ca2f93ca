//! One conversation: its head against its records, indexes and receipts.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::embedded::core::Core;
use crate::embedded::engine::Order;
use crate::embedded::stored::damage::damage_of;
use crate::embedded::stored::records::Item;
use crate::embedded::stored::segments::Segment;
use crate::error::{Error, Result};
use crate::log::replay::verify_record;
use crate::log::{Problem, Verification};
use crate::model::ConversationId;
use crate::record::{self, Head, Line, Redact, index_keys};

impl Core {
    /// Returns the head, if there still is one.
    pub(crate) fn verify_conversation(&self, id: ConversationId, found: &mut Verification) -> Result<Option<Head>> {
        let mut passing = Verification::default();
        let head = self.verify_head(id, &mut passing)?;
        if passing.problems.is_empty() {
            found.entries += passing.entries;
            return Ok(head);
        }
        self.settled(id, || self.verify_head(id, found))
    }

    fn verify_head(&self, id: ConversationId, found: &mut Verification) -> Result<Option<Head>> {
        let stored = readable(id, self.stored_head(id), found)?.flatten();
        let Some(seen) = readable(id, self.seen_head(id), found)? else { return Ok(None) };
        let Some(head) = seen else {
            if stored.is_some() {
                found.problems.push(Problem::of(id, "it has a head, and was deleted"));
            }
            return Ok(None);
        };
        let segments = self.segments(id, &head)?;
        let Some((own, past)) = segments.split_last() else { return Ok(Some(head)) };
        self.verify_past(id, past, found)?;
        let next_message_index = self.verify_records(*own, Some(&head), found)?;
        if next_message_index.is_some_and(|next| next != head.next_message_index) {
            found.problems.push(Problem::of(id, "the head's message index is not that of the last record"));
        }
        if stored.is_some_and(|stored| stored.next_seq < head.next_seq) || self.has_entries_from(id, &head)? {
            found.problems.push(Problem::of(id, "the head ends before the last record"));
        }
        for index in index_keys(id, &head) {
            if self.engine.get(&index)?.is_none() {
                found.problems.push(Problem::of(id, "an index of conversations does not list it"));
            }
        }
        self.verify_items(*own, &head, found)?;
        self.verify_redactions(*own, &segments, found)?;
        self.verify_receipts(id, &head, found)?;
        Ok(Some(head))
    }

    /// The head that readers see.
    fn seen_head(&self, id: ConversationId) -> Result<Option<Head>> {
        if let Some(slot) = self.lock().slots.get(&id) {
            return Ok(slot.published.as_deref().cloned());
        }
        self.sound_head(id)
    }

    /// What a fork reads of others: whether both ends of it exist. The rest is checked with its own conversation.
    fn verify_past(&self, id: ConversationId, past: &[Segment], found: &mut Verification) -> Result<()> {
        for segment in past.iter().filter(|segment| segment.first <= segment.last) {
            for seq in [segment.first, segment.last] {
                let read = self.record_at(&[*segment], seq, &mut |_| Ok(()));
                if let Err(error) = damage_of(read)? {
                    let shared = Problem::from_error(segment.conversation, &error);
                    let detail = format!("seq {seq}, which it shares with {}: {}", segment.conversation, shared.detail);
                    found.problems.push(Problem { conversation: Some(id), seq: Some(seq), detail });
                }
            }
        }
        Ok(())
    }

    /// Reads the records of a segment. Returns the index of the next message after the last of them, if it was read.
    pub(crate) fn verify_records(
        &self,
        segment: Segment,
        head: Option<&Head>,
        found: &mut Verification,
    ) -> Result<Option<u64>> {
        let id = segment.conversation;
        let mut next_message_index = None;
        let mut has_origin = false;
        let all = Segment { last: u64::MAX - 2, ..segment };
        // What comes after the last seq belongs to no deleted conversation, and is more than the head of a living one
        // covers.
        let mut visit = |item: Item<'_>| {
            match item {
                Item::Damaged(error) if is_after(&error, segment.last) => {}
                Item::Damaged(error) | Item::Stray(error) => {
                    found.problems.push(Problem::from_error(id, &error));
                    next_message_index = None;
                }
                Item::Record { record, .. } => {
                    let origin = record.header.origin.as_ref();
                    has_origin |= origin.is_some();
                    let expected = next_message_index.or(origin.map(|origin| origin.first_message_index));
                    verify_record(id, record, expected, found);
                    next_message_index = Some(record.header.next_message_index);
                    if let (Some(origin), Some(head)) = (origin, head)
                        && (&origin.key, &origin.owner, origin.parent, origin.incarnation)
                            != (&head.key, &head.owner, head.parent, head.incarnation)
                    {
                        found.problems.push(Problem::of(id, "what it is differs between head and first record"));
                    }
                }
            }
            ControlFlow::Continue(())
        };
        self.read(id, &[all], segment.first..=segment.last.max(segment.first), Order::Ascending, &mut visit)?;
        if head.is_some() && !has_origin {
            found.problems.push(Problem::of(id, "its first record cannot be read, or is missing"));
        }
        Ok(next_message_index)
    }

    /// Item ids in unreadable records are not known: the index of this conversation is not judged then.
    fn verify_items(&self, own: Segment, head: &Head, found: &mut Verification) -> Result<()> {
        let (id, last) = (own.conversation, head.next_seq - 1);
        let (mut keys, mut is_damaged) = (BTreeSet::new(), false);
        self.read(id, &[own], own.first..=last, Order::Ascending, &mut |item| {
            match item {
                Item::Damaged(_) => is_damaged = true,
                Item::Stray(_) => {}
                Item::Record { record, .. } => record.item_keys(id, last, &mut keys),
            }
            ControlFlow::Continue(())
        })?;
        if !is_damaged && self.item_keys(id, last)? != keys {
            found.problems.push(Problem::of(id, "the index of its item ids is not what its entries give"));
        }
        Ok(())
    }

    /// Whether what was redacted still is: damage may bring an earlier record back.
    fn verify_redactions(&self, own: Segment, segments: &[Segment], found: &mut Verification) -> Result<()> {
        let mut redactions = Vec::new();
        self.read(own.conversation, &[own], own.first..=own.last, Order::Ascending, &mut |item| {
            if let Item::Record { record, .. } = item {
                redactions.extend(record.lines().filter_map(|line| match line {
                    Ok((seq, Line::Redact(redact))) => Some((seq, redact)),
                    _ => None,
                }));
            }
            ControlFlow::Continue(())
        })?;
        for (seq, Redact { message, chunk }) in redactions {
            let mut seen = BTreeSet::new();
            let mut result = Ok(());
            self.read(own.conversation, segments, 1..=seq, Order::Ascending, &mut |item| {
                let Item::Record { record, last, .. } = item else { return ControlFlow::Continue(()) };
                let first = &mut |chunk| seen.insert(chunk);
                match record::is_redacted(record, message, chunk, last, first) {
                    Ok(true) => {}
                    Ok(false) => {
                        let detail = format!("message {message} was redacted, and its content is back");
                        let (conversation, seq) = (Some(own.conversation), Some(record.first_seq));
                        found.problems.push(Problem { conversation, seq, detail });
                    }
                    Err(error) => result = Err(error),
                }
                ControlFlow::Continue(())
            })?;
            readable(own.conversation, result, found)?;
        }
        Ok(())
    }

    fn verify_receipts(&self, id: ConversationId, head: &Head, found: &mut Verification) -> Result<()> {
        let unproved = self.unproved_receipts(id, head)?;
        let problem = |_| Problem::of(id, "an idempotency record is damaged, or is not of the entries that it names");
        found.problems.extend(unproved.into_iter().map(problem));
        Ok(())
    }
}

/// Whether there is damage past the last seq of a segment.
fn is_after(error: &Error, last: u64) -> bool {
    matches!(error, Error::Corrupt { seq: Some(seq), .. } if *seq > last)
}

/// What was read, or none if damage prevented it: that is a problem.
pub(crate) fn readable<T>(id: ConversationId, read: Result<T>, found: &mut Verification) -> Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error @ (Error::Corrupt { .. } | Error::UnsupportedVersion { .. })) => {
            found.problems.push(Problem::from_error(id, &error));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
