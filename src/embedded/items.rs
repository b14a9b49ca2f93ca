//! Where a provider's item ids are: a separate index, which can be derived from the records.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::core::Core;
use super::read;
use super::segments::Segment;
use crate::embedded::engine::Order;
use crate::error::Result;
use crate::model::ConversationId;
use crate::record::{self, Line, Record, key};

/// The keys that the index has for a record, up to `last`.
pub(super) fn keys_of(id: ConversationId, record: &Record<'_>, last: u64, keys: &mut BTreeSet<Vec<u8>>) {
    for (seq, line) in record.lines().filter_map(Result::ok).filter(|(seq, _)| *seq <= last) {
        let (of_chunk, header) = match &line {
            Line::Chunk(line) => (line.id, line.header.as_ref()),
            Line::Begin(begin) => (None, Some(&begin.header)),
            Line::Finish(finish) => (None, Some(&finish.header)),
            _ => (None, None),
        };
        let items = of_chunk.into_iter().chain(header.and_then(|header| header.id));
        keys.extend(items.map(|item| key::item(id, &record::digest(item.as_bytes()), seq)));
    }
}

impl Core {
    /// The seqs under which the index has an item id, in order.
    pub(super) fn item_seqs(&self, segment: Segment, item: &str) -> Result<Vec<u64>> {
        let prefix = key::items(segment.conversation, &record::digest(item.as_bytes()));
        let mut seqs = Vec::new();
        self.engine.keys(&prefix..&key::after(&prefix), Order::Ascending, &mut |key, _| {
            seqs.extend(key::parse_item(key).filter(|seq| (segment.first..=segment.last).contains(seq)));
            ControlFlow::Continue(())
        })?;
        Ok(seqs)
    }

    /// The keys that the index has of a conversation, up to `last`.
    pub(super) fn item_keys(&self, id: ConversationId, last: u64) -> Result<BTreeSet<Vec<u8>>> {
        let prefix = key::prefix(key::ITEM, id);
        let mut keys = BTreeSet::new();
        self.engine.keys(&prefix..&key::after(&prefix), Order::Ascending, &mut |key, _| {
            if key::parse_item(key).is_none_or(|seq| seq <= last) {
                keys.insert(key.to_vec());
            }
            ControlFlow::Continue(())
        })?;
        Ok(keys)
    }

    /// The keys that the index has of a conversation after `last`.
    pub(super) fn items_behind(&self, id: ConversationId, last: u64) -> Result<Vec<Vec<u8>>> {
        let kept = self.item_keys(id, last)?;
        Ok(self.item_keys(id, u64::MAX)?.difference(&kept).cloned().collect())
    }

    /// The keys that the index should have of a conversation's own records.
    pub(super) fn derived_item_keys(&self, id: ConversationId) -> Result<BTreeSet<Vec<u8>>> {
        let all = Segment::all(id);
        let mut keys = BTreeSet::new();
        self.read(id, &[all], 1..=u64::MAX - 2, Order::Ascending, &mut |item| {
            if let read::Item::Record { record, .. } = item {
                keys_of(id, record, u64::MAX, &mut keys);
            }
            ControlFlow::Continue(())
        })?;
        Ok(keys)
    }
}
