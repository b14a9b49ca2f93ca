//! Who is to be woken, and when.

use std::collections::HashMap;
use std::task::Waker;

use crate::model::ConversationId;

/// Followers that are woken when something is published.
#[derive(Debug, Default)]
pub(super) struct Followers {
    pub(super) waiting: HashMap<ConversationId, HashMap<u64, Waker>>,
    /// Those that are woken once nobody holds the lock.
    woken: Vec<Waker>,
}

impl Followers {
    /// Wakes the followers of a conversation.
    pub(super) fn notify(&mut self, id: ConversationId) {
        if !self.waiting.is_empty()
            && let Some(waiting) = self.waiting.remove(&id)
        {
            self.woken.extend(waiting.into_values());
        }
    }

    pub(super) fn notify_all(&mut self) {
        self.woken.extend(self.waiting.drain().flat_map(|(_, waiting)| waiting.into_values()));
    }

    pub(super) fn forget(&mut self, id: ConversationId, follower: u64) -> Option<Waker> {
        let waiting = self.waiting.get_mut(&id)?;
        let waker = waiting.remove(&follower);
        if waiting.is_empty() {
            self.waiting.remove(&id);
        }
        waker
    }

    /// Takes those that are to be woken, so that they are woken without the lock.
    pub(super) fn take_woken(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.woken)
    }
}
