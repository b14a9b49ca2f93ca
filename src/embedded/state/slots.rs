//! The conversations in use: their heads, as queued and as published, and what is under way in each.

use std::collections::HashMap;
use std::sync::Arc;

use super::order::Heads;
use super::writer::Writer;
use crate::error::{Error, Result};
use crate::model::{ConversationId, Name};
use crate::record::{Head, Receipt};

/// The most heads of conversations not in use that are remembered for the list.
const LISTED: usize = 10_000;

/// The conversations in use.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    slots: HashMap<ConversationId, Slot>,
    /// The stored heads of conversations that a page of the list showed. Nothing changes them before they get a slot.
    listed: HashMap<ConversationId, Arc<Head>>,
    /// How often slots were dropped, or names became free: a head that was read before such an event cannot be trusted
    /// after it.
    generation: u64,
    /// How many slots were loaded.
    loaded: u64,
    /// Nothing is dropped before there are more slots than this.
    kept: usize,
}

/// A conversation in use.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    /// The head with everything that is queued; absent if there is no such conversation.
    queued: Option<Arc<Head>>,
    /// The head that readers see: all of it is durable.
    published: Option<Arc<Head>>,
    /// How many queued writes are not published yet.
    pending: usize,
    /// How many calls need this slot to stay.
    pins: usize,
    /// How many commits were published.
    published_count: u64,
    /// Receipts that are queued and not published yet, by digest of their idempotency key.
    receipts: HashMap<[u8; 16], Receipt>,
    /// Writers that live, by message index.
    writers: HashMap<u64, Arc<Writer>>,
    /// It was deleted, but forks still read its first entries: its id cannot be used again yet.
    reserved: bool,
    /// The conversation is being deleted or forked: writes wait.
    frozen: bool,
    /// Deltas wait for it to be unfrozen.
    held_back: bool,
}

/// What there is of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existence {
    /// It exists, and readers see it.
    Alive,
    /// It was deleted; forks read some of its entries.
    Deleted,
    /// Nothing, or it is being created.
    Vacant,
}

impl Slot {
    /// The head with everything that is queued; none if there is no such conversation.
    pub(crate) const fn queued(&self) -> Option<&Arc<Head>> {
        self.queued.as_ref()
    }

    /// The head that readers see.
    pub(crate) const fn published(&self) -> Option<&Arc<Head>> {
        self.published.as_ref()
    }

    pub(crate) const fn existence(&self) -> Existence {
        match (&self.published, self.reserved) {
            (Some(_), _) => Existence::Alive,
            (None, true) => Existence::Deleted,
            (None, false) => Existence::Vacant,
        }
    }

    /// Fails if the conversation belongs to another owner than the name states.
    pub(crate) fn check_owner(&self, name: &Name) -> Result<()> {
        match &self.queued {
            Some(head) if !name.allows(&head.owner) => Err(Error::no_conversation(name)),
            _ => Ok(()),
        }
    }

    /// Fails if a new conversation cannot be created here.
    pub(crate) fn check_free(&self, conversation: &Name) -> Result<()> {
        if !self.reserved || self.queued.is_some() {
            return Ok(());
        }
        Err(Error::SharedByForks { conversation: conversation.clone() })
    }

    /// Fails if the conversation exists, or a new one cannot be created here.
    pub(crate) fn check_vacant(&self, conversation: &Name) -> Result<()> {
        match &self.queued {
            Some(head) => Err(Error::NameTaken { conversation: conversation.clone(), actual: head.next_seq - 1 }),
            None => self.check_free(conversation),
        }
    }

    /// Whether something that is queued for it is not published yet.
    pub(crate) const fn has_pending(&self) -> bool {
        self.pending > 0
    }

    /// How many commits were published for it.
    pub(crate) const fn published_count(&self) -> u64 {
        self.published_count
    }

    /// The receipt that is queued under an idempotency key of this digest.
    pub(crate) fn queued_receipt(&self, digest: &[u8; 16]) -> Option<&Receipt> {
        self.receipts.get(digest)
    }

    #[cfg(test)]
    pub(crate) fn has_no_queued_receipts(&self) -> bool {
        self.receipts.is_empty()
    }

    /// Makes an idempotency key answer with this receipt from now on.
    pub(crate) fn answer(&mut self, digest: [u8; 16], receipt: Receipt) {
        self.receipts.insert(digest, receipt);
    }

    /// The messages that are being written.
    pub(crate) fn open_messages(&self) -> impl Iterator<Item = u64> {
        self.writers.keys().copied()
    }

    pub(crate) fn add_writer(&mut self, writer: &Arc<Writer>) {
        self.writers.insert(writer.message_index(), Arc::clone(writer));
    }

    /// Removes the writers of all messages from `first` on; `close` is called with each.
    pub(crate) fn remove_writers(&mut self, first: u64, close: impl Fn(&Writer)) {
        for (_, writer) in self.writers.extract_if(|index, _| *index >= first) {
            close(&writer);
        }
    }

    /// The name of a deleted conversation is not free while something of it is left.
    pub(crate) fn reserve(&mut self, reserved: bool) {
        self.reserved = reserved;
    }

    /// Lets nothing be queued.
    pub(crate) fn freeze(&mut self) {
        self.frozen = true;
    }

    /// Lets writes be queued again. True: deltas wait for that.
    pub(crate) fn unfreeze(&mut self) -> bool {
        self.frozen = false;
        std::mem::replace(&mut self.held_back, false)
    }

    fn heads(&self) -> Heads<'_> {
        Heads { queued: self.queued.as_ref(), published: self.published.as_ref(), frozen: self.frozen }
    }

    fn is_idle(&self) -> bool {
        self.pending == 0 && self.pins == 0 && self.writers.is_empty() && !self.frozen
    }
}

impl Slots {
    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    pub(crate) const fn loaded(&self) -> u64 {
        self.loaded
    }

    pub(crate) fn get(&self, id: ConversationId) -> Option<&Slot> {
        self.slots.get(&id)
    }

    /// The slot of a conversation that was pinned.
    pub(crate) fn slot(&mut self, id: ConversationId) -> &mut Slot {
        self.slots.entry(id).or_default()
    }

    /// The heads of a conversation in use.
    pub(crate) fn heads(&self, id: ConversationId) -> Option<Heads<'_>> {
        self.slots.get(&id).map(Slot::heads)
    }

    /// The conversations that are being created.
    pub(crate) fn beginning(&self) -> impl Iterator<Item = ConversationId> {
        let begun = self.slots.iter().filter(|(_, slot)| slot.published.is_none() && slot.queued.is_some());
        begun.map(|(id, _)| *id)
    }

    /// Keeps a slot in memory, if it is there.
    pub(crate) fn pin(&mut self, id: ConversationId) -> bool {
        self.slots.get_mut(&id).map(|slot| slot.pins += 1).is_some()
    }

    pub(crate) fn unpin(&mut self, id: ConversationId) {
        if let Some(slot) = self.slots.get_mut(&id) {
            slot.pins = slot.pins.saturating_sub(1);
        }
    }

    /// The head of a conversation that has no slot, if it is remembered.
    pub(crate) fn listed(&self, id: ConversationId) -> Option<&Arc<Head>> {
        self.listed.get(&id)
    }

    /// Remembers the stored head of a conversation until it gets a slot.
    pub(crate) fn remember(&mut self, id: ConversationId, head: &Arc<Head>) {
        if self.slots.contains_key(&id) || self.listed.contains_key(&id) {
            return;
        }
        if self.listed.len() >= LISTED {
            self.listed.clear();
        }
        self.listed.insert(id, Arc::clone(head));
    }

    /// Adds the slot of a conversation, with its head and whether its name is reserved, as they are stored.
    pub(crate) fn load(&mut self, id: ConversationId, head: Option<Arc<Head>>, reserved: bool) {
        self.listed.remove(&id);
        self.slots.insert(id, Slot { queued: head.clone(), published: head, reserved, ..Slot::default() });
        self.loaded += 1;
    }

    /// Drops the slots that nobody needs, if there are more than `limit`.
    pub(crate) fn evict(&mut self, limit: usize, is_needed: impl Fn(ConversationId) -> bool) {
        if self.slots.len() > limit.max(self.kept) {
            self.slots.retain(|id, slot| !slot.is_idle() || is_needed(*id));
            self.generation += 1;
            // Looking at all that stay for each new one would cost the square of their number.
            self.kept = 2 * self.slots.len();
        }
    }

    /// The name of a deleted conversation is free: no fork reads its entries any more.
    pub(crate) fn free(&mut self, id: ConversationId) {
        self.generation += 1;
        if let Some(slot) = self.slots.get_mut(&id) {
            slot.reserved = false;
        }
    }

    /// Whether nothing may be queued for a conversation now.
    pub(crate) fn is_frozen(&self, id: ConversationId) -> bool {
        self.slots.get(&id).is_some_and(|slot| slot.frozen)
    }

    /// As [`Slots::is_frozen`]; if so, deltas wait for it from now on.
    pub(crate) fn hold_back(&mut self, id: ConversationId) -> bool {
        let slot = self.slots.get_mut(&id).filter(|slot| slot.frozen);
        slot.map(|slot| slot.held_back = true).is_some()
    }

    /// Fails if a writer's message is closed.
    pub(crate) fn check_live(&self, writer: &Writer) -> Result<()> {
        let slot = self.slots.get(&writer.name().id());
        let live = slot.and_then(|slot| slot.writers.get(&writer.message_index()));
        if live.is_some_and(|live| std::ptr::eq(&**live, writer)) { Ok(()) } else { Err(writer.error()) }
    }

    /// Removes a writer from those that live.
    pub(crate) fn remove(&mut self, writer: &Writer) {
        if self.check_live(writer).is_ok() {
            self.slot(writer.name().id()).writers.remove(&writer.message_index());
        }
    }

    /// A write of this head is queued. Returns the head before it.
    pub(crate) fn queue(&mut self, id: ConversationId, head: Option<Arc<Head>>) -> Option<Arc<Head>> {
        let slot = self.slot(id);
        slot.pending += 1;
        std::mem::replace(&mut slot.queued, head)
    }

    /// A write is durable: readers see its head. `answered`: the digest of its idempotency key; `finished`: the message
    /// that it finishes.
    pub(crate) fn publish(
        &mut self,
        id: ConversationId,
        head: Option<Arc<Head>>,
        answered: Option<&[u8; 16]>,
        finished: Option<u64>,
    ) {
        let slot = self.slot(id);
        slot.published = head;
        slot.pending = slot.pending.saturating_sub(1);
        slot.published_count += 1;
        if let Some(digest) = answered {
            slot.receipts.remove(digest);
        }
        if let Some(message_index) = finished {
            slot.writers.remove(&message_index);
        }
    }

    /// A write is void, and all that is queued after it.
    pub(crate) fn fail(&mut self, id: ConversationId) {
        let slot = self.slot(id);
        slot.queued.clone_from(&slot.published);
        slot.pending = slot.pending.saturating_sub(1);
        slot.receipts.clear();
    }

    /// Whether every write was published or failed, and nobody needs a slot any more.
    #[cfg(test)]
    pub(crate) fn are_settled(&self) -> bool {
        self.slots.values().all(|slot| slot.queued == slot.published && slot.pending == 0 && slot.pins == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: ConversationId = ConversationId::from_bytes([7; 16]);

    /// Whether a slot is dropped where there are too many, after something happened to it.
    fn is_dropped(change: impl FnOnce(&mut Slots)) -> bool {
        let mut slots = Slots::default();
        slots.load(ID, None, false);
        change(&mut slots);
        slots.evict(0, |_| false);
        slots.get(ID).is_none()
    }

    #[test]
    fn a_slot_stays_while_somebody_needs_it() {
        assert!(is_dropped(|_| ()));
        assert!(!is_dropped(|slots| assert!(slots.pin(ID))));
        assert!(!is_dropped(|slots| assert!(slots.pin(ID) && slots.queue(ID, None).is_none())));
        assert!(!is_dropped(|slots| _ = slots.queue(ID, None)));
        assert!(!is_dropped(|slots| slots.slot(ID).freeze()));
        assert!(is_dropped(|slots| {
            assert!(slots.pin(ID));
            slots.unpin(ID);
            slots.queue(ID, None);
            slots.publish(ID, None, None, None);
            slots.slot(ID).freeze();
            assert!(!slots.slot(ID).unfreeze());
        }));
    }

    #[test]
    fn slots_that_stay_are_not_looked_at_for_each_new_one() {
        let mut slots = Slots::default();
        for number in 0..1000_u16 {
            let mut bytes = [0; 16];
            bytes[..2].copy_from_slice(&number.to_be_bytes());
            let id = ConversationId::from_bytes(bytes);
            slots.load(id, None, false);
            assert!(slots.pin(id));
            slots.evict(4, |_| false);
        }
        assert_eq!(slots.slots.len(), 1000);
        assert!(slots.generation() < 10, "{} times", slots.generation());
    }

    #[test]
    fn a_queued_receipt_answers_until_it_is_published_or_void() {
        let receipt =
            Receipt { first_seq: 1, last_seq: 1, first_message_index: 0, messages: 1, content_digest: [2; 16] };
        let mut slots = Slots::default();
        let ends: [fn(&mut Slots); 2] = [|slots| slots.publish(ID, None, Some(&[1; 16]), None), |slots| slots.fail(ID)];
        for end in ends {
            slots.queue(ID, None);
            slots.slot(ID).answer([1; 16], receipt.clone());
            assert_eq!(slots.slot(ID).queued_receipt(&[1; 16]), Some(&receipt));
            end(&mut slots);
            assert_eq!(slots.slot(ID).queued_receipt(&[1; 16]), None);
            assert!(!slots.slot(ID).has_pending());
        }
    }
}
