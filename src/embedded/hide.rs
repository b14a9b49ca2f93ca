//! What is hidden: rewinds and removals. The log keeps it.

use super::core::Core;
use super::segments::Segment;
use super::writer::Closed;
use crate::error::{Error, Result};
use crate::log::Receipt;
use crate::model::{ConversationId, Name};
use crate::record::{Body, Head, Line, Remove, Replacement, Rewind, TitleSource};

impl Core {
    /// Hides every message from `to` on that exists now.
    pub(crate) fn rewind(&self, name: &Name, to: u64) -> Result<Receipt> {
        let id = name.id();
        let frozen = self.freeze(id)?;
        let head = frozen.head(name)?;
        if !self.is_visible(id, &head, to)? {
            return Err(Error::NotFound { what: format!("a visible message {to} in conversation {name}") });
        }
        let body = Body::rewind(Rewind { to, end: head.next_message_index, previous: head.last_hide })?;
        frozen.close_writers(to, Closed::Rewound);
        self.write_control(&frozen, name, body, Replacement::new(), |after| {
            after.last_hide = head.next_seq;
            after.forget_unfinished(to..);
            if matches!(after.title_source, TitleSource::Message(index) if index >= to) {
                (after.title, after.title_source) = (None, TitleSource::Pending);
            }
        })
    }

    /// Hides one message, or one chunk of it.
    pub(crate) fn remove(&self, name: &Name, message: u64, chunk: Option<u32>) -> Result<Receipt> {
        let id = name.id();
        let frozen = self.freeze(id)?;
        let head = frozen.head(name)?;
        let grouped = self.group(id, &head)?;
        let stored = grouped.messages.iter().find(|stored| stored.index == message);
        let is_there = stored.is_some_and(|stored| chunk.is_none_or(|chunk| stored.chunk_indexes.contains(&chunk)));
        if !is_there {
            let what = chunk.map_or_else(String::new, |chunk| format!("chunk {chunk} of "));
            return Err(Error::NotFound { what: format!("{what}a visible message {message} in conversation {name}") });
        }
        if chunk.is_none() {
            frozen.check_written(name, message..=message)?;
        }
        let body = Body::removal(Remove { message, chunk, previous: head.last_hide })?;
        self.write_control(&frozen, name, body, Replacement::new(), |after| {
            after.last_hide = head.next_seq;
            if chunk.is_none() {
                after.forget_unfinished(message..=message);
            }
            if after.title_source == TitleSource::Message(message) {
                (after.title, after.title_source) = (None, TitleSource::Pending);
            }
        })
    }

    /// The last rewind or removal at or before `at_seq`.
    pub(super) fn last_hide_at(&self, segments: &[Segment], head: &Head, at_seq: u64) -> Result<u64> {
        let mut last = head.last_hide;
        while last > at_seq {
            last = self.hide_at(segments, last)?.previous();
        }
        Ok(last)
    }

    /// Whether a message is there, and neither rewound nor removed.
    pub(super) fn is_visible(&self, id: ConversationId, head: &Head, index: u64) -> Result<bool> {
        let segments = self.segments(id, head)?;
        let mut last = head.last_hide;
        while last > 0 {
            let hide = self.hide_at(&segments, last)?;
            match hide {
                // What is earlier hides only messages that are earlier still.
                Hide::Rewind(rewind) if rewind.end <= index => break,
                Hide::Rewind(rewind) if rewind.to <= index => return Ok(false),
                Hide::Remove(remove) if remove.message == index && remove.chunk.is_none() => return Ok(false),
                Hide::Rewind(_) | Hide::Remove(_) => last = hide.previous(),
            }
        }
        Ok(index < head.next_message_index)
    }

    fn hide_at(&self, segments: &[Segment], seq: u64) -> Result<Hide> {
        let mut found = None;
        self.record_at(segments, seq, &mut |record| {
            for line in record.lines() {
                match line? {
                    (at, Line::Rewind(rewind)) if at == seq => found = Some(Hide::Rewind(rewind)),
                    (at, Line::Remove(remove)) if at == seq => found = Some(Hide::Remove(remove)),
                    _ => {}
                }
            }
            Ok(())
        })?;
        // A chain that does not go back would never end.
        found.filter(|hide| hide.previous() < seq).ok_or_else(|| Error::Corrupt {
            conversation: segments.last().map(|segment| segment.conversation),
            seq: Some(seq),
            detail: "a rewind or a removal is expected here".to_owned(),
        })
    }
}

/// An entry that hides messages.
#[derive(Clone, Copy)]
enum Hide {
    Rewind(Rewind),
    Remove(Remove),
}

impl Hide {
    const fn previous(self) -> u64 {
        match self {
            Self::Rewind(rewind) => rewind.previous,
            Self::Remove(remove) => remove.previous,
        }
    }
}
