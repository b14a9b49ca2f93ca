//! Writes into batches: the log's lock, group commit, the order in which things are published.
//!
//! [`Committer`] owns the log's one lock, and [`State`] is what it protects. Who writes gets the state by
//! [`Committer::writable`], gives the write its numbers and queues it, all under that lock; then the lock is released, and
//! a thread that finds no leader leads: it commits what others have queued too. Encoding and I/O happen without the lock.

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use super::engine::{Batch, Engine, LARGE_BYTES};
use super::state::{Pending, Phase, Signal, State, Unsealed, Waiter};
use super::sync::{self, Condvar, Mutex, MutexGuard};
use crate::error::{Error, Result};
use crate::log::Durability;
use crate::model::ConversationId;
use crate::record::{self, Commit, Head, Lag, index_keys, is_unfinished, key, listed_micros};

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

/// A conversation's head before a commit, and after it.
struct Change {
    before: Option<Arc<Head>>,
    after: Option<Arc<Head>>,
}

impl Committer {
    /// Commits what has waited for a window, unless another thread commits already. For the background thread: it waits
    /// for nothing but the engine.
    pub(crate) fn commit_due(&self) {
        let mut state = self.lock();
        let leads = state.queue.lead_due();
        drop(state);
        if leads {
            // Those who wait get the error.
            let _ = self.lead(None);
        }
    }

    /// Commits batch by batch until the thread's own write is durable; a thread without one commits a single batch.
    pub(super) fn lead(&self, own: Option<&Waiter>) -> Result<()> {
        loop {
            let mut state = self.gather();
            let mut batch = state.begin_commit();
            let (begun, last) = (batch.len(), state.last_commit());
            drop(state);
            let start = sync::now();
            let result = self.commit(last, &mut batch);
            let taken = sync::now() - start;
            let mut state = self.lock();
            state.queue.note_crowd(&batch, taken);
            match &result {
                Ok(commit) => state.publish(*commit, &mut batch),
                Err(error) => batch = state.fail(batch, error.to_string()),
            }
            let is_own = |waiter: &Waiter| own.is_some_and(|own| std::ptr::eq(own, waiter));
            let own_at = batch.iter().position(|pending| pending.waiter.as_deref().is_some_and(is_own));
            let stop = own.is_none() || own_at.is_some() || state.queue.is_empty();
            let next = if stop { state.queue.hand_over() } else { None };
            let held_back = state.queue.release_held_back();
            let late = stop && next.is_none() && state.queue.is_late();
            let (tailing, waiting) = (state.tailing > 0, state.waiting > 0);
            let woken = state.followers.take_woken();
            drop(state);
            // The next leader is woken first, so that it commits while the others wake up.
            if let Some(next) = next {
                next.tell(Signal::Lead);
            }
            if late || held_back {
                self.ticker.hurry();
            }
            for (at, pending) in batch.iter().enumerate() {
                let Some(waiter) = pending.waiter.as_deref().filter(|waiter| !is_own(waiter)) else { continue };
                waiter.tell(match &result {
                    Ok(_) => Signal::Done,
                    Err(_) if at < begun => Signal::Unknown,
                    Err(_) => Signal::Failed,
                });
            }
            if waiting {
                self.room.notify_all();
            }
            if tailing {
                self.published.notify_all();
            }
            woken.into_iter().for_each(Waker::wake);
            if stop {
                return result.map(|_| ()).map_err(|error| match (error.to_string(), own_at) {
                    (cause, Some(at)) if at < begun => Error::OutcomeUnknown { cause },
                    (cause, _) => Error::Poisoned { cause },
                });
            }
        }
    }

    /// The state, once the threads that waited for the last commit have written again, or had the time to: their writes
    /// share this commit. A thread that writes alone waits for nobody.
    fn gather(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        let Some(patience) = state.queue.begin_gathering() else { return state };
        let gathered = self.gathered.wait_timeout_while(state, patience, |state| !state.queue.is_gathered());
        let (mut state, _) = gathered.unwrap_or_else(PoisonError::into_inner);
        state.queue.end_gathering();
        state
    }

    /// Writes a batch after the last commit, and syncs. Returns the commit's number. A panic is an error like any
    /// other: the threads that wait get it.
    fn commit(&self, last: Commit, pending: &mut [Pending]) -> Result<Commit> {
        catch_unwind(AssertUnwindSafe(|| self.write(last, pending)))
            .unwrap_or_else(|_| Err(Error::io("commit")(std::io::Error::other("the engine panicked"))))
    }

    fn write(&self, last: Commit, pending: &mut [Pending]) -> Result<Commit> {
        let mut commit = Commit { number: last.number + 1, ..last };
        let (mut batch, mut rewrites) = (Batch::default(), false);
        // Most writes are a record, a head, and a move in the list.
        batch.ops.reserve(4 * pending.len() + 1);
        let mut heads: HashMap<ConversationId, Change> = HashMap::new();
        for pending in pending {
            if let Some(Unsealed { conversation, first_seq, mut header, body }) = pending.record.take() {
                header.commit = commit.number;
                let (key, value) = record::seal_record(conversation, first_seq, &header, body)?;
                batch.put(key, value);
            }
            batch.ops.append(&mut pending.ops);
            rewrites |= pending.rewrites || pending.before.as_ref().is_some_and(|head| head.size() > LARGE_BYTES / 2);
            if let Some((id, head)) = &pending.head {
                commit.count(pending.before.as_deref(), head.as_deref());
                let change = heads.entry(*id).or_insert_with(|| Change { before: pending.before.clone(), after: None });
                change.after.clone_from(head);
            }
        }
        if batch.ops.is_empty() && heads.is_empty() {
            return Ok(last);
        }
        for (id, Change { before, after }) in heads {
            move_in_indexes(id, before.as_deref(), after.as_deref(), &mut batch);
            let key = key::head(id);
            match after {
                Some(head) => {
                    let value = record::seal(&key, &*head)?;
                    batch.put(key, value);
                }
                None => batch.remove(key),
            }
        }
        let key = key::meta(key::COMMIT);
        let value = record::seal(&key, &commit)?;
        batch.put(key, value);
        if rewrites { self.engine.rewrite(batch) } else { self.engine.write(batch) }?;
        self.engine.sync()?;
        if let Some(directory) = self.engine.directory() {
            directory.watermark().set(commit.number)?;
        }
        Ok(commit)
    }
}

/// Moves a conversation in the indexes of conversations.
fn move_in_indexes(id: ConversationId, before: Option<&Head>, after: Option<&Head>, batch: &mut Batch) {
    if let (Some(before), Some(after)) = (before, after)
        && (&before.owner, &before.tags, is_unfinished(before), before.lag == Lag::default())
            == (&after.owner, &after.tags, is_unfinished(after), after.lag == Lag::default())
    {
        // Most writes only make it the newest, or not even that.
        if listed_micros(before.listed()) != listed_micros(after.listed()) {
            let owner = after.owner_digest();
            batch.remove(key::index(&owner, listed_micros(before.listed()), id));
            batch.put(key::index(&owner, listed_micros(after.listed()), id), Vec::new());
        }
        return;
    }
    let keys = |head: Option<&Head>| head.map(|head| index_keys(id, head)).unwrap_or_default();
    let (old, new) = (keys(before), keys(after));
    old.iter().filter(|key| !new.contains(key)).for_each(|key| batch.remove(key.clone()));
    new.into_iter().filter(|key| !old.contains(key)).for_each(|key| batch.put(key, Vec::new()));
}
