//! What is kept for the sake of records: where a provider's item ids are, and the receipts of idempotency keys. The first
//! can be derived from the records; the second are compared with them.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::damage_of;
use super::records::segments;
use crate::embedded::engine::{Engine, Order};
use crate::error::{Error, Result};
use crate::log::Reading;
use crate::log::segments::{Segment, Segmented};
use crate::model::ConversationId;
use crate::record::{self, FORGOTTEN, Head, Line, Receipt, key};

/// Adds the seqs under which the index has an item id, the last first, until there are so many.
pub(crate) fn item_seqs(
    engine: &dyn Engine,
    segment: Segment,
    item: &str,
    most: usize,
    seqs: &mut Vec<u64>,
) -> Result<()> {
    if seqs.len() >= most {
        return Ok(());
    }
    let digest = record::digest(item.as_bytes());
    let key = |seq| key::item(segment.conversation, &digest, seq);
    // The range ends before the seq that comes next.
    engine.keys(&key(segment.first)..&key(segment.last.saturating_add(1)), Order::Descending, &mut |key, _| {
        seqs.extend(key::parse_item(key));
        if seqs.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })
}

/// The keys that the index has of a conversation, up to `last`.
pub(crate) fn item_keys(engine: &dyn Engine, id: ConversationId, last: u64) -> Result<BTreeSet<Vec<u8>>> {
    let prefix = key::prefix(key::ITEM, id);
    let mut keys = BTreeSet::new();
    engine.keys(&prefix..&key::after(&prefix), Order::Ascending, &mut |key, _| {
        if key::parse_item(key).is_none_or(|seq| seq <= last) {
            keys.insert(key.to_vec());
        }
        ControlFlow::Continue(())
    })?;
    Ok(keys)
}

/// The keys that the index has of a conversation after `last`.
pub(crate) fn items_behind(engine: &dyn Engine, id: ConversationId, last: u64) -> Result<Vec<Vec<u8>>> {
    let kept = item_keys(engine, id, last)?;
    Ok(item_keys(engine, id, u64::MAX)?.difference(&kept).cloned().collect())
}

/// The keys that the index should have of a conversation's own records.
pub(crate) fn derived_item_keys(engine: &dyn Engine, id: ConversationId) -> Result<BTreeSet<Vec<u8>>> {
    let all = Segment::all(id);
    let mut keys = BTreeSet::new();
    engine.read(&[all], 1..=u64::MAX - 2, Order::Ascending, &mut |item| {
        if let Reading::Record { record, .. } = item {
            record.item_keys(id, u64::MAX, &mut keys);
        }
        ControlFlow::Continue(())
    })?;
    Ok(keys)
}

/// The receipt under a key of a conversation.
pub(crate) fn open_receipt(id: ConversationId, key: &[u8], bytes: &[u8]) -> Result<Receipt> {
    record::open("an idempotency record", key, bytes).map_err(|error| match error {
        Error::Corrupt { seq, detail, .. } => Error::Corrupt { conversation: Some(id.into()), seq, detail },
        other => other,
    })
}

/// Whether the record of a receipt exists, and holds what the receipt states.
pub(crate) fn is_proved(engine: &dyn Engine, id: ConversationId, head: &Head, receipt: &Receipt) -> Result<bool> {
    let is_own = head.first_seq() <= receipt.first_seq && receipt.last_seq < head.next_seq;
    if !is_own {
        return Ok(false);
    }
    let segments = segments(engine, id, head)?;
    let proved = engine.records(&segments).record(receipt.first_seq, "a record", |record| {
        // A message that was begun holds more than its key covers.
        let is_begun = matches!(record.lines().next(), Some(Ok((_, Line::Begin(begin)))) if begin.epoch.is_some());
        let digests = [record::digest(record.content()), FORGOTTEN];
        let is_proved = record.first_seq == receipt.first_seq
            && (record.first_seq + record.len()).checked_sub(1) == Some(receipt.last_seq)
            && record.header.base == receipt.first_message_index
            && (is_begun || digests.contains(&receipt.content_digest));
        Ok(Some(is_proved))
    });
    Ok(damage_of(proved)?.unwrap_or(false))
}

/// The keys of receipts whose records are missing.
pub(crate) fn unproved_receipts(engine: &dyn Engine, id: ConversationId, head: &Head) -> Result<Vec<Vec<u8>>> {
    let prefix = key::prefix(key::RECEIPT, id);
    let mut receipts = Vec::new();
    engine.scan(&prefix..&key::after(&prefix), Order::Ascending, &mut |key, value| {
        receipts.push((key.to_vec(), open_receipt(id, key, value).ok()));
        ControlFlow::Continue(())
    })?;
    let mut unproved = Vec::new();
    for (key, receipt) in receipts {
        let is_proved = receipt.map_or(Ok(false), |receipt| is_proved(engine, id, head, &receipt))?;
        if !is_proved {
            unproved.push(key);
        }
    }
    Ok(unproved)
}
