//! Appends: checked and numbered when they are queued.

use std::sync::Arc;

use super::Appender;
use super::numbering::{Draft, Placed};
use crate::embedded::state::{Pending, State};
use crate::embedded::stored;
use crate::embedded::sync::MutexGuard;
use crate::error::{Error, Result};
use crate::log::append::{self, Key, Terms};
use crate::log::decision::{self, Change, Decision};
use crate::log::segments::Segmented as _;
use crate::log::{AppendOptions, Changes, Durability, NewConversation, Receipt};
use crate::model::{ConversationId, Message, Name};
use crate::record::{self, Body, InterruptCause, key};

/// What happens to an append.
pub(super) enum Admission<'a> {
    /// It still has to be placed.
    New(MutexGuard<'a, State>),
    /// Its key was used before: this is the receipt, and what is stored under the key.
    Duplicate(Receipt, record::Receipt),
}

impl Appender {
    pub(crate) fn append(
        &self,
        name: &Name,
        messages: &[Message],
        changes: &Changes,
        options: &AppendOptions,
    ) -> Result<Receipt> {
        let (mut body, mut terms) = append::append(name, messages, changes, options)?;
        let durability = terms.durability;
        let id = name.id();
        let _pin = self.catalogue.pin(id)?;
        let mut state = match self.admit(name, &terms, !changes.is_empty())? {
            Admission::New(state) => state,
            Admission::Duplicate(receipt, stored) => {
                if let Some(key) = terms.key.filter(|_| !changes.is_empty()) {
                    key.check_changed(name, &stored, || self.is_stored_by(id, &stored, messages, changes))?;
                }
                return Ok(receipt);
            }
        };
        let mut change = Change::default();
        if !changes.is_empty() {
            // The entry names the one before it, and all tags: it is made where nobody else is given a place.
            change = decision::append(&mut body, state.slots.slot(id).queued().map(Arc::as_ref), changes)?;
            terms.complete(&body);
        }
        let draft =
            Draft { name, body, messages: messages.len() as u64, base: None, said: messages, time: options.time };
        let mut placed = self.numbering.place(&mut state, id, draft, |head| change.apply(head));
        note_key(&mut state, &terms, &mut placed)?;
        placed.queue(&self.commit, state, durability)
    }

    /// Whether what was stored under a key is of an append with these messages and changes. It is durable.
    fn is_stored_by(
        &self,
        id: ConversationId,
        stored: &record::Receipt,
        messages: &[Message],
        changes: &Changes,
    ) -> Result<bool> {
        let Some(head) = self.catalogue.published_head(id)? else { return Ok(true) };
        let segments = stored::segments(&*self.engine, id, &head)?;
        self.engine
            .records(&segments)
            .record(stored.first_seq, "a record", |record| append::is_stored_by(record, messages, changes).map(Some))
    }

    /// Creates a conversation without messages.
    pub(crate) fn create(&self, name: &Name, new: &NewConversation) -> Result<Receipt> {
        let Decision { body, change, .. } = decision::create(name, new)?;
        let id = name.id();
        let _pin = self.catalogue.pin(id)?;
        let mut state = self.commit.writable(id, Durability::Durable)?;
        state.slots.slot(id).check_vacant(name)?;
        let draft = Draft { name, body, messages: 0, base: None, said: &[], time: new.time };
        let placed = self.numbering.place(&mut state, id, draft, |head| change.apply(head));
        placed.queue(&self.commit, state, Durability::Durable)
    }

    /// Writes that a message takes no more content.
    pub(crate) fn interrupt(
        &self,
        id: ConversationId,
        message: u64,
        cause: InterruptCause,
        durability: Durability,
    ) -> Result<()> {
        let mut body = Body::new();
        body.interrupt(cause)?;
        let _pin = self.catalogue.pin(id)?;
        let mut state = self.commit.writable(id, durability)?;
        if !state.slots.slot(id).queued().is_some_and(|head| head.open.contains(&message)) {
            return Ok(());
        }
        let draft = Draft { name: &id.into(), body, messages: 0, base: Some(message), said: &[], time: None };
        let placed = self.numbering.place(&mut state, id, draft, |head| head.interrupt(message));
        placed.queue(&self.commit, state, durability).map(|_| ())
    }

    /// Whether an append to a pinned conversation is accepted. The key is checked first.
    ///
    /// `changes`: its content is not compared with what is stored under the key, as it depends on the head.
    pub(super) fn admit(&self, name: &Name, terms: &Terms<'_>, changes: bool) -> Result<Admission<'_>> {
        let id = name.id();
        let mut state = self.commit.writable(id, terms.durability)?;
        state.slots.slot(id).check_owner(name)?;
        if let Some(key) = &terms.key {
            let (receipt, locked) = self.find_receipt(id, &key.digest, terms.durability, state)?;
            state = locked;
            if let Some(receipt) = receipt {
                if !changes {
                    key.check_content(name, &receipt)?;
                }
                let repeated = self.repeat(id, &receipt, terms.durability, state)?;
                return Ok(Admission::Duplicate(repeated, receipt));
            }
        }
        let slot = state.slots.slot(id);
        // Another owner may have created one while the engine was read.
        slot.check_owner(name)?;
        slot.check_free(name)?;
        terms.check_expected(name, slot.queued().map(Arc::as_ref))?;
        Ok(Admission::New(state))
    }

    /// The receipt of a repeated append, once that append is as durable as the caller wants.
    fn repeat(
        &self,
        id: ConversationId,
        receipt: &record::Receipt,
        durability: Durability,
        mut state: MutexGuard<'_, State>,
    ) -> Result<Receipt> {
        let mut durable = state.slots.slot(id).published().is_some_and(|head| head.next_seq > receipt.last_seq);
        if !durable && durability == Durability::Durable {
            self.commit.queue_durable(state, Pending::default())?;
            durable = true;
        }
        let message_indexes = receipt.message_indexes();
        let record::Receipt { first_seq, last_seq, .. } = *receipt;
        Ok(Receipt { conversation: id, first_seq, last_seq, message_indexes, durable, duplicate: true })
    }

    /// The receipt under an idempotency key, queued or stored. The lock is released while the engine is read.
    fn find_receipt<'a>(
        &'a self,
        id: ConversationId,
        digest: &[u8; 16],
        durability: Durability,
        mut state: MutexGuard<'a, State>,
    ) -> Result<(Option<record::Receipt>, MutexGuard<'a, State>)> {
        let mut read: Option<(u64, Option<record::Receipt>)> = None;
        loop {
            let slot = state.slots.slot(id);
            if let Some(receipt) = slot.queued_receipt(digest) {
                return Ok((Some(receipt.clone()), state));
            }
            let Some(head) = slot.queued().filter(|_| slot.published().is_some()) else {
                return Ok((None, state));
            };
            // Something may have been published while the engine was read; that read may have missed it.
            let seen = slot.published_count();
            if let Some((_, stored)) = read.take().filter(|(at, _)| *at == seen) {
                // A receipt of entries that are gone: they were lost, and their key with them.
                let stored = Option::filter(stored, |receipt: &record::Receipt| receipt.last_seq < head.next_seq);
                return Ok((stored, state));
            }
            drop(state);
            let key = key::receipt(id, digest);
            let bytes = self.engine.get(&key)?;
            let stored = bytes.as_ref().map(|bytes| stored::open_receipt(id, &key, bytes)).transpose()?;
            let proved = stored.as_ref().map_or(Ok(()), |receipt| self.check_proved(id, receipt));
            // A redaction may have changed the receipt and its record between the two reads; a deletion, which is published
            // first, may have erased the record.
            let is_same = proved.is_ok() || self.engine.get(&key)? == bytes;
            state = self.commit.writable(id, durability)?;
            if proved.is_ok() || (is_same && state.slots.slot(id).published_count() == seen) {
                proved?;
                read = Some((seen, stored));
            }
        }
    }

    /// Fails if the record of a receipt is not as stated: the receipt answers nothing then. A receipt of entries that
    /// the conversation does not have, or not yet, is another matter.
    fn check_proved(&self, id: ConversationId, receipt: &record::Receipt) -> Result<()> {
        let head = self.catalogue.published_head(id)?;
        if let Some(head) = head.filter(|head| receipt.last_seq < head.next_seq)
            && !stored::is_proved(&*self.engine, id, &head, receipt)?
        {
            return Err(Error::Corrupt {
                conversation: Some(id.into()),
                seq: Some(receipt.first_seq),
                detail: "what was appended under this idempotency key is damaged or missing".to_owned(),
            });
        }
        Ok(())
    }
}

/// Makes an append's key answer with this append's receipt.
pub(super) fn note_key(state: &mut State, terms: &Terms<'_>, placed: &mut Placed) -> Result<()> {
    let Some(Key { digest, content_digest, .. }) = &terms.key else { return Ok(()) };
    let Receipt { conversation, first_seq, last_seq, ref message_indexes, .. } = placed.receipt;
    let (first_message_index, messages) = (placed.base, message_indexes.len() as u64);
    let content_digest = *content_digest;
    let receipt = record::Receipt { first_seq, last_seq, first_message_index, messages, content_digest };
    let key = key::receipt(conversation, digest);
    let value = record::seal(&key, &receipt)?;
    placed.pending.ops.push((key, Some(value)));
    placed.pending.receipt = Some(*digest);
    state.slots.slot(conversation).answer(*digest, receipt);
    Ok(())
}
