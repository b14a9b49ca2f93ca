//! Which conversations there are, and what is known of them.

use super::Store;
use crate::error::{Error, Result};
use crate::log::{Item, ListItem, ListPage, ListQuery, Unfinished, reading};
use crate::model::{Json, Name};

impl Store {
    /// What the list has of one conversation: title, key, times, last seq, parent. Cost: as in [`Store::list`].
    ///
    /// # Errors
    /// `NotFound`; `Corrupt`; `Io`.
    pub fn describe(&self, name: impl Into<Name>) -> Result<ListItem> {
        let view = self.ask(name, reading::view)?;
        let mut item = ListItem::new(view.id, view.head);
        self.count(&mut item)?;
        Ok(item)
    }

    /// A conversation's metadata, if some was set. A fork begins with that of its parent. Cost: one read for each change of
    /// title, tags or metadata since.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt`; `Io`.
    pub fn metadata(&self, name: impl Into<Name>) -> Result<Option<Json>> {
        self.ask(name, reading::metadata)
    }

    /// A page of the list of conversations, newest activity first. Cost: one read an item, and one for each rewind and
    /// removal of it; see [`ListQuery`] for filters.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub fn list(&self, query: &ListQuery) -> Result<ListPage> {
        let mut page = self.log.list(query)?;
        page.items.iter_mut().try_for_each(|item| self.count(item))?;
        Ok(page)
    }

    /// Counts what is hidden. Where damage keeps that from being read, nothing is.
    fn count(&self, item: &mut ListItem) -> Result<()> {
        if item.is_uncounted
            && let Some(view) = readable(self.log.view(&item.id.into()))?.flatten()
            && let Some(hidden) = readable(reading::hidden(&*self.log, &view))?
        {
            item.hide(hidden);
        }
        Ok(())
    }

    /// The messages that were begun and are not finished: those that are being written, and those that were interrupted and
    /// that no later message follows. By conversation id.
    ///
    /// After a crash these are the answers that were cut off. Cost: one read for each conversation that has such messages.
    ///
    /// ```
    /// use conversation_store::{MessageState, Store};
    /// use conversation_store::model::{Metadata, Role};
    ///
    /// let store = Store::open("memory:")?;
    /// let writer = store.begin("chat", Role::Assistant, Metadata::default())?;
    /// assert_eq!(store.unfinished()?[0].state, MessageState::Streaming);
    /// drop(writer);
    /// store.sync()?;
    /// assert_eq!(store.unfinished()?[0].state, MessageState::Interrupted);
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub fn unfinished(&self) -> Result<Vec<Unfinished>> {
        let mut found = Vec::new();
        for id in self.log.unfinished()? {
            let view = readable(self.log.view(&id.into()))?.flatten();
            found.extend(view.iter().flat_map(reading::unfinished));
        }
        Ok(found)
    }

    /// The place of a provider's item id in a conversation: the id of a chunk ([`crate::model::Chunk::id`]) or of a message
    /// ([`crate::model::Metadata::id`]). Of several the first that no rewind hides. A fork knows what it shares with its parent.
    ///
    /// ```
    /// use conversation_store::Store;
    /// use conversation_store::model::{Chunk, Message};
    ///
    /// let store = Store::open("memory:")?;
    /// let thought = Chunk { id: Some("rs_1".to_owned()), ..Chunk::thinking("Hm.") };
    /// store.append("chat", &[Message::user("hello"), Message::assistant([thought])])?;
    /// let item = store.find_item("chat", "rs_1")?;
    /// assert_eq!(item.map(|item| (item.message_index, item.chunk_index)), Some((1, Some(0))));
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    ///
    /// Cost: a look into the index, and reading the record that it names.
    ///
    /// # Errors
    /// `NotFound` if there is no such conversation; `Corrupt`; `Io`.
    pub fn find_item(&self, name: impl Into<Name>, item_id: &str) -> Result<Option<Item>> {
        self.ask(name, |log, name| reading::find_item(log, &reading::view(log, name)?, item_id))
    }

    /// As [`Store::find_item`], where what was removed or rewound counts too: a reader who stopped there goes on from there.
    #[cfg(feature = "server")]
    pub(crate) fn find_hidden_item(&self, name: impl Into<Name>, item_id: &str) -> Result<Option<Item>> {
        self.ask(name, |log, name| reading::find_hidden_item(log, &reading::view(log, name)?, item_id))
    }

    /// The places of a provider's item id in all conversations, by their ids. Cost: a look into the index for each
    /// conversation. Conversations that are damaged are left out; [`Store::verify`] reports them.
    ///
    /// # Errors
    /// `Io`.
    pub fn find_item_everywhere(&self, item_id: &str) -> Result<Vec<Item>> {
        let mut found = Vec::new();
        for id in self.log.conversations()? {
            let looked = self
                .log
                .view(&id.into())
                .and_then(|view| view.map_or(Ok(None), |view| reading::find_item(&*self.log, &view, item_id)));
            found.extend(readable(looked)?.flatten());
        }
        Ok(found)
    }
}

/// What was read of one conversation among many: nothing, if damage keeps it from being read.
fn readable<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(Error::Corrupt { .. } | Error::UnsupportedVersion { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
