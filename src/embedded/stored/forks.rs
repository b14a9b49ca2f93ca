//! Which conversations read another one's entries. Fork points record it; the forks themselves prove it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::heads::{Standing, standing};
use super::{conversations_with, damage_of};
use crate::embedded::engine::{Engine, Order};
use crate::error::Result;
use crate::model::ConversationId;
use crate::record::{ForkPoint, Head, Parent, key};

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

/// The forks of this conversation, and the seq of each. A damaged fork point keeps everything.
pub(crate) fn forks(engine: &dyn Engine, id: ConversationId) -> Result<Vec<Reader>> {
    let prefix = key::prefix(key::FORK, id);
    let mut forks = Vec::new();
    engine.scan(&prefix..&key::after(&prefix), Order::Ascending, &mut |key, value| {
        let at_seq = ForkPoint::open(key, value).map_or(u64::MAX - 1, |point| point.at_seq);
        forks.extend(key::parse_fork(key).map(|child| Reader { child, at_seq }));
        ControlFlow::Continue(())
    })?;
    Ok(forks)
}

/// The fork points that are not as they have to be, by parent and child. What is forked or deleted meanwhile may be
/// among them. Cost: reading all heads.
pub(crate) fn doubtful_fork_points(engine: &dyn Engine) -> Result<Vec<(ConversationId, ConversationId)>> {
    let mut noted: BTreeMap<(ConversationId, ConversationId), Option<ForkPoint>> = BTreeMap::new();
    engine.scan(&[key::FORK]..&key::after(&[key::FORK]), Order::Ascending, &mut |key, value| {
        if let (Some(parent), Some(child)) = (key::parse_id(key), key::parse_fork(key)) {
            noted.insert((parent, child), ForkPoint::open(key, value).ok());
        }
        ControlFlow::Continue(())
    })?;
    let mut doubtful = Vec::new();
    let mut ids = conversations_with(engine, key::RECORD)?;
    ids.extend(conversations_with(engine, key::TOMBSTONE)?);
    engine.scan(&[key::HEAD]..&key::after(&[key::HEAD]), Order::Ascending, &mut |key, value| {
        let Some(id) = key::parse_id(key) else { return ControlFlow::Continue(()) };
        match Head::open(key, value) {
            // It reads no other conversation's entries.
            Ok(head) if head.parent.is_none_or(|parent| parent.at_seq == 0) => ids.remove(&id),
            _ => ids.insert(id),
        };
        ControlFlow::Continue(())
    })?;
    for id in ids {
        match damage_of(fork_point_of(engine, id))? {
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
pub(crate) fn fork_point_fault(
    engine: &dyn Engine,
    parent: ConversationId,
    child: ConversationId,
) -> Result<Option<Fault>> {
    // It may read everything that is noted for it.
    let Ok(due) = damage_of(fork_point_of(engine, child))? else { return Ok(None) };
    let key = key::fork(parent, child);
    let noted = engine.get(&key)?;
    Ok(match due.filter(|(of, _)| *of == parent) {
        Some((_, point)) => {
            let is_noted = noted.is_some_and(|value| ForkPoint::open(&key, &value).is_ok_and(|noted| noted == point));
            (!is_noted).then_some(Fault::Missing(point))
        }
        None => noted.map(|_| Fault::Stray),
    })
}

/// The conversation that another one reads entries of, and what has to be noted of that.
fn fork_point_of(engine: &dyn Engine, child: ConversationId) -> Result<Option<(ConversationId, ForkPoint)>> {
    let fork = match standing(engine, child)? {
        Standing::Alive(head) => head.parent.map(|parent| (parent, head.incarnation)),
        Standing::Deleted(tombstone) => tombstone.parent.map(|parent| (parent, tombstone.incarnation)),
        Standing::Vacant => None,
    };
    let fork = fork.filter(|(parent, _)| parent.at_seq > 0);
    Ok(fork.map(|(parent, child)| (parent.id(), point_of(parent, child))))
}

/// What a parent keeps of a fork.
pub(crate) const fn point_of(parent: Parent, child: u64) -> ForkPoint {
    ForkPoint { at_seq: parent.at_seq, parent: parent.incarnation, child }
}
