//! Records back out, across forks.

use std::ops::{ControlFlow, RangeInclusive};

use super::core::Core;
use super::segments::Segment;
use crate::embedded::engine::Order;
use crate::error::{Error, Result};
pub(crate) use crate::log::Reading as Item;
use crate::log::records::Gaps;
use crate::log::{View, Visit};
use crate::model::ConversationId;
use crate::record::{self, Head, Record, key};

impl Core {
    /// Visits the records that hold the seqs of a range.
    pub(super) fn read(
        &self,
        id: ConversationId,
        segments: &[Segment],
        range: RangeInclusive<u64>,
        order: Order,
        visit: Visit<'_>,
    ) -> Result<()> {
        let overlapping = |segment: &&Segment| segment.first <= *range.end() && segment.last >= *range.start();
        let mut chosen: Vec<&Segment> = segments.iter().filter(overlapping).collect();
        if order == Order::Descending {
            chosen.reverse();
        }
        for segment in chosen {
            let part = Segment { last: segment.last.min(*range.end()), ..*segment };
            let from = segment.first.max(*range.start());
            if self.read_segment(part, from, segment.conversation == id, order, visit)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn read_segment(
        &self,
        segment: Segment,
        from: u64,
        own: bool,
        order: Order,
        visit: Visit<'_>,
    ) -> Result<ControlFlow<()>> {
        let Segment { conversation, first, last, .. } = segment;
        if first > last {
            return Ok(ControlFlow::Continue(()));
        }
        let start = if from > first { self.first_seq_at(&segment, from)? } else { first };
        let (lower, upper) = (key::record(conversation, start), key::record(conversation, last + 1));
        let mut run = Gaps::new(conversation, order, start..=last);
        let mut show = |first_seq, value: &[u8]| match Record::open(conversation, first_seq, value) {
            Ok(record) if !segment.accepts(&record) => visit(Item::Stray(stray(conversation, first_seq))),
            Ok(record) => {
                if let Some(gap) = run.step(first_seq, record.len()) {
                    visit(Item::Damaged(gap))?;
                }
                visit(Item::Record { record: &record, last, own })
            }
            Err(error) if run.has_read(first_seq) => visit(Item::Stray(error)),
            Err(error) => {
                run.lose();
                visit(Item::Damaged(self.torn(conversation, first_seq, error)))
            }
        };
        let mut broke = ControlFlow::Continue(());
        self.engine.scan(&lower..&upper, order, &mut |key, value| {
            let Some((_, first_seq)) = key::parse_record(key) else { return ControlFlow::Continue(()) };
            broke = show(first_seq, value);
            broke
        })?;
        match run.rest(start, last) {
            Some(gap) if broke.is_continue() => Ok(visit(Item::Damaged(gap))),
            _ => Ok(broke),
        }
    }

    /// The first seq of the record that holds `seq`, if that record exists; otherwise `seq`.
    fn first_seq_at(&self, segment: &Segment, seq: u64) -> Result<u64> {
        let id = segment.conversation;
        let (lower, upper) = (key::record(id, segment.first), key::record(id, seq + 1));
        let mut found = seq;
        self.engine.scan(&lower..&upper, Order::Descending, &mut |key, value| {
            let Some((_, first_seq)) = key::parse_record(key) else { return ControlFlow::Continue(()) };
            match Record::open(id, first_seq, value) {
                // A foreign record does not show where this conversation's records begin.
                Ok(record) if !segment.accepts(&record) => ControlFlow::Continue(()),
                // A record that ends earlier: the one that holds the seq is damaged, or missing.
                Ok(record) if first_seq + record.len() <= seq => ControlFlow::Break(()),
                Ok(_) => {
                    found = first_seq;
                    ControlFlow::Break(())
                }
                Err(_) => {
                    found = found.min(first_seq);
                    ControlFlow::Continue(())
                }
            }
        })?;
        Ok(found)
    }

    /// Why the engine cannot give a record whole, if so: this says more than the record's checksum.
    fn torn(&self, conversation: ConversationId, first_seq: u64, error: Error) -> Error {
        match self.engine.get(&key::record(conversation, first_seq)) {
            Err(torn @ Error::Corrupt { .. }) => record::at(torn, conversation, first_seq),
            _ => error,
        }
    }

    /// Visits the one record that holds a seq.
    pub(super) fn record_at(
        &self,
        segments: &[Segment],
        seq: u64,
        visit: &mut dyn FnMut(&Record<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut result = Ok(());
        let id = segments.last().map_or(ConversationId::from_bytes([0; 16]), |segment| segment.conversation);
        self.read(id, segments, seq..=seq, Order::Ascending, &mut |item| {
            result = match item {
                Item::Record { record, .. } if record.first_seq + record.len() <= seq => {
                    return ControlFlow::Continue(());
                }
                Item::Record { record, .. } => visit(record),
                Item::Damaged(error) => Err(error),
                Item::Stray(_) => return ControlFlow::Continue(()),
            };
            ControlFlow::Break(())
        })?;
        result
    }

    /// What readers may see of a conversation now. What is written later belongs to a later moment, and perhaps to
    /// another conversation of that name.
    pub(super) fn view(&self, id: ConversationId) -> Result<Option<View>> {
        let _pin = self.pin(id)?;
        let mut state = self.lock();
        // In a read-only store, the number of the last commit may be damaged.
        let through = if state.blocked.is_some() { u64::MAX } else { state.commit.number };
        let commit = state.commit.number;
        let slot = state.slot(id);
        let live = slot.writers.keys().copied().collect();
        Ok(slot.published.clone().map(|head| View { id, head, live, epoch: self.epoch, commit, through }))
    }

    /// Whether something that a view shows may have been redacted after a commit.
    pub(crate) fn is_redacted_since(&self, view: &View, commit: u64) -> Result<bool> {
        if self.lock().redactions.latest <= commit {
            return Ok(false);
        }
        let segments = self.segments(view.id, &view.head)?;
        Ok(self.lock().redactions.concern(commit, segments.iter().map(|segment| segment.conversation)))
    }

    /// Whether the conversation still is the one of this head. Missing data is no damage if the conversation was
    /// deleted meanwhile, and perhaps created again.
    pub(super) fn is_still(&self, id: ConversationId, head: &Head) -> Result<bool> {
        let now = self.published_head(id)?;
        Ok(now.is_some_and(|now| now.incarnation == head.incarnation))
    }
}

fn stray(conversation: ConversationId, first_seq: u64) -> Error {
    let detail = "a record of another conversation of this name, or one that was written after a loss".to_owned();
    Error::Corrupt { conversation: Some(conversation.into()), seq: Some(first_seq), detail }
}
