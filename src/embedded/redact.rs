//! Redaction: the only write that changes what was written.

use std::collections::HashSet;
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;

use super::core::Core;
use super::damage::damage_of;
use super::frozen::{Frozen, Rewritten};
use super::read::Item;
use super::segments::{Segment, owner, segment_of};
use super::state::Pending;
use crate::embedded::engine::Order;
use crate::error::{Error, Result};
use crate::log::{Durability, Redaction};
use crate::model::{ConversationId, Name};
use crate::record::{self, Body, Head, Line, Record, Redact, Replacement, TitleSource, key};

/// Titles that are removed in one commit.
const TITLES: usize = 250;

impl Core {
    /// Erases the content of a message, or of one chunk of it, in every conversation that reads it.
    pub(crate) fn redact(&self, name: &Name, message: u64, chunk: Option<u32>) -> Result<Redaction> {
        let _structure = self.lock_structure();
        let id = name.id();
        self.lock().check_writable()?;
        // A fork that is not known may have the message's text as its title.
        self.prove_fork_points(&mut |batch| {
            let state = self.lock();
            state.check_writable()?;
            self.queue_durable(state, Pending { ops: batch.ops, rewrites: true, ..Pending::default() })
        })?;
        let frozen = self.freeze(id)?;
        let head = frozen.head(name)?;
        frozen.check_written(name, message..=message)?;
        let segments = self.segments(id, &head)?;
        let mut rewriting = Rewriting { message, chunk, ..Rewriting::default() };
        self.rewrite(id, &segments, 1..=head.next_seq - 1, &mut rewriting)?;
        if rewriting.ops.is_empty() {
            let what = chunk.map_or_else(String::new, |chunk| format!("chunk {chunk} of "));
            let missing = Error::NotFound { what: format!("{what}message {message} in conversation {name}") };
            return Err(rewriting.unread.or(rewriting.unknown).map_or(missing, |error| unreached(error, message)));
        }
        let shared = segment_of(&segments, rewriting.first_seq).filter(|segment| segment.conversation != id);
        let rest = match shared.filter(|_| rewriting.progress != Progress::Whole) {
            Some(segment) => self.rewrite_rest(name, segment, &mut rewriting)?,
            None => None,
        };
        let Rewriting { mut ops, seqs, owners, first_seq, summaries, unread, unknown, .. } = rewriting;
        for owner in &owners {
            self.forget_digests(*owner, &seqs, &mut ops)?;
        }
        let family = self.family(&owners, id, first_seq)?;
        // Titles go first: after a crash at any point, no title outlives the text.
        self.forget_titles(&family, message)?;
        let body = Body::redaction(Redact { message, chunk })?;
        let rewritten = Rewritten { ops, owners: owners.into_iter().collect() };
        let receipt = self.write_control(&frozen, name, body, rewritten, |head| forget_title(head, message))?;
        drop((frozen, rest));
        // A title may have been made from the text meanwhile.
        self.forget_titles(&family, message)?;
        match unread.or(unknown) {
            Some(error) => Err(unreached(error, message)),
            None => Ok(Redaction { seq: receipt.last_seq, summaries }),
        }
    }

    /// Rewrites what the records of a range hold of a message.
    fn rewrite(
        &self,
        id: ConversationId,
        segments: &[Segment],
        seqs: RangeInclusive<u64>,
        rewriting: &mut Rewriting,
    ) -> Result<()> {
        let mut failed = Ok(());
        self.read(id, segments, seqs, Order::Ascending, &mut |item| {
            let taken = match item {
                Item::Record { record, last, .. } => {
                    rewriting.take(owner(segments, record.first_seq).unwrap_or(id), record, last)
                }
                Item::Damaged(error) => {
                    rewriting.damaged(error);
                    Ok(())
                }
                Item::Stray(_) => Ok(()),
            };
            match taken {
                // Nothing more of it comes in the log in which it began.
                Ok(()) if rewriting.after > 0 && rewriting.progress == Progress::Whole => ControlFlow::Break(()),
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Err(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        failed
    }

    /// Rewrites the part of a message after a fork's point, in the log in which it began. That log stays as it is until
    /// this is dropped.
    ///
    /// # Errors
    /// `BeingWritten` if the message is being written there.
    fn rewrite_rest(&self, name: &Name, shared: &Segment, rewriting: &mut Rewriting) -> Result<Option<Frozen<'_>>> {
        let id = shared.conversation;
        let frozen = match damage_of(self.freeze(id))? {
            Ok(frozen) => frozen,
            Err(error) => {
                rewriting.damaged(error);
                return Ok(None);
            }
        };
        frozen.check_written(name, rewriting.message..=rewriting.message)?;
        let alive = frozen.any_head().filter(|head| head.incarnation == shared.incarnation);
        let last = match alive {
            Some(head) => Some(head.next_seq - 1),
            // It was deleted: what is left of it is what other forks read.
            None => self.forks(id)?.into_iter().map(|fork| fork.at_seq).max(),
        };
        let Some(last) = last.filter(|last| *last > shared.last) else { return Ok(Some(frozen)) };
        let whole = Segment { last, through: u64::MAX, ..*shared };
        rewriting.after = shared.last;
        self.rewrite(id, &[whole], shared.last + 1..=last, rewriting)?;
        Ok(Some(frozen))
    }

    /// The conversations that share a message that begins with `first_seq` in the logs of `owners`, without `done`.
    fn family(
        &self,
        owners: &HashSet<ConversationId>,
        done: ConversationId,
        first_seq: u64,
    ) -> Result<Vec<ConversationId>> {
        let mut family: Vec<ConversationId> = owners.iter().copied().collect();
        let mut known: HashSet<ConversationId> = owners.clone();
        let mut next = 0;
        while let Some(id) = family.get(next).copied() {
            next += 1;
            let forks = self.forks(id)?.into_iter().filter(|fork| fork.at_seq >= first_seq);
            family.extend(forks.map(|fork| fork.child).filter(|child| known.insert(*child)));
        }
        family.retain(|id| *id != done);
        Ok(family)
    }

    /// Removes a title that came from the message from these conversations. Cost: a read for each, and one commit per
    /// few hundred.
    fn forget_titles(&self, family: &[ConversationId], message: u64) -> Result<()> {
        let mut queued = 0;
        for id in family {
            // A conversation that cannot be read shows no title.
            let Ok(head) = damage_of(self.head_for_list(*id))? else { continue };
            if head.is_none_or(|head| head.title_source != TitleSource::Message(message)) {
                continue;
            }
            let _pin = self.pin(*id)?;
            let mut state = self.writable(*id, Durability::Durable)?;
            let Some(mut head) = state.slot(*id).queued.clone() else { continue };
            forget_title(Arc::make_mut(&mut head), message);
            let pending = Pending { head: Some((*id, Some(head))), ..Pending::default() };
            queued += 1;
            if queued % TITLES == 0 {
                self.queue_durable(state, pending)?;
            } else {
                state.push(pending);
            }
        }
        if queued % TITLES == 0 {
            return Ok(());
        }
        let state = self.lock();
        state.check_writable()?;
        self.queue_durable(state, Pending::default())
    }

    /// Removes the content digests from the idempotency records of rewritten appends. A record that cannot be read
    /// answers nobody.
    fn forget_digests(&self, id: ConversationId, seqs: &[(u64, u64)], ops: &mut Replacement) -> Result<()> {
        let prefix = key::prefix(key::RECEIPT, id);
        let mut failed = Ok(());
        self.engine.scan(&prefix..&key::after(&prefix), Order::Ascending, &mut |key, value| {
            let receipt = record::open::<record::Receipt>("an idempotency record", key, value);
            let concerned = |receipt: &record::Receipt| {
                seqs.iter().any(|(first, last)| receipt.first_seq <= *last && receipt.last_seq >= *first)
            };
            let Some(receipt) = receipt.ok().filter(concerned) else { return ControlFlow::Continue(()) };
            match record::seal(key, &record::Receipt { content_digest: record::FORGOTTEN, ..receipt }) {
                Ok(value) => {
                    ops.push((key.to_vec(), Some(value)));
                    ControlFlow::Continue(())
                }
                Err(error) => {
                    failed = Err(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        failed
    }
}

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

fn forget_title(head: &mut Head, message: u64) {
    if head.title_source == TitleSource::Message(message) {
        (head.title, head.title_source) = (None, TitleSource::Pending);
    }
}

/// A part of a message may be in a place that cannot be read.
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

/// A message that is being redacted, and what was found of it.
#[derive(Default)]
struct Rewriting {
    message: u64,
    chunk: Option<u32>,
    /// Records up to this seq were rewritten before.
    after: u64,
    ops: Replacement,
    /// First and last seq of the records that are rewritten.
    seqs: Vec<(u64, u64)>,
    /// The conversations whose logs hold those records.
    owners: HashSet<ConversationId>,
    /// The seq of the message's first entry.
    first_seq: u64,
    summaries: Vec<u64>,
    /// Damage that may hide a part of the message.
    unread: Option<Error>,
    /// An entry that a later program wrote: it may hold a part of the message.
    unknown: Option<Error>,
    progress: Progress,
    /// The chunks of which a fragment was seen.
    seen: HashSet<u32>,
}

impl Rewriting {
    /// Takes a record of a conversation's log; entries above `last` are skipped.
    fn take(&mut self, owner: ConversationId, record: &Record<'_>, last: u64) -> Result<()> {
        if record.first_seq <= self.after {
            return Ok(());
        }
        let (message, seen) = (self.message, &mut self.seen);
        let rewritten = record::redact(owner, record, message, self.chunk, last, &mut |chunk| seen.insert(chunk))?;
        if let Some((key, value)) = rewritten {
            self.ops.push((key, Some(value)));
            self.owners.insert(owner);
            self.seqs.push((record.first_seq, record.first_seq + record.len() - 1));
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
            if self.after == 0 && matches!(&line, Line::Summary(summary) if summary.through >= message) {
                self.summaries.push(seq);
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

    fn damaged(&mut self, error: Error) {
        if self.progress != Progress::Whole {
            self.unread.get_or_insert(error);
        }
    }
}
