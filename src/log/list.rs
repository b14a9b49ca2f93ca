//! Which conversations there are, in which order, and which of them a page has.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

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
    /// Only conversations whose title holds this text, whatever its case. The owner's list is scanned for it.
    pub title: Option<String>,
    /// Only conversations that have all these tags. Cost: the keys of the conversations that have the first of them, and a read for
    /// each item; where these are rare in the owner's list, a read for each that has the tag. Where more than 10,000 have it, the
    /// owner's list is scanned for them.
    pub tags: Vec<String>,
    /// Only conversations with a key that begins so. The owner's list is scanned for it.
    pub key_prefix: Option<String>,
    /// Only conversations that share entries of this one: its forks. Cost: one read for each of them.
    pub forked_from: Option<ConversationId>,
    /// Only conversations whose metadata have these fields: a text, or the JSON of another value. Cost: reading the metadata of
    /// up to 1,000 conversations for a page.
    pub metadata: Vec<(String, String)>,
    /// Only conversations that were active last at this time, or after it.
    pub since: Option<Timestamp>,
    /// Only conversations that were active last before this time.
    pub until: Option<Timestamp>,
    /// In which order they come.
    pub sort: ListSort,
}

/// In which order a list has its conversations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ListSort {
    /// The newest activity first.
    #[default]
    Newest,
    /// The oldest activity first.
    Oldest,
    /// The last that was made first. There is no index for it: each page reads the owner's whole list.
    Created,
}

impl ListSort {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Newest, Self::Oldest, Self::Created];

    /// The name: `newest`, `oldest` or `created`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Newest => "newest",
            Self::Oldest => "oldest",
            Self::Created => "created",
        }
    }

    /// How two places follow each other.
    pub(crate) fn compare(self, one: Place, other: Place) -> Ordering {
        if self == Self::Oldest { one.cmp(&other) } else { other.cmp(&one) }
    }
}

impl fmt::Display for ListSort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ListSort {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|sort| sort.as_str() == text);
        found.ok_or_else(|| Error::InvalidInput(format!("{text:?}: expected newest, oldest or created")))
    }
}

/// Where a page ended. As text it can be kept and read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListCursor(pub(crate) Place);

/// The order within the list: microseconds of what it is sorted by, then the id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) micros: i64,
    pub(crate) conversation: ConversationId,
}

impl Place {
    /// Before all of a time.
    const fn before(at: Timestamp) -> Self {
        Self { micros: at.as_micros(), conversation: ConversationId::from_bytes([0; 16]) }
    }

    /// After all before a time.
    const fn last_before(at: Timestamp) -> Self {
        let micros = at.as_micros().saturating_sub(1);
        Self { micros, conversation: ConversationId::from_bytes([u8::MAX; 16]) }
    }
}

/// A page of the list.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema), schemars(rename = "ConversationPage"))]
#[non_exhaustive]
pub struct ListPage {
    /// In the order that was asked for; of the same microsecond by id.
    pub items: Vec<ListItem>,
    /// Conversations that belong here, and cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<Problem>,
    /// Where the next page begins; absent on the last one. A page with filters may have few items, or none, and a next one: it
    /// ends where it has looked at 10,000 conversations. A conversation that moves while one pages may be missed or repeated.
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
        Self {
            owner: String::new(),
            limit: 50,
            after: None,
            title: None,
            tags: Vec::new(),
            key_prefix: None,
            forked_from: None,
            metadata: Vec::new(),
            since: None,
            until: None,
            sort: ListSort::Newest,
        }
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

impl ListQuery {
    /// Keeps only conversations with a key that begins so.
    #[must_use]
    pub fn with_key_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.key_prefix = Some(prefix.into());
        self
    }

    /// Keeps only the forks of this conversation.
    #[must_use]
    pub const fn with_forked_from(mut self, parent: ConversationId) -> Self {
        self.forked_from = Some(parent);
        self
    }

    /// Keeps only conversations whose metadata have this field, too.
    #[must_use]
    pub fn with_metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.metadata.push((name.into(), value.into()));
        self
    }

    /// Keeps only conversations that were active last at this time, or after it.
    #[must_use]
    pub const fn with_since(mut self, since: Timestamp) -> Self {
        self.since = Some(since);
        self
    }

    /// Keeps only conversations that were active last before this time.
    #[must_use]
    pub const fn with_until(mut self, until: Timestamp) -> Self {
        self.until = Some(until);
        self
    }

    /// Sets the order.
    #[must_use]
    pub const fn with_sort(mut self, sort: ListSort) -> Self {
        self.sort = sort;
        self
    }

    /// Where in the order the page begins: what belongs there comes after it.
    pub(crate) fn begins(&self) -> Option<Place> {
        let after = self.after.map(|cursor| cursor.0);
        match self.sort {
            ListSort::Newest => after.into_iter().chain(self.until.map(Place::before)).min(),
            ListSort::Oldest => after.into_iter().chain(self.since.map(Place::last_before)).max(),
            ListSort::Created => after,
        }
    }

    /// Where in the order nothing more belongs to any page.
    pub(crate) fn ends(&self) -> Option<Place> {
        match self.sort {
            ListSort::Newest => self.since.map(Place::last_before),
            ListSort::Oldest => self.until.map(Place::before),
            ListSort::Created => None,
        }
    }

    /// Whether conversations may be left out of what is between [`Self::begins`] and [`Self::ends`].
    pub(crate) const fn filters(&self) -> bool {
        self.title.is_some() || self.key_prefix.is_some()
    }

    /// Whether a place comes after another one.
    pub(crate) fn follows(&self, place: Place, other: Place) -> bool {
        self.sort.compare(place, other) == Ordering::Greater
    }

    /// The place of an item of a page.
    pub(crate) fn place(&self, item: &ListItem) -> Place {
        let at = if self.sort == ListSort::Created { item.created_at } else { item.last_activity };
        Place { micros: at.as_micros(), conversation: item.id }
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

crate::model::as_text!(ListCursor);

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

/// At most this many items get their memory before they are read: a limit may be of any size.
const AHEAD: usize = 1_000;

/// A page with filters ends where it has looked at so many conversations.
pub(crate) const MOST_SCANNED: usize = 10_000;

/// Collects a page, and one item more: if there is one, there is a next page.
pub(crate) struct Pager<'a> {
    query: &'a ListQuery,
    title: Option<String>,
    begins: Option<Place>,
    items: Vec<Listed>,
    /// Where the scan ended, though there is more.
    stopped: Option<Place>,
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
        Ok(Self { query, title, begins: query.begins(), items, stopped: None, unreadable: Vec::new() })
    }

    /// Takes a conversation, if the query wants it.
    pub(crate) fn add(&mut self, listed: Listed) -> bool {
        let is_wanted = self.is_wanted(&listed);
        if is_wanted {
            self.items.push(listed);
            // A scan that ends nowhere keeps no more than it needs.
            if self.query.sort == ListSort::Created && self.items.len() > self.query.limit.saturating_mul(2).max(AHEAD)
            {
                self.sort();
                self.items.truncate(self.query.limit.saturating_add(1));
            }
        }
        is_wanted
    }

    /// Whether no page comes before it.
    pub(crate) const fn is_first(&self) -> bool {
        self.query.after.is_none()
    }

    /// The scan ends here, though there is more.
    pub(crate) const fn stop(&mut self, place: Place) {
        self.stopped = Some(place);
    }

    fn place(&self, listed: &Listed) -> Place {
        let head = &listed.head;
        let micros = if self.query.sort == ListSort::Created { head.created } else { head.last_activity };
        Place { micros, conversation: listed.id }
    }

    fn is_wanted(&self, listed: &Listed) -> bool {
        let (head, query) = (&listed.head, self.query);
        let (title, key) = (head.title.as_deref().unwrap_or_default(), head.key.as_deref());
        let active = Timestamp::from_micros(head.last_activity);
        self.begins.is_none_or(|begins| query.follows(self.place(listed), begins))
            && query.since.is_none_or(|since| active >= since)
            && query.until.is_none_or(|until| active < until)
            && query.tags.iter().all(|tag| head.tags.contains(tag))
            && query.key_prefix.as_ref().is_none_or(|prefix| key.is_some_and(|key| key.starts_with(prefix)))
            && query
                .forked_from
                .is_none_or(|parent| head.parent.is_some_and(|from| from.id() == parent && from.at_seq > 0))
            && self.title.as_ref().is_none_or(|wanted| title.to_lowercase().contains(wanted))
            && is_same(&head.owner, &query.owner)
    }

    /// Keeps each conversation once: as it was seen last.
    pub(crate) fn keep_newest_of_each(&mut self) {
        self.items.sort_unstable_by_key(|listed| std::cmp::Reverse(listed.head.last_activity));
        let mut seen = HashSet::with_capacity(self.items.len());
        self.items.retain(|listed| seen.insert(listed.id));
    }

    fn sort(&mut self) {
        let mut items = std::mem::take(&mut self.items);
        items.sort_unstable_by(|one, other| self.query.sort.compare(self.place(one), self.place(other)));
        self.items = items;
    }

    pub(crate) fn page(mut self) -> ListPage {
        self.sort();
        if let Some(stopped) = self.stopped {
            // Of what comes later some may be there that the scan did not meet at its place.
            let query = self.query;
            let mut items = std::mem::take(&mut self.items);
            items.retain(|listed| !query.follows(self.place(listed), stopped));
            self.items = items;
        }
        let has_more = self.items.len() > self.query.limit;
        self.items.truncate(self.query.limit);
        let last = self.items.last().filter(|_| has_more).map(|listed| self.place(listed));
        let next = last.or(self.stopped).map(ListCursor);
        let items = self.items.into_iter().map(|listed| ListItem::new(listed.id, listed.head)).collect();
        ListPage { items, unreadable: self.unreadable, next }
    }
}

/// Whether two names are equal. Where both are empty nothing is read: some processors take long to read nothing.
fn is_same(one: &str, other: &str) -> bool {
    one.len() == other.len() && (one.is_empty() || one == other)
}
