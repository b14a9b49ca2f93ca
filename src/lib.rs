#![doc = include_str!("../README.md")]
//!
//! # The crate as a pipeline
//!
//! ```text
//! in:   provider bytes --decode--> chunks --append--> Store --record--> log --batch--> Engine (sled | fjall | memory | backup)
//! out:  Engine --records--> entries --group--> messages --reconcile--> Conversation --window--> --render--> Prompt
//! ```
//!
//! | module | what it is |
//! |---|---|
//! | [`model`] | what a conversation is: pure values, and their JSON, the transcript format |
//! | `record` | entries to bytes and back: the only code that knows the disk format |
//! | `engine` | ordered bytes, written in atomic batches |
//! | `log` | appends into batches: heads, group commit, the listing index; and records back out |
//! | [`Store`], [`MessageWriter`], [`Tail`] | what a user opens, streams into, follows |
//! | `group` | entries to messages, by message index |
//! | `reconcile` | messages to a [`Conversation`] that makes sense, with a report |
//! | [`next_step`] | what an agent loop must do now |
//! | `window` | which part of a long history is rendered |
//! | [`provider`] | conversations to requests ([`provider::render`]) and back ([`provider::parse`]); answers to chunks ([`provider::Decoder`]); requests judged and repaired ([`provider::check`], [`provider::repair`]) |
//!
//! Data flows one way; `provider` and `engine` never meet.

mod archive;
mod conversation;
mod engine;
mod entry;
mod error;
mod group;
mod json;
mod log;
pub mod model;
mod next_step;
pub mod provider;
mod reconcile;
mod record;
mod store;
mod tail;
mod window;
mod writer;

pub use conversation::Conversation;
pub use entry::{Entry, EntryHeader, EntryKind};
pub use error::{Error, Result};
pub use group::{Compaction, MessageState, StoredMessage};
pub use log::{
    AppendOptions, BackupSummary, Cursor, Durability, ExpectedHead, Health, Item, Limits, ListItem, ListPage,
    ListQuery, Problem, Receipt, Redaction, Verification,
};
pub use next_step::{NextStep, PendingCall, next_step};
pub use reconcile::{ReportLine, Rule};
pub use store::{Store, StoreOptions};
pub use tail::{StopHandle, Tail};
pub use writer::MessageWriter;

/// The documents of the crate: for people who write servers and agents, formats byte by byte, the design, durability,
/// performance, what changed.
pub mod documentation {
    #[doc = include_str!("docs/servers.md")]
    pub mod servers {}
    #[doc = include_str!("docs/format.md")]
    pub mod format {}
    #[doc = include_str!("docs/design.md")]
    pub mod design {}
    #[doc = include_str!("docs/durability.md")]
    pub mod durability {}
    #[doc = include_str!("docs/performance.md")]
    pub mod performance {}
    #[doc = include_str!("docs/changelog.md")]
    pub mod changelog {}
}
