use crate::model::Name;

/// What went wrong. The kinds differ in what to do about it. The texts are for people and may change; the kinds are the
/// interface.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such conversation, message or store. Look at the name.
    #[error("{what} not found")]
    NotFound {
        /// What was looked for.
        what: String,
    },
    /// Somebody else wrote first: the conversation does not end where the caller expected. Read what is new, then decide.
    #[error("conversation {conversation} ends at seq {actual}, not at {expected}")]
    StaleHead {
        /// The conversation.
        conversation: Name,
        /// The last seq that the caller expected.
        expected: u64,
        /// Its last seq; 0 if it does not exist.
        actual: u64,
    },
    /// A new conversation was asked for, and there is one of that name. Use it, or another name.
    #[error("conversation {conversation} exists already; its last seq is {actual}")]
    NameTaken {
        /// The conversation.
        conversation: Name,
        /// Its last seq.
        actual: u64,
    },
    /// The conversation was deleted, but forks still read its first entries, so that its name is not free. Use another name,
    /// or delete the forks.
    #[error("conversation {conversation} was deleted, but forks still read its first entries: use another name")]
    SharedByForks {
        /// The conversation.
        conversation: Name,
    },
    /// The cursor is past the last seq. It is not of this conversation: read from the beginning.
    #[error("cursor {cursor} is past the last seq {last_seq} of conversation {conversation}")]
    CursorOutOfRange {
        /// The conversation.
        conversation: Name,
        /// The seq of the cursor.
        cursor: u64,
        /// The conversation's last seq.
        last_seq: u64,
    },
    /// The cursor belongs to an earlier conversation of this name, which was deleted. Read from the beginning.
    #[error("the cursor belongs to an earlier conversation of the name {conversation}, which was deleted")]
    StaleCursor {
        /// The conversation.
        conversation: Name,
    },
    /// The idempotency key was used before, with other content. A caller's mistake: use a new key for new content.
    #[error("idempotency key {key:?} of conversation {conversation} was used before with other content")]
    KeyReused {
        /// The conversation.
        conversation: Name,
        /// The key.
        key: String,
    },
    /// The message is finished, interrupted or rewound: nothing can be added to it. Begin a new one.
    #[error("message {message_index} of conversation {conversation} is closed: {reason}")]
    MessageClosed {
        /// The conversation.
        conversation: Name,
        /// The message.
        message_index: u64,
        /// What closed it.
        reason: &'static str,
    },
    /// The message is still being written. Finish it, or drop its writer, first.
    #[error("message {message_index} of conversation {conversation} is still being written: finish it first")]
    BeingWritten {
        /// The conversation.
        conversation: Name,
        /// The message.
        message_index: u64,
    },
    /// The caller's input cannot be taken as it is.
    #[error("{0}")]
    InvalidInput(String),
    /// The input is larger than a documented limit.
    #[error("{what} has {actual}, at most {limit} are accepted")]
    LimitExceeded {
        /// What is limited.
        what: &'static str,
        /// Its size, with the unit.
        actual: String,
        /// The limit, with the unit.
        limit: String,
    },
    /// Somebody else holds what is needed. Try again when it is free.
    #[error("{0}")]
    Busy(String),
    /// Stored bytes are damaged. What else is stored can be read; `verify` shows the extent.
    #[error("damaged data in {}{}: {detail}", place(.conversation), seq_place(.seq))]
    Corrupt {
        /// The conversation, where the damage is known to belong to one. It has the name that the caller used, or its id, if
        /// the caller asked for another one: a fork reads entries of the conversation that it was forked from.
        conversation: Option<Name>,
        /// The seq at which reading failed.
        seq: Option<u64>,
        /// What does not fit.
        detail: String,
    },
    /// The store was written by a newer version of this crate. Update.
    #[error("{what} has format version {found}, this program reads up to {supported}: update it")]
    UnsupportedVersion {
        /// What has the version.
        what: String,
        /// The version found. If it has no known version, this is the next one.
        found: u32,
        /// The newest version that is understood.
        supported: u32,
    },
    /// The store is older than what it acknowledged: damage took its newest part. Reads go on.
    #[error(
        "the store went back from commit {to} to {from}: acknowledged data was lost; `verify --accept-loss` goes on"
    )]
    WentBack {
        /// The newest commit in the store.
        from: u64,
        /// The newest commit that was acknowledged.
        to: u64,
    },
    /// An earlier write failed, so that the store takes no more. Reads go on as far as the engine can still read. Open it
    /// again.
    #[error("the store takes no more writes: {cause}; open it again")]
    Poisoned {
        /// The first failure.
        cause: String,
    },
    /// The store was opened for reading only. Open it for writing.
    #[error("the store was opened for reading only")]
    ReadOnly,
    /// The store was closed. Open it again.
    #[error("the store was closed")]
    Closed,
    /// The write was cut off before its outcome was known: it may be there or not. Open the store again and repeat the call
    /// with the same idempotency key: it is then answered once.
    #[error(
        "whether the write succeeded is not known: {cause}; open the store again, then repeat the call with the same \
         idempotency key"
    )]
    OutcomeUnknown {
        /// What went wrong.
        cause: String,
    },
    /// The operating system failed.
    #[error("{action}: {source}")]
    Io {
        /// What was tried.
        action: String,
        /// What it said.
        source: std::io::Error,
    },
    /// The conversation holds nothing that this target takes.
    #[error("there is nothing to send: {0}")]
    NothingToSend(String),
    /// The prompt is over a limit of the wire. Use a window.
    #[error("the prompt is too large: {0}")]
    TooLarge(String),
}

/// A result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// The kind as a word, for programs that read it as JSON: `not_found`, `stale_head` and so on. It does not change.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not_found",
            Self::StaleHead { .. } => "stale_head",
            Self::NameTaken { .. } => "name_taken",
            Self::SharedByForks { .. } => "shared_by_forks",
            Self::CursorOutOfRange { .. } => "cursor_out_of_range",
            Self::StaleCursor { .. } => "stale_cursor",
            Self::KeyReused { .. } => "key_reused",
            Self::MessageClosed { .. } => "message_closed",
            Self::BeingWritten { .. } => "being_written",
            Self::InvalidInput(_) => "invalid_input",
            Self::LimitExceeded { .. } => "limit_exceeded",
            Self::Busy(_) => "busy",
            Self::Corrupt { .. } => "corrupt",
            Self::UnsupportedVersion { .. } => "unsupported_version",
            Self::WentBack { .. } => "went_back",
            Self::Poisoned { .. } => "poisoned",
            Self::ReadOnly => "read_only",
            Self::Closed => "closed",
            Self::OutcomeUnknown { .. } => "outcome_unknown",
            Self::Io { .. } => "io",
            Self::NothingToSend(_) => "nothing_to_send",
            Self::TooLarge(_) => "too_large",
        }
    }

    pub(crate) fn no_conversation(name: impl std::fmt::Display) -> Self {
        Self::NotFound { what: format!("conversation {name}") }
    }

    /// The same, under the caller's name for a conversation, if it is damage to that one.
    #[must_use]
    pub(crate) fn named(self, name: &Name) -> Self {
        match self {
            // Only entries have a seq: without a conversation, they are those that were asked for.
            Self::Corrupt { conversation, seq, detail }
                if conversation.as_ref().map_or(seq.is_some(), |known| known.id() == name.id()) =>
            {
                Self::Corrupt { conversation: Some(name.clone()), seq, detail }
            }
            other => other,
        }
    }

    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { action: action.into(), source }
    }
}

fn place(conversation: &Option<Name>) -> String {
    conversation.as_ref().map_or_else(|| "the store".to_owned(), |name| format!("conversation {name}"))
}

fn seq_place(seq: &Option<u64>) -> String {
    seq.map_or_else(String::new, |seq| format!(" at seq {seq}"))
}
