//! What a redaction finds of a message, record by record, and what it makes of it.

use std::collections::HashSet;
use std::ops::{ControlFlow, RangeInclusive};

use super::contract::{Order, Reading};
use super::results::Redaction;
use super::segments::{Segment, Segmented, owner_of};
use crate::error::{Error, Result};
use crate::model::{ConversationId, Name};
use crate::record;
use crate::record::{Body, Head, Header, Line, Record, TitleSource};

/// How much of a message was read.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Progress {
    /// Nothing.
    #[default]
    Before,
    /// More may come.
    Open,
    /// All.
    Whole,
}

impl Progress {
    fn after(self, record: &Record<'_>, line: &Line<'_>, message: u64) -> Self {
        let is_it = |relative: u64| record.message_index(relative) == message;
        match line {
            Line::Chunk(chunk) if is_it(chunk.message) && chunk.header.is_some() => Self::Whole,
            Line::Chunk(chunk) if is_it(chunk.message) && self == Self::Before => Self::Open,
            Line::Begin(begin) if is_it(begin.message) && begin.epoch.is_none() => Self::Whole,
            Line::Begin(begin) if is_it(begin.message) => Self::Open,
            Line::Finish(finish) if is_it(finish.message) => Self::Whole,
            Line::Interrupt(interrupt) if is_it(interrupt.message) => Self::Whole,
            _ => self,
        }
    }
}

/// Takes a title that came from a message from a head.
pub(crate) fn forget_title(head: &mut Head, message: u64) {
    if head.title_source == TitleSource::Message(message) {
        (head.title, head.title_source) = (None, TitleSource::Pending);
    }
}

/// Whether the fields of an answer have something of requests: `docs/proxy.md`, `rewritten`.
fn keeps_of_requests(fields: &str) -> bool {
    let parse = |fields: &str| serde_json::from_str::<serde_json::Value>(fields).ok();
    let items = |fields: serde_json::Value| Some(!fields.pointer("/convo/rewritten/items")?.as_object()?.is_empty());
    fields.contains("\"rewritten\"") && parse(fields).and_then(items).unwrap_or(false)
}

/// Something of a message may be where nothing can be read.
fn unreached(error: Error, message: u64) -> Error {
    match error {
        Error::Corrupt { conversation, seq, detail } => Error::Corrupt {
            conversation,
            seq,
            detail: format!(
                "what can be read of message {message} is redacted, but a part of it may be here, where nothing can be \
                 read: {detail}"
            ),
        },
        Error::UnsupportedVersion { what, found, supported } => Error::UnsupportedVersion {
            what: format!(
                "what can be read of message {message} is redacted, but a part of it may be in {what}, which"
            ),
            found,
            supported,
        },
        other => other,
    }
}

/// A record that is written again.
pub(crate) struct Rewritten {
    /// The conversation whose log holds it.
    pub(crate) owner: ConversationId,
    pub(crate) first_seq: u64,
    pub(crate) header: Header,
    pub(crate) body: Body,
}

impl Rewritten {
    /// The seq of its last entry.
    pub(crate) fn last_seq(&self) -> u64 {
        (self.first_seq + self.body.entries()).saturating_sub(1)
    }
}

/// A message that is being redacted, and what was found of it.
#[derive(Default)]
pub(crate) struct Rewriting {
    pub(crate) message: u64,
    pub(crate) chunk: Option<u32>,
    /// What comes up to this seq was read before.
    pub(crate) after: u64,
    /// The records that are rewritten.
    pub(crate) records: Vec<Rewritten>,
    /// The conversations in whose logs they stand.
    pub(crate) owners: HashSet<ConversationId>,
    /// The seq of the message's first entry.
    pub(crate) first_seq: u64,
    pub(crate) summaries: Vec<u64>,
    /// The entries that say something about the conversation.
    pub(crate) meta: Vec<u64>,
    /// The answers that keep parts of requests.
    pub(crate) answers: Vec<u64>,
    /// Damage that may hide a part of the message.
    pub(crate) unread: Option<Error>,
    /// An entry that a later program wrote: wherever it is, it may hold a part of the message.
    pub(crate) unknown: Option<Error>,
    progress: Progress,
    /// The chunks of which a fragment was seen.
    seen: HashSet<u32>,
}

impl Rewriting {
    /// Nothing of it was read yet.
    pub(crate) fn new(message: u64, chunk: Option<u32>) -> Self {
        Self { message, chunk, ..Self::default() }
    }

    /// Takes what the records of a range hold of the message, until nothing more of it comes in the log in which it began.
    pub(crate) fn read(
        &mut self,
        log: &(impl Segmented + ?Sized),
        segments: &[Segment],
        seqs: RangeInclusive<u64>,
    ) -> Result<()> {
        let mut taken = Ok(());
        log.read(segments, seqs, Order::Ascending, &mut |reading| {
            match reading {
                Reading::Record { record, last, .. } => {
                    taken = self.take(owner_of(segments, record.first_seq), record, last)
                }
                Reading::Damaged(error) => self.damaged(error),
                Reading::Stray(_) => {}
            }
            let is_done = taken.is_err() || self.after > 0 && self.is_whole();
            if is_done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        taken
    }

    /// Whether something of what is to be erased was found, not only what may quote it.
    fn is_found(&self) -> bool {
        !self.records.is_empty() && (self.chunk.is_none() || !self.seen.is_empty())
    }

    /// Fails if nothing of it was found.
    pub(crate) fn check_found(&mut self, name: &Name) -> Result<()> {
        if self.is_found() {
            return Ok(());
        }
        let message = self.message;
        let what = self.chunk.map_or_else(String::new, |chunk| format!("chunk {chunk} of "));
        let missing = Error::NotFound { what: format!("{what}message {message} in conversation {name}") };
        Err(self.unread.take().or(self.unknown.take()).map_or(missing, |error| unreached(error, message)))
    }

    /// What was done, once it is written: fails if a part of the message may be where nothing can be read.
    pub(crate) fn done(self, seq: u64) -> Result<Redaction> {
        match self.unread.or(self.unknown) {
            Some(error) => Err(unreached(error, self.message)),
            None => {
                let Self { summaries, meta, answers, .. } = self;
                Ok(Redaction { seq, summaries, meta, answers })
            }
        }
    }

    /// Whether all of it was read.
    pub(crate) fn is_whole(&self) -> bool {
        self.progress == Progress::Whole
    }

    /// Takes a record of a conversation's log; entries above `last` are not read through.
    fn take(&mut self, owner: ConversationId, record: &Record<'_>, last: u64) -> Result<()> {
        // The point of a fork may part a record. What was rewritten before is whole.
        let is_it = |known: &Rewritten| known.owner == owner && known.first_seq == record.first_seq;
        if record.first_seq <= self.after && self.records.iter().any(is_it) {
            return Ok(());
        }
        let (message, seen) = (self.message, &mut self.seen);
        let body = record::redact(record, message, self.chunk, last, &mut |chunk| seen.insert(chunk))?;
        if let Some(body) = body {
            self.owners.insert(owner);
            self.records.push(Rewritten { owner, first_seq: record.first_seq, header: record.header.clone(), body });
        }
        for line in record.lines() {
            let (seq, line) = match line {
                Ok((seq, _)) if seq > last => break,
                Ok(line) => line,
                Err(error) => {
                    self.unknown.get_or_insert(error);
                    break;
                }
            };
            // Those that the caller's conversation has.
            match &line {
                _ if self.after > 0 => {}
                Line::Summary(summary) if summary.through >= message => self.summaries.push(seq),
                Line::Meta(meta) if meta.says_something() => self.meta.push(seq),
                Line::Begin(begin) if record.message_index(begin.message) != message => {
                    let extra = begin.header.extra.as_deref().filter(|extra| keeps_of_requests(extra));
                    self.answers.extend(extra.map(|_| record.message_index(begin.message)));
                }
                _ => {}
            }
            let before = self.progress;
            self.progress = before.after(record, &line, message);
            if before == Progress::Before && self.progress != Progress::Before {
                self.first_seq = seq;
                let begins = match &line {
                    Line::Chunk(chunk) => chunk.header.is_some(),
                    line => matches!(line, Line::Begin(_)),
                };
                // Damage before the message's beginning holds nothing of it.
                self.unread = self.unread.take().filter(|_| !begins);
            }
        }
        if self.progress == Progress::Before && record.header.next_message_index <= message {
            // Damage before messages that come earlier holds nothing of it either.
            self.unread = None;
        }
        Ok(())
    }

    /// Notes what could not be read.
    pub(crate) fn damaged(&mut self, error: Error) {
        if self.progress != Progress::Whole {
            self.unread.get_or_insert(error);
        }
    }
}
