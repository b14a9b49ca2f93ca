//! Whether the records of a range are all there.

use std::ops::RangeInclusive;

use super::view::Order;
use crate::error::Error;
use crate::model::ConversationId;

/// Whether record follows record without a gap.
pub(crate) struct Run {
    conversation: ConversationId,
    order: Order,
    /// Ascending: the seq that has to come next. Descending: the seq that the next record has to end with. Unknown
    /// after damage.
    next: Option<u64>,
}

impl Run {
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
