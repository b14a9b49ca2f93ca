//! Changes to whole conversations, and to those that share entries: forks, deletion, redaction.
//!
//! Each of them holds its conversation and all that it shares entries with ([`Families::hold`]), then freezes the one that
//! it changes ([`Families::freeze`]): a head that nobody moves. To add one: a file with one public method, that does both
//! in this order.

mod delete;
mod fork;
mod frozen;
mod redact;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};

use crate::embedded::appending::Numbering;
use crate::embedded::catalogue::Catalogue;
use crate::embedded::commit::Committer;
use crate::embedded::engine::{Batch, Engine};
use crate::embedded::stored::{self, Fault, Standing, damage_of};
use crate::embedded::sync::{Condvar, Mutex};
use crate::error::Result;
use crate::model::ConversationId;
use crate::record::{self, Parent, key};

pub(crate) use frozen::Rewritten;

/// Changes whole conversations.
#[derive(Debug)]
pub(crate) struct Families {
    engine: Arc<dyn Engine>,
    commit: Arc<Committer>,
    catalogue: Arc<Catalogue>,
    numbering: Numbering,
    /// The conversations that are being forked, deleted or redacted.
    holds: Holds,
    /// Whether every fork is known to its parent: checked since the store was opened.
    proved: AtomicBool,
    /// How many deletions were begun since the store was opened.
    deletions: AtomicU64,
    /// How many of them have not ended.
    deleting: AtomicU64,
}

/// The conversations that are held, each with those that it reads entries of: of two that share entries, both have the
/// one whose entries these are.
#[derive(Debug, Default)]
struct Holds {
    held: Mutex<HashSet<ConversationId>>,
    released: Condvar,
}

impl Holds {
    /// Waits until none of these is held, then holds all of them.
    fn hold(&self, members: HashSet<ConversationId>) -> Held<'_> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        while !held.is_disjoint(&members) {
            held = self.released.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        held.extend(&members);
        Held { holds: self, members }
    }
}

/// Conversations that are held until the value is dropped.
pub(crate) struct Held<'a> {
    holds: &'a Holds,
    members: HashSet<ConversationId>,
}

#[cfg(test)]
impl Held<'_> {
    pub(crate) fn has(&self, id: ConversationId) -> bool {
        self.members.contains(&id)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut held = self.holds.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|id| !self.members.contains(id));
        drop(held);
        self.holds.released.notify_all();
    }
}

type Write<'a> = &'a mut dyn FnMut(Batch) -> Result<()>;

impl Families {
    pub(crate) fn new(
        engine: Arc<dyn Engine>,
        commit: Arc<Committer>,
        catalogue: Arc<Catalogue>,
        numbering: Numbering,
    ) -> Self {
        Self {
            engine,
            commit,
            catalogue,
            numbering,
            holds: Holds::default(),
            proved: AtomicBool::new(false),
            deletions: AtomicU64::new(0),
            deleting: AtomicU64::new(0),
        }
    }

    /// Waits for the forks, deletions and redactions of these conversations, and of all that share entries with them;
    /// lets no other begin until the value is dropped. The caller holds none yet.
    pub(crate) fn hold(&self, ids: &[ConversationId]) -> Result<Held<'_>> {
        let look = || ids.iter().map(|id| self.beginning(*id)).collect::<Result<Vec<_>>>();
        loop {
            let beginnings = look()?;
            let mut members: HashSet<ConversationId> = ids.iter().copied().collect();
            for (_, parent) in beginnings.iter().flatten() {
                let mut parent = *parent;
                while let Some(shared) = parent.filter(|parent| parent.at_seq > 0) {
                    members.insert(shared.id());
                    parent = stored::grandparent(&*self.engine, shared)?;
                }
            }
            let held = self.holds.hold(members);
            // Meanwhile one may have been deleted, and another one created under its name.
            if look()? == beginnings {
                return Ok(held);
            }
        }
    }

    /// The incarnation and the parent of a conversation, as far as anything states them.
    fn beginning(&self, id: ConversationId) -> Result<Option<(u64, Option<Parent>)>> {
        if let Ok(Some(head)) = damage_of(self.catalogue.published_head(id))? {
            return Ok(Some((head.incarnation, head.parent)));
        }
        Ok(match damage_of(stored::standing(&*self.engine, id))? {
            Ok(Standing::Alive(head)) => Some((head.incarnation, head.parent)),
            Ok(Standing::Deleted(tombstone)) => Some((tombstone.incarnation, tombstone.parent)),
            Ok(Standing::Vacant) => None,
            Err(_) => {
                let origin = stored::origin(&*self.engine, id)?.and_then(|header| header.origin);
                origin.map(|origin| (origin.incarnation, origin.parent))
            }
        })
    }

    /// Repairs the fork points, once per opening: before anything is erased that a fork may read. `write`: how. The caller
    /// holds no conversation.
    fn prove_fork_points(&self, write: Write<'_>) -> Result<()> {
        if self.proved.load(Ordering::Acquire) {
            return Ok(());
        }
        for (parent, child) in stored::doubtful_fork_points(&*self.engine)? {
            let _held = self.hold(&[parent, child])?;
            let key = key::fork(parent, child);
            let mut batch = Batch::default();
            match stored::fork_point_fault(&*self.engine, parent, child)? {
                Some(Fault::Missing(point)) => {
                    let value = record::seal(&key, &point)?;
                    batch.put(key, value);
                }
                Some(Fault::Stray) => batch.remove(key),
                None => continue,
            }
            write(batch)?;
        }
        self.proved.store(true, Ordering::Release);
        Ok(())
    }
}
