//! Which conversations read another one's entries. Fork points record it; the forks themselves prove it.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use crate::embedded::core::Core;
use crate::embedded::engine::{Batch, Order};
use crate::embedded::families::held::Held;
use crate::embedded::stored::damage::damage_of;
use crate::embedded::stored::heads::Standing;
use crate::error::Result;
use crate::model::ConversationId;
use crate::record::{self, ForkPoint, Head, Parent, key};

/// A conversation that reads another one's entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    pub(crate) child: ConversationId,
    /// The last seq that it reads there; the highest number if damage hides it.
    pub(crate) at_seq: u64,
}

/// What is wrong with a fork point.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It is missing or damaged; its right value.
    Missing(ForkPoint),
    /// There is no such fork.
    Stray,
}

impl Core {
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
                    parent = self.grandparent(shared)?;
                }
            }
            let held = self.families.hold(members);
            // Meanwhile one may have been deleted, and another one created under its name.
            if look()? == beginnings {
                return Ok(held);
            }
        }
    }

    /// The incarnation and the parent of a conversation, as far as anything states them.
    fn beginning(&self, id: ConversationId) -> Result<Option<(u64, Option<Parent>)>> {
        if let Ok(Some(head)) = damage_of(self.published_head(id))? {
            return Ok(Some((head.incarnation, head.parent)));
        }
        Ok(match damage_of(self.standing(id))? {
            Ok(Standing::Alive(head)) => Some((head.incarnation, head.parent)),
            Ok(Standing::Deleted(tombstone)) => Some((tombstone.incarnation, tombstone.parent)),
            Ok(Standing::Vacant) => None,
            Err(_) => {
                let origin = self.origin(id)?.and_then(|header| header.origin);
                origin.map(|origin| (origin.incarnation, origin.parent))
            }
        })
    }

    /// The forks of this conversation, and the seq of each. A damaged fork point keeps everything.
    pub(crate) fn forks(&self, id: ConversationId) -> Result<Vec<Reader>> {
        let prefix = key::prefix(key::FORK, id);
        let mut forks = Vec::new();
        self.engine.scan(&prefix..&key::after(&prefix), Order::Ascending, &mut |key, value| {
            let at_seq = ForkPoint::open(key, value).map_or(u64::MAX - 1, |point| point.at_seq);
            forks.extend(key::parse_fork(key).map(|child| Reader { child, at_seq }));
            ControlFlow::Continue(())
        })?;
        Ok(forks)
    }

    /// The fork points that are not as they have to be, by parent and child. What is forked or deleted meanwhile may be
    /// among them. Cost: reading all heads.
    pub(crate) fn doubtful_fork_points(&self) -> Result<Vec<(ConversationId, ConversationId)>> {
        let mut noted: BTreeMap<(ConversationId, ConversationId), Option<ForkPoint>> = BTreeMap::new();
        self.engine.scan(&[key::FORK]..&key::after(&[key::FORK]), Order::Ascending, &mut |key, value| {
            if let (Some(parent), Some(child)) = (key::parse_id(key), key::parse_fork(key)) {
                noted.insert((parent, child), ForkPoint::open(key, value).ok());
            }
            ControlFlow::Continue(())
        })?;
        let mut doubtful = Vec::new();
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
            match damage_of(self.fork_point_of(id))? {
                Ok(Some((parent, point))) => {
                    if noted.remove(&(parent, id)) != Some(Some(point)) {
                        doubtful.push((parent, id));
                    }
                }
                Ok(None) => {}
                // It may read everything that is noted for it.
                Err(_) => noted.retain(|(_, child), _| *child != id),
            }
        }
        doubtful.extend(noted.into_keys());
        Ok(doubtful)
    }

    /// What is wrong with a fork point, if anything is. Both conversations are held.
    pub(crate) fn fork_point_fault(&self, parent: ConversationId, child: ConversationId) -> Result<Option<Fault>> {
        // It may read everything that is noted for it.
        let Ok(due) = damage_of(self.fork_point_of(child))? else { return Ok(None) };
        let key = key::fork(parent, child);
        let noted = self.engine.get(&key)?;
        Ok(match due.filter(|(of, _)| *of == parent) {
            Some((_, point)) => {
                let is_noted =
                    noted.is_some_and(|value| ForkPoint::open(&key, &value).is_ok_and(|noted| noted == point));
                (!is_noted).then_some(Fault::Missing(point))
            }
            None => noted.map(|_| Fault::Stray),
        })
    }

    /// The conversation that another one reads entries of, and what has to be noted of that.
    fn fork_point_of(&self, child: ConversationId) -> Result<Option<(ConversationId, ForkPoint)>> {
        let fork = match self.standing(child)? {
            Standing::Alive(head) => head.parent.map(|parent| (parent, head.incarnation)),
            Standing::Deleted(tombstone) => tombstone.parent.map(|parent| (parent, tombstone.incarnation)),
            Standing::Vacant => None,
        };
        let fork = fork.filter(|(parent, _)| parent.at_seq > 0);
        Ok(fork.map(|(parent, child)| (parent.id(), point_of(parent, child))))
    }

    /// Repairs the fork points, once per opening: before anything is erased that a fork may read. `write`: how. The caller
    /// holds no conversation.
    pub(crate) fn prove_fork_points(&self, write: &mut dyn FnMut(Batch) -> Result<()>) -> Result<()> {
        if self.proved.load(Ordering::Acquire) {
            return Ok(());
        }
        for (parent, child) in self.doubtful_fork_points()? {
            let _held = self.hold(&[parent, child])?;
            let key = key::fork(parent, child);
            let mut batch = Batch::default();
            match self.fork_point_fault(parent, child)? {
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

/// What a parent keeps of a fork.
pub(crate) const fn point_of(parent: Parent, child: u64) -> ForkPoint {
    ForkPoint { at_seq: parent.at_seq, parent: parent.incarnation, child }
}
