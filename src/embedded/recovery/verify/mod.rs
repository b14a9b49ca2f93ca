//! Everything that can be derived is derived again, and compared.

mod conversation;
mod whole;

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::embedded::commit::state::UNMARKED;
use crate::embedded::core::Core;
use crate::embedded::engine::Order;
use crate::embedded::stored::damage::damage_of;
use crate::error::{Error, Result};
use crate::log::{Problem, Verification};
use crate::model::ConversationId;
use crate::record::{Commit, key};

impl Core {
    /// Checks the store as it is durable now. `progress` is called with the number of conversations done, and of all.
    pub(crate) fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Verification> {
        self.sync()?;
        let before = self.lock().commit;
        let mut counted = Commit { number: before.number, ..Commit::default() };
        let mut found = Verification::default();
        if let Some((from, to)) = self.health.went_back {
            found.problems.push(Problem::of_store(Error::WentBack { from, to }.to_string()));
        }
        if self.health.watermark_lost {
            found.problems.push(Problem::of_store(UNMARKED));
        }
        found.problems.extend(self.health.damage.iter().map(Problem::of_store));
        let ids = self.ids(key::HEAD)?;
        let all = ids.len() as u64;
        for id in &ids {
            let head = self.verify_conversation(*id, &mut found)?;
            counted.count(None, head.as_ref());
            found.conversations += 1;
            progress(found.conversations, all);
        }
        self.verify_deleted(&mut found)?;
        self.verify_indexes(&mut found)?;
        self.verify_fork_points(&mut found)?;
        self.verify_orphans(&ids, &mut found)?;
        if self.lock().commit == before && counted != before {
            found.problems.push(Problem::of_store(format!(
                "it holds {} conversations with {} entries, and was left with {} and {}: something is missing, or back, \
                 that left no other trace",
                counted.conversations, counted.entries, before.conversations, before.entries
            )));
        }
        Ok(found)
    }

    /// The conversations that have a key of this kind.
    pub(crate) fn ids(&self, kind: u8) -> Result<BTreeSet<ConversationId>> {
        let mut ids = BTreeSet::new();
        // Skips from one conversation to the next, past its other keys.
        let mut start = vec![kind];
        let end = key::after(&[kind]);
        loop {
            let mut next = None;
            self.engine.keys(&start..&end, Order::Ascending, &mut |key, _| {
                next = key::parse_id(key);
                ControlFlow::Break(())
            })?;
            let Some(id) = next else { return Ok(ids) };
            ids.insert(id);
            start = key::after(&key::prefix(kind, id));
        }
    }

    /// Checks again, while nothing is written to a conversation: the first look may have met half of a change.
    fn settled<T>(&self, id: ConversationId, look: impl FnOnce() -> Result<T>) -> Result<T> {
        let _held = self.hold(&[id])?;
        let is_read_only = self.lock().blocked.is_some();
        // A conversation that nothing identifies is not written to either.
        let _frozen = if is_read_only { None } else { damage_of(self.freeze(id))?.ok() };
        look()
    }
}
