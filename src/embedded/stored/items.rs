//! Where a provider's item ids are: a separate index, which can be derived from the records.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::embedded::core::Core;
use crate::embedded::engine::Order;
use crate::embedded::stored::records;
use crate::embedded::stored::segments::Segment;
use crate::error::Result;
use crate::model::ConversationId;
use crate::record::{self, key};

impl Core {
    /// The seqs under which the index has an item id, in order.
    pub(crate) fn item_seqs(&self, segment: Segment, item: &str) -> Result<Vec<u64>> {
        let prefix = key::items(segment.conversation, &record::digest(item.as_bytes()));
        let mut seqs = Vec::new();
        self.engine.keys(&prefix..&key::after(&prefix), Order::Ascending, &mut |key, _| {
            seqs.extend(key::parse_item(key).filter(|seq| (segment.first..=segment.last).contains(seq)));
            ControlFlow::Continue(())
        })?;
        Ok(seqs)
    }

    /// The keys that the index has of a conversation, up to `last`.
    pub(crate) fn item_keys(&self, id: ConversationId, last: u64) -> Result<BTreeSet<Vec<u8>>> {
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
    pub(crate) fn items_behind(&self, id: ConversationId, last: u64) -> Result<Vec<Vec<u8>>> {
        let kept = self.item_keys(id, last)?;
        Ok(self.item_keys(id, u64::MAX)?.difference(&kept).cloned().collect())
    }

    /// The keys that the index should have of a conversation's own records.
    pub(crate) fn derived_item_keys(&self, id: ConversationId) -> Result<BTreeSet<Vec<u8>>> {
        let all = Segment::all(id);
        let mut keys = BTreeSet::new();
        self.read(id, &[all], 1..=u64::MAX - 2, Order::Ascending, &mut |item| {
            if let records::Item::Record { record, .. } = item {
                record.item_keys(id, u64::MAX, &mut keys);
            }
            ControlFlow::Continue(())
        })?;
        Ok(keys)
    }
}
