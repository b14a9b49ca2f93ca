//! What calls give back; what keeps a store from being written; what a check of it found.

use std::path::PathBuf;

use serde::ser::Serializer;
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::Error;
use crate::history::MessageState;
use crate::model::{ConversationId, Name};

/// What an append got.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Receipt {
    /// The conversation's id.
    pub conversation: ConversationId,
    /// The seq of the first entry.
    pub first_seq: u64,
    /// The seq of the last entry.
    pub last_seq: u64,
    /// The index of each message, in order.
    pub message_indexes: Vec<u64>,
    /// Whether it survives a power cut already.
    pub durable: bool,
    /// Whether this was a repetition: nothing was written.
    pub duplicate: bool,
}

/// What a redaction did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Redaction {
    /// The seq of the entry that notes it.
    pub seq: u64,
    /// The seqs of summaries that may quote what was redacted: they stay as they are.
    pub summaries: Vec<u64>,
    /// The seqs of entries with a title, tags or metadata, which may quote it: they stay as they are.
    #[serde(default)]
    pub meta: Vec<u64>,
    /// Answers, by their indexes, with which the proxy keeps what a client sent in the place of earlier messages. That may quote
    /// it, and goes with a redaction of the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<u64>,
}

/// What a backup, or a restore, moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BackupSummary {
    /// Conversations, without those that are deleted and only read by forks.
    pub conversations: u64,
    /// Conversations that cannot be read: a backup has them as they are.
    pub unreadable: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

/// What was gained by writing a store's files again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Vacuumed {
    /// Bytes on disk before.
    pub bytes_before: u64,
    /// Bytes on disk now.
    pub bytes_after: u64,
    /// Copies that were made of the store when it was damaged: what was erased since may be in them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub set_aside: Vec<PathBuf>,
}

/// What a migration of a database did.
#[cfg(feature = "postgres")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Migration {
    /// The version that the schema had; 0 if there was none.
    pub from: u32,
    /// The version that it has now. One that was newer than the program's stays.
    pub to: u32,
}

/// Where the buckets of a store over several databases are.
#[cfg(feature = "postgres")]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Shards {
    /// The clusters, by their numbers.
    pub clusters: Vec<ShardCluster>,
    /// The buckets whose moves have not ended.
    pub moving: Vec<MovingBucket>,
}

/// A cluster of a store over several databases.
#[cfg(feature = "postgres")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ShardCluster {
    /// Its number, from 0.
    pub cluster: u64,
    /// Host, port and database.
    pub at: String,
    /// Its buckets: the first and the last of each range.
    pub buckets: Vec<[u64; 2]>,
}

/// A bucket whose move has not ended.
#[cfg(feature = "postgres")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MovingBucket {
    /// The bucket.
    pub bucket: u64,
    /// The number of the cluster that it comes from.
    pub from: u64,
    /// The number of the cluster that it goes to.
    pub to: u64,
}

/// How much a store holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Size {
    /// Conversations; in PostgreSQL, as many as its statistics have, which follow some way after.
    pub conversations: u64,
    /// Bytes on disk; absent for a store in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The tables of a store in PostgreSQL, by their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<TableSize>,
}

/// How much a table of a database holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TableSize {
    /// Its name.
    pub name: String,
    /// Its rows, as the database's statistics have them.
    pub rows: u64,
    /// Its bytes on disk, with those of its indexes.
    pub bytes: u64,
}

/// The place of a provider's item id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Item {
    /// The conversation that was asked, or found.
    pub conversation: ConversationId,
    /// Its key, if it was named by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The message's index.
    pub message_index: u64,
    /// The chunk's index; absent where the id is the message's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk_index: Option<u32>,
    /// The seq of the entry.
    pub seq: u64,
}

/// A message that was begun and is not finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Unfinished {
    /// Its conversation.
    pub conversation: ConversationId,
    /// The conversation's owner; empty if it has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// The conversation's key, if it was named by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The message's index.
    pub message_index: u64,
    /// Streaming, or interrupted.
    pub state: MessageState,
}

/// What opening a store found, and what happened since. All of it is absent from a store that is well.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct Health {
    /// Acknowledged data is missing: the newest commit that is there, and the newest that was acknowledged. The store can
    /// be read. As JSON: `from` and `to`.
    #[serde(serialize_with = "from_to", deserialize_with = "two", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "server", schemars(with = "Option<FromTo>"))]
    pub went_back: Option<(u64, u64)>,
    /// The file `watermark` is damaged or missing: nobody can know whether acknowledged data is missing. The store can be
    /// read.
    pub watermark_lost: bool,
    /// What else of the store as a whole is damaged. If acknowledged data may be missing, the store can only be read.
    pub damage: Vec<String>,
    /// The disk was full when the store was opened. It can be read; to write, make room and open it again.
    pub disk_full: bool,
    /// Damage kept the store from opening as it was: a copy of it is here, and the next opening that may write compares
    /// everything that can be derived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_aside: Option<PathBuf>,
    /// The write that failed, after which none is taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poisoned: Option<String>,
    /// The store was closed.
    pub closed: bool,
    /// What of the database's settings does not go with the promise that nothing acknowledged is lost. The store can be
    /// written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// How two numbers of commits are written.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
struct FromTo {
    from: u64,
    to: u64,
}

fn from_to<S: Serializer>(went_back: &Option<(u64, u64)>, serializer: S) -> Result<S::Ok, S::Error> {
    went_back.map(|(from, to)| FromTo { from, to }).serialize(serializer)
}

fn two<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<(u64, u64)>, D::Error> {
    Ok(Option::<FromTo>::deserialize(deserializer)?.map(|FromTo { from, to }| (from, to)))
}

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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Problem {
    /// The conversation, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ConversationId>,
    /// The seq, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
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
