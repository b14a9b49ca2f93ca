//! Which conversations read another one's entries. Fork points record it; the forks themselves prove it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use super::core::Core;
use super::damage::damage_of;
use super::heads::Standing;
use crate::embedded::engine::{Batch, Order};
use crate::error::Result;
use crate::model::ConversationId;
use crate::record::{self, ForkPoint, Head, Parent, key};

/// A conversation that reads another one's entries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader {
    pub(super) child: ConversationId,
    /// The last seq that it reads there; the highest number if damage hides it.
    pub(super) at_seq: u64,
}

/// What is wrong with the fork points.
#[derive(Debug, Default)]
pub(super) struct ForkPoints {
    /// Fork points that are missing or damaged, with their right values.
    pub(super) missing: Vec<(ConversationId, ConversationId, ForkPoint)>,
    /// Fork points of forks that do not exist.
    pub(super) stray: Vec<(ConversationId, ConversationId)>,
}

impl Core {
    /// The forks of this conversation, and the seq of each. A damaged fork point keeps everything.
    pub(super) fn forks(&self, id: ConversationId) -> Result<Vec<Reader>> {
        let prefix = key::prefix(key::FORK, id);
        let mut forks = Vec::new();
        self.engine.scan(&prefix..&key::after(&prefix), Order::Ascending, &mut |key, value| {
            let at_seq = ForkPoint::open(key, value).map_or(u64::MAX - 1, |point| point.at_seq);
            forks.extend(key::parse_fork(key).map(|child| Reader { child, at_seq }));
            ControlFlow::Continue(())
        })?;
        Ok(forks)
    }

    /// Compares all fork points with the forks. Cost: reading all heads.
    pub(super) fn check_fork_points(&self) -> Result<ForkPoints> {
        let mut noted: BTreeMap<(ConversationId, ConversationId), Option<ForkPoint>> = BTreeMap::new();
        self.engine.scan(&[key::FORK]..&key::after(&[key::FORK]), Order::Ascending, &mut |key, value| {
            if let (Some(parent), Some(child)) = (key::parse_id(key), key::parse_fork(key)) {
                noted.insert((parent, child), ForkPoint::open(key, value).ok());
            }
            ControlFlow::Continue(())
        })?;
        let mut found = ForkPoints::default();
        let mut ids = self.ids(key::RECORD)?;
        ids.extend(self.ids(key::TOMBSTONE)?);
        self.engine.scan(&[key::HEAD]..&key::after(&[key::HEAD]), Order::Ascending, &mut |key, value| {
            let Some(id) = key::parse_id(key) else { return ControlFlow::Continue(()) };
            match Head::open(key, value) {
                // It reads no other conversation's entries.
                Ok(head) if head.parent.is_none_or(|parent| parent.at_seq == 0) => ids.remove(&id),
                _ => ids.insert(id),
            };
            ControlFlow::Continue(())
        })?;
        for id in ids {
            let fork = match damage_of(self.standing(id))? {
                Ok(Standing::Alive(head)) => head.parent.map(|parent| (parent, head.incarnation)),
                Ok(Standing::Deleted(tombstone)) => tombstone.parent.map(|parent| (parent, tombstone.incarnation)),
                Ok(Standing::Vacant) => None,
                Err(_) => {
                    // It may read everything that is noted for it.
                    noted.retain(|(_, child), _| *child != id);
                    continue;
                }
            };
            let Some((parent, child)) = fork.filter(|(parent, _)| parent.at_seq > 0) else { continue };
            let point = point_of(parent, child);
            if noted.remove(&(parent.id(), id)) != Some(Some(point)) {
                found.missing.push((parent.id(), id, point));
            }
        }
        found.stray = noted.into_keys().collect();
        Ok(found)
    }

    /// Repairs the fork points, once per opening: before anything is erased that a fork may read. `write`: how.
    pub(super) fn prove_fork_points(&self, write: &mut dyn FnMut(Batch) -> Result<()>) -> Result<()> {
        if self.proved.load(Ordering::Acquire) {
            return Ok(());
        }
        let ForkPoints { missing, stray } = self.check_fork_points()?;
        let mut batch = Batch::default();
        for (parent, child, point) in missing {
            let key = key::fork(parent, child);
            let value = record::seal(&key, &point)?;
            batch.put(key, value);
        }
        for (parent, child) in stray {
            batch.remove(key::fork(parent, child));
        }
        if !batch.ops.is_empty() {
            write(batch)?;
        }
        self.proved.store(true, Ordering::Release);
        Ok(())
    }
}

/// What a parent keeps of a fork.
pub(super) const fn point_of(parent: Parent, child: u64) -> ForkPoint {
    ForkPoint { at_seq: parent.at_seq, parent: parent.incarnation, child }
}
