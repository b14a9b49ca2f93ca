//! What calls may be given.

use crate::history::Cursor;
use crate::model::Json;

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
    /// It is the conversation that this cursor is of, and ends there.
    AtCursor(Cursor),
}

/// When an append returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// When it survives a power cut.
    #[default]
    Durable,
    /// When it is queued. It is durable at the latest when the window of the store has passed
    /// ([`StoreOptions::with_window`](crate::StoreOptions::with_window)), and then the commit that is under way and its own
    /// are done. A crash may take what was appended since then, from the end: it leaves no hole.
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
