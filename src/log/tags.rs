//! Tags: the caller's marks of a conversation.

use super::Core;
use super::append::{Draft, Placed};
use super::limits::check_tags;
use crate::error::{Error, Result};
use crate::model::Name;
use crate::record::{Body, Meta};

impl Core {
    /// Removes tags, then adds others that are not there yet; gives all that there are now. Nothing is written if they are
    /// the same as before.
    pub(crate) fn change_tags(&self, name: &Name, remove: &[&str], add: &[&str]) -> Result<Vec<String>> {
        let id = name.id();
        let _frozen = self.freeze(id)?;
        let head = self.published_head(id)?.ok_or_else(|| Error::no_conversation(name))?;
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
        let meta = Meta { title: None, tags: Some(tags.iter().map(String::as_str).collect()) };
        let draft = Draft { name, body: Body::meta(&meta)?, messages: 0, base: None, said: &[] };
        let mut state = self.lock();
        state.check_writable()?;
        let Placed { mut pending, .. } = self.place(&mut state, draft);
        self.change_head(&mut pending, |head| head.tags.clone_from(&tags));
        self.queue_durable(state, pending)?;
        Ok(tags)
    }
}
