//! What a check of the whole store found.

use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::model::{ConversationId, Name};

/// What a check of the whole store found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Verification {
    /// Conversations that were read.
    pub conversations: u64,
    /// Entries that were read, those that forks share once.
    pub entries: u64,
    /// What is wrong. Open messages are no problem: a crash leaves them, and loading closes them.
    pub problems: Vec<Problem>,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Problem {
    /// The conversation, where it is known.
    pub conversation: Option<ConversationId>,
    /// The seq, where it is known.
    pub seq: Option<u64>,
    /// What does not fit.
    pub detail: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.conversation, self.seq) {
            (Some(id), Some(seq)) => write!(f, "conversation {id}, seq {seq}: {}", self.detail),
            (Some(id), None) => write!(f, "conversation {id}: {}", self.detail),
            _ => write!(f, "store: {}", self.detail),
        }
    }
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(id) = self.conversation {
            map.serialize_entry("conversation", &id.to_string())?;
        }
        if let Some(seq) = self.seq {
            map.serialize_entry("seq", &seq)?;
        }
        map.serialize_entry("detail", &self.detail)?;
        map.end()
    }
}

impl Problem {
    /// A problem that a caller found.
    #[must_use]
    pub fn new(conversation: Option<ConversationId>, seq: Option<u64>, detail: impl Into<String>) -> Self {
        Self { conversation, seq, detail: detail.into() }
    }

    pub(crate) fn of_store(detail: impl Into<String>) -> Self {
        Self { conversation: None, seq: None, detail: detail.into() }
    }

    pub(crate) fn of(id: ConversationId, detail: impl Into<String>) -> Self {
        Self { conversation: Some(id), seq: None, detail: detail.into() }
    }

    pub(crate) fn from_error(id: ConversationId, error: &Error) -> Self {
        match error {
            Error::Corrupt { conversation, seq, detail } => Self {
                conversation: Some(conversation.as_ref().map_or(id, Name::id)),
                seq: *seq,
                detail: detail.clone(),
            },
            other => Self::of(id, other.to_string()),
        }
    }
}
