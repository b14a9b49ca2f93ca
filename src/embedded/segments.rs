//! In whose logs a conversation's entries stand: its own, and those of what it was forked from.

use super::core::Core;
use crate::error::{Error, Result};
use crate::model::ConversationId;
use crate::record::{Head, Parent};

/// The entries that a conversation reads from one log: its own, or an ancestor's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) conversation: ConversationId,
    pub(super) first: u64,
    pub(super) last: u64,
}

impl Core {
    /// Where the conversation's entries are, oldest first.
    pub(super) fn segments(&self, id: ConversationId, head: &Head) -> Result<Vec<Segment>> {
        let mut segments = Vec::new();
        let (mut conversation, mut last, mut parent) = (id, head.next_seq - 1, head.parent);
        while let Some(Parent { at_seq, .. }) = parent {
            segments.push(Segment { conversation, first: at_seq + 1, last });
            (conversation, last) = (parent.map_or(conversation, |parent| parent.id()), at_seq);
            // Its own records tell the parent: to ask its ancestors too would not end where forks name each other.
            let grandparent = match self.stored_head_or(conversation, Self::own_head)? {
                Some(head) => head.parent,
                // It was deleted, and stays as far as its forks read it.
                None => {
                    self.tombstone(conversation)?.map(|tombstone| tombstone.parent).ok_or_else(|| Error::Corrupt {
                        conversation: Some(id),
                        seq: Some(at_seq),
                        detail: format!("the conversation {conversation} that it was forked from is missing"),
                    })?
                }
            };
            // A fork point lies before all later ones, so a chain of parents ends.
            parent = grandparent.filter(|grandparent| grandparent.at_seq < at_seq);
        }
        segments.push(Segment { conversation, first: 1, last });
        segments.reverse();
        Ok(segments)
    }
}

/// The conversation in whose log a seq stands, if it is one of these.
pub(super) fn owner(segments: &[Segment], seq: u64) -> Option<ConversationId> {
    let segment = segments.iter().find(|segment| (segment.first..=segment.last).contains(&seq));
    segment.map(|segment| segment.conversation)
}
