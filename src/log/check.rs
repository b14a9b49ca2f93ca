//! A conversation's head compared with what its records give, and what was redacted with what is there now: the same for every log.

use std::collections::{HashMap, HashSet};

use super::replay::{Names, first_head, replay};
use super::results::{Problem, Verification};
use crate::model::ConversationId;
use crate::record;
use crate::record::{Head, Line, Record, TitleSource};

/// A check of one conversation: it takes the conversation's own records, then all that it reads, in order of seq.
pub(crate) struct Check<'a> {
    id: ConversationId,
    head: &'a Head,
    /// What its own records give, but for title and tags.
    derived: Option<Head>,
    names: Names,
    redacted: HashMap<u64, Vec<Redacted>>,
    is_damaged: bool,
}

/// A redaction of a message, or of one chunk of it.
struct Redacted {
    seq: u64,
    chunk: Option<u32>,
    /// The chunks of which a fragment was seen.
    seen: HashSet<u32>,
}

impl<'a> Check<'a> {
    pub(crate) fn new(id: ConversationId, head: &'a Head) -> Self {
        let (derived, names, redacted) = (None, Names::default(), HashMap::new());
        Self { id, head, derived, names, redacted, is_damaged: false }
    }

    /// Something cannot be read: the head is not judged, as it may know of that.
    pub(crate) const fn damaged(&mut self) {
        self.is_damaged = true;
    }

    /// Takes a record of the conversation's own. `known`: what a record without an origin does not state.
    pub(crate) fn own(&mut self, record: &Record<'_>, known: &Head) {
        replay(self.derived.get_or_insert_with(|| first_head(record, Some(known))), record);
        for line in record.lines() {
            match line {
                Ok((seq, Line::Redact(redact))) => {
                    let redacted = Redacted { seq, chunk: redact.chunk, seen: HashSet::new() };
                    self.redacted.entry(redact.message).or_default().push(redacted);
                }
                Ok(_) => {}
                Err(_) => self.is_damaged = true,
            }
        }
    }

    /// Takes a record that the conversation reads; entries above `last` do not belong to it.
    pub(crate) fn read(&mut self, record: &Record<'_>, last: u64, found: &mut Verification) {
        self.names.read(record, last);
        let mut messages = HashSet::new();
        for line in record.lines() {
            match line {
                Ok((_, Line::Chunk(line))) => _ = messages.insert(record.message_index(line.message)),
                Ok((_, Line::Begin(begin))) => _ = messages.insert(record.message_index(begin.message)),
                Ok((_, Line::Finish(finish))) => _ = messages.insert(record.message_index(finish.message)),
                Ok(_) => {}
                Err(_) => self.is_damaged = true,
            }
        }
        for message in messages {
            let redactions = self.redacted.get_mut(&message).into_iter().flatten();
            for Redacted { chunk, seen, .. } in redactions.filter(|redacted| record.first_seq < redacted.seq) {
                match record::is_redacted(record, message, *chunk, last, &mut |chunk| seen.insert(chunk)) {
                    Ok(true) => {}
                    Ok(false) => {
                        let detail = format!("message {message} was redacted, and its content is back");
                        found.problems.push(Problem::new(Some(self.id), Some(record.first_seq), detail));
                    }
                    Err(error) => found.problems.push(Problem::from_error(self.id, &error)),
                }
            }
        }
    }

    /// Compares the head.
    pub(crate) fn end(self, found: &mut Verification) {
        if self.is_damaged {
            return;
        }
        let contradictions = contradictions(self.head, self.derived.as_ref(), &self.names);
        found.problems.extend(contradictions.into_iter().map(|detail| Problem::of(self.id, detail)));
    }
}

/// What a head says that the records do not. `derived`: what the conversation's own records give, if it has some.
fn contradictions(head: &Head, derived: Option<&Head>, names: &Names) -> Vec<&'static str> {
    let mut found = Vec::new();
    let mut check = |is_right: bool, detail| {
        if !is_right {
            found.push(detail);
        }
    };
    if let Some(derived) = derived {
        check(head.next_seq >= derived.next_seq, "the head ends before the last record");
        check(head.next_seq <= derived.next_seq, "the head ends after the last record");
        check(
            head.next_message_index == derived.next_message_index,
            "the head's message index is not that of the last record",
        );
        check(head.last_hide == derived.last_hide, "the head's last rewind or removal is not that of its records");
        check(
            head.last_meta == derived.last_meta,
            "the head's last change of title, tags or metadata is not that of its records",
        );
        check(head.open == derived.open, "the head's unfinished messages are not those of its records");
        // Earlier programs did not list a message that was finished as interrupted.
        check(
            head.interrupted.iter().all(|message| derived.interrupted.contains(message)),
            "the head has interrupted messages that its records do not have",
        );
    }
    check(names.tags() == head.tags, "its tags are not what its entries give");
    let is_titled = match (head.title_source, &head.title) {
        (TitleSource::Message(index), Some(title)) => !names.is_set() && names.says(index, title),
        (TitleSource::Caller, Some(title)) => names.is_set_to(title),
        // A redaction in another conversation takes a title, and leaves no entry here.
        (TitleSource::Pending, None) => !names.is_set(),
        _ => false,
    };
    check(is_titled, "its title is not what its entries give");
    found
}
