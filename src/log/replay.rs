//! Records, read again: the head that they give, and whether they follow one another.

use super::verification::{Problem, Verification};
use crate::history::Entry;
use crate::model::ConversationId;
use crate::record::{Head, Lag, Line, Record, TitleSource};

/// What a record does to the head, but for title and tags.
pub(crate) fn replay(head: &mut Head, record: &Record<'_>) {
    head.next_seq = record.first_seq + record.len();
    head.next_message_index = record.header.next_message_index;
    head.last_activity = head.last_activity.max(record.header.time);
    for (seq, line) in record.lines().filter_map(Result::ok) {
        replay_line(head, record, seq, &line);
    }
}

/// What an entry does to the head, beside moving it.
fn replay_line(head: &mut Head, record: &Record<'_>, seq: u64, line: &Line<'_>) {
    match line {
        Line::Chunk(chunk) if chunk.header.is_some() => head.interrupted.clear(),
        Line::Begin(begin) => {
            head.interrupted.clear();
            if begin.epoch.is_some() {
                head.open.push(record.message_index(begin.message));
            }
        }
        Line::Finish(finish) => head.close(record.message_index(finish.message)),
        Line::Interrupt(interrupt) => head.interrupt(record.message_index(interrupt.message)),
        Line::Rewind(rewind) => {
            head.last_hide = seq;
            head.forget_unfinished(rewind.to..);
        }
        Line::Remove(remove) => {
            head.last_hide = seq;
            if remove.chunk.is_none() {
                head.forget_unfinished(remove.message..=remove.message);
            }
        }
        Line::Meta(_) => head.last_meta = seq,
        Line::Chunk(_) | Line::Summary(_) | Line::Redact(_) | Line::Unknown(_) => {}
    }
}

/// The head before the first record that can be read.
pub(crate) fn first_head(record: &Record<'_>, known: Option<&Head>) -> Head {
    let start = Head {
        next_seq: record.first_seq,
        next_message_index: record.header.next_message_index,
        last_activity: record.header.time,
        title: None,
        title_source: TitleSource::Pending,
        tags: Vec::new(),
        open: Vec::new(),
        interrupted: Vec::new(),
        last_hide: 0,
        last_meta: 0,
        incarnation: 0,
        owner: String::new(),
        created: record.header.time,
        key: None,
        parent: None,
        lag: Lag::default(),
    };
    match (&record.header.origin, known) {
        (Some(origin), _) => Head {
            last_hide: origin.last_hide,
            last_meta: origin.last_meta,
            incarnation: origin.incarnation,
            owner: origin.owner.clone(),
            created: origin.created,
            key: origin.key.clone(),
            parent: origin.parent,
            ..start
        },
        (None, Some(known)) => Head {
            incarnation: known.incarnation,
            owner: known.owner.clone(),
            created: known.created,
            key: known.key.clone(),
            parent: known.parent,
            // What its damaged first records did is not known: what the head says is the best there is.
            last_hide: known.last_hide,
            last_meta: known.last_meta,
            ..start
        },
        (None, None) => start,
    }
}

/// Reads all entries of a record. `expected` is the index of the first message that may begin in it.
pub(crate) fn verify_record(
    id: ConversationId,
    record: &Record<'_>,
    mut expected: Option<u64>,
    found: &mut Verification,
) {
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
            Entry::read(record, seq, &line)
        });
        found.problems.extend(read.err().map(|error| Problem::from_error(id, &error)));
    }
    if is_gap || expected.is_some_and(|expected| expected != record.header.next_message_index) {
        let detail = "the indexes of its messages do not follow those before it".to_owned();
        found.problems.push(Problem { conversation: Some(id), seq: Some(record.first_seq), detail });
    }
}
