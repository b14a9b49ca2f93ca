//! Records, where they are: which of those under a conversation's name are its own, and what they hold; and the logs
//! that hold a conversation's entries, its own and those of its ancestors.

use std::ops::ControlFlow;

use super::damage_of;
use crate::embedded::engine::{Engine, Order};
use crate::error::{Error, Result};
use crate::log::records::Gaps;
use crate::log::segments::{Segment, Segmented};
use crate::log::{Reading, Visit};
use crate::model::ConversationId;
use crate::record::{self, Head, Header, Parent, Record, Tombstone, key};

/// The last bits of an incarnation, after the number of a commit.
const ANY_BITS: u32 = 20;

/// The last commit before an incarnation was created: its records are of later ones.
pub(crate) const fn born(incarnation: u64) -> u64 {
    incarnation >> ANY_BITS
}

/// A number that distinguishes a conversation that is created now from others of its id, and from records that are older
/// than it: the number of the last commit, then bits of something that no two conversations of a store share.
pub(crate) fn incarnation(last_commit: u64, unshared: &[u8]) -> u64 {
    let [.., a, b, c] = record::digest(unshared);
    let any = u64::from(u32::from_be_bytes([0, a, b, c])) & ((1 << ANY_BITS) - 1);
    (last_commit.min(u64::MAX >> ANY_BITS) << ANY_BITS) | any
}

/// Whether a record under a segment's conversation is one of its own. Another conversation may have had the name before or
/// since, and damage brings back what was there.
pub(super) fn accepts(segment: &Segment, record: &Record<'_>) -> bool {
    let commit = record.header.commit;
    let is_of_it = |incarnation| segment.incarnation == 0 || segment.incarnation == incarnation;
    (segment.incarnation == 0 || born(segment.incarnation) < commit)
        && commit <= segment.through
        && record.header.origin.as_ref().is_none_or(|origin| is_of_it(origin.incarnation))
}

/// The head in the engine, as it is; damage is an error.
pub(crate) fn stored_head(engine: &dyn Engine, id: ConversationId) -> Result<Option<Head>> {
    let key = key::head(id);
    engine.get(&key)?.map(|bytes| Head::open(&key, &bytes)).transpose()
}

/// The header of the first readable record of a conversation, if that record is the conversation's first: it has an
/// origin.
pub(crate) fn origin(engine: &dyn Engine, id: ConversationId) -> Result<Option<Header>> {
    let mut found: Option<Header> = None;
    let prefix = key::prefix(key::RECORD, id);
    engine.scan(&prefix..&key::after(&prefix), Order::Ascending, &mut |key, value| {
        let Some((_, first_seq)) = key::parse_record(key) else { return ControlFlow::Continue(()) };
        match Record::open(id, first_seq, value).map(|record| record.header) {
            Ok(header) => {
                found = Some(header);
                ControlFlow::Break(())
            }
            // A damaged record may have been the first one; a later record has no origin.
            Err(_) => ControlFlow::Continue(()),
        }
    })?;
    Ok(found)
}

impl Segmented for dyn Engine + '_ {
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
        let start = if from > first { first_seq_at(self, &segment, from)? } else { first };
        let (lower, upper) = (key::record(conversation, start), key::record(conversation, last + 1));
        let mut run = Gaps::new(conversation, order, start..=last);
        let mut show = |first_seq, value: &[u8]| match Record::open(conversation, first_seq, value) {
            Ok(record) if !accepts(&segment, &record) => visit(Reading::Stray(stray(conversation, first_seq))),
            Ok(record) => {
                if let Some(gap) = run.step(first_seq, record.len()) {
                    visit(Reading::Damaged(gap))?;
                }
                visit(Reading::Record { record: &record, last, own })
            }
            Err(error) if run.has_read(first_seq) => visit(Reading::Stray(error)),
            Err(error) => {
                run.lose();
                visit(Reading::Damaged(torn(self, conversation, first_seq, error)))
            }
        };
        let mut broke = ControlFlow::Continue(());
        self.scan(&lower..&upper, order, &mut |key, value| {
            let Some((_, first_seq)) = key::parse_record(key) else { return ControlFlow::Continue(()) };
            broke = show(first_seq, value);
            broke
        })?;
        match run.rest(start, last) {
            Some(gap) if broke.is_continue() => Ok(visit(Reading::Damaged(gap))),
            _ => Ok(broke),
        }
    }
}

/// The first seq of the record that holds `seq`, if that record exists; otherwise `seq`.
fn first_seq_at(engine: &dyn Engine, segment: &Segment, seq: u64) -> Result<u64> {
    let id = segment.conversation;
    let (lower, upper) = (key::record(id, segment.first), key::record(id, seq + 1));
    let mut found = seq;
    engine.scan(&lower..&upper, Order::Descending, &mut |key, value| {
        let Some((_, first_seq)) = key::parse_record(key) else { return ControlFlow::Continue(()) };
        match Record::open(id, first_seq, value) {
            // A foreign record does not show where this conversation's records begin.
            Ok(record) if !accepts(segment, &record) => ControlFlow::Continue(()),
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
fn torn(engine: &dyn Engine, conversation: ConversationId, first_seq: u64, error: Error) -> Error {
    match engine.get(&key::record(conversation, first_seq)) {
        Err(torn @ Error::Corrupt { .. }) => record::at(torn, conversation, first_seq),
        _ => error,
    }
}

fn stray(conversation: ConversationId, first_seq: u64) -> Error {
    let detail = "a record of another conversation of this name, or one that was written after a loss".to_owned();
    Error::Corrupt { conversation: Some(conversation.into()), seq: Some(first_seq), detail }
}

/// Where the conversation's entries are, oldest first.
pub(crate) fn segments(engine: &dyn Engine, id: ConversationId, head: &Head) -> Result<Vec<Segment>> {
    segments_through(engine, id, head, u64::MAX)
}

/// The same, of records written by no later commit than `through`.
pub(crate) fn segments_through(
    engine: &dyn Engine,
    id: ConversationId,
    head: &Head,
    through: u64,
) -> Result<Vec<Segment>> {
    let mut segment = Segment {
        conversation: id,
        first: head.first_seq(),
        last: head.next_seq - 1,
        incarnation: head.incarnation,
        through,
    };
    let (mut segments, mut parent) = (Vec::new(), head.parent);
    while let Some(shared) = parent.filter(|parent| parent.at_seq > 0) {
        segments.push(segment);
        // If nothing states the parent's own parent any more, its first entries are missing.
        parent = grandparent(engine, shared)?;
        segment = Segment {
            conversation: shared.id(),
            first: parent.map_or(0, |parent| parent.at_seq) + 1,
            last: shared.at_seq,
            incarnation: shared.incarnation,
            through: shared.commit.min(through),
        };
    }
    segments.push(segment);
    segments.reverse();
    Ok(segments)
}

/// The parent of a parent, if it is known.
pub(crate) fn grandparent(engine: &dyn Engine, parent: Parent) -> Result<Option<Parent>> {
    let lineage = lineage(engine, parent.id(), parent.incarnation)?.flatten();
    // A fork point comes before all later ones, so a chain of parents ends.
    Ok(lineage.filter(|grandparent| grandparent.at_seq < parent.at_seq))
}

/// The parent of an incarnation of a conversation, if it is known: from its head, its tombstone, or its first
/// record.
fn lineage(engine: &dyn Engine, id: ConversationId, incarnation: u64) -> Result<Option<Option<Parent>>> {
    if let Ok(Some(head)) = damage_of(stored_head(engine, id))?
        && head.incarnation == incarnation
    {
        return Ok(Some(head.parent));
    }
    let key = key::tombstone(id);
    if let Some(tombstone) = engine.get(&key)?.and_then(|bytes| Tombstone::open(&key, &bytes).ok())
        && tombstone.incarnation == incarnation
    {
        return Ok(Some(tombstone.parent));
    }
    let origin = origin(engine, id)?.and_then(|found| found.origin);
    Ok(origin.filter(|origin| origin.incarnation == incarnation).map(|origin| origin.parent))
}
