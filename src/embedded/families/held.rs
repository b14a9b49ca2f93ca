//! Which conversations are being forked, deleted or redacted. Those that share entries wait for one another, and for
//! no other.

use std::collections::HashSet;
use std::sync::PoisonError;

use crate::embedded::sync::{Condvar, Mutex};
use crate::model::ConversationId;

/// The conversations that are held, each with those that it reads entries of: of two that share entries, both have the
/// one whose entries these are.
#[derive(Debug, Default)]
pub(crate) struct Families {
    held: Mutex<HashSet<ConversationId>>,
    released: Condvar,
}

impl Families {
    /// Waits until none of these is held, then holds all of them.
    pub(crate) fn hold(&self, members: HashSet<ConversationId>) -> Held<'_> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        while !held.is_disjoint(&members) {
            held = self.released.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        held.extend(&members);
        Held { families: self, members }
    }
}

/// Conversations that are held until the value is dropped.
pub(crate) struct Held<'a> {
    families: &'a Families,
    members: HashSet<ConversationId>,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut held = self.families.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|id| !self.members.contains(id));
        drop(held);
        self.families.released.notify_all();
    }
}
