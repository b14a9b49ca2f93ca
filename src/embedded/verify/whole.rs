//! What belongs to no conversation, or to one that is gone.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::super::core::Core;
use super::super::place::index_keys;
use super::super::segments::Segment;
use super::conversation::told;
use crate::embedded::engine::Order;
use crate::error::{Error, Result};
use crate::log::{Problem, Verification};
use crate::model::ConversationId;
use crate::record::key;

/// What hangs on a conversation's records.
const DEPENDENTS: &[(u8, &str)] = &[
    (key::RECORD, "it has records, but no head"),
    (key::RECEIPT, "it has idempotency records, but no head"),
    (key::ITEM, "it stands in the index of item ids, but has no head"),
];

impl Core {
    /// The entries of deleted conversations that forks read.
    pub(super) fn verify_deleted(&self, found: &mut Verification) -> Result<()> {
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
        let Some(tombstone) = told(id, self.tombstone(id), found)?.flatten() else { return Ok(()) };
        let forks = told(id, self.forks(id), found)?.unwrap_or_default();
        let Some(last) = forks.into_iter().map(|(_, at_seq)| at_seq).max() else { return Ok(()) };
        let first = tombstone.first_seq();
        self.verify_records(Segment { conversation: id, first, last }, None, found).map(|_| ())
    }

    pub(super) fn verify_index(&self, found: &mut Verification) -> Result<()> {
        let mut odd = Vec::new();
        let mut result = Ok(());
        let prefix = [key::INDEX];
        self.engine.keys(&prefix..&key::after(&prefix), Order::Ascending, &mut |key, _| {
            let Some((_, _, id)) = key::parse_index(key) else {
                found.problems.push(Problem::of_store("a key of the listing index cannot be read"));
                return ControlFlow::Continue(());
            };
            match self.head_for_list(id) {
                Ok(Some(head)) if index_keys(id, &head).iter().any(|index| *index == *key) => {}
                Ok(_) => odd.push((key.to_vec(), id)),
                Err(Error::Corrupt { .. } | Error::UnsupportedVersion { .. }) => {}
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
                let Some(head) = told(id, self.stored_head(id), found)? else { return Ok(()) };
                let detail = match (self.engine.get(&key)?, head) {
                    (None, _) => return Ok(()),
                    (_, Some(head)) if index_keys(id, &head).contains(&key) => return Ok(()),
                    (_, Some(_)) => "it stands in the listing index at a wrong place",
                    (_, None) => "it stands in the listing index, but has no head",
                };
                found.problems.push(Problem::of(id, detail));
                Ok(())
            })?;
        }
        Ok(())
    }

    /// `heads`: the conversations that were looked at.
    pub(super) fn verify_orphans(&self, heads: &BTreeSet<ConversationId>, found: &mut Verification) -> Result<()> {
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
