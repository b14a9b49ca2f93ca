//! The list of conversations, read from the indexes.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::core::Core;
use super::damage::damage_of;
use crate::embedded::engine::Order;
use crate::error::Result;
use crate::log::Problem;
use crate::log::list::{ListPage, ListQuery, Listed, Pager};
use crate::model::ConversationId;
use crate::record::{self, Head, key, listed_micros};

impl Core {
    pub(crate) fn list(&self, query: &ListQuery) -> Result<ListPage> {
        let mut pager = Pager::new(query)?;
        if let Some(tag) = query.tags.first() {
            self.list_tagged(query, tag, &mut pager)?;
            return Ok(pager.page());
        }
        let mark = self.lock().moves.begin_reading();
        let read = self.list_all(query, &mut pager);
        let moved = self.lock().moves.end_reading(mark);
        let seen = read?;
        for id in moved.into_iter().filter(|id| !seen.contains(id)) {
            self.add_to_list(id, &mut pager)?;
        }
        Ok(pager.page())
    }

    /// Reads the owner's index, the newest first. A commit under way has moved its conversations there already, but readers do
    /// not see it yet: the page has such a conversation at its old place, or not at all.
    ///
    /// Returns the conversations that it met. A scan may meet one twice: at its new place and at its old one.
    fn list_all(&self, query: &ListQuery, pager: &mut Pager<'_>) -> Result<HashSet<ConversationId>> {
        let owner = record::digest(query.owner.as_bytes());
        let all = key::index_of(&owner);
        let start =
            query.after.map_or_else(|| all.clone(), |cursor| key::index_from(&owner, listed_micros(cursor.0.micros)));
        let (mut result, mut in_place, mut seen) = (Ok(()), 0, HashSet::new());
        self.engine.keys(&start..&key::after(&all), Order::Ascending, &mut |key, _| {
            let Some((_, micros, id)) = key::parse_index(key) else { return ControlFlow::Continue(()) };
            if !seen.insert(id) {
                return ControlFlow::Continue(());
            }
            match self.add_to_list(id, pager) {
                // Times before 1970 have one place, whatever their order.
                Ok(added) => in_place += usize::from(added.is_some_and(|added| u64::try_from(added) == Ok(micros))),
                Err(error) => result = Err(error),
            }
            if result.is_ok() && in_place <= query.limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        result.map(|()| seen)
    }

    fn list_tagged(&self, query: &ListQuery, tag: &str, pager: &mut Pager<'_>) -> Result<()> {
        let prefix = key::tagged(&record::digest(query.owner.as_bytes()), &record::digest(tag.as_bytes()));
        let mut ids = Vec::new();
        self.engine.keys(&prefix..&key::after(&prefix), Order::Ascending, &mut |key, _| {
            ids.extend(key::parse_tag(key));
            ControlFlow::Continue(())
        })?;
        ids.into_iter().try_for_each(|id| self.add_to_list(id, pager).map(|_| ()))
    }

    /// Adds a conversation to a page, if it belongs there. Returns the time of its last activity if it was added.
    fn add_to_list(&self, id: ConversationId, pager: &mut Pager<'_>) -> Result<Option<i64>> {
        match damage_of(self.head_for_list(id))? {
            Ok(Some(head)) => {
                let micros = head.last_activity;
                Ok(pager.add(Listed { id, head }).then_some(micros))
            }
            // No head: the conversation is new and not durable yet, or it is being deleted.
            Ok(None) => Ok(None),
            Err(error) => {
                pager.unreadable.push(Problem::from_error(id, &error));
                Ok(None)
            }
        }
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
