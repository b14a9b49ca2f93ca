//! Conversations that are frozen: a change to a whole conversation is decided against a head that nobody moves.

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::embedded::appending::numbering::Draft;
use crate::embedded::appending::writer::Closed;
use crate::embedded::commit::state::{Pending, State};
use crate::embedded::core::{Core, Pin};
use crate::error::{Error, Result};
use crate::log::{Durability, Receipt};
use crate::model::{ConversationId, Name};
use crate::record::{Body, Head, Replacement};

/// Keeps a conversation as it is: nothing is queued for it, and everything accepted before is durable.
pub(crate) struct Frozen<'a> {
    pin: Pin<'a>,
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
    pub(crate) fn any_head(&self) -> Option<&Head> {
        self.head.as_deref()
    }

    /// Its head, if there is such a conversation.
    pub(crate) fn head(&self, name: &Name) -> Result<Arc<Head>> {
        let head = self.head.clone().filter(|head| name.allows(&head.owner));
        head.ok_or_else(|| Error::no_conversation(name))
    }

    /// Fails while one of these messages is being written.
    pub(crate) fn check_written(&self, name: &Name, messages: RangeInclusive<u64>) -> Result<()> {
        let mut state = self.pin.core.lock();
        let writers = &state.slot(self.pin.id).writers;
        match writers.keys().filter(|index| messages.contains(index)).min() {
            Some(index) => Err(Error::BeingWritten { conversation: name.clone(), message_index: *index }),
            None => Ok(()),
        }
    }

    /// Ends the writers of all messages from `first` on, together with the write that hides or erases these.
    pub(crate) fn close_writers(&self, state: &mut State, first: u64, why: Closed) {
        state.slot(self.pin.id).writers.retain(|index, writer| {
            let stays = *index < first;
            if !stays {
                writer.close(why);
            }
            stays
        });
        // Those of them that wait for the conversation need not wait any more.
        self.pin.core.room.notify_all();
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        let core = self.pin.core;
        let mut state = core.lock();
        let slot = state.slot(self.pin.id);
        slot.frozen = false;
        let held_back = std::mem::take(&mut slot.held_back);
        drop(state);
        core.room.notify_all();
        if held_back {
            core.ticker.hurry();
        }
    }
}

impl Core {
    /// Waits until a conversation is durable as it is, and lets nothing be queued for it until the value is dropped.
    pub(crate) fn freeze(&self, id: ConversationId) -> Result<Frozen<'_>> {
        let pin = self.pin(id)?;
        let mut state = self.writable(id, Durability::Durable)?;
        state.slot(id).frozen = true;
        let mut frozen = Frozen { pin, head: None };
        if state.slot(id).pending > 0 {
            self.queue_durable(state, Pending::default())?;
            state = self.lock();
        }
        frozen.head.clone_from(&state.slot(id).published);
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
        let mut state = self.lock();
        state.check_writable()?;
        if let Some(first) = closes {
            frozen.close_writers(&mut state, first, Closed::Rewound);
        }
        let draft = Draft { name, body, messages: 0, base: None, said: &[] };
        let mut placed = self.place(&mut state, frozen.pin.id, draft, change);
        placed.pending.rewrites = !rewritten.ops.is_empty();
        placed.pending.ops.extend(rewritten.ops);
        placed.pending.redacts = rewritten.owners;
        self.queue(state, placed, Durability::Durable)
    }
}
