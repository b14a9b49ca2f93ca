//! Who follows conversations, and what a follower finds.

use std::collections::HashMap;
use std::task::Waker;

use super::contract::Wait;
use crate::model::ConversationId;

/// Followers that are woken when something is published.
#[derive(Debug, Default)]
pub(crate) struct Followers {
    waiting: HashMap<ConversationId, HashMap<u64, Waker>>,
    /// To be woken once nobody holds the lock.
    woken: Vec<Waker>,
}

impl Followers {
    /// Notes who is to be woken when there is something new.
    /// Gives the waker that it had, which is to be dropped without a lock.
    pub(crate) fn add(&mut self, id: ConversationId, follower: u64, waker: Waker) -> Option<Waker> {
        self.waiting.entry(id).or_default().insert(follower, waker)
    }

    /// Lets those who follow a conversation look again.
    pub(crate) fn notify(&mut self, id: ConversationId) {
        if !self.waiting.is_empty()
            && let Some(waiting) = self.waiting.remove(&id)
        {
            self.woken.extend(waiting.into_values());
        }
    }

    /// Lets all look again.
    pub(crate) fn notify_all(&mut self) {
        self.woken.extend(self.waiting.drain().flat_map(|(_, waiting)| waiting.into_values()));
    }

    /// Forgets one: gives what wakes it.
    pub(crate) fn forget(&mut self, id: ConversationId, follower: u64) -> Option<Waker> {
        let waiting = self.waiting.get_mut(&id)?;
        let waker = waiting.remove(&follower);
        if waiting.is_empty() {
            self.waiting.remove(&id);
        }
        waker
    }

    /// Those who are to be woken, without the lock.
    pub(crate) fn take_woken(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.woken)
    }
}

/// What a follower finds.
pub(crate) enum News {
    /// The conversation was deleted.
    Gone,
    /// There are entries after the last one that is known.
    Some,
    /// The store is closed.
    Closed,
    None,
}

impl News {
    /// What there is in a conversation, given by its incarnation and its next seq.
    pub(crate) fn of(head: Option<(u64, u64)>, wait: &Wait<'_>, is_closed: bool) -> Self {
        match head.filter(|(incarnation, _)| *incarnation == wait.incarnation) {
            None => Self::Gone,
            Some((_, next_seq)) if next_seq > wait.seq.saturating_add(1) => Self::Some,
            Some(_) if is_closed => Self::Closed,
            Some(_) => Self::None,
        }
    }
}
