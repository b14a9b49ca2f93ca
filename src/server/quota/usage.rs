//! What each owner has stored, and what may be added.

use std::collections::HashMap;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::log::locked;

/// How long a count is good: what else changes what is stored, a redaction or another server, is seen then.
const FRESH: Duration = Duration::from_secs(3_600);
/// What is kept beside an owner's conversations may go past the limit by a part of it, and so many bytes.
const BESIDE_PART: u64 = 16;
const BESIDE: u64 = 64 * 1024;
/// How long a write waits for the first count of its owner.
const PATIENCE: Duration = Duration::from_secs(2);

/// Bytes of entries, and conversations. As a limit, 0 means none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) bytes: u64,
    pub(super) conversations: u64,
}

impl Amount {
    pub(super) const fn add(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.conversations = self.conversations.saturating_add(other.conversations);
    }

    const fn subtract(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_sub(other.bytes);
        self.conversations = self.conversations.saturating_sub(other.conversations);
    }
}

/// What one owner has.
#[derive(Debug, Default)]
struct Usage {
    now: Amount,
    /// When it was counted. None: never, and nothing is known.
    counted: Option<Instant>,
    is_counting: bool,
    /// What was added since the count under way began: it may have seen it or not.
    meanwhile: Amount,
}

/// What the owners have that wrote since the server began.
#[derive(Debug)]
pub(super) struct Usages {
    most: Amount,
    owners: Mutex<HashMap<String, Usage>>,
    counted: Condvar,
    /// To whom counts. None once the log is closed.
    queue: Mutex<Option<Sender<String>>>,
}

/// Room that was taken. What is not kept is given back.
#[derive(Debug)]
pub(super) struct Taken<'a> {
    usages: &'a Usages,
    owner: String,
    amount: Amount,
}

impl Usages {
    pub(super) fn new(most: Amount, queue: Sender<String>) -> Arc<Self> {
        Arc::new(Self { most, owners: Mutex::default(), counted: Condvar::new(), queue: Mutex::new(Some(queue)) })
    }

    /// The limits.
    pub(super) const fn most(&self) -> Amount {
        self.most
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Usage>> {
        locked(&self.owners)
    }

    /// Asks for a count.
    fn ask(&self, owner: &str) -> bool {
        let queue = locked(&self.queue);
        queue.as_ref().is_some_and(|queue| queue.send(owner.to_owned()).is_ok())
    }

    /// No more counts.
    pub(super) fn stop(&self) {
        locked(&self.queue).take();
        self.counted.notify_all();
    }

    /// Takes room for what will be written, if there is any. The first write of an owner waits for the owner's count.
    pub(super) fn take(&self, owner: &str, amount: Amount) -> Result<Taken<'_>> {
        self.take_of(owner, amount, self.most)
    }

    /// As [`Usages::take`], for what is kept beside the owner's conversations: a little more fits, so that it can be noted that a
    /// call does not.
    /// What ends something that was noted finds as much again: what was begun can be ended.
    pub(super) fn take_beside(&self, owner: &str, bytes: u64, ends: bool) -> Result<Taken<'_>> {
        let more = (self.most.bytes / BESIDE_PART + BESIDE) * if ends { 2 } else { 1 };
        let bytes_limit = if self.most.bytes > 0 { self.most.bytes.saturating_add(more) } else { 0 };
        self.take_of(owner, Amount { bytes, conversations: 0 }, Amount { bytes: bytes_limit, ..self.most })
    }

    fn take_of(&self, owner: &str, amount: Amount, most: Amount) -> Result<Taken<'_>> {
        let until = Instant::now() + PATIENCE;
        let mut owners = self.lock();
        loop {
            let usage = owners.entry(owner.to_owned()).or_default();
            if !usage.is_counting && usage.counted.is_none_or(|at| at.elapsed() > FRESH) {
                usage.meanwhile = Amount::default();
                usage.is_counting = self.ask(owner);
            }
            if usage.counted.is_some() {
                check(usage.now, amount, most)?;
                usage.now.add(amount);
                usage.meanwhile.add(amount);
                return Ok(Taken { usages: self, owner: owner.to_owned(), amount });
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || !usage.is_counting {
                return Err(Error::Busy("what the owner has stored is being counted; try again".to_owned()));
            }
            owners = self.counted.wait_timeout(owners, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Whether an owner's count is known, so that it has to be kept right.
    pub(super) fn is_counted(&self, owner: &str) -> bool {
        self.lock().get(owner).is_some_and(|usage| usage.counted.is_some())
    }

    /// More is stored than before, whether there was room or not.
    pub(super) fn add(&self, owner: &str, amount: Amount) {
        if let Some(usage) = self.lock().get_mut(owner) {
            usage.now.add(amount);
            usage.meanwhile.add(amount);
        }
    }

    /// Less is stored than before.
    pub(super) fn give_back(&self, owner: &str, amount: Amount) {
        if let Some(usage) = self.lock().get_mut(owner) {
            usage.now.subtract(amount);
            usage.meanwhile.subtract(amount);
        }
    }

    /// What was counted. Without it, the next write asks again.
    pub(super) fn set(&self, owner: &str, counted: Option<Amount>) {
        if let Some(usage) = self.lock().get_mut(owner) {
            usage.is_counting = false;
            if let Some(mut amount) = counted {
                amount.add(usage.meanwhile);
                (usage.now, usage.counted) = (amount, Some(Instant::now()));
            }
        }
        self.counted.notify_all();
    }

    #[cfg(test)]
    pub(super) fn now(&self, owner: &str) -> Option<Amount> {
        self.lock().get(owner).map(|usage| usage.now)
    }
}

fn check(now: Amount, added: Amount, most: Amount) -> Result<()> {
    let limits = [
        ("what one owner stores (limits.owner_bytes)", now.bytes, added.bytes, most.bytes, "bytes"),
        (
            "the conversations of one owner (limits.owner_conversations)",
            now.conversations,
            added.conversations,
            most.conversations,
            "conversations",
        ),
    ];
    for (what, now, added, limit, unit) in limits {
        let actual = now.saturating_add(added);
        if limit > 0 && added > 0 && actual > limit {
            let (actual, limit) = (format!("{actual} {unit}"), format!("{limit} {unit}"));
            return Err(Error::LimitExceeded { what, actual, limit });
        }
    }
    Ok(())
}

impl Taken<'_> {
    /// So much of it was written.
    pub(super) fn keep(mut self, written: Amount) {
        self.amount.subtract(written);
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if self.amount != Amount::default() {
            self.usages.give_back(&self.owner, self.amount);
        }
    }
}
