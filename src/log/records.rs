//! Reads single records, checks that a range has all of its records, and follows the entries that name the one before them.
//! Such entries hide messages, or say something about the conversation as a whole.

use std::fmt;
use std::ops::{ControlFlow, Range, RangeInclusive};

use super::contract::{Log, Order, Reading, View, Visit};
use crate::error::{Error, Result};
use crate::model::{ConversationId, Json};
use crate::record::{Line, Record, Remove, Rewind};

/// An entry that hides messages.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hide {
    Rewind(Rewind),
    Remove(Remove),
}

impl Hide {
    /// The seq of the one before it; 0 if there is none.
    pub(crate) const fn previous(self) -> u64 {
        match self {
            Self::Rewind(rewind) => rewind.previous,
            Self::Remove(remove) => remove.previous,
        }
    }

    /// The messages that it hides whole.
    pub(crate) fn messages(self) -> Option<Range<u64>> {
        match self {
            Self::Rewind(rewind) => Some(rewind.to..rewind.end),
            Self::Remove(remove) => remove.chunk.is_none().then(|| remove.message..remove.message.saturating_add(1)),
        }
    }

    /// Whether it hides a message.
    pub(crate) fn hides(&self, message: u64) -> bool {
        self.messages().is_some_and(|messages| messages.contains(&message))
    }

    /// Whether it hides one chunk of a message.
    pub(crate) fn hides_chunk(&self, message: u64, chunk: u32) -> bool {
        matches!(self, Self::Remove(remove) if remove.message == message && remove.chunk == Some(chunk))
    }
}

/// Shows the record that holds a seq.
type Read<'a> = Box<dyn Fn(u64, Visit<'_>) -> Result<()> + 'a>;

/// Where single entries of a conversation are read.
pub(crate) struct Records<'a> {
    id: ConversationId,
    read: Read<'a>,
}

/// Where single entries of a view are read.
pub(crate) fn entries_at<'a>(log: &'a dyn Log, view: &'a View) -> Records<'a> {
    Records::new(view.id, move |seq, visit| log.read(view, seq..=seq, Order::Ascending, visit))
}

impl fmt::Debug for Records<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Records").field("id", &self.id).finish_non_exhaustive()
    }
}

impl<'a> Records<'a> {
    /// `read` shows the record of the conversation that holds a seq.
    pub(crate) fn new(id: ConversationId, read: impl Fn(u64, Visit<'_>) -> Result<()> + 'a) -> Self {
        Self { id, read: Box::new(read) }
    }

    /// What an entry at a seq gives; `Corrupt` if it gives nothing.
    pub(crate) fn at<T>(
        &self,
        seq: u64,
        expected: &str,
        pick: impl Fn(&Record<'_>, &Line<'_>) -> Result<Option<T>>,
    ) -> Result<T> {
        self.record(seq, expected, |record| pick_at(record, seq, &pick))
    }

    /// What the record that holds a seq gives; `Corrupt` if it gives nothing.
    pub(crate) fn record<T>(
        &self,
        seq: u64,
        expected: &str,
        pick: impl Fn(&Record<'_>) -> Result<Option<T>>,
    ) -> Result<T> {
        let mut found = Ok(None);
        (self.read)(seq, &mut |reading| {
            found = match reading {
                // One that ends before: the one that holds the seq is damaged, or missing.
                Reading::Record { record, .. } if record.first_seq + record.len() <= seq => {
                    return ControlFlow::Continue(());
                }
                Reading::Record { record, .. } => pick(record),
                Reading::Damaged(error) => Err(error),
                Reading::Stray(_) => return ControlFlow::Continue(()),
            };
            ControlFlow::Break(())
        })?;
        found?.ok_or_else(|| Error::Corrupt {
            conversation: Some(self.id.into()),
            seq: Some(seq),
            detail: format!("{expected} is expected here"),
        })
    }

    /// The rewind or removal at a seq.
    pub(crate) fn hide(&self, seq: u64) -> Result<Hide> {
        self.at(seq, "a rewind or a removal", |_, line| {
            let hide = match line {
                Line::Rewind(rewind) => Some(Hide::Rewind(*rewind)),
                Line::Remove(remove) => Some(Hide::Remove(*remove)),
                _ => None,
            };
            // A chain that does not go back would never end.
            Ok(hide.filter(|hide| hide.previous() < seq))
        })
    }

    /// The metadata that an entry at a seq sets, and the seq of the meta entry before it; 0 if there is none.
    pub(crate) fn meta(&self, seq: u64) -> Result<(Option<Json>, u64)> {
        self.at(seq, "a meta entry", |_, line| match line {
            // A chain that does not go back would never end.
            Line::Meta(meta) if meta.previous < seq => Ok(Some((meta.metadata()?, meta.previous))),
            _ => Ok(None),
        })
    }

    /// The seq of the last rewind or removal at or before a seq; `last` is that of the last of all.
    pub(crate) fn last_hide(&self, last: u64, at_seq: u64) -> Result<u64> {
        let mut seq = last;
        while seq > at_seq {
            seq = self.hide(seq)?.previous();
        }
        Ok(seq)
    }

    /// The seq of the last meta entry at or before a seq; `last` is that of the last of all.
    pub(crate) fn last_meta(&self, last: u64, at_seq: u64) -> Result<u64> {
        let mut seq = last;
        while seq > at_seq {
            (_, seq) = self.meta(seq)?;
        }
        Ok(seq)
    }
}

fn pick_at<T>(
    record: &Record<'_>,
    seq: u64,
    pick: impl Fn(&Record<'_>, &Line<'_>) -> Result<Option<T>>,
) -> Result<Option<T>> {
    for line in record.lines() {
        let (at, line) = line?;
        if at == seq {
            return pick(record, &line);
        }
    }
    Ok(None)
}

/// Whether record follows record without a gap.
pub(crate) struct Gaps {
    conversation: ConversationId,
    order: Order,
    /// Ascending: the seq that has to come next. Descending: the seq that the next record has to end with. Unknown
    /// after damage.
    next: Option<u64>,
}

impl Gaps {
    /// Before the first record of a range that begins with a record.
    pub(crate) fn new(conversation: ConversationId, order: Order, seqs: RangeInclusive<u64>) -> Self {
        let next = if order == Order::Ascending { *seqs.start() } else { *seqs.end() };
        Self { conversation, order, next: Some(next) }
    }

    /// What comes next has to begin with this seq, or to hold it.
    #[cfg(feature = "postgres")]
    pub(crate) const fn pass(&mut self, seq: u64) {
        self.next = Some(seq);
    }

    /// Nobody knows what comes next: a record could not be read.
    pub(crate) const fn lose(&mut self) {
        self.next = None;
    }

    /// Takes the next record; the error, if records are missing before it.
    pub(crate) fn step(&mut self, first_seq: u64, length: u64) -> Option<Error> {
        let (end, expected) = (first_seq + length, self.next);
        match self.order {
            Order::Ascending => {
                self.next = Some(end);
                expected.filter(|expected| *expected != first_seq).map(|expected| self.gap(expected))
            }
            Order::Descending => {
                self.next = Some(first_seq - 1);
                // The newest record may continue after the part that is read.
                expected.filter(|expected| end <= *expected).map(|_| self.gap(end))
            }
        }
    }

    /// Whether the entries from a seq on were read already. In descending order nobody knows.
    pub(crate) fn has_read(&self, first_seq: u64) -> bool {
        self.order == Order::Ascending && self.next.is_some_and(|next| first_seq < next)
    }

    /// The error, if records are missing at the end of the range.
    pub(crate) fn rest(&self, start: u64, last: u64) -> Option<Error> {
        match self.order {
            Order::Ascending => self.next.filter(|next| *next <= last).map(|next| self.gap(next)),
            Order::Descending => self.next.filter(|next| *next >= start).map(|next| self.gap(next)),
        }
    }

    fn gap(&self, seq: u64) -> Error {
        let detail = "the record that should be here is missing".to_owned();
        Error::Corrupt { conversation: Some(self.conversation.into()), seq: Some(seq), detail }
    }
}
