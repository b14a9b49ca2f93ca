//! Items by their place: pages, and look-ups.

use super::item::{Given, given, synthetic_place};
use crate::history::StoredMessage;
use crate::model::Name;
use crate::store::Store;
use crate::{Error, Result};

/// Messages that are read first, going back: few, because they may be large. Then more, as long as they are small.
const MESSAGES: u64 = 11;
/// So many bytes of items for each message are small.
const SMALL: usize = 64 * 1024;
/// A page ends with the item that exceeds this.
const BYTES: usize = 16 * 1024 * 1024;

/// A page of items.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) items: Vec<Given>,
    pub(super) has_more: bool,
    bytes: usize,
}

impl Page {
    /// Adds an item; false once the page is full.
    fn add(&mut self, item: Given, limit: usize) -> bool {
        if self.items.len() >= limit || self.bytes >= BYTES {
            self.has_more = true;
            return false;
        }
        self.bytes += item.json.len();
        self.items.push(item);
        true
    }
}

/// Up to `limit` items after a place, oldest first.
pub(super) fn ascending(store: &Store, name: &Name, after: Option<(u64, u32)>, limit: usize) -> Result<Page> {
    let mut page = Page::default();
    let mut from = after.map_or(0, |(message, _)| message);
    loop {
        // Most messages are one item; one more shows whether there is a next page.
        let (messages, next) = store.page(name, from, limit.saturating_add(1), BYTES)?;
        for item in messages.iter().flat_map(given).filter(|item| after.is_none_or(|after| item.place > after)) {
            if !page.add(item, limit) {
                return Ok(page);
            }
        }
        match next {
            Some(next) => from = next,
            None => return Ok(page),
        }
    }
}

/// Up to `limit` items before a place, newest first.
pub(super) fn descending(store: &Store, name: &Name, before: Option<(u64, u32)>, limit: usize) -> Result<Page> {
    let mut page = Page::default();
    let (mut end, mut reach) = (before.map(|(message, _)| message), MESSAGES);
    loop {
        let (first, messages) = match end {
            None => {
                let messages = store.newest_messages(name, usize::try_from(reach).unwrap_or(usize::MAX))?;
                (messages.first().map_or(0, |first| first.index), messages)
            }
            Some(end) => {
                let first = end.saturating_sub(reach - 1);
                let mut messages =
                    store.messages(name, first, usize::try_from(end - first + 1).unwrap_or(usize::MAX))?;
                messages.retain(|stored| stored.index <= end);
                (first, messages)
            }
        };
        let items = messages.iter().rev().flat_map(|stored| given(stored).into_iter().rev());
        for item in items.filter(|item| before.is_none_or(|before| item.place < before)) {
            if !page.add(item, limit) {
                return Ok(page);
            }
        }
        if first == 0 {
            return Ok(page);
        }
        // Steps over messages that a rewind hid grow, too.
        reach = match messages.len() {
            0 => reach.saturating_mul(2).min(100_000),
            read if page.bytes / read < SMALL => reach.saturating_mul(2).min(limit as u64 + 1),
            _ => MESSAGES,
        };
        end = Some(first - 1);
    }
}

/// The visible item of an id.
pub(super) fn find(store: &Store, name: &Name, id: &str) -> Result<Option<Given>> {
    let message = match store.find_item(name, id)? {
        Some(item) => item.message_index,
        None => match synthetic_place(id) {
            Some((message, _)) => message,
            None => return Ok(None),
        },
    };
    let items = message_at(store, name, message)?.as_ref().map(given).unwrap_or_default();
    Ok(items.into_iter().find(|item| item.id == id))
}

/// Where an item is, or was before it was removed.
pub(super) fn place(store: &Store, name: &Name, id: &str) -> Result<Option<(u64, u32)>> {
    if let Some(item) = find(store, name, id)? {
        return Ok(Some(item.place));
    }
    let item = store.find_hidden_item(name, id)?;
    let place = item.map(|item| (item.message_index, item.chunk_index.unwrap_or_default()));
    match place.or_else(|| synthetic_place(id)) {
        Some((message, _)) if message >= store.describe(name)?.messages => Ok(None),
        place => Ok(place),
    }
}

/// A visible message.
pub(super) fn message_at(store: &Store, name: &Name, message: u64) -> Result<Option<StoredMessage>> {
    match store.messages(name, message, 1) {
        Ok(messages) => Ok(messages.into_iter().find(|stored| stored.index == message)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
