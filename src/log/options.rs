//! What an append may be told, and what it gets.

/// What [`crate::Store::append_with`] may be told.
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
pub enum ExpectedHead {
    /// Anything.
    #[default]
    Any,
    /// It does not exist yet.
    NewConversation,
    /// Its last seq is this one.
    At(u64),
}

/// When an append returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When it survives a power cut.
    #[default]
    Durable,
    /// When it is queued: it is written within the store's window, and a crash may lose that window, never more, and
    /// never with a hole in it.
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
