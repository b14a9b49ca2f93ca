//! What calls may be given.

use super::limits::{check_metadata, check_name};
use crate::error::Result;
use crate::history::Cursor;
use crate::model::{Json, Timestamp};

/// Options of [`crate::Store::append_with`].
///
/// ```
/// use conversation_store::{AppendOptions, Durability, ExpectedHead};
///
/// let options = AppendOptions::new()
///     .with_expected(ExpectedHead::At(14))
///     .with_idempotency_key("request-7")
///     .with_durability(Durability::Buffered);
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct AppendOptions {
    /// What the conversation has to be for the append to be taken.
    pub expected: ExpectedHead,
    /// A second append with the same key and content changes nothing and gets the first receipt. Kept as long as the
    /// conversation; any string up to 1 KiB.
    pub idempotency_key: Option<String>,
    /// When the call returns.
    pub durability: Durability,
    /// When it happened, for what comes from elsewhere. If it is absent, or in the future, the time is now. If the append makes
    /// the conversation, that has this time too, and its place in the list.
    pub time: Option<Timestamp>,
}

/// What a conversation has to be for an append to be taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExpectedHead {
    /// Anything.
    #[default]
    Any,
    /// It does not exist yet.
    NewConversation,
    /// Its last seq is this one. A conversation that was deleted and made again may have grown to it.
    At(u64),
    /// It is the conversation that this cursor belongs to, and it ends at the cursor.
    AtCursor(Cursor),
}

/// When an append returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// When it survives a power cut.
    #[default]
    Durable,
    /// When it is queued. It is durable, at the latest, after the window of the store
    /// ([`StoreOptions::with_window`](crate::StoreOptions::with_window)), the commit that is under way then, and its own
    /// commit. A crash may take what is not durable yet. It takes the newest appends, and leaves no hole.
    Buffered,
}

impl AppendOptions {
    /// The defaults: any head, no key, durable.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the append only if the conversation is as expected.
    #[must_use]
    pub fn with_expected(mut self, expected: ExpectedHead) -> Self {
        self.expected = expected;
        self
    }

    /// Makes a repeated append harmless.
    #[must_use]
    pub fn with_idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// Sets when the call returns.
    #[must_use]
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets when it happened.
    #[must_use]
    pub fn with_time(mut self, time: Timestamp) -> Self {
        self.time = Some(time);
        self
    }
}

/// What a conversation without messages begins with.
///
/// ```
/// use conversation_store::NewConversation;
/// use conversation_store::model::Json;
///
/// let new = NewConversation::new().with_title("Plans").with_tag("work").with_metadata(Json::new("{\"project\":7}")?);
/// # let _ = new;
/// # Ok::<(), conversation_store::model::JsonError>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct NewConversation {
    /// Its title; absent: the first user text gives it.
    pub title: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// A JSON object up to 64 KiB, kept as it is written.
    pub metadata: Option<Json>,
    /// When it began, for what is taken over from elsewhere. Absent, or still to come: now.
    pub time: Option<Timestamp>,
}

/// Where a conversation is forked, and when that happened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ForkAt {
    /// The last seq that is shared; absent: all.
    pub(crate) seq: Option<u64>,
    /// Absent, or still to come: now.
    pub(crate) time: Option<Timestamp>,
}

/// A time that was given, unless it is still to come; else now.
pub(crate) fn not_later(time: Option<Timestamp>, now: i64) -> i64 {
    time.map_or(now, |time| time.as_micros().min(now))
}

impl NewConversation {
    /// Nothing is known of it.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets its title.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets when it began.
    #[must_use]
    pub fn with_time(mut self, time: Timestamp) -> Self {
        self.time = Some(time);
        self
    }

    /// Adds a tag.
    #[must_use]
    pub fn with_tag(mut self, tag: impl Into<String>) -> Self {
        self.tags.push(tag.into());
        self
    }

    /// Sets its metadata.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Json) -> Self {
        self.metadata = Some(metadata);
        self
    }
}

/// What an append changes of the conversation as a whole, in the same moment: all of it is stored, or nothing.
///
/// ```
/// use conversation_store::Changes;
/// use conversation_store::model::Json;
///
/// let changes = Changes::new().with_title("Plans").with_tag("open").without_tag("new").with_metadata(Json::new("{\"step\":2}")?);
/// # let _ = changes;
/// # Ok::<(), conversation_store::model::JsonError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changes {
    /// Its title from now on.
    pub title: Option<String>,
    /// Tags that it has from now on.
    pub add_tags: Vec<String>,
    /// Tags that it has no longer, unless they are added too.
    pub remove_tags: Vec<String>,
    /// The metadata that replaces what there is: a JSON object up to 64 KiB, kept as it is written.
    pub metadata: Option<Json>,
}

impl Changes {
    /// Nothing changes.
    #[must_use]
    pub const fn new() -> Self {
        Self { title: None, add_tags: Vec::new(), remove_tags: Vec::new(), metadata: None }
    }

    /// Sets the title.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Adds a tag.
    #[must_use]
    pub fn with_tag(mut self, tag: impl Into<String>) -> Self {
        self.add_tags.push(tag.into());
        self
    }

    /// Removes a tag.
    #[must_use]
    pub fn without_tag(mut self, tag: impl Into<String>) -> Self {
        self.remove_tags.push(tag.into());
        self
    }

    /// Replaces the metadata.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Json) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// Whether nothing changes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.title.is_none() && self.metadata.is_none() && !self.has_tags()
    }

    /// Whether tags change.
    pub(crate) const fn has_tags(&self) -> bool {
        !self.add_tags.is_empty() || !self.remove_tags.is_empty()
    }

    /// Fails on what no conversation takes.
    pub(crate) fn check(&self) -> Result<()> {
        self.title.as_deref().map_or(Ok(()), |title| check_name("a title", title))?;
        self.metadata.as_ref().map_or(Ok(()), check_metadata)
    }

    /// About how many bytes it stores.
    #[cfg(feature = "server")]
    pub(crate) fn bytes(&self) -> usize {
        let texts = self.title.iter().chain(&self.add_tags).map(String::len).sum::<usize>();
        texts + self.metadata.as_ref().map_or(0, |metadata| metadata.as_str().len())
    }
}
