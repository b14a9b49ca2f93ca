//! Which conversations there are, newest activity first.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::limits::check_name;
use super::results::Problem;
use crate::error::{Error, Result};
use crate::model::{ConversationId, StartedBy, Timestamp};
use crate::record::Head;

/// Which page of the list, and how long it is.
///
/// ```
/// use conversation_store::ListQuery;
///
/// let query = ListQuery::new().with_owner("ada").with_limit(10);
/// # let _ = query;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListQuery {
    /// Whose conversations. Empty: those that were made without an owner.
    pub owner: String,
    /// Items at most; at least 1.
    pub limit: usize,
    /// Where the page before ended.
    pub after: Option<ListCursor>,
    /// Only conversations whose title holds this text, whatever its case. The owner's list is scanned for it: a rare title
    /// costs the time of the whole list.
    pub title: Option<String>,
    /// Only conversations that have all these tags. Cost: one read for each conversation that has the first of them.
    pub tags: Vec<String>,
}

/// Where a page ended. As text it can be kept and read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListCursor(pub(crate) Place);

/// The order within the list: microseconds of last activity, then the id; the highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) micros: i64,
    pub(crate) conversation: ConversationId,
}

/// A page of the list.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema), schemars(rename = "ConversationPage"))]
#[non_exhaustive]
pub struct ListPage {
    /// By time of last activity, newest first; of the same microsecond by id, highest first.
    pub items: Vec<ListItem>,
    /// Conversations that belong here, and cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Problem>,
    /// Where the next page begins; absent on the last one. A conversation that moves while one pages may be missed or
    /// repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<ListCursor>,
}

/// A conversation in the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ListItem {
    /// Its id.
    #[serde(rename = "conversation")]
    pub id: ConversationId,
    /// Its owner; empty if it was made without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// Its key, if it was named by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Its title: the caller's, else the first user text's first line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When something was appended last.
    pub last_activity: Timestamp,
    /// Its last seq.
    pub last_seq: u64,
    /// How many messages it shows: those that were appended, without those that a rewind or a removal hides.
    pub messages: u64,
    /// How many messages a rewind or a removal hides.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hidden: u64,
    /// Whether something is hidden, and not counted yet: `messages` has it.
    #[serde(skip)]
    pub(crate) is_uncounted: bool,
    /// The conversation that it was forked from, and where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Fork>,
    /// Which of the conversations that have had this id.
    #[serde(skip)]
    pub(crate) incarnation: u64,
}

impl ListItem {
    /// What started it, if its tags say so.
    #[must_use]
    pub fn started_by(&self) -> Option<StartedBy> {
        StartedBy::of(&self.tags)
    }

    /// Whether the proxy recorded it beside a conversation: a sub-agent's, a title, a compaction.
    #[must_use]
    pub fn is_beside(&self) -> bool {
        self.tags.iter().any(|tag| matches!(&**tag, "kind:agent" | "kind:side" | "kind:compaction"))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Where a conversation was forked from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Fork {
    /// The conversation that it was forked from.
    pub conversation: ConversationId,
    /// The last seq that both share; 0 if they share none.
    pub at_seq: u64,
}

impl ListQuery {
    /// The 50 newest that have no owner.
    #[must_use]
    pub const fn new() -> Self {
        Self { owner: String::new(), limit: 50, after: None, title: None, tags: Vec::new() }
    }

    /// Sets whose conversations are listed.
    #[must_use]
    pub fn with_owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = owner.into();
        self
    }

    /// Sets the length of the page.
    #[must_use]
    pub const fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Continues after a page.
    #[must_use]
    pub const fn with_after(mut self, cursor: ListCursor) -> Self {
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

impl std::fmt::Display for ListCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}_{}", self.0.micros, self.0.conversation)
    }
}

impl Serialize for ListCursor {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ListCursor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl std::str::FromStr for ListCursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parse = || {
            let (micros, conversation) = text.split_once('_')?;
            Some(Self(Place { micros: micros.parse().ok()?, conversation: conversation.parse().ok()? }))
        };
        parse().ok_or_else(|| {
            Error::InvalidInput(format!("{text:?} is not a cursor: give the `next` of a page unchanged"))
        })
    }
}

impl ListItem {
    pub(crate) fn new(id: ConversationId, head: Arc<Head>) -> Self {
        let head = Arc::unwrap_or_clone(head);
        Self {
            id,
            owner: head.owner,
            key: head.key,
            title: head.title,
            tags: head.tags,
            created_at: Timestamp::from_micros(head.created),
            last_activity: Timestamp::from_micros(head.last_activity),
            last_seq: head.next_seq - 1,
            messages: head.next_message_index,
            hidden: 0,
            is_uncounted: head.last_hide > 0,
            parent: head.parent.map(|parent| Fork { conversation: parent.id(), at_seq: parent.at_seq }),
            incarnation: head.incarnation,
        }
    }
}

impl ListItem {
    /// Its place in the list.
    #[cfg(any(feature = "postgres", feature = "server"))]
    pub(crate) fn cursor(&self) -> ListCursor {
        ListCursor(Place { micros: self.last_activity.as_micros(), conversation: self.id })
    }

    /// Takes the hidden messages out of those that were appended.
    pub(crate) fn hide(&mut self, hidden: u64) {
        (self.messages, self.hidden) = (self.messages.saturating_sub(hidden), hidden);
        self.is_uncounted = false;
    }
}

/// A conversation that a page of the list may show.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) id: ConversationId,
    pub(crate) head: Arc<Head>,
}

impl Listed {
    fn place(&self) -> Place {
        Place { micros: self.head.last_activity, conversation: self.id }
    }
}

/// At most this many items get their memory before they are read: a limit may be of any size.
const AHEAD: usize = 1_000;

/// Collects a page, and one item more: if there is one, there is a next page.
pub(crate) struct Pager<'a> {
    query: &'a ListQuery,
    title: Option<String>,
    items: Vec<Listed>,
    pub(crate) unreadable: Vec<Problem>,
}

impl<'a> Pager<'a> {
    /// An empty page, if the query can be answered.
    pub(crate) fn new(query: &'a ListQuery) -> Result<Self> {
        if query.limit == 0 {
            return Err(Error::InvalidInput("a page of the list needs a limit of at least 1".to_owned()));
        }
        check_name("an owner", &query.owner)?;
        let title = query.title.as_ref().map(|title| title.to_lowercase());
        let items = Vec::with_capacity(query.limit.saturating_add(1).min(AHEAD));
        Ok(Self { query, title, items, unreadable: Vec::new() })
    }

    /// Takes a conversation, if the query wants it.
    pub(crate) fn add(&mut self, listed: Listed) -> bool {
        let is_wanted = self.is_wanted(&listed);
        if is_wanted {
            self.items.push(listed);
        }
        is_wanted
    }

    fn is_wanted(&self, listed: &Listed) -> bool {
        let head = &listed.head;
        let title = head.title.as_deref().unwrap_or_default();
        self.query.after.is_none_or(|cursor| listed.place() < cursor.0)
            && self.query.tags.iter().all(|tag| head.tags.contains(tag))
            && self.title.as_ref().is_none_or(|wanted| title.to_lowercase().contains(wanted))
            && is_same(&head.owner, &self.query.owner)
    }

    /// Keeps each conversation once: as it was seen last.
    pub(crate) fn keep_newest_of_each(&mut self) {
        self.items.sort_unstable_by_key(|listed| Reverse(listed.place()));
        let mut seen = HashSet::with_capacity(self.items.len());
        self.items.retain(|listed| seen.insert(listed.id));
    }

    pub(crate) fn page(mut self) -> ListPage {
        self.items.sort_unstable_by_key(|listed| Reverse(listed.place()));
        let has_more = self.items.len() > self.query.limit;
        self.items.truncate(self.query.limit);
        let next = self.items.last().filter(|_| has_more).map(|listed| ListCursor(listed.place()));
        let items = self.items.into_iter().map(|listed| ListItem::new(listed.id, listed.head)).collect();
        ListPage { items, unreadable: self.unreadable, next }
    }
}

/// Whether two names are equal. Where both are empty nothing is read: some processors take long to read nothing.
fn is_same(one: &str, other: &str) -> bool {
    one.len() == other.len() && (one.is_empty() || one == other)
}
