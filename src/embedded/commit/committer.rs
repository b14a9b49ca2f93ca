//! Group commit: a thread that finds no leader leads, and commits what others have queued too.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::task::Waker;
use std::time::Duration;

use crate::embedded::catalogue::indexes::move_in_indexes;
use crate::embedded::commit::state::{Pending, Room, Signal, State, Unsealed, Waiter};
use crate::embedded::core::Core;
use crate::embedded::engine::{Batch, LARGE_BYTES};
use crate::embedded::sync::{self, MutexGuard};
use crate::error::{Error, Result};
use crate::model::ConversationId;
use crate::record::{self, Commit, Head, key};

/// The longest time that a commit waits for more writers; never more than a quarter of the commit before it.
const PATIENCE: Duration = Duration::from_micros(200);

/// A conversation's head before a commit, and after it.
struct Change {
    before: Option<Arc<Head>>,
    after: Option<Arc<Head>>,
}

impl Core {
    /// Queues what is collected, and commits what has waited for a window, unless another thread commits already. For
    /// the background thread: it waits for nothing but the engine.
    pub(crate) fn tick(&self) {
        // The writers get the error at their next call.
        let _ = self.queue_collected(Room::Bounded);
        let mut state = self.lock();
        state.due = state.queue.len();
        if !state.led && state.due > 0 {
            state.led = true;
            drop(state);
            // Those who wait get the error.
            let _ = self.lead(None);
        }
    }

    /// Commits batch by batch until the thread's own write is durable; a thread without one commits a single batch.
    pub(crate) fn lead(&self, own: Option<&Waiter>) -> Result<()> {
        loop {
            let mut state = self.gather();
            let mut batch = state.take();
            state.moves.begin(batch.iter().filter_map(|pending| pending.head.as_ref().map(|(id, _)| *id)));
            let begun = batch.len();
            let last = state.commit;
            drop(state);
            let start = sync::now();
            let result = self.commit(last, &mut batch);
            let taken = sync::now() - start;
            let mut state = self.lock();
            state.crowd = batch.iter().chain(&state.queue).filter(|pending| pending.waiter.is_some()).count();
            state.patience = (taken / 4).min(PATIENCE);
            match &result {
                Ok(commit) => {
                    state.moves.end();
                    state.commit = *commit;
                    state.publish(&mut batch);
                }
                Err(error) => batch = state.fail(batch, error.to_string()),
            }
            let is_own = |waiter: &Waiter| own.is_some_and(|own| std::ptr::eq(own, waiter));
            let own_at = batch.iter().position(|pending| pending.waiter.as_deref().is_some_and(is_own));
            let next = state.queue.iter().find_map(|pending| pending.waiter.clone());
            let stop = own.is_none() || own_at.is_some() || state.queue.is_empty();
            if stop {
                state.led = next.is_some();
            }
            let held_back = state.held_back && !state.is_full();
            state.held_back &= !held_back;
            let late = stop && next.is_none() && state.due > 0;
            let (tailing, waiting) = (state.tailing > 0, state.waiting > 0);
            let woken = state.followers.take_woken();
            drop(state);
            // The next leader is woken first, so that it commits while the others wake up.
            if let Some(next) = next.filter(|_| stop) {
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
        if state.is_gathered() {
            return state;
        }
        state.gathers = true;
        let patience = state.patience;
        let gathered = self.gathered.wait_timeout_while(state, patience, |state| !state.is_gathered());
        let (mut state, _) = gathered.unwrap_or_else(PoisonError::into_inner);
        state.gathers = false;
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
        self.beside().note(commit.number).map(|()| commit)
    }
}
