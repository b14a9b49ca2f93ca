//! Items by their place: pages, and look-ups.

use super::item::{Given, given, synthetic_place};
use crate::history::StoredMessage;
use crate::log::reading::PageSize;
use crate::model::Name;
use crate::store::Store;
use crate::{Error, Result};

/// A page ends with the item that exceeds this.
pub(super) const BYTES: usize = 16 * 1024 * 1024;

/// A page of items.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) items: Vec<Given>,
    pub(super) has_more: bool,
    /// Bytes that are left.
    room: Option<usize>,
}

impl Page {
    const fn new(bytes: usize) -> Self {
        Self { items: Vec::new(), has_more: false, room: Some(bytes) }
    }

    /// Adds an item; false once the page is full.
    fn add(&mut self, item: Given, limit: usize) -> bool {
        let Some(room) = self.room.filter(|_| self.items.len() < limit) else {
            self.has_more = true;
            return false;
        };
        self.room = room.checked_sub(item.json.len());
        self.items.push(item);
        true
    }
}

/// Up to `limit` items after a place, oldest first.
pub(super) fn ascending(store: &Store, name: &Name, after: Option<(u64, u32)>, limit: usize) -> Result<Page> {
    let mut page = Page::new(BYTES);
    let mut from = after.map_or(0, |(message, _)| message);
    loop {
        let (messages, next) = store.page(name, from, size(limit, BYTES))?;
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

/// Up to `limit` items before a place, newest first. Ends with the item that exceeds the bytes.
pub(super) fn descending(
    store: &Store,
    name: &Name,
    before: Option<(u64, u32)>,
    limit: usize,
    bytes: usize,
) -> Result<Page> {
    let mut page = Page::new(bytes);
    // Other items of the same message may be before the place.
    let mut end = before.map(|(message, _)| message.saturating_add(1));
    loop {
        let messages = store.page_before(name, end, size(limit, bytes))?;
        let items = messages.iter().rev().flat_map(|stored| given(stored).into_iter().rev());
        for item in items.filter(|item| before.is_none_or(|before| item.place < before)) {
            if !page.add(item, limit) {
                return Ok(page);
            }
        }
        match messages.first().filter(|first| first.index > 0) {
            Some(first) => end = Some(first.index),
            None => return Ok(page),
        }
    }
}

/// Most messages are one item; one more shows whether there is a next page.
const fn size(limit: usize, bytes: usize) -> PageSize {
    PageSize { limit: limit.saturating_add(1), bytes, shows_hidden: false }
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
    let Some(stored) = message_at(store, name, message)? else { return Ok(None) };
    let mut items = given(&stored);
    if let Some(at) = items.iter().position(|item| item.id == id) {
        return Ok(Some(items.swap_remove(at)));
    }
    // A repaired item may be named by its place; what is one item here may be several there.
    let Some(place) = synthetic_place(id) else { return Ok(None) };
    // A whole message is a message, and no result that is in one.
    let is_it = |item: &Given| item.place == place && (!item.chunks.is_empty() || id.starts_with("msg_"));
    if let Some(at) = items.iter().position(is_it) {
        return Ok(Some(items.swap_remove(at)));
    }
    let position = stored.chunk_indexes.iter().position(|chunk| *chunk == place.1);
    let part = position.map(|position| stored.select(|at| at == position));
    let item = part.as_ref().and_then(|part| given(part).into_iter().next());
    let is_alone = stored.message.chunks.len() == 1;
    Ok(item.map(|item| Given { place, chunks: if is_alone { Vec::new() } else { vec![place.1] }, ..item }))
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
fn message_at(store: &Store, name: &Name, message: u64) -> Result<Option<StoredMessage>> {
    match store.messages(name, message, 1) {
        Ok(messages) => Ok(messages.into_iter().find(|stored| stored.index == message)),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
