//! Rewinds: messages that are hidden, and which are.

use super::core::Core;
use super::options::Receipt;
use super::segments::Segment;
use super::writer::Closed;
use crate::error::{Error, Result};
use crate::model::{ConversationId, Name};
use crate::record::{Body, Head, Line, Replacement, Rewind, TitleSource};

impl Core {
    /// Hides every message from `to` on that exists now.
    pub(crate) fn rewind(&self, name: &Name, to: u64) -> Result<Receipt> {
        let id = name.id();
        let frozen = self.freeze(id)?;
        let head = frozen.head(name)?;
        if !self.is_visible(id, &head, to)? {
            return Err(Error::NotFound { what: format!("a visible message {to} in conversation {name}") });
        }
        let body = Body::rewind(Rewind { to, end: head.next_message_index, previous: head.last_rewind })?;
        frozen.close_writers(to, Closed::Rewound);
        self.write_control(&frozen, body, Replacement::new(), |after| {
            after.last_rewind = head.next_seq;
            if matches!(after.title_source, TitleSource::Message(index) if index >= to) {
                (after.title, after.title_source) = (None, TitleSource::Pending);
            }
        })
    }

    /// The last rewind at or before `at_seq`.
    pub(super) fn last_rewind_at(&self, segments: &[Segment], head: &Head, at_seq: u64) -> Result<u64> {
        let mut last = head.last_rewind;
        while last > at_seq {
            last = self.rewind_at(segments, last)?.previous;
        }
        Ok(last)
    }

    pub(super) fn is_visible(&self, id: ConversationId, head: &Head, index: u64) -> Result<bool> {
        let segments = self.segments(id, head)?;
        let mut last = head.last_rewind;
        while last > 0 {
            let rewind = self.rewind_at(&segments, last)?;
            // Earlier rewinds end earlier: none of them hides what came after.
            if rewind.end <= index {
                break;
            }
            if rewind.to <= index {
                return Ok(false);
            }
            last = rewind.previous;
        }
        Ok(index < head.next_message_index)
    }

    fn rewind_at(&self, segments: &[Segment], seq: u64) -> Result<Rewind> {
        let mut found = None;
        self.record_at(segments, seq, &mut |record| {
            for line in record.lines() {
                match line? {
                    (at, Line::Rewind(rewind)) if at == seq => found = Some(rewind),
                    _ => {}
                }
            }
            Ok(())
        })?;
        // A chain that does not go back would never end.
        found.filter(|rewind| rewind.previous < seq).ok_or_else(|| Error::Corrupt {
            conversation: segments.last().map(|segment| segment.conversation),
            seq: Some(seq),
            detail: "a rewind entry is expected here".to_owned(),
        })
    }
}
