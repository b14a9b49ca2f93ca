//! What belongs to no conversation, or to one that is gone.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::conversation::readable;
use crate::embedded::core::Core;
use crate::embedded::engine::Order;
use crate::embedded::stored::damage::damage_of;
use crate::embedded::stored::forks::Fault;
use crate::embedded::stored::segments::Segment;
use crate::error::Result;
use crate::log::{Problem, Verification};
use crate::model::ConversationId;
use crate::record::index_keys;
use crate::record::{Tombstone, key};

/// What belongs to a conversation's records.
const DEPENDENTS: &[(u8, &str)] = &[
    (key::RECORD, "it has records, but no head"),
    (key::RECEIPT, "it has idempotency records, but no head"),
    (key::ITEM, "it is in the index of item ids, but has no head"),
];

impl Core {
    /// The entries of deleted conversations that forks read.
    pub(crate) fn verify_deleted(&self, found: &mut Verification) -> Result<()> {
        for id in self.ids(key::TOMBSTONE)? {
            let mut passing = Verification::default();
            self.verify_shared(id, &mut passing)?;
            if !passing.problems.is_empty() {
                self.settled(id, || self.verify_shared(id, found))?;
            }
        }
        Ok(())
    }

    fn verify_shared(&self, id: ConversationId, found: &mut Verification) -> Result<()> {
        let key = key::tombstone(id);
        let Some(value) = self.engine.get(&key)? else { return Ok(()) };
        readable(id, Tombstone::open(&key, &value), found)?;
        let Some(tombstone) = readable(id, self.tombstone(id), found)?.flatten() else {
            found.problems.push(Problem::of(id, "its tombstone is of an earlier conversation of the same name"));
            return Ok(());
        };
        let Some(last) = self.forks(id)?.into_iter().map(|fork| fork.at_seq).max() else { return Ok(()) };
        let first = tombstone.first_seq();
        let through = u64::MAX;
        let shared = Segment { conversation: id, first, last, incarnation: tombstone.incarnation, through };
        self.verify_records(shared, None, found).map(|_| ())
    }

    pub(crate) fn verify_fork_points(&self, found: &mut Verification) -> Result<()> {
        for (parent, child) in self.doubtful_fork_points()? {
            // A fork may just have been created, or deleted.
            let _held = self.hold(&[parent, child])?;
            found.problems.extend(self.fork_point_fault(parent, child)?.map(|fault| match fault {
                Fault::Missing(_) => Problem::of(child, "the conversation that it was forked from does not know of it"),
                Fault::Stray => Problem::of(parent, format!("it knows of the fork {child}, which is not there")),
            }));
        }
        Ok(())
    }

    pub(crate) fn verify_indexes(&self, found: &mut Verification) -> Result<()> {
        for kind in key::INDEXES {
            self.verify_index(kind, found)?;
        }
        Ok(())
    }

    fn verify_index(&self, kind: u8, found: &mut Verification) -> Result<()> {
        let mut odd = Vec::new();
        let mut result = Ok(());
        self.engine.scan(&[kind]..&key::after(&[kind]), Order::Ascending, &mut |key, value| {
            let Some(id) = key::conversation(key) else {
                found.problems.push(Problem::of_store("a key of an index of conversations cannot be read"));
                return ControlFlow::Continue(());
            };
            if !value.is_empty() {
                found.problems.push(Problem::of(id, "its place in an index of conversations is damaged"));
            }
            match damage_of(self.head_for_list(id)) {
                Ok(Ok(Some(head))) if index_keys(id, &head).iter().any(|index| *index == *key) => {}
                Ok(_) => odd.push((key.to_vec(), id)),
                Err(error) => {
                    result = Err(error);
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        })?;
        result?;
        for (key, id) in odd {
            self.settled(id, || {
                let Some(head) = readable(id, self.head_for_list(id), found)? else { return Ok(()) };
                let detail = match (self.engine.get(&key)?, head) {
                    (None, _) => return Ok(()),
                    (_, Some(head)) if index_keys(id, &head).contains(&key) => return Ok(()),
                    (_, Some(_)) => "its place in an index of conversations is wrong",
                    (_, None) => "it is in an index of conversations, but has no head",
                };
                found.problems.push(Problem::of(id, detail));
                Ok(())
            })?;
        }
        Ok(())
    }

    /// `heads`: the conversations that were checked.
    pub(crate) fn verify_orphans(&self, heads: &BTreeSet<ConversationId>, found: &mut Verification) -> Result<()> {
        for (kind, detail) in DEPENDENTS {
            for id in self.ids(*kind)?.difference(heads) {
                self.settled(*id, || {
                    let has_head = self.engine.get(&key::head(*id))?.is_some();
                    let is_deleted = self.engine.get(&key::tombstone(*id))?.is_some();
                    if !has_head && !is_deleted && self.has_any(&key::prefix(*kind, *id))? {
                        found.problems.push(Problem::of(*id, *detail));
                    }
                    Ok(())
                })?;
            }
        }
        Ok(())
    }
}
