//! What the log's threads share, and the slots of the conversations in use.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, PoisonError};

use crate::embedded::commit::state::{Phase, Slot, State};
use crate::embedded::commit::ticker::Ticker;
use crate::embedded::engine::Engine;
use crate::embedded::families::held::Families;
use crate::embedded::stored::files::Beside;
use crate::embedded::sync::{Condvar, Mutex, MutexGuard};
use crate::error::Result;
use crate::log::{Clock, Health, Size};
use crate::model::ConversationId;
use crate::record::Head;

/// Slots of idle conversations that are kept, so that their heads need not be read again.
const IDLE_SLOTS: usize = 10_000;

/// What the log's threads share.
pub(crate) struct Core {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) clock: Clock,
    pub(crate) epoch: u64,
    /// What opening found.
    pub(crate) health: Health,
    pub(crate) state: Mutex<State>,
    pub(crate) ticker: Ticker,
    /// The leader has gathered what it waited for.
    pub(crate) gathered: Condvar,
    /// There is room in the queue again, or a conversation is no longer frozen.
    pub(crate) room: Condvar,
    /// Something was published.
    pub(crate) published: Condvar,
    /// The conversations that are being forked, deleted or redacted.
    pub(crate) families: Families,
    /// Whether every fork is known to its parent: checked since the store was opened.
    pub(crate) proved: AtomicBool,
    /// How many deletions were begun since the store was opened.
    pub(crate) erased: AtomicU64,
    /// How many of them have not ended.
    pub(crate) erasing: AtomicU64,
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded").field("engine", &self.engine).field("epoch", &self.epoch).finish_non_exhaustive()
    }
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

/// Keeps a conversation's slot in memory.
pub(crate) struct Pin<'a> {
    pub(crate) core: &'a Core,
    pub(crate) id: ConversationId,
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.core.lock().slots.get_mut(&self.id) {
            slot.pins = slot.pins.saturating_sub(1);
        }
    }
}

impl Core {
    pub(crate) fn new(engine: Arc<dyn Engine>, clock: Clock, epoch: u64, health: Health, state: State) -> Self {
        Self {
            engine,
            clock,
            epoch,
            health,
            state: Mutex::new(state),
            ticker: Ticker::default(),
            gathered: Condvar::new(),
            room: Condvar::new(),
            published: Condvar::new(),
            families: Families::default(),
            proved: AtomicBool::new(false),
            erased: AtomicU64::new(0),
            erasing: AtomicU64::new(0),
        }
    }

    pub(crate) fn health(&self) -> Health {
        let state = self.lock();
        let poisoned = state.poisoned.clone().or_else(|| self.engine.failure());
        Health { poisoned, closed: state.phase != Phase::Open, ..self.health.clone() }
    }

    /// How much the log holds.
    pub(crate) fn size(&self) -> Result<Size> {
        let conversations = self.lock().commit.conversations;
        Ok(Size { conversations, bytes: self.beside().bytes()?, tables: Vec::new() })
    }

    /// What is kept beside the engine's files.
    pub(crate) fn beside(&self) -> Beside<'_> {
        Beside::of(&*self.engine)
    }

    /// Enters the next phase of the store's life, and wakes everyone who waits.
    pub(crate) fn enter(&self, phase: Phase) {
        self.lock().phase = phase;
        self.room.notify_all();
        self.wake_all();
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panicked while it held the lock left the state as it was between two complete steps, or the
        // panic came from a defect; failing every reader for it would help nobody.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> i64 {
        (self.clock)().as_micros()
    }

    /// Loads the conversation's slot and keeps it in memory.
    pub(crate) fn pin(&self, id: ConversationId) -> Result<Pin<'_>> {
        let mut state = self.lock();
        loop {
            if let Some(slot) = state.slots.get_mut(&id) {
                slot.pins += 1;
                return Ok(Pin { core: self, id });
            }
            let generation = state.generation;
            drop(state);
            let read = self.stored_slot(id);
            state = self.lock();
            if state.generation == generation && !state.slots.contains_key(&id) {
                let slot = read?;
                state.evict(IDLE_SLOTS);
                state.slots.insert(id, slot);
                state.loaded += 1;
            }
        }
    }

    /// A conversation's slot as the engine has it.
    fn stored_slot(&self, id: ConversationId) -> Result<Slot> {
        let head = self.sound_head(id)?.map(Arc::new);
        let reserved = head.is_none() && self.tombstone(id)?.is_some();
        Ok(Slot { queued: head.clone(), published: head, reserved, ..Slot::default() })
    }

    /// What there is of a conversation, as its slot has it: no half of a commit is seen.
    pub(crate) fn existence(&self, id: ConversationId) -> Result<Existence> {
        let _pin = self.pin(id)?;
        let mut state = self.lock();
        let slot = state.slot(id);
        Ok(match (&slot.published, slot.reserved) {
            (Some(_), _) => Existence::Alive,
            (None, true) => Existence::Deleted,
            (None, false) => Existence::Vacant,
        })
    }

    /// The head that readers see.
    pub(crate) fn published_head(&self, id: ConversationId) -> Result<Option<Arc<Head>>> {
        let _pin = self.pin(id)?;
        Ok(self.lock().slot(id).published.clone())
    }
}
