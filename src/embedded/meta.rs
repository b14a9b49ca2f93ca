//! What the caller says of a conversation: its title and tags.

use super::core::Core;
use super::place::Draft;
use crate::error::{Error, Result};
use crate::log::limits::{check_key, check_metadata, check_name, check_tags};
use crate::log::{Durability, NewConversation, Receipt};
use crate::model::{ConversationId, Json, Name};
use crate::record::{Body, Head, Meta, Replacement, TitleSource};

impl Core {
    /// Removes tags, then adds others that are not there yet; gives all that there are now. Nothing is written if they are
    /// the same as before.
    pub(crate) fn change_tags(&self, name: &Name, remove: &[&str], add: &[&str]) -> Result<Vec<String>> {
        let frozen = self.freeze(name.id())?;
        let head = frozen.head(name)?;
        let mut tags = head.tags.clone();
        tags.retain(|tag| !remove.contains(&tag.as_str()));
        for tag in add {
            if !tags.iter().any(|known| known == tag) {
                tags.push((*tag).to_owned());
            }
        }
        check_tags(&tags)?;
        if tags == head.tags {
            return Ok(tags);
        }
        let meta = Meta {
            title: None,
            tags: Some(tags.iter().map(String::as_str).collect()),
            metadata: None,
            previous: head.last_meta,
        };
        self.write_control(&frozen, name, Body::meta(&meta)?, Replacement::new(), |after| {
            after.tags.clone_from(&tags);
            after.last_meta = head.next_seq;
        })?;
        Ok(tags)
    }

    /// Sets the title, or gives it back to the first user text.
    pub(crate) fn set_title(&self, name: &Name, new: Option<&str>) -> Result<Receipt> {
        if let Some(new) = new {
            check_name("a title", new)?;
        }
        let id = name.id();
        let frozen = self.freeze(id)?;
        let head = frozen.head(name)?;
        let derived = if new.is_none() { self.derived_title(id, &head)? } else { None };
        let body = Body::meta(&Meta { title: Some(new), tags: None, metadata: None, previous: head.last_meta })?;
        self.write_control(&frozen, name, body, Replacement::new(), |after| {
            after.last_meta = head.next_seq;
            (after.title, after.title_source) = match (new, derived) {
                (Some(new), _) => (Some(new.to_owned()), TitleSource::Caller),
                (None, Some((index, title))) => (Some(title), TitleSource::Message(index)),
                (None, None) => (None, TitleSource::Pending),
            };
        })
    }

    /// Replaces the metadata.
    pub(crate) fn set_metadata(&self, name: &Name, metadata: &Json) -> Result<Receipt> {
        check_metadata(metadata)?;
        let frozen = self.freeze(name.id())?;
        let head = frozen.head(name)?;
        let meta = Meta { title: None, tags: None, metadata: Some(metadata.as_str()), previous: head.last_meta };
        self.write_control(&frozen, name, Body::meta(&meta)?, Replacement::new(), |after| {
            after.last_meta = head.next_seq;
        })
    }

    /// Makes a conversation without messages.
    pub(crate) fn create(&self, name: &Name, new: &NewConversation) -> Result<Receipt> {
        check_key(name)?;
        new.title.as_deref().map_or(Ok(()), |title| check_name("a title", title))?;
        new.metadata.as_ref().map_or(Ok(()), check_metadata)?;
        let mut tags: Vec<String> = Vec::new();
        for tag in &new.tags {
            if !tags.contains(tag) {
                tags.push(tag.clone());
            }
        }
        check_tags(&tags)?;
        let meta = Meta {
            title: new.title.as_deref().map(Some),
            tags: (!tags.is_empty()).then(|| tags.iter().map(String::as_str).collect()),
            metadata: new.metadata.as_ref().map(Json::as_str),
            previous: 0,
        };
        let body = Body::meta(&meta)?;
        let id = name.id();
        let _pin = self.pin(id)?;
        let mut state = self.writable(id, Durability::Durable)?;
        let slot = state.slot(id);
        if let Some(head) = &slot.queued {
            return Err(Error::NameTaken { conversation: name.clone(), actual: head.next_seq - 1 });
        }
        slot.check_free(name)?;
        let draft = Draft { name, body, messages: 0, base: None, said: &[] };
        let placed = self.place(&mut state, id, draft, |head| {
            head.last_meta = 1;
            head.tags = tags;
            if let Some(title) = &new.title {
                (head.title, head.title_source) = (Some(title.clone()), TitleSource::Caller);
            }
        });
        self.queue(state, placed, Durability::Durable)
    }

    /// The title that the visible messages give.
    fn derived_title(&self, id: ConversationId, head: &Head) -> Result<Option<(u64, String)>> {
        Ok(self.names(id, &self.segments(id, head)?, head.next_seq - 1)?.first_said())
    }
}
