//! Forgetting: the only write that changes what was written.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::core::Core;
use super::read::Item;
use super::segments::owner;
use super::state::Pending;
use crate::embedded::engine::Order;
use crate::error::{Error, Result};
use crate::log::Redaction;
use crate::model::{ConversationId, Name};
use crate::record::{self, Body, Head, Line, Redact, Replacement, TitleSource, key};

impl Core {
    /// Erases the content of a message, or of one chunk of it, everywhere that it is read.
    pub(crate) fn redact(&self, name: &Name, message: u64, chunk: Option<u32>) -> Result<Redaction> {
        let _structure = self.lock_structure();
        let id = name.id();
        let frozen = self.freeze(id)?;
        let head = frozen.head(name)?;
        frozen.check_written(name, message..=message)?;
        let Found { mut ops, seqs, owners, summaries } = self.rewrite(id, &head, message, chunk)?;
        if ops.is_empty() {
            let what = chunk.map_or_else(String::new, |chunk| format!("chunk {chunk} of "));
            return Err(Error::NotFound { what: format!("{what}message {message} in conversation {name}") });
        }
        for owner in &owners {
            self.forget_digests(*owner, &seqs, &mut ops)?;
        }
        let body = Body::redaction(Redact { message, chunk })?;
        let receipt = self.write_control(&frozen, name, body, ops, |head| forget_title(head, message))?;
        let first_seq_of_message = seqs.first().map_or(0, |(first, _)| *first);
        for owner in owners {
            self.forget_titles(owner, id, message, first_seq_of_message)?;
        }
        Ok(Redaction { seq: receipt.last_seq, summaries })
    }

    fn rewrite(&self, id: ConversationId, head: &Head, message: u64, chunk: Option<u32>) -> Result<Found> {
        let segments = self.segments(id, head)?;
        let mut found = Found::default();
        let mut seen: HashSet<u32> = HashSet::new();
        let mut failed = Ok(());
        self.read(id, &segments, 1..=head.next_seq - 1, Order::Ascending, &mut |item| {
            let Item::Record { record, last, .. } = item else { return ControlFlow::Continue(()) };
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
            for (seq, line) in record.lines().filter_map(Result::ok) {
                if matches!(line, Line::Summary(summary) if summary.through >= message) {
                    found.summaries.push(seq);
                }
            }
            ControlFlow::Continue(())
        })?;
        failed.map(|()| found)
    }

    /// Takes a title that came from the message from all conversations that share it, but for `done`.
    fn forget_titles(&self, id: ConversationId, done: ConversationId, message: u64, seq: u64) -> Result<()> {
        let mut family = vec![id];
        while let Some(id) = family.pop() {
            family.extend(self.forks(id)?.into_iter().filter(|(_, at_seq)| *at_seq >= seq).map(|(child, _)| child));
            let head = if id == done { None } else { self.published_head(id)? };
            if head.is_none_or(|head| head.title_source != TitleSource::Message(message)) {
                continue;
            }
            let frozen = self.freeze(id)?;
            let mut head = frozen.head(&id.into())?;
            forget_title(Arc::make_mut(&mut head), message);
            self.queue_durable(self.lock(), Pending { head: Some((id, Some(head))), ..Pending::default() })?;
        }
        Ok(())
    }

    /// Takes the content digests out of the idempotency records of appends that were rewritten.
    fn forget_digests(&self, id: ConversationId, seqs: &[(u64, u64)], ops: &mut Replacement) -> Result<()> {
        let prefix = key::prefix(key::RECEIPT, id);
        let mut failed = Ok(());
        self.engine.scan(&prefix..&key::after(&prefix), Order::Ascending, &mut |key, value| {
            let rewritten = record::open::<record::Receipt>("an idempotency record", key, value).and_then(|receipt| {
                let concerned =
                    seqs.iter().any(|(first, last)| receipt.first_seq <= *last && receipt.last_seq >= *first);
                if !concerned {
                    return Ok(());
                }
                let value = record::seal(key, &record::Receipt { content_digest: record::FORGOTTEN, ..receipt })?;
                ops.push((key.to_vec(), Some(value)));
                Ok(())
            });
            match rewritten {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Err(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        failed
    }
}

fn forget_title(head: &mut Head, message: u64) {
    if head.title_source == TitleSource::Message(message) {
        (head.title, head.title_source) = (None, TitleSource::Pending);
    }
}

#[derive(Default)]
struct Found {
    ops: Replacement,
    /// First and last seq of the records that are rewritten.
    seqs: Vec<(u64, u64)>,
    /// The conversations in whose logs they stand.
    owners: HashSet<ConversationId>,
    summaries: Vec<u64>,
}
