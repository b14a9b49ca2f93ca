//! What the caller says of a conversation: its title and tags.

use super::core::Core;
use crate::error::Result;
use crate::log::Receipt;
use crate::log::limits::{check_name, check_tags};
use crate::model::{ConversationId, Name};
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

    /// The title that the visible messages give.
    fn derived_title(&self, id: ConversationId, head: &Head) -> Result<Option<(u64, String)>> {
        Ok(self.names(id, &self.segments(id, head)?, head.next_seq - 1)?.first_said())
    }
}
