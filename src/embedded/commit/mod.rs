//! Writes into batches: the log's lock, group commit, the order in which things are published.
//!
//! [`Committer`] owns the log's one lock, and [`State`] is what it protects. Who writes gets the state by
//! [`Committer::writable`], gives the write its numbers and queues it, all under that lock; then the lock is released, and
//! a thread that finds no leader leads: it commits what others have queued too. Encoding and I/O happen without the lock.

mod group;

use std::fmt;
use std::sync::{Arc, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use crate::embedded::engine::{Batch, Engine};
use crate::embedded::state::{Pending, Phase, Signal, State, Waiter};
use crate::embedded::sync::{self, Condvar, Mutex, MutexGuard};
use crate::error::{Error, Result};
use crate::log::Durability;
use crate::model::ConversationId;

/// Queues writes, and commits them.
pub(crate) struct Committer {
    engine: Arc<dyn Engine>,
    state: Mutex<State>,
    ticker: Ticker,
    /// The leader has gathered what it waited for.
    gathered: Condvar,
    /// There is room in the queue again, or a conversation is no longer frozen.
    room: Condvar,
    /// Something was published.
    published: Condvar,
}

impl fmt::Debug for Committer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Committer").field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl Committer {
    pub(crate) fn new(engine: Arc<dyn Engine>, state: State) -> Self {
        Self {
            engine,
            state: Mutex::new(state),
            ticker: Ticker::default(),
            gathered: Condvar::new(),
            room: Condvar::new(),
            published: Condvar::new(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panicked while it held the lock left the state as it was between two complete steps, or the
        // panic came from a defect; failing every reader for it would help nobody.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The background thread's ticks come from now on.
    pub(crate) fn start(&self) {
        self.ticker.start();
    }

    /// Blocks until the background thread has something to do. False: the store is being closed.
    pub(crate) fn wait_for_tick(&self, window: Duration) -> bool {
        self.ticker.wait(window)
    }

    /// Something was buffered: a tick is due one window from now, if none is due before.
    pub(crate) fn note_buffered(&self) {
        self.ticker.wake();
    }

    /// Accepts no more writes, and ends the background thread.
    pub(crate) fn begin_close(&self) {
        self.enter(Phase::Closing);
        self.ticker.stop();
    }

    /// Nothing happens any more.
    pub(crate) fn end_close(&self) {
        self.enter(Phase::Closed);
    }

    /// Enters the next phase of the store's life, and wakes everyone who waits.
    fn enter(&self, phase: Phase) {
        self.lock().life.enter(phase);
        self.room.notify_all();
        let mut state = self.lock();
        state.followers.notify_all();
        let woken = state.followers.take_woken();
        drop(state);
        self.published.notify_all();
        woken.into_iter().for_each(Waker::wake);
    }

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
            state.life.check_writable()?;
            check(&state)?;
            let full = durability == Durability::Buffered && state.queue.is_full();
            if !full && !state.slots.is_frozen(id) {
                return Ok(state);
            }
            if full && !self.ticker.hurry() && state.queue.lead() {
                // Nobody else makes room.
                drop(state);
                self.lead(None)?;
                state = self.lock();
            } else {
                state = self.wait_for_room(state);
            }
        }
    }

    /// The state, if the store takes writes.
    pub(crate) fn open_state(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.lock();
        state.life.check_writable().map(|()| state)
    }

    /// Blocks until there may be room in the queue, a conversation may be unfrozen, or the store may be closing.
    pub(crate) fn wait_for_room<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.waiting += 1;
        let mut state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        state
    }

    /// Lets those who wait for a conversation look again.
    pub(crate) fn notify_room(&self) {
        self.room.notify_all();
    }

    /// Lets writes to a conversation be queued again.
    pub(crate) fn unfreeze(&self, id: ConversationId) {
        let held_back = self.lock().slots.slot(id).unfreeze();
        self.room.notify_all();
        if held_back {
            self.ticker.hurry();
        }
    }

    /// Blocks while there is nothing new, at most so long.
    pub(crate) fn wait_while(&self, timeout: Duration, mut nothing_new: impl FnMut(&mut State) -> bool) {
        let mut state = self.lock();
        state.tailing += 1;
        let waited = self.published.wait_timeout_while(state, timeout, |state| nothing_new(state));
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.tailing -= 1;
    }

    /// Lets those who wait for news look again.
    pub(crate) fn notify_published(&self) {
        self.published.notify_all();
    }

    /// Queues a write. Returns at once, or when it is durable.
    pub(crate) fn queue(
        &self,
        mut state: MutexGuard<'_, State>,
        pending: Pending,
        durability: Durability,
    ) -> Result<()> {
        match durability {
            Durability::Durable => self.queue_durable(state, pending),
            Durability::Buffered => {
                state.push(pending);
                self.ticker.wake();
                Ok(())
            }
        }
    }

    /// Queues a write and returns once it is durable.
    pub(crate) fn queue_durable(&self, state: MutexGuard<'_, State>, pending: Pending) -> Result<()> {
        state.life.check_writable()?;
        let waiter = self.enqueue(state, pending);
        self.wait(&waiter)
    }

    /// Writes a batch that changes no head, and returns once it is durable.
    pub(crate) fn write_durable(&self, batch: Batch) -> Result<()> {
        self.queue_durable(self.lock(), Pending { ops: batch.ops, rewrites: true, ..Pending::default() })
    }

    /// Queues a write for [`Committer::wait`], which must follow: this thread may have to commit.
    pub(crate) fn enqueue(&self, mut state: MutexGuard<'_, State>, mut pending: Pending) -> Arc<Waiter> {
        let waiter = Waiter::new();
        pending.waiter = Some(Arc::clone(&waiter));
        state.push(pending);
        let leads = state.queue.lead();
        let wake = !leads && state.queue.is_awaited();
        drop(state);
        if leads {
            waiter.tell(Signal::Lead);
        }
        if wake {
            self.gathered.notify_one();
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
        self.lock().life.poisoned().cloned().unwrap_or_default()
    }

    /// Returns once all that is queued is durable.
    pub(crate) fn sync(&self) -> Result<()> {
        let state = self.lock();
        state.life.check_sound()?;
        if state.queue.is_idle() {
            return Ok(());
        }
        let waiter = self.enqueue(state, Pending::default());
        self.wait(&waiter)
    }
}

/// Wakes the background thread one window after something was buffered.
#[derive(Debug, Default)]
struct Ticker {
    signal: Mutex<Ticks>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Ticks {
    /// When the first write was buffered that no tick has seen yet.
    since: Option<Instant>,
    hurry: bool,
    /// A thread waits for ticks, or will.
    runs: bool,
}

impl Ticker {
    /// Something was buffered: a tick is due one window from now, if none is due before.
    fn wake(&self) {
        let mut signal = self.lock();
        if signal.since.is_none() {
            signal.since = Some(sync::now());
            self.changed.notify_all();
        }
    }

    /// A tick is due now. False: no tick comes, because the store is being opened or closed.
    fn hurry(&self) -> bool {
        let mut signal = self.lock();
        signal.hurry = true;
        self.changed.notify_all();
        signal.runs
    }

    /// Ticks come from now on.
    fn start(&self) {
        self.lock().runs = true;
    }

    /// No more ticks come.
    fn stop(&self) {
        self.lock().runs = false;
        self.changed.notify_all();
    }

    /// Blocks until a tick is due. False: the ticker was stopped.
    fn wait(&self, window: Duration) -> bool {
        let mut signal = self.lock();
        loop {
            let left = signal.since.map(|since| window.saturating_sub(sync::now() - since));
            if !signal.runs {
                return false;
            }
            if signal.hurry || left == Some(Duration::ZERO) {
                (signal.since, signal.hurry) = (None, false);
                return true;
            }
            signal = match left {
                Some(left) => self.changed.wait_timeout(signal, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.changed.wait(signal).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, Ticks> {
        self.signal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
