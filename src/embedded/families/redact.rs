//! Redaction: the only write that changes what was written.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::Families;
use super::frozen::{Frozen, Rewritten};
use crate::embedded::engine::{Engine, Order};
use crate::embedded::state::Pending;
use crate::embedded::stored::{self, damage_of};
use crate::error::Result;
use crate::log::redaction::{self, Rewriting, forget_title};
use crate::log::segments::{Segment, segment_of};
use crate::log::{Durability, Redaction};
use crate::model::{ConversationId, Name};
use crate::record::{self, Body, Redact, Replacement, TitleSource, key};

/// Titles that are removed in one commit.
const TITLES: usize = 250;

impl Families {
    /// Erases the content of a message, or of one chunk of it, in every conversation that reads it.
    pub(crate) fn redact(&self, name: &Name, message: u64, chunk: Option<u32>) -> Result<Redaction> {
        let id = name.id();
        self.commit.lock().life.check_writable()?;
        // A fork that is not known may have the message's text as its title.
        self.prove_fork_points(&mut |batch| self.commit.write_durable(batch))?;
        let _held = self.hold(&[id])?;
        let frozen = self.freeze(id)?;
        let head = frozen.head(name)?;
        frozen.check_written(name, message..=message)?;
        let segments = stored::segments(&*self.engine, id, &head)?;
        let mut rewriting = Rewriting::new(message, chunk);
        rewriting.read(&*self.engine, &segments, 1..=head.next_seq - 1)?;
        rewriting.check_found(name)?;
        let shared = segment_of(&segments, rewriting.first_seq).filter(|segment| segment.conversation != id);
        let rest = match shared.filter(|_| !rewriting.is_whole()) {
            Some(segment) => self.rewrite_rest(name, segment, &mut rewriting)?,
            None => None,
        };
        let (records, owners) = (std::mem::take(&mut rewriting.records), std::mem::take(&mut rewriting.owners));
        let seqs: Vec<_> = records.iter().map(|record| (record.first_seq, record.last_seq())).collect();
        let mut ops = Replacement::new();
        for redaction::Rewritten { owner, first_seq, header, body } in records {
            let (key, value) = record::seal_record(owner, first_seq, &header, body)?;
            ops.push((key, Some(value)));
        }
        for owner in &owners {
            forget_digests(&*self.engine, *owner, &seqs, &mut ops)?;
        }
        let family = family(&*self.engine, &owners, id, rewriting.first_seq)?;
        // Titles go first: after a crash at any point, no title outlives the text.
        self.forget_titles(&family, message, rest.as_ref().and(shared.map(|segment| segment.conversation)))?;
        let body = Body::redaction(Redact { message, chunk })?;
        let rewritten = Rewritten { ops, owners: owners.into_iter().collect() };
        let receipt = self.write_control(&frozen, name, body, rewritten, None, |head| forget_title(head, message))?;
        drop((frozen, rest));
        // A title may have been made from the text meanwhile.
        self.forget_titles(&family, message, None)?;
        rewriting.done(receipt.last_seq)
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
            None => stored::forks(&*self.engine, id)?.into_iter().map(|fork| fork.at_seq).max(),
        };
        let Some(last) = last.filter(|last| *last > shared.last) else { return Ok(Some(frozen)) };
        let whole = Segment { last, through: u64::MAX, ..*shared };
        rewriting.after = shared.last;
        rewriting.read(&*self.engine, &[whole], shared.last + 1..=last)?;
        Ok(Some(frozen))
    }

    /// Removes a title that came from the message from these conversations. `frozen`: one that this call has frozen. Cost: a
    /// read for each, and one commit per few hundred.
    fn forget_titles(&self, family: &[ConversationId], message: u64, frozen: Option<ConversationId>) -> Result<()> {
        let mut queued = 0;
        for id in family {
            // A conversation that cannot be read shows no title.
            let Ok(_pin) = damage_of(self.catalogue.pin(*id))? else { continue };
            // Once nobody holds it who may have read the text, and has not written the title yet.
            let mut state = if frozen == Some(*id) {
                // Waiting for it would never end.
                let state = self.commit.lock();
                state.life.check_writable()?;
                state
            } else {
                self.commit.writable(*id, Durability::Durable)?
            };
            let head = state.slots.slot(*id).queued().cloned();
            let Some(mut head) = head.filter(|head| head.title_source == TitleSource::Message(message)) else {
                continue;
            };
            forget_title(Arc::make_mut(&mut head), message);
            let pending = Pending { head: Some((*id, Some(head))), ..Pending::default() };
            queued += 1;
            if queued % TITLES == 0 {
                self.commit.queue_durable(state, pending)?;
            } else {
                state.push(pending);
            }
        }
        if queued % TITLES == 0 {
            return Ok(());
        }
        self.commit.queue_durable(self.commit.lock(), Pending::default())
    }
}

/// The conversations that share a message that begins with `first_seq` in the logs of `owners`, without `done`.
fn family(
    engine: &dyn Engine,
    owners: &HashSet<ConversationId>,
    done: ConversationId,
    first_seq: u64,
) -> Result<Vec<ConversationId>> {
    let mut family: Vec<ConversationId> = owners.iter().copied().collect();
    let mut known: HashSet<ConversationId> = owners.clone();
    let mut next = 0;
    while let Some(id) = family.get(next).copied() {
        next += 1;
        let forks = stored::forks(engine, id)?.into_iter().filter(|fork| fork.at_seq >= first_seq);
        family.extend(forks.map(|fork| fork.child).filter(|child| known.insert(*child)));
    }
    family.retain(|id| *id != done);
    Ok(family)
}

/// Removes the content digests from the idempotency records of rewritten appends. A record that cannot be read
/// answers nobody.
fn forget_digests(engine: &dyn Engine, id: ConversationId, seqs: &[(u64, u64)], ops: &mut Replacement) -> Result<()> {
    let prefix = key::prefix(key::RECEIPT, id);
    let mut failed = Ok(());
    engine.scan(&prefix..&key::after(&prefix), Order::Ascending, &mut |key, value| {
        let receipt = stored::open_receipt(id, key, value);
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
