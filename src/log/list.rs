//! Which conversations there are, newest activity first.

use std::ops::ControlFlow;

use super::core::Core;
use crate::error::{Error, Result};
use crate::log::engine::Order;
use crate::model::{ConversationId, Timestamp};
use crate::record::{Head, key};

/// Which page of the list, and how long it is.
///
/// ```
/// use conversation_store::ListQuery;
///
/// let query = ListQuery::new().with_limit(10);
/// # let _ = query;
/// ```
#[derive(Clone, Debug)]
pub struct ListQuery {
    /// Items at most.
    pub limit: usize,
    /// Where the page before ended.
    pub after: Option<Cursor>,
    /// Only conversations whose title holds this text, whatever its case. The list is scanned for it: a rare title costs
    /// the time of the whole list.
    pub title: Option<String>,
    /// Only conversations that have all these tags. The list is scanned, as for titles.
    pub tags: Vec<String>,
}

/// Where a page ended. As text it can be kept and read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    minute: u64,
    conversation: ConversationId,
}

/// A page of the list.
#[derive(Clone, Debug)]
pub struct ListPage {
    /// By minute of last activity, newest first; within a minute by id, highest first.
    pub items: Vec<ListItem>,
    /// Where the next page begins; absent on the last one. A conversation that moves while one pages may be missed or
    /// repeated.
    pub next: Option<Cursor>,
}

/// A conversation in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListItem {
    /// Its id.
    pub id: ConversationId,
    /// Its key, if it was named by one.
    pub key: Option<String>,
    /// Its title: the caller's, else the first user text's first line.
    pub title: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When something was appended last.
    pub last_activity: Timestamp,
    /// Its last seq.
    pub last_seq: u64,
    /// How many messages were appended, hidden ones too.
    pub messages: u64,
    /// The conversation that it was forked from, and at which seq.
    pub parent: Option<(ConversationId, u64)>,
}

impl ListQuery {
    /// The 50 newest.
    #[must_use]
    pub const fn new() -> Self {
        Self { limit: 50, after: None, title: None, tags: Vec::new() }
    }

    /// Sets the length of the page.
    #[must_use]
    pub const fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Continues behind a page.
    #[must_use]
    pub const fn with_after(mut self, cursor: Cursor) -> Self {
        self.after = Some(cursor);
        self
    }

    /// Keeps only titles that hold this text.
    #[must_use]
    pub fn with_title(mut self, text: impl Into<String>) -> Self {
        self.title = Some(text.into());
        self
    }

    /// Keeps only conversations that have this tag, too.
    #[must_use]
    pub fn with_tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(tag.into());
        self
    }
}

impl Default for ListQuery {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}_{}", self.minute, self.conversation)
    }
}

impl std::str::FromStr for Cursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parse = || {
            let (minute, id) = text.split_once('_')?;
            Some(Self { minute: minute.parse().ok()?, conversation: id.parse().ok()? })
        };
        parse().ok_or_else(|| Error::InvalidInput(format!("{text:?} is no cursor: give the `next` of a page as it is")))
    }
}

impl ListItem {
    pub(super) fn new(id: ConversationId, head: &Head) -> Self {
        Self {
            id,
            key: head.key.clone(),
            title: head.title.clone(),
            tags: head.tags.clone(),
            created_at: Timestamp::from_micros(head.created),
            last_activity: Timestamp::from_micros(head.last_activity),
            last_seq: head.next_seq - 1,
            messages: head.next_message_index,
            parent: head.parent.map(|(parent, at_seq)| (ConversationId::from_bytes(parent), at_seq)),
        }
    }
}

impl Core {
    /// What the list says of one conversation.
    pub(crate) fn describe(&self, id: ConversationId) -> Result<Option<ListItem>> {
        Ok(self.published_head(id)?.map(|head| ListItem::new(id, &head)))
    }

    pub(crate) fn list(&self, query: &ListQuery) -> Result<ListPage> {
        let mut page = ListPage { items: Vec::new(), next: None };
        let wanted = query.title.as_ref().map(|text| text.to_lowercase());
        let start = match query.after {
            // The first key behind the cursor's.
            Some(cursor) => [key::index(cursor.minute, cursor.conversation), vec![0]].concat(),
            None => vec![key::INDEX],
        };
        let (mut result, mut last) = (Ok(()), query.after);
        self.engine.scan(&start..&key::after(&[key::INDEX]), Order::Ascending, &mut |key, _| {
            let Some((minute, id)) = key::parse_index(key) else { return ControlFlow::Continue(()) };
            let head = match self.head_for_list(id) {
                Ok(head) => head,
                Err(error) => {
                    result = Err(error);
                    return ControlFlow::Break(());
                }
            };
            // No head: it is new and not durable yet, or it is being deleted.
            let Some(item) = head.map(|head| ListItem::new(id, &head)) else { return ControlFlow::Continue(()) };
            let title = item.title.as_deref().unwrap_or_default();
            let is_tagged = query.tags.iter().all(|tag| item.tags.contains(tag));
            if !is_tagged || wanted.as_ref().is_some_and(|wanted| !title.to_lowercase().contains(wanted)) {
                return ControlFlow::Continue(());
            }
            if page.items.len() == query.limit {
                page.next = last;
                return ControlFlow::Break(());
            }
            page.items.push(item);
            last = Some(Cursor { minute, conversation: id });
            ControlFlow::Continue(())
        })?;
        result?;
        Ok(page)
    }

    /// The head that readers see, without making it one of those in use.
    pub(super) fn head_for_list(&self, id: ConversationId) -> Result<Option<Head>> {
        loop {
            let state = self.lock();
            if let Some(slot) = state.slots.get(&id) {
                return Ok(slot.published.as_deref().cloned());
            }
            let evictions = state.evictions;
            drop(state);
            let head = self.stored_head(id)?;
            let state = self.lock();
            if state.evictions == evictions && !state.slots.contains_key(&id) {
                return Ok(head);
            }
        }
    }
}
