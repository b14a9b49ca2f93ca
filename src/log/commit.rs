//! Group commit: whoever finds nobody leading leads, and takes along what has queued up.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::core::{COMMIT, Core};
use super::options::{Durability, Receipt};
use super::place::Placed;
use super::state::{CLOSED, Pending, Signal, State, Unsealed, Waiter};
use crate::error::{Error, Result};
use crate::log::engine::{Batch, Directory};
use crate::model::ConversationId;
use crate::record::{self, Commit, Head, key};

/// Bytes that may wait in the queue before a buffered append blocks.
const QUEUE_BYTES: usize = 32 * 1024 * 1024;
/// At most this many appends in one commit.
const COMMIT_APPENDS: usize = 256;
/// At most this many bytes in one commit, unless a single append has more.
const COMMIT_BYTES: usize = 128 * 1024;

/// A commit of so many appends waits for no more: their own work takes longer by then than the disk.
const COMPANY: usize = 16;
/// The longest that a commit waits for company; never more than a quarter of the commit before it.
const PATIENCE: Duration = Duration::from_micros(200);

impl Core {
    /// The state, once the conversation, which is pinned, may be written.
    pub(super) fn writable(&self, id: ConversationId, durability: Durability) -> Result<MutexGuard<'_, State>> {
        let mut state = self.lock();
        loop {
            state.check_writable()?;
            let full = durability == Durability::Buffered && state.queued_bytes > QUEUE_BYTES;
            if !full && !state.slot(id).frozen {
                return Ok(state);
            }
            if full {
                self.ticker.hurry();
            }
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Queues a write that has its place, and returns at once, or when it is durable.
    pub(super) fn queue(
        &self,
        mut state: MutexGuard<'_, State>,
        placed: Placed,
        durability: Durability,
    ) -> Result<Receipt> {
        let Placed { pending, mut receipt, .. } = placed;
        match durability {
            Durability::Durable => self.queue_durable(state, pending)?,
            Durability::Buffered => self.queue_buffered(&mut state, pending),
        }
        receipt.durable = durability == Durability::Durable;
        Ok(receipt)
    }

    /// Queues a write and returns; it becomes durable within the window.
    fn queue_buffered(&self, state: &mut State, pending: Pending) {
        state.push(pending);
        self.ticker.wake();
    }

    /// Queues a write and returns once it is durable.
    pub(super) fn queue_durable(&self, mut state: MutexGuard<'_, State>, mut pending: Pending) -> Result<()> {
        let waiter = Waiter::new();
        pending.waiter = Some(Arc::clone(&waiter));
        state.push(pending);
        if state.led {
            let wake = state.gathers && state.is_gathered(COMPANY, COMMIT_BYTES);
            drop(state);
            if wake {
                self.gathered.notify_one();
            }
        } else {
            state.led = true;
            drop(state);
            waiter.tell(Signal::Lead);
        }
        self.wait(&waiter)
    }

    fn wait(&self, waiter: &Waiter) -> Result<()> {
        match waiter.wait() {
            Signal::Done => Ok(()),
            Signal::Lead => self.lead(Some(waiter)),
            Signal::Failed => {
                let state = self.lock();
                let cause = state.poisoned.clone().unwrap_or_else(|| CLOSED.to_owned());
                Err(Error::Poisoned { cause })
            }
        }
    }

    /// Commits what is queued, as the thread of the ticker: unless somebody leads already.
    pub(super) fn lead_if_idle(&self) {
        let mut state = self.lock();
        if !state.led && !state.queue.is_empty() {
            state.led = true;
            drop(state);
            // Those who wait are told, and the ticker itself waits for nothing.
            let _ = self.lead(None);
        }
    }

    /// Commits batch by batch: until the own write is durable, or the queue is empty.
    fn lead(&self, own: Option<&Waiter>) -> Result<()> {
        loop {
            let mut state = self.gather();
            let mut batch = state.take(COMMIT_APPENDS, COMMIT_BYTES);
            let last = state.commit;
            drop(state);
            let start = Instant::now();
            let result = self.commit(last, &mut batch);
            let taken = start.elapsed();
            let mut state = self.lock();
            state.crowd = batch.iter().chain(&state.queue).filter(|pending| pending.waiter.is_some()).count();
            state.patience = (taken / 4).min(PATIENCE);
            let signal = match &result {
                Ok(commit) => {
                    state.commit = *commit;
                    state.publish(&mut batch);
                    Signal::Done
                }
                Err(error) => {
                    state.poisoned = Some(error.to_string());
                    batch.extend(state.queue.drain(..));
                    state.queued_bytes = 0;
                    Signal::Failed
                }
            };
            let own_is_done = batch
                .iter()
                .filter_map(|pending| pending.waiter.as_deref())
                .any(|waiter| own.is_some_and(|own| std::ptr::eq(own, waiter)));
            let next = state.queue.iter().find_map(|pending| pending.waiter.clone());
            let stop = own_is_done || state.queue.is_empty();
            if stop {
                state.led = next.is_some();
            }
            let (tailing, left) = (state.tailing > 0, !state.queue.is_empty());
            drop(state);
            // First the next leader, so that it commits while the others wake up.
            match next {
                Some(next) if stop => next.tell(Signal::Lead),
                None if stop && left => self.ticker.wake(),
                _ => {}
            }
            for waiter in batch.iter().filter_map(|pending| pending.waiter.as_deref()) {
                if !own.is_some_and(|own| std::ptr::eq(own, waiter)) {
                    waiter.tell(signal);
                }
            }
            self.room.notify_all();
            if tailing {
                self.published.notify_all();
            }
            if stop {
                return result.map(|_| ()).map_err(|error| Error::Poisoned { cause: error.to_string() });
            }
        }
    }

    /// The state, once those who waited for the last commit have written again, or were given the time to: what they
    /// write shares this commit then. Who writes alone waits for nobody.
    fn gather(&self) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        if state.is_gathered(COMPANY, COMMIT_BYTES) {
            return state;
        }
        state.gathers = true;
        let patience = state.patience;
        let gathered =
            self.gathered.wait_timeout_while(state, patience, |state| !state.is_gathered(COMPANY, COMMIT_BYTES));
        let (mut state, _) = gathered.unwrap_or_else(PoisonError::into_inner);
        state.gathers = false;
        state
    }

    /// Writes a batch behind the last commit, and syncs. Gives the commit that it is.
    fn commit(&self, last: Commit, pending: &mut [Pending]) -> Result<Commit> {
        let mut commit = Commit { number: last.number + 1, ..last };
        let mut batch = Batch::default();
        let mut heads: HashMap<ConversationId, Option<Arc<Head>>> = HashMap::new();
        for pending in pending {
            if let Some(Unsealed { conversation, first_seq, mut header, body }) = pending.record.take() {
                header.commit = commit.number;
                let values = record::seal_record(conversation, first_seq, &header, body)?;
                batch.ops.extend(values.into_iter().map(|(key, value)| (key, Some(value))));
            }
            batch.ops.append(&mut pending.ops);
            if let Some((id, head)) = &pending.head {
                commit.count(pending.before.as_deref(), head.as_deref());
                heads.insert(*id, head.clone());
            }
        }
        if batch.ops.is_empty() && heads.is_empty() {
            return Ok(last);
        }
        for (id, head) in heads {
            let key = key::head(id);
            match head {
                Some(head) => {
                    let value = record::seal(&key, &*head)?;
                    batch.put(key, value);
                }
                None => batch.remove(key),
            }
        }
        let key = key::meta(COMMIT);
        let value = record::seal(&key, &commit)?;
        batch.put(key, value);
        let write = || {
            self.engine.write(batch)?;
            self.engine.sync()?;
            let watermark = self.engine.directory().map(Directory::watermark);
            watermark.map_or(Ok(()), |watermark| watermark.set(commit.number)).map(|()| commit)
        };
        catch_unwind(AssertUnwindSafe(write))
            .unwrap_or_else(|_| Err(Error::io("commit")(std::io::Error::other("the engine panicked"))))
    }

    /// Returns once all that was queued before is durable.
    pub(super) fn sync(&self) -> Result<()> {
        let state = self.lock();
        if let Some(cause) = &state.poisoned {
            return Err(Error::Poisoned { cause: cause.clone() });
        }
        if state.queue.is_empty() && !state.led {
            return Ok(());
        }
        self.queue_durable(state, Pending::default())
    }
}
