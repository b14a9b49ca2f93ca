//! Where a provider's item ids stand: an index of its own, which can be derived from the records.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::core::Core;
use super::heads::damage_of;
use super::read;
use super::segments::Segment;
use crate::embedded::engine::Order;
use crate::error::Result;
use crate::history::{Entry, EntryKind};
use crate::log::Item;
use crate::model::{ConversationId, Name};
use crate::record::{self, Body, Head, Line, Record, Replacement, key};

/// What a record of these entries adds to the index.
pub(super) fn ops(id: ConversationId, first_seq: u64, body: &Body) -> Replacement {
    let items = body.items().iter();
    items
        .map(|(at, item)| (key::item(id, &record::digest(item.as_bytes()), first_seq + at), Some(Vec::new())))
        .collect()
}

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
    /// The first visible message, or chunk of one, with this item id.
    pub(crate) fn find_item(&self, name: &Name, item: &str) -> Result<Option<Item>> {
        let id = name.id();
        let head = self.published_head(id)?.ok_or_else(|| crate::Error::no_conversation(name))?;
        self.find_in(id, &head, item)
    }

    /// The same, in all conversations.
    pub(crate) fn find_everywhere(&self, item: &str) -> Result<Vec<Item>> {
        let mut found = Vec::new();
        for id in self.ids(key::HEAD)? {
            // What cannot be read is not found; `verify` reports it.
            found.extend(damage_of(self.find_if_alive(id, item))?.ok().flatten());
        }
        Ok(found)
    }

    fn find_if_alive(&self, id: ConversationId, item: &str) -> Result<Option<Item>> {
        let Some(head) = self.head_for_list(id)? else { return Ok(None) };
        match self.find_in(id, &head, item)? {
            Some(found) if self.published_head(id)?.is_some() => Ok(Some(found)),
            _ => Ok(None),
        }
    }

    fn find_in(&self, id: ConversationId, head: &Head, item: &str) -> Result<Option<Item>> {
        let segments = self.segments(id, head)?;
        for segment in &segments {
            for seq in self.item_seqs(*segment, item)? {
                let Some(entry) = self.entry_at(&segments, seq)? else { continue };
                let Some(message_index) = entry.message_index.filter(|_| bears(&entry, item)) else { continue };
                if self.is_visible(id, head, message_index)? {
                    let chunk_index = entry.chunk_index.filter(|_| is_chunks(&entry, item));
                    return Ok(Some(Item { conversation: id, key: head.key.clone(), message_index, chunk_index, seq }));
                }
            }
        }
        Ok(None)
    }

    /// The seqs under which the index has an item id, in order.
    fn item_seqs(&self, segment: Segment, item: &str) -> Result<Vec<u64>> {
        let prefix = key::items(segment.conversation, &record::digest(item.as_bytes()));
        let mut seqs = Vec::new();
        self.engine.keys(&prefix..&key::after(&prefix), Order::Ascending, &mut |key, _| {
            seqs.extend(key::parse_item(key).filter(|seq| (segment.first..=segment.last).contains(seq)));
            ControlFlow::Continue(())
        })?;
        Ok(seqs)
    }

    fn entry_at(&self, segments: &[Segment], seq: u64) -> Result<Option<Entry>> {
        let mut entry = None;
        self.record_at(segments, seq, &mut |record| {
            for line in record.lines() {
                let (at, line) = line?;
                if at == seq {
                    entry = Some(Entry::read(record, seq, &line)?);
                }
            }
            Ok(())
        })?;
        Ok(entry)
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

    /// The keys that the index has of a conversation behind `last`.
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

fn is_chunks(entry: &Entry, item: &str) -> bool {
    matches!(&entry.kind, EntryKind::Chunk { chunk, .. } if chunk.id.as_deref() == Some(item))
}

/// Whether an entry has the id itself, not only its digest.
fn bears(entry: &Entry, item: &str) -> bool {
    let header = match &entry.kind {
        EntryKind::Chunk { header, .. } => header.as_deref(),
        EntryKind::Begin { header } | EntryKind::Finish { header } => Some(&**header),
        _ => None,
    };
    is_chunks(entry, item) || header.is_some_and(|header| header.metadata.id.as_deref() == Some(item))
}
