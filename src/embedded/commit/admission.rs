//! The way into the queue: who must wait before a write is queued, and who after.

use std::sync::{Arc, PoisonError};

use crate::embedded::appending::numbering::Placed;
use crate::embedded::commit::state::{Pending, Room, Signal, State, Waiter};
use crate::embedded::core::Core;
use crate::embedded::sync::MutexGuard;
use crate::error::{Error, Result};
use crate::log::{Durability, Receipt};
use crate::model::ConversationId;

impl Core {
    /// The state, once a pinned conversation may be written.
    pub(crate) fn writable(&self, id: ConversationId, durability: Durability) -> Result<MutexGuard<'_, State>> {
        self.writable_while(id, durability, |_| Ok(()))
    }

    /// The state, once a pinned conversation may be written; or the first error of `check`, which runs again after each
    /// wait.
    pub(crate) fn writable_while(
        &self,
        id: ConversationId,
        durability: Durability,
        check: impl Fn(&State) -> Result<()>,
    ) -> Result<MutexGuard<'_, State>> {
        let mut state = self.lock();
        loop {
            state.check_writable()?;
            check(&state)?;
            let full = durability == Durability::Buffered && state.is_full();
            if !full && !state.is_frozen(id) {
                return Ok(state);
            }
            if full && !self.ticker.hurry() && !state.led {
                // Nobody else makes room.
                state.led = true;
                drop(state);
                self.lead(None)?;
                state = self.lock();
            } else {
                state = self.wait_for_room(state);
            }
        }
    }

    /// Blocks until there may be room in the queue, a conversation may be unfrozen, or the store may be closing.
    pub(crate) fn wait_for_room<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.waiting += 1;
        let mut state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        state
    }

    /// Queues a write that has its place. Returns at once, or when it is durable.
    pub(crate) fn queue(
        &self,
        mut state: MutexGuard<'_, State>,
        placed: Placed,
        durability: Durability,
    ) -> Result<Receipt> {
        let Placed { pending, mut receipt, .. } = placed;
        match durability {
            Durability::Durable => self.queue_durable(state, pending)?,
            Durability::Buffered => {
                state.push(pending);
                self.ticker.wake();
            }
        }
        receipt.durable = durability == Durability::Durable;
        Ok(receipt)
    }

    /// Queues a write and returns once it is durable.
    pub(crate) fn queue_durable(&self, state: MutexGuard<'_, State>, pending: Pending) -> Result<()> {
        state.check_writable()?;
        let waiter = self.enqueue(state, pending);
        self.wait(&waiter)
    }

    /// Queues a write for [`Core::wait`], which must follow: this thread may have to commit.
    pub(crate) fn enqueue(&self, mut state: MutexGuard<'_, State>, mut pending: Pending) -> Arc<Waiter> {
        let waiter = Waiter::new();
        pending.waiter = Some(Arc::clone(&waiter));
        state.push(pending);
        if state.led {
            let wake = state.gathers && state.is_gathered();
            drop(state);
            if wake {
                self.gathered.notify_one();
            }
        } else {
            state.led = true;
            drop(state);
            waiter.tell(Signal::Lead);
        }
        waiter
    }

    /// Returns once a queued write is durable.
    pub(crate) fn wait(&self, waiter: &Waiter) -> Result<()> {
        match waiter.wait() {
            Signal::Done => Ok(()),
            Signal::Lead => self.lead(Some(waiter)),
            Signal::Unknown => Err(Error::OutcomeUnknown { cause: self.cause() }),
            Signal::Failed => Err(Error::Poisoned { cause: self.cause() }),
        }
    }

    /// Why writing has ended.
    fn cause(&self) -> String {
        self.lock().poisoned.clone().unwrap_or_default()
    }

    /// Returns once all that is queued is durable.
    pub(crate) fn sync(&self) -> Result<()> {
        let state = self.lock();
        state.check_sound()?;
        if state.queue.is_empty() && !state.led {
            return Ok(());
        }
        let waiter = self.enqueue(state, Pending::default());
        self.wait(&waiter)
    }

    /// Returns once all that was accepted before is durable.
    pub(crate) fn flush(&self) -> Result<()> {
        let collecting: Vec<_> = self.lock().collecting.values().cloned().collect();
        for writer in collecting {
            match self.queue_when_possible(&writer) {
                // It lost its message: there is nothing to make durable.
                Ok(()) | Err(Error::MessageClosed { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.sync()
    }

    /// Makes everything durable that was accepted, up to the last write.
    pub(crate) fn drain(&self) -> Result<()> {
        loop {
            self.queue_collected(Room::Unbounded)?;
            let state = self.lock();
            state.check_sound()?;
            if state.collecting.is_empty() {
                drop(state);
                return self.sync();
            }
            // The rest belongs to frozen conversations, unless they were unfrozen by now. Nothing more is written to them, so
            // they soon will be.
            if state.collecting.values().all(|writer| state.is_frozen(writer.name.id())) {
                drop(self.wait_for_room(state));
            }
        }
    }
}
