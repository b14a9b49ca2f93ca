//! A conversation as it was at an earlier seq: what a fork takes over.

use super::records::Records;
use super::replay::Names;
use super::segments::{Segment, Segmented, segment_of};
use crate::error::{Error, Result};
use crate::model::{ConversationId, Name};
use crate::record::{Head, Line, Parent, TitleSource};

/// The last seq that a fork of a conversation shares: its last one, unless another is given. Fails if there is no such seq.
pub(crate) fn fork_point(parent: &Name, last: u64, at_seq: Option<u64>) -> Result<u64> {
    match at_seq {
        Some(at_seq) if at_seq > last => {
            Err(Error::NotFound { what: format!("seq {at_seq} (the last is {last}) in conversation {parent}") })
        }
        at_seq => Ok(at_seq.unwrap_or(last)),
    }
}

/// What a fork at `at_seq` is bound to, and the head as it was there, as far as a fork takes it over. `segments`: those of the
/// conversation that is forked.
pub(crate) fn past(
    log: &(impl Segmented + ?Sized),
    id: ConversationId,
    head: &Head,
    segments: &[Segment],
    at_seq: u64,
) -> Result<(Parent, Head)> {
    if at_seq == 0 {
        let shared = Parent { conversation: *id.as_bytes(), at_seq, incarnation: head.incarnation, commit: 0 };
        return Ok((shared, empty(head)));
    }
    let segment = segment_of(segments, at_seq);
    let (owner, incarnation) =
        segment.map_or((id, head.incarnation), |segment| (segment.conversation, segment.incarnation));
    let records = log.records(segments);
    let commit = records.record(at_seq, "a record", |record| Ok(Some(record.header.commit)))?;
    let shared = Parent { conversation: *owner.as_bytes(), at_seq, incarnation, commit };
    Ok((shared, head_at(head, at_seq, &records, || log.names(segments, at_seq))?))
}

/// The head as it was before the first entry, as far as a fork takes it over.
fn empty(head: &Head) -> Head {
    let mut then = Head { next_message_index: 0, last_hide: 0, last_meta: 0, ..head.clone() };
    Names::default().give(&mut then);
    then
}

/// The head as it was right after `at_seq`, as far as a fork takes it over: what its records would give. `names`: title and
/// tags as the entries up to there give them.
fn head_at(head: &Head, at_seq: u64, records: &Records<'_>, names: impl FnOnce() -> Result<Names>) -> Result<Head> {
    if at_seq + 1 == head.next_seq {
        return Ok(head.clone());
    }
    let mut then = Head {
        next_message_index: next_message_index_at(records, at_seq)?,
        last_hide: records.last_hide(head.last_hide, at_seq)?,
        last_meta: records.last_meta(head.last_meta, at_seq)?,
        ..head.clone()
    };
    let is_as_it_was = (then.last_hide, then.last_meta) == (head.last_hide, head.last_meta)
        && match head.title_source {
            // A message before the last one is there whole.
            TitleSource::Message(index) => index + 1 < then.next_message_index,
            TitleSource::Caller => true,
            TitleSource::Pending => false,
        };
    if !is_as_it_was {
        names()?.give(&mut then);
    }
    Ok(then)
}

/// The index of the next message as it was right after `at_seq`.
pub(crate) fn next_message_index_at(records: &Records<'_>, at_seq: u64) -> Result<u64> {
    records.record(at_seq, "a record", |record| {
        let mut next = None;
        for line in record.lines() {
            let (seq, line) = line?;
            let begins = match &line {
                Line::Chunk(chunk) if chunk.header.is_some() => Some(chunk.message),
                Line::Begin(begin) => Some(begin.message),
                _ => None,
            };
            match begins {
                Some(relative) if seq <= at_seq => next = Some(record.message_index(relative) + 1),
                // A record with later beginnings: its header counts them too.
                Some(relative) => next = next.or_else(|| Some(record.message_index(relative))),
                None => {}
            }
        }
        Ok(next.or(Some(record.header.next_message_index)))
    })
}
