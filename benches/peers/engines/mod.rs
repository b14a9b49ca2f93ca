//! Who is measured: the whole [`Store`](conversation_store::Store) on each of its engines, and hand-written peers that do
//! the same job at the same durability.
//!
//! To add a peer: one file that implements [`Peer`], and one row in [`ENGINES`].

mod group;
mod ours;
mod raw;
mod read;
mod record;
mod redb;
mod rows;
mod sqlite;

use std::path::Path;

use conversation_store::model::{ConversationId, Message, Timestamp};
use conversation_store::{Entry, ListItem, StoredMessage};

/// Bytes of cache that every peer gets: what our sled has by default.
const CACHE_BYTES: usize = 64 * 1024 * 1024;

/// Conversations, kept. All that is given out is as our own [`Store`](conversation_store::Store) gives it.
pub(crate) trait Peer: Send + Sync {
    /// Appends messages, all or none. Durable when it returns. With an idempotency key, once.
    fn append(&self, conversation: ConversationId, key: Option<&str>, messages: &[Message]);

    /// Appends as fast as it can; durable when it returns. For filling a store before something else is measured.
    fn fill(&self, appends: &mut dyn Iterator<Item = (ConversationId, &[Message])>);

    /// One answer, delta by delta.
    fn stream(&self, conversation: ConversationId, deltas: &[String]);

    /// The whole conversation.
    fn load(&self, conversation: ConversationId) -> Vec<StoredMessage>;

    /// The newest entries, in order.
    fn tail(&self, conversation: ConversationId, count: usize) -> Vec<Entry>;

    /// The conversations with the newest activity, newest first.
    fn list(&self, count: usize) -> Vec<Listed>;

    /// Ends it as a program should.
    fn close(self: Box<Self>);
}

/// A row of the table.
#[derive(Clone, Copy)]
pub(crate) struct Engine {
    pub(crate) name: &'static str,
    /// In words, for a table.
    pub(crate) title: &'static str,
    /// Opens what is in a directory, or makes it.
    pub(crate) open: fn(&Path) -> Box<dyn Peer>,
    /// Whether it can read what it wrote.
    pub(crate) reads: bool,
    /// Whether it is our own store.
    pub(crate) ours: bool,
    /// Whether it keeps anything on disk.
    pub(crate) keeps: bool,
}

pub(crate) const SQLITE: &str = "sqlite";
pub(crate) const SQLITE_GROUPED: &str = "sqlite_grouped";
pub(crate) const RAW: &str = "raw";
pub(crate) const MEMORY: &str = "memory";

/// Everyone.
pub(crate) const ENGINES: &[Engine] = &[
    #[cfg(feature = "sled")]
    Engine { name: "sled", title: "sled", open: ours::open_sled, reads: true, ours: true, keeps: true },
    #[cfg(feature = "fjall")]
    Engine { name: "fjall", title: "fjall", open: ours::open_fjall, reads: true, ours: true, keeps: true },
    Engine { name: SQLITE, title: "SQLite", open: sqlite::open_alone, reads: true, ours: false, keeps: true },
    Engine {
        name: SQLITE_GROUPED,
        title: "SQLite, group commit",
        open: sqlite::open_grouped,
        reads: true,
        ours: false,
        keeps: true,
    },
    Engine { name: "redb", title: "redb, group commit", open: redb::open, reads: true, ours: false, keeps: true },
    Engine { name: RAW, title: "raw file", open: raw::open, reads: false, ours: false, keeps: true },
    Engine { name: MEMORY, title: "memory", open: ours::open_memory, reads: true, ours: true, keeps: false },
];

/// A conversation in a list.
#[derive(Debug, PartialEq)]
pub(crate) struct Listed {
    pub(crate) id: ConversationId,
    pub(crate) title: Option<String>,
    pub(crate) created: Timestamp,
    pub(crate) last_activity: Timestamp,
    pub(crate) last_seq: u64,
    pub(crate) messages: u64,
}

impl From<ListItem> for Listed {
    fn from(item: ListItem) -> Self {
        let ListItem { id, title, created_at: created, last_activity, last_seq, messages, .. } = item;
        Self { id, title, created, last_activity, last_seq, messages }
    }
}
