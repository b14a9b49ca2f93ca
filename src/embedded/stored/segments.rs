//! The logs that hold a conversation's entries: its own, and those of its ancestors; and which records there belong to
//! it.

use crate::embedded::core::Core;
use crate::embedded::stored::damage::damage_of;
use crate::embedded::stored::incarnation::born;
use crate::error::Result;
use crate::model::ConversationId;
use crate::record::{Head, Parent, Record, Tombstone, key};

/// The entries that a conversation reads from one log: its own, or an ancestor's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) conversation: ConversationId,
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// The incarnation whose records these are; 0 if it is not known.
    pub(crate) incarnation: u64,
    /// The newest commit that may have written them.
    pub(crate) through: u64,
}

impl Segment {
    /// All records of a conversation, of any incarnation.
    pub(crate) const fn all(conversation: ConversationId) -> Self {
        Self { conversation, first: 1, last: u64::MAX - 2, incarnation: 0, through: u64::MAX }
    }

    /// Whether a record under this conversation's name is one of these. Another conversation may have had the name
    /// before or since, and damage brings back what was there.
    pub(crate) fn accepts(&self, record: &Record<'_>) -> bool {
        let commit = record.header.commit;
        let is_of_it = |incarnation| self.incarnation == 0 || self.incarnation == incarnation;
        (self.incarnation == 0 || born(self.incarnation) < commit)
            && commit <= self.through
            && record.header.origin.as_ref().is_none_or(|origin| is_of_it(origin.incarnation))
    }
}

impl Core {
    /// Where the conversation's entries are, oldest first.
    pub(crate) fn segments(&self, id: ConversationId, head: &Head) -> Result<Vec<Segment>> {
        self.segments_through(id, head, u64::MAX)
    }

    /// The same, of records written by no later commit than `through`.
    pub(crate) fn segments_through(&self, id: ConversationId, head: &Head, through: u64) -> Result<Vec<Segment>> {
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
            parent = self.grandparent(shared)?;
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
    pub(crate) fn grandparent(&self, parent: Parent) -> Result<Option<Parent>> {
        let lineage = self.lineage(parent.id(), parent.incarnation)?.flatten();
        // A fork point comes before all later ones, so a chain of parents ends.
        Ok(lineage.filter(|grandparent| grandparent.at_seq < parent.at_seq))
    }

    /// The parent of an incarnation of a conversation, if it is known: from its head, its tombstone, or its first
    /// record.
    fn lineage(&self, id: ConversationId, incarnation: u64) -> Result<Option<Option<Parent>>> {
        if let Ok(Some(head)) = damage_of(self.stored_head(id))?
            && head.incarnation == incarnation
        {
            return Ok(Some(head.parent));
        }
        let key = key::tombstone(id);
        if let Some(tombstone) = self.engine.get(&key)?.and_then(|bytes| Tombstone::open(&key, &bytes).ok())
            && tombstone.incarnation == incarnation
        {
            return Ok(Some(tombstone.parent));
        }
        let origin = self.origin(id)?.and_then(|found| found.origin);
        Ok(origin.filter(|origin| origin.incarnation == incarnation).map(|origin| origin.parent))
    }
}

/// The conversation whose log holds a seq, if it is one of these.
pub(crate) fn owner(segments: &[Segment], seq: u64) -> Option<ConversationId> {
    segment_of(segments, seq).map(|segment| segment.conversation)
}

/// The segment that holds a seq.
pub(crate) fn segment_of(segments: &[Segment], seq: u64) -> Option<&Segment> {
    segments.iter().find(|segment| (segment.first..=segment.last).contains(&seq))
}
