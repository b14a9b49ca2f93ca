//! The list of conversations, read from the indexes.

use std::cmp::Reverse;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::core::Core;
use super::damage::damage_of;
use crate::embedded::engine::Order;
use crate::error::Result;
use crate::log::Problem;
use crate::log::list::{ListPage, ListQuery, Listed, Pager};
use crate::model::ConversationId;
use crate::record::{self, Head, key};

impl Core {
    pub(crate) fn list(&self, query: &ListQuery) -> Result<ListPage> {
        let mut pager = Pager::new(query)?;
        match query.tags.first() {
            Some(tag) => self.list_tagged(query, tag, &mut pager)?,
            None => self.list_all(query, &mut pager)?,
        }
        Ok(pager.page())
    }

    /// Reads the owner's index second by second: within one second, the heads have the order.
    fn list_all(&self, query: &ListQuery, pager: &mut Pager<'_>) -> Result<()> {
        let all = key::index_of(&record::digest(query.owner.as_bytes()));
        let start = match query.after {
            Some(cursor) => [all.as_slice(), &(!cursor.second).to_be_bytes()].concat(),
            None => all.clone(),
        };
        let (mut result, mut current, mut found) = (Ok(()), None, Vec::new());
        self.engine.keys(&start..&key::after(&all), Order::Ascending, &mut |key, _| {
            let Some((_, second, id)) = key::parse_index(key) else { return ControlFlow::Continue(()) };
            if current != Some(second) {
                pager.add(current.unwrap_or(second), &mut found);
                current = Some(second);
                if pager.is_full() {
                    return ControlFlow::Break(());
                }
            }
            match damage_of(self.head_for_list(id)) {
                // No head: the conversation is new and not durable yet, or it is being deleted.
                Ok(Ok(head)) => found.extend(head.map(|head| Listed { id, head })),
                Ok(Err(error)) => pager.unreadable.push(Problem::from_error(id, &error)),
                Err(error) => result = Err(error),
            }
            if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        pager.add(current.unwrap_or_default(), &mut found);
        result
    }

    fn list_tagged(&self, query: &ListQuery, tag: &str, pager: &mut Pager<'_>) -> Result<()> {
        let prefix = key::tagged(&record::digest(query.owner.as_bytes()), &record::digest(tag.as_bytes()));
        let mut ids = Vec::new();
        self.engine.keys(&prefix..&key::after(&prefix), Order::Ascending, &mut |key, _| {
            ids.extend(key::parse_tag(key));
            ControlFlow::Continue(())
        })?;
        let mut found = Vec::new();
        for id in ids {
            match damage_of(self.head_for_list(id))? {
                Ok(head) => found.extend(head.map(|head| Listed { id, head })),
                Err(error) => pager.unreadable.push(Problem::from_error(id, &error)),
            }
        }
        found.sort_unstable_by_key(|listed| Reverse((listed.last_activity(), listed.id)));
        for listed in found {
            pager.add(listed.last_activity().second(), &mut vec![listed]);
        }
        Ok(())
    }

    /// The head that readers see; the conversation does not become one of those in use.
    pub(super) fn head_for_list(&self, id: ConversationId) -> Result<Option<Arc<Head>>> {
        loop {
            let state = self.lock();
            if let Some(slot) = state.slots.get(&id) {
                return Ok(slot.published.clone());
            }
            let generation = state.generation;
            drop(state);
            // What is in the list exists; damage to its head is another matter.
            let head = match damage_of(self.stored_head(id))? {
                Ok(Some(head)) => Some(head),
                Ok(None) | Err(_) => self.sound_head(id)?,
            };
            let state = self.lock();
            if state.generation == generation && !state.slots.contains_key(&id) {
                return Ok(head.map(Arc::new));
            }
        }
    }
}
