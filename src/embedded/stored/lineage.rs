//! The logs that hold a conversation's entries, its own and those of its ancestors.

use super::damage_of;
use super::records::{origin, stored_head};
use crate::embedded::engine::Engine;
use crate::error::Result;
use crate::log::segments::Segment;
use crate::model::ConversationId;
use crate::record::{Head, Parent, Tombstone, key};

/// Where the conversation's entries are, oldest first.
pub(crate) fn segments(engine: &dyn Engine, id: ConversationId, head: &Head) -> Result<Vec<Segment>> {
    segments_through(engine, id, head, u64::MAX)
}

/// The same, of records written by no later commit than `through`.
pub(crate) fn segments_through(
    engine: &dyn Engine,
    id: ConversationId,
    head: &Head,
    through: u64,
) -> Result<Vec<Segment>> {
    let mut segment = Segment {
        conversation: id,
        first: head.first_seq(),
        last: head.next_seq - 1,
        incarnation: head.incarnation,
        through,
    };
    let (mut segments, mut parent) = (Vec::new(), head.parent);
    while let Some(shared) = parent.filter(|parent| parent.at_seq > 0) {
        segments.push(segment);
        // If nothing states the parent's own parent any more, its first entries are missing.
        parent = grandparent(engine, shared)?;
        segment = Segment {
            conversation: shared.id(),
            first: parent.map_or(0, |parent| parent.at_seq) + 1,
            last: shared.at_seq,
            incarnation: shared.incarnation,
            through: shared.commit.min(through),
        };
    }
    segments.push(segment);
    segments.reverse();
    Ok(segments)
}

/// The parent of a parent, if it is known.
pub(crate) fn grandparent(engine: &dyn Engine, parent: Parent) -> Result<Option<Parent>> {
    let lineage = lineage(engine, parent.id(), parent.incarnation)?.flatten();
    // A fork point comes before all later ones, so a chain of parents ends.
    Ok(lineage.filter(|grandparent| grandparent.at_seq < parent.at_seq))
}

/// The parent of an incarnation of a conversation, if it is known: from its head, its tombstone, or its first
/// record.
fn lineage(engine: &dyn Engine, id: ConversationId, incarnation: u64) -> Result<Option<Option<Parent>>> {
    if let Ok(Some(head)) = damage_of(stored_head(engine, id))?
        && head.incarnation == incarnation
    {
        return Ok(Some(head.parent));
    }
    let key = key::tombstone(id);
    if let Some(tombstone) = engine.get(&key)?.and_then(|bytes| Tombstone::open(&key, &bytes).ok())
        && tombstone.incarnation == incarnation
    {
        return Ok(Some(tombstone.parent));
    }
    let origin = origin(engine, id)?.and_then(|found| found.origin);
    Ok(origin.filter(|origin| origin.incarnation == incarnation).map(|origin| origin.parent))
}
