use crate::model::ConversationId;

/// What went wrong, by what to do about it. The texts are for people and may change; the kinds are the interface.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such conversation, message or store. Look at the name.
    #[error("{what} not found")]
    NotFound {
        /// What was looked for.
        what: String,
    },
    /// The conversation is not as the caller expected it. Load it again, then decide.
    #[error("conversation {conversation} is not as expected: {detail}")]
    Conflict {
        /// The conversation.
        conversation: ConversationId,
        /// Its last seq now; 0 if it does not exist.
        actual: u64,
        /// What was expected and what is there.
        detail: String,
    },
    /// The idempotency key was used before, with other content. A caller's mistake: use a new key for new content.
    #[error("idempotency key {key:?} of conversation {conversation} was used before with other content")]
    KeyReused {
        /// The conversation.
        conversation: ConversationId,
        /// The key.
        key: String,
    },
    /// The message is finished, interrupted or rewound: nothing can be added to it. Begin a new one.
    #[error("message {message_index} of conversation {conversation} is closed: {reason}")]
    MessageClosed {
        /// The conversation.
        conversation: ConversationId,
        /// The message.
        message_index: u64,
        /// What closed it.
        reason: &'static str,
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
        /// The conversation, where the damage can be told to belong to one.
        conversation: Option<ConversationId>,
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
        /// The version found.
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
    /// An earlier write failed, or the store was closed, so it takes no more. Reads go on. Open it again.
    #[error("the store takes no more writes: {cause}; open it again")]
    Poisoned {
        /// The first failure, or that it was closed.
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
    pub(crate) fn no_conversation(name: impl std::fmt::Display) -> Self {
        Self::NotFound { what: format!("conversation {name}") }
    }

    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { action: action.into(), source }
    }
}

fn place(conversation: &Option<ConversationId>) -> String {
    conversation.map_or_else(|| "the store".to_owned(), |id| format!("conversation {id}"))
}

fn seq_place(seq: &Option<u64>) -> String {
    seq.map_or_else(String::new, |seq| format!(" at seq {seq}"))
}
