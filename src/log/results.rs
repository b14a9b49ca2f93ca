//! What calls give back.

use serde::{Deserialize, Serialize};

use crate::history::MessageState;
use crate::model::ConversationId;

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
    /// The seqs of summaries whose summaries may quote what was redacted: they stay as they are.
    pub summaries: Vec<u64>,
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
