//! Where a conversation's entries are: in its own log, and in those of its ancestors.

use std::ops::{ControlFlow, RangeInclusive};

use super::contract::{Order, Reading, Visit};
use super::records::Records;
use super::replay::Names;
use crate::error::Result;
use crate::model::ConversationId;

/// The entries that a conversation reads from one log: its own, or an ancestor's. Where there are several, the oldest are first,
/// and the conversation's own are last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) conversation: ConversationId,
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// The incarnation whose records these are; 0 if it is not known.
    pub(crate) incarnation: u64,
    /// The newest commit that may have written them, where a log asks for it.
    pub(crate) through: u64,
}

impl Segment {
    /// All records of a conversation, of any incarnation.
    pub(crate) const fn all(conversation: ConversationId) -> Self {
        Self { conversation, first: 1, last: u64::MAX - 2, incarnation: 0, through: u64::MAX }
    }
}

/// The segment that holds a seq.
pub(crate) fn segment_of(segments: &[Segment], seq: u64) -> Option<&Segment> {
    segments.iter().find(|segment| (segment.first..=segment.last).contains(&seq))
}

/// The conversation in whose log a seq is: the reader itself, unless it is an ancestor.
pub(crate) fn owner_of(segments: &[Segment], seq: u64) -> ConversationId {
    segment_of(segments, seq).map_or_else(|| reader_of(segments), |segment| segment.conversation)
}

/// Whose segments they are.
fn reader_of(segments: &[Segment]) -> ConversationId {
    segments.last().map_or(ConversationId::from_bytes([0; 16]), |segment| segment.conversation)
}

/// What reads segments.
pub(crate) trait Segmented {
    /// Shows the records of a segment that hold its seqs not before `from`. `own` unless they are an ancestor's.
    fn read_segment(
        &self,
        segment: Segment,
        from: u64,
        own: bool,
        order: Order,
        visit: Visit<'_>,
    ) -> Result<ControlFlow<()>>;

    /// Shows the records that hold the seqs of a range.
    fn read(&self, segments: &[Segment], seqs: RangeInclusive<u64>, order: Order, visit: Visit<'_>) -> Result<()> {
        let overlapping = |segment: &&Segment| segment.first <= *seqs.end() && segment.last >= *seqs.start();
        let mut chosen: Vec<&Segment> = segments.iter().filter(overlapping).collect();
        if order == Order::Descending {
            chosen.reverse();
        }
        for segment in chosen {
            let part = Segment { last: segment.last.min(*seqs.end()), ..*segment };
            let from = segment.first.max(*seqs.start());
            let own = segment.conversation == reader_of(segments);
            if self.read_segment(part, from, own, order, visit)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Where single records of segments are read.
    fn records<'a>(&'a self, segments: &'a [Segment]) -> Records<'a> {
        Records::new(reader_of(segments), move |seq, visit| self.read(segments, seq..=seq, Order::Ascending, visit))
    }

    /// Title and tags as the entries up to `last` give them, as far as these can be read.
    fn names(&self, segments: &[Segment], last: u64) -> Result<Names> {
        let mut names = Names::default();
        self.read(segments, 1..=last, Order::Ascending, &mut |reading| {
            if let Reading::Record { record, last, .. } = reading {
                names.read(record, last);
            }
            ControlFlow::Continue(())
        })?;
        Ok(names)
    }
}
