//! Finds messages, and chunks of messages, by the ids that a provider gave them.

use super::contract::{Log, View};
use super::hidden;
use super::records::{Records, entries_at};
use super::results::Item;
use crate::error::Result;
use crate::history::{Entry, EntryKind};

/// The first visible message, or chunk of one, with a provider's item id.
pub(crate) fn find(log: &dyn Log, view: &View, item: &str) -> Result<Option<Item>> {
    let seqs = log.item_seqs(view, item, usize::MAX)?;
    if seqs.is_empty() {
        return Ok(None);
    }
    let hides = hidden::all(log, view)?;
    let entries = entries_at(log, view);
    for seq in seqs {
        let Some((entry, found)) = bearer(&entries, view, seq, item)? else { continue };
        let message = found.message_index;
        // The message itself may bear the id of a chunk that is hidden.
        let is_removed = |chunk: &u32| hides.iter().any(|hide| hide.hides_chunk(message, *chunk));
        let is_left = found.chunk_index.is_none_or(|chunk| !is_removed(&chunk)) || bears_itself(&entry, item);
        if is_left && !hides.iter().any(|hide| hide.hides(message)) {
            let chunk_index = found.chunk_index.filter(|chunk| !is_removed(chunk));
            return Ok(Some(Item { chunk_index, ..found }));
        }
    }
    Ok(None)
}

/// The last message, or chunk of one, with a provider's item id, hidden or not.
#[cfg(feature = "server")]
pub(crate) fn find_hidden(log: &dyn Log, view: &View, item: &str) -> Result<Option<Item>> {
    let entries = entries_at(log, view);
    for seq in log.item_seqs(view, item, usize::MAX)?.into_iter().rev() {
        if let Some((_, found)) = bearer(&entries, view, seq, item)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The entry of a seq, if it has the id itself, not only its digest; and what bears the id there.
fn bearer(entries: &Records<'_>, view: &View, seq: u64, item: &str) -> Result<Option<(Entry, Item)>> {
    let entry = entries.at(seq, "an entry", |record, line| Entry::read(record, seq, line).map(Some))?;
    let is_chunks = matches!(&entry.kind, EntryKind::Chunk { chunk, .. } if chunk.id.as_deref() == Some(item));
    let Some(message_index) = entry.message_index.filter(|_| is_chunks || bears_itself(&entry, item)) else {
        return Ok(None);
    };
    let chunk_index = entry.chunk_index.filter(|_| is_chunks);
    let found = Item { conversation: view.id, key: view.head.key.clone(), message_index, chunk_index, seq };
    Ok(Some((entry, found)))
}

/// Whether it is the id of an entry's message.
fn bears_itself(entry: &Entry, item: &str) -> bool {
    let header = match &entry.kind {
        EntryKind::Chunk { header, .. } => header.as_deref(),
        EntryKind::Begin { header } | EntryKind::Finish { header } => Some(&**header),
        _ => None,
    };
    header.is_some_and(|header| header.metadata.id.as_deref() == Some(item))
}
