//! What is hidden of a conversation: messages that were rewound, and messages and chunks that were removed. The entries that hide
//! them name the one before them, so that nothing else is read.

use std::ops::Range;

use super::contract::{Log, View};
use super::records::{Hide, entries_at};
use crate::error::Result;

/// All rewinds and removals of a view, the newest first.
pub(super) fn all(log: &dyn Log, view: &View) -> Result<Vec<Hide>> {
    let (mut hides, mut seq) = (Vec::new(), view.head.last_hide);
    let entries = entries_at(log, view);
    while seq > 0 {
        let hide = entries.hide(seq)?;
        seq = hide.previous();
        hides.push(hide);
    }
    Ok(hides)
}

/// The messages, and the chunks of messages, that were removed after a seq. Cost: a read for each rewind and removal since.
#[cfg(feature = "server")]
pub(crate) fn removed_since(log: &dyn Log, view: &View, after: u64) -> Result<Vec<(u64, Option<u32>)>> {
    let (mut removed, mut seq) = (Vec::new(), view.head.last_hide);
    let entries = entries_at(log, view);
    while seq > after {
        let hide = entries.hide(seq)?;
        seq = hide.previous();
        if let Hide::Remove(remove) = hide {
            removed.push((remove.message, remove.chunk));
        }
    }
    Ok(removed)
}

/// How many messages of a view are hidden. Cost: a read for each rewind and removal.
pub(crate) fn count(log: &dyn Log, view: &View) -> Result<u64> {
    let hides = all(log, view)?;
    let mut ranges: Vec<_> = hides.into_iter().filter_map(Hide::messages).collect();
    ranges.sort_unstable_by_key(|range| range.start);
    let (mut hidden, mut counted_to) = (0, 0);
    for range in ranges {
        hidden += range.end.saturating_sub(range.start.max(counted_to));
        counted_to = counted_to.max(range.end);
    }
    Ok(hidden)
}

/// Whether a message is there, and neither rewound nor removed. Reads what hid something since it began.
pub(crate) fn is_visible(log: &dyn Log, view: &View, message: u64) -> Result<bool> {
    let mut seq = view.head.last_hide;
    let entries = entries_at(log, view);
    while seq > 0 {
        let hide = entries.hide(seq)?;
        match hide {
            // What is earlier hides only messages that are earlier still.
            Hide::Rewind(rewind) if rewind.end <= message => break,
            hide if hide.hides(message) => return Ok(false),
            hide => seq = hide.previous(),
        }
    }
    Ok(message < view.head.next_message_index)
}

/// The messages that are hidden whole.
pub(super) fn ranges(hides: &[Hide]) -> Vec<Range<u64>> {
    hides.iter().filter_map(|hide| hide.messages()).collect()
}

/// The first message from an index on that is not hidden.
pub(super) fn skip(mut index: u64, hides: &[Hide]) -> u64 {
    while let Some(hidden) = hides.iter().filter_map(|hide| hide.messages()).find(|hidden| hidden.contains(&index)) {
        index = hidden.end;
    }
    index
}

/// Goes back from `next` over so many messages, without those that are hidden. Cost: by the number of ranges, however many
/// messages they are.
pub(super) fn first_of_newest(next: u64, count: usize, hidden: &[Range<u64>]) -> u64 {
    let (mut from, mut left) = (next, u64::try_from(count).unwrap_or(u64::MAX));
    while left > 0 && from > 0 {
        let ends_here = |range: &&Range<u64>| range.contains(&(from - 1));
        if let Some(range) = hidden.iter().filter(ends_here).min_by_key(|range| range.start) {
            from = range.start;
        } else {
            let end = hidden.iter().map(|range| range.end).filter(|end| *end < from).max().unwrap_or(0);
            let shown = left.min(from - end);
            (from, left) = (from - shown, left - shown);
        }
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_counted_without_the_hidden_ones() {
        let hidden = [3..5, 4..8, 9..10, 20..30, 6..6];
        let one_by_one = |next: u64, mut left: usize| {
            let mut from = next;
            while left > 0 && from > 0 {
                from -= 1;
                left -= usize::from(!hidden.iter().any(|range| range.contains(&from)));
            }
            from
        };
        for next in 0..40 {
            for count in 0..40 {
                let (from, wanted) = (first_of_newest(next, count, &hidden), one_by_one(next, count));
                // Where the last that is counted is before hidden ones, both begin with it.
                assert_eq!(from, wanted, "{count} before {next}");
            }
        }
        assert_eq!(first_of_newest(u64::MAX, usize::MAX, &hidden), 0);
    }
}
