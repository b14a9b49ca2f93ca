//! Locks for conversations: an append of items that looks before it adds excludes other appends to the same
//! conversation.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::model::ConversationId;

/// Two conversations rarely share a lock, and then only wait for each other.
const STRIPES: usize = 256;

/// The locks.
#[derive(Debug)]
pub(crate) struct Stripes(Vec<RwLock<()>>, RwLock<()>);

impl Default for Stripes {
    fn default() -> Self {
        Self((0..STRIPES).map(|_| RwLock::default()).collect(), RwLock::default())
    }
}

impl Stripes {
    /// For an append that adds regardless of what is stored: others may do so at the same time.
    pub(crate) fn shared(&self, id: ConversationId) -> RwLockReadGuard<'_, ()> {
        self.of(id).read().unwrap_or_else(PoisonError::into_inner)
    }

    /// For an append that looks first: nobody else adds meanwhile.
    pub(crate) fn alone(&self, id: ConversationId) -> RwLockWriteGuard<'_, ()> {
        self.of(id).write().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, id: ConversationId) -> &RwLock<()> {
        // The last bytes of every id are random, or a hash.
        let [.., last] = id.as_bytes();
        self.0.get(usize::from(*last)).unwrap_or(&self.1)
    }
}
