//! Conversations that are frozen: a change to a whole conversation is decided against a head that nobody moves.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::Families;
use crate::embedded::appending::Draft;
use crate::embedded::catalogue::Pin;
use crate::embedded::state::{Pending, State};
use crate::error::{Error, Result};
use crate::log::writer::Closed;
use crate::log::{Durability, Receipt};
use crate::model::{ConversationId, Name};
use crate::record::{Body, Head, Replacement};

/// Keeps a conversation as it is: nothing is queued for it, and everything accepted before is durable.
pub(crate) struct Frozen<'a> {
    families: &'a Families,
    id: ConversationId,
    /// Dropped after the conversation is unfrozen.
    _pin: Pin<'a>,
    head: Option<Arc<Head>>,
}

/// Values that are replaced together with an entry.
#[derive(Debug, Default)]
pub(crate) struct Rewritten {
    pub(crate) ops: Replacement,
    /// The conversations in whose logs something is redacted.
    pub(crate) owners: Vec<ConversationId>,
}

impl Frozen<'_> {
    /// Its head, regardless of the owner.
    pub(super) fn any_head(&self) -> Option<&Head> {
        self.head.as_deref()
    }

    /// Its head, if there is such a conversation.
    pub(crate) fn head(&self, name: &Name) -> Result<Arc<Head>> {
        let head = self.head.clone().filter(|head| name.allows(&head.owner));
        head.ok_or_else(|| Error::no_conversation(name))
    }

    /// Fails while one of these messages is being written.
    pub(super) fn check_written(&self, name: &Name, messages: RangeInclusive<u64>) -> Result<()> {
        let mut state = self.families.commit.lock();
        let open = state.slots.slot(self.id).open_messages();
        match open.filter(|index| messages.contains(index)).min() {
            Some(index) => Err(Error::BeingWritten { conversation: name.clone(), message_index: index }),
            None => Ok(()),
        }
    }

    /// Ends the writers of all messages from `first` on, together with the write that hides or erases these.
    pub(super) fn close_writers(&self, state: &mut State, first: u64, why: Closed) {
        state.slots.slot(self.id).remove_writers(first, |writer| writer.close(why));
        // Those of them that wait for the conversation need not wait any more.
        self.families.commit.notify_room();
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        self.families.commit.unfreeze(self.id);
    }
}

impl Families {
    /// Waits until a conversation is durable as it is, and lets nothing be queued for it until the value is dropped.
    pub(crate) fn freeze(&self, id: ConversationId) -> Result<Frozen<'_>> {
        let pin = self.catalogue.pin(id)?;
        let mut state = self.commit.writable(id, Durability::Durable)?;
        state.slots.slot(id).freeze();
        let mut frozen = Frozen { families: self, id, _pin: pin, head: None };
        if state.slots.slot(id).has_pending() {
            self.commit.queue_durable(state, Pending::default())?;
            state = self.commit.lock();
        }
        frozen.head = state.slots.slot(id).published().cloned();
        drop(state);
        Ok(frozen)
    }

    /// Writes an entry about a whole conversation, and returns once it is durable. What is `rewritten` is written with
    /// it; `closes` is the message from which on writers end; `change` is what it does to the head beside moving it.
    pub(crate) fn write_control(
        &self,
        frozen: &Frozen<'_>,
        name: &Name,
        body: Body,
        rewritten: Rewritten,
        closes: Option<u64>,
        change: impl FnOnce(&mut Head),
    ) -> Result<Receipt> {
        let mut state = self.commit.open_state()?;
        if let Some(first) = closes {
            frozen.close_writers(&mut state, first, Closed::Rewound);
        }
        let draft = Draft { name, body, messages: 0, base: None, said: &[], time: None };
        let mut placed = self.numbering.place(&mut state, frozen.id, draft, change);
        placed.pending.rewrites = !rewritten.ops.is_empty();
        placed.pending.ops.extend(rewritten.ops);
        placed.pending.redacts = rewritten.owners;
        placed.queue(&self.commit, state, Durability::Durable)
    }
}
