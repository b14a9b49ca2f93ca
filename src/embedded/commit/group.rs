//! Group commit: a thread that finds no leader leads, and commits what others have queued too.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::task::Waker;

use super::Committer;
use crate::embedded::engine::{Batch, LARGE_BYTES};
use crate::embedded::state::{Pending, Signal, State, Unsealed, Waiter};
use crate::embedded::sync::{self, MutexGuard};
use crate::error::{Error, Result};
use crate::model::ConversationId;
use crate::record::{self, Commit, Head, Lag, index_keys, is_unfinished, key, listed_micros};

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
