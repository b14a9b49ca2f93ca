//! Records back out, across forks.

use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;

use super::core::Core;
use super::segments::Segment;
use crate::embedded::engine::Order;
use crate::error::{Error, Result};
use crate::history::Entry;
use crate::history::{Grouped, Grouper};
use crate::model::ConversationId;
use crate::record::{Head, Record, key};

/// What a reader is shown.
#[derive(Debug)]
pub(crate) enum Item<'a> {
    /// A record; entries above `last` do not belong to the conversation. `own` unless it is an ancestor's.
    Record { record: &'a Record<'a>, last: u64, own: bool },
    /// Entries from this error's seq on cannot be read; later records may follow.
    Damaged(Error),
    /// A value under this conversation's name that is none of its records: nothing of the conversation is missing here.
    Stray(Error),
}

/// A conversation as it is published at one moment.
struct Moment {
    head: Arc<Head>,
    /// The messages whose writers live.
    live: Vec<u64>,
    /// The last commit.
    through: u64,
}

type Visit<'a> = &'a mut dyn FnMut(Item<'_>) -> ControlFlow<()>;

impl Core {
    /// Shows the records that hold the seqs of a range.
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
        let mut run = Run { conversation, order, next: Some(if order == Order::Ascending { start } else { last }) };
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
                run.next = None;
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

    /// The first seq of the record that holds `seq`, if it is there; `seq` if it is not.
    fn first_seq_at(&self, segment: &Segment, seq: u64) -> Result<u64> {
        let id = segment.conversation;
        let (lower, upper) = (key::record(id, segment.first), key::record(id, seq + 1));
        let mut found = seq;
        self.engine.scan(&lower..&upper, Order::Descending, &mut |key, value| {
            let Some((_, first_seq)) = key::parse_record(key) else { return ControlFlow::Continue(()) };
            match Record::open(id, first_seq, value) {
                // What is none of its records says nothing of where they begin.
                Ok(record) if !segment.accepts(&record) => ControlFlow::Continue(()),
                // A record that ends before: the one that holds the seq is damaged, or missing.
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

    /// Why the engine cannot give a record whole, if that is so: it says more than the checksum of what is there.
    fn torn(&self, conversation: ConversationId, first_seq: u64, error: Error) -> Error {
        match self.engine.get(&key::record(conversation, first_seq)) {
            Err(torn @ Error::Corrupt { .. }) => at(torn, conversation, first_seq),
            _ => error,
        }
    }

    /// Shows the one record that holds a seq.
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

    /// All messages, grouped, and what could not be read.
    pub(super) fn group(&self, id: ConversationId, head: &Head, live: Vec<u64>) -> Result<Grouped> {
        self.group_through(id, head, live, u64::MAX)
    }

    fn group_through(&self, id: ConversationId, head: &Head, live: Vec<u64>, through: u64) -> Result<Grouped> {
        let segments = self.segments_through(id, head, through)?;
        let messages = usize::try_from(head.next_message_index).unwrap_or(usize::MAX);
        let mut grouper = Grouper::new(self.epoch, live, messages);
        self.read(id, &segments, 1..=head.next_seq - 1, Order::Ascending, &mut |item| {
            match item {
                Item::Record { record, last, own } => grouper.push(record, last, own),
                Item::Damaged(error) => grouper.damaged(error),
                Item::Stray(_) => {}
            }
            ControlFlow::Continue(())
        })?;
        Ok(grouper.finish())
    }

    /// The conversation as it is durable now.
    pub(crate) fn load(&self, id: ConversationId, shown: &dyn std::fmt::Display) -> Result<Grouped> {
        loop {
            let moment = self.moment(id)?.ok_or_else(|| Error::no_conversation(shown))?;
            let grouped = self.group_through(id, &moment.head, moment.live, moment.through)?;
            if grouped.damage.is_empty() || self.is_still(id, &moment.head)? {
                return Ok(grouped);
            }
        }
    }

    /// What readers may see of a conversation now: what is written later belongs to a later moment, and perhaps to another
    /// conversation of that name.
    fn moment(&self, id: ConversationId) -> Result<Option<Moment>> {
        let _pin = self.pin(id)?;
        let mut state = self.lock();
        // Where nothing is written, the number of the last commit may be damaged.
        let through = if state.blocked.is_some() { u64::MAX } else { state.commit.number };
        let slot = state.slot(id);
        let live = slot.writers.keys().copied().collect();
        Ok(slot.published.clone().map(|head| Moment { head, live, through }))
    }

    /// Whether a conversation is the one whose head this was: what is missing in one that was deleted meanwhile, and made
    /// anew perhaps, is no damage.
    fn is_still(&self, id: ConversationId, head: &Head) -> Result<bool> {
        let now = self.published_head(id)?;
        Ok(now.is_some_and(|now| now.incarnation == head.incarnation))
    }

    /// Up to `limit` entries of a range, in that order of seqs. Damage is an error.
    pub(crate) fn entries(
        &self,
        id: ConversationId,
        shown: &dyn std::fmt::Display,
        range: RangeInclusive<u64>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<Entry>> {
        loop {
            let moment = self.moment(id)?.ok_or_else(|| Error::no_conversation(shown))?;
            let entries = self.entries_of(id, &moment, &range, order, limit);
            if entries.is_ok() || self.is_still(id, &moment.head)? {
                return entries;
            }
        }
    }

    fn entries_of(
        &self,
        id: ConversationId,
        moment: &Moment,
        range: &RangeInclusive<u64>,
        order: Order,
        limit: usize,
    ) -> Result<Vec<Entry>> {
        let segments = self.segments_through(id, &moment.head, moment.through)?;
        let mut entries = Vec::new();
        let mut result = Ok(());
        if limit == 0 {
            return Ok(entries);
        }
        self.read(id, &segments, range.clone(), order, &mut |item| {
            let read = match item {
                Item::Record { record, last, .. } => {
                    let wanted = *range.start()..=last.min(*range.end());
                    collect(record, wanted, order, limit, &mut entries)
                }
                Item::Damaged(error) => Err(error),
                Item::Stray(_) => Ok(()),
            };
            match read {
                Ok(()) if entries.len() < limit => ControlFlow::Continue(()),
                other => {
                    result = other;
                    ControlFlow::Break(())
                }
            }
        })?;
        result.map(|()| entries)
    }
}

/// Adds the entries of a record that lie in the range, up to `limit` in all: no others are read whole.
fn collect(
    record: &Record<'_>,
    wanted: RangeInclusive<u64>,
    order: Order,
    limit: usize,
    entries: &mut Vec<Entry>,
) -> Result<()> {
    let (mut first, mut last) = wanted.into_inner();
    first = first.max(record.first_seq);
    last = last.min((record.first_seq + record.len()).saturating_sub(1));
    let before = entries.len();
    let others = (limit - before).saturating_sub(1) as u64;
    match order {
        Order::Ascending => last = last.min(first.saturating_add(others)),
        Order::Descending => first = first.max(last.saturating_sub(others)),
    }
    for line in record.lines() {
        let (seq, line) = line?;
        if (first..=last).contains(&seq) {
            entries.push(Entry::read(record, seq, &line)?);
        }
    }
    if order == Order::Descending {
        entries.get_mut(before..).unwrap_or_default().reverse();
    }
    Ok(())
}

/// Whether record follows record without a gap.
struct Run {
    conversation: ConversationId,
    order: Order,
    /// Ascending: the seq that has to come next. Descending: the seq that the next record has to end with. Unknown
    /// behind damage.
    next: Option<u64>,
}

impl Run {
    fn step(&mut self, first_seq: u64, length: u64) -> Option<Error> {
        let (end, expected) = (first_seq + length, self.next);
        match self.order {
            Order::Ascending => {
                self.next = Some(end);
                expected.filter(|expected| *expected != first_seq).map(|expected| self.gap(expected))
            }
            Order::Descending => {
                self.next = Some(first_seq - 1);
                // The newest record may go on behind the part that is read.
                expected.filter(|expected| end <= *expected).map(|_| self.gap(end))
            }
        }
    }

    /// Whether the entries from a seq on were read already. In descending order nobody knows.
    fn has_read(&self, first_seq: u64) -> bool {
        self.order == Order::Ascending && self.next.is_some_and(|next| first_seq < next)
    }

    fn rest(&self, start: u64, last: u64) -> Option<Error> {
        match self.order {
            Order::Ascending => self.next.filter(|next| *next <= last).map(|next| self.gap(next)),
            Order::Descending => self.next.filter(|next| *next >= start).map(|next| self.gap(next)),
        }
    }

    fn gap(&self, seq: u64) -> Error {
        let detail = "the record that should be here is missing".to_owned();
        Error::Corrupt { conversation: Some(self.conversation), seq: Some(seq), detail }
    }
}

fn at(error: Error, conversation: ConversationId, first_seq: u64) -> Error {
    match error {
        Error::Corrupt { detail, .. } => {
            Error::Corrupt { conversation: Some(conversation), seq: Some(first_seq), detail }
        }
        other => other,
    }
}

fn stray(conversation: ConversationId, first_seq: u64) -> Error {
    let detail = "a record of another conversation of this name, or one that was written after a loss".to_owned();
    Error::Corrupt { conversation: Some(conversation), seq: Some(first_seq), detail }
}
