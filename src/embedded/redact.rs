//! Forgetting: the only write that changes what was written.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::core::Core;
use super::heads::damage_of;
use super::read::Item;
use super::segments::owner;
use super::state::Pending;
use crate::embedded::engine::Order;
use crate::error::{Error, Result};
use crate::log::{Durability, Redaction};
use crate::model::{ConversationId, Name};
use crate::record::{self, Body, Head, Line, Record, Redact, Replacement, TitleSource, key};

/// Titles that are taken away in one commit.
const TITLES: usize = 250;

impl Core {
    /// Erases the content of a message, or of one chunk of it, everywhere that it is read.
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
        let Found { mut ops, seqs, owners, first_seq, summaries, unread } = self.rewrite(id, &head, message, chunk)?;
        if ops.is_empty() {
            let what = chunk.map_or_else(String::new, |chunk| format!("chunk {chunk} of "));
            let missing = Error::NotFound { what: format!("{what}message {message} in conversation {name}") };
            return Err(unread.map_or(missing, |error| unreached(error, message)));
        }
        for owner in owners.iter().filter(|owner| **owner != id) {
            self.check_written(*owner, name, message)?;
        }
        for owner in &owners {
            self.forget_digests(*owner, &seqs, &mut ops)?;
        }
        let family = self.family(&owners, id, first_seq)?;
        // Titles go first: whatever a crash leaves, no title outlives the text.
        self.forget_titles(&family, message)?;
        let body = Body::redaction(Redact { message, chunk })?;
        let receipt = self.write_control(&frozen, name, body, ops, |head| forget_title(head, message))?;
        drop(frozen);
        // One may have been made of the text meanwhile.
        self.forget_titles(&family, message)?;
        match unread {
            Some(error) => Err(unreached(error, message)),
            None => Ok(Redaction { seq: receipt.last_seq, summaries }),
        }
    }

    fn rewrite(&self, id: ConversationId, head: &Head, message: u64, chunk: Option<u32>) -> Result<Found> {
        let segments = self.segments(id, head)?;
        let mut found = Found::default();
        let mut seen: HashSet<u32> = HashSet::new();
        let mut progress = Progress::Before;
        let mut failed = Ok(());
        self.read(id, &segments, 1..=head.next_seq - 1, Order::Ascending, &mut |item| {
            let (record, last) = match item {
                Item::Record { record, last, .. } => (record, last),
                Item::Damaged(error) => {
                    if progress != Progress::Whole && found.unread.is_none() {
                        found.unread = Some(error);
                    }
                    return ControlFlow::Continue(());
                }
                Item::Stray(_) => return ControlFlow::Continue(()),
            };
            let owner = owner(&segments, record.first_seq).unwrap_or(id);
            match record::redact(owner, record, message, chunk, last, &mut |chunk| seen.insert(chunk)) {
                Ok(Some((key, value))) => {
                    found.ops.push((key, Some(value)));
                    found.owners.insert(owner);
                    found.seqs.push((record.first_seq, record.first_seq + record.len() - 1));
                }
                Ok(None) => {}
                Err(error) => {
                    failed = Err(error);
                    return ControlFlow::Break(());
                }
            }
            for (seq, line) in record.lines().filter_map(Result::ok).filter(|(seq, _)| *seq <= last) {
                if matches!(&line, Line::Summary(summary) if summary.through >= message) {
                    found.summaries.push(seq);
                }
                let before = progress;
                progress = progress.after(record, &line, message);
                if before == Progress::Before && progress != Progress::Before {
                    found.first_seq = seq;
                    let begins = match &line {
                        Line::Chunk(chunk) => chunk.header.is_some(),
                        line => matches!(line, Line::Begin(_)),
                    };
                    // What was damaged before it began holds nothing of it.
                    found.unread = found.unread.take().filter(|_| !begins);
                }
            }
            if progress == Progress::Before && record.header.next_message_index <= message {
                // Nor what was damaged before messages that come before it.
                found.unread = None;
            }
            ControlFlow::Continue(())
        })?;
        failed.map(|()| found)
    }

    /// Fails while a message is being written in one of the conversations that share it.
    fn check_written(&self, owner: ConversationId, name: &Name, message: u64) -> Result<()> {
        let state = self.lock();
        let is_written = state.slots.get(&owner).is_some_and(|slot| slot.writers.contains_key(&message));
        if is_written {
            return Err(Error::BeingWritten { conversation: name.clone(), message_index: message });
        }
        Ok(())
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

    /// Takes a title that came from the message from these conversations. Cost: a read for each, and one commit for a few
    /// hundred.
    fn forget_titles(&self, family: &[ConversationId], message: u64) -> Result<()> {
        let mut queued = 0;
        for id in family {
            // What cannot be read has no title that is shown.
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

    /// Takes the content digests out of the idempotency records of appends that were rewritten. One that cannot be read
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
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Nothing.
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
        other => other,
    }
}

#[derive(Default)]
struct Found {
    ops: Replacement,
    /// First and last seq of the records that are rewritten.
    seqs: Vec<(u64, u64)>,
    /// The conversations in whose logs they stand.
    owners: HashSet<ConversationId>,
    /// The seq of the message's first entry.
    first_seq: u64,
    summaries: Vec<u64>,
    /// Damage that may hide a part of the message.
    unread: Option<Error>,
}
