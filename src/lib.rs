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
//! | `log` | the embedded log: appends into batches, group commit, the listing index, on an engine; and records back out |
//! | `history` | entries to messages, by message index; messages to a [`Conversation`] that makes sense, with a report; [`next_step`] |
//! | [`Store`], [`MessageWriter`], [`Tail`] | what a user opens, streams into, follows |
//! | `transfer` | conversations from other programs' files, and into them (feature `transfer`) |
//! | [`provider`] | conversations to requests ([`provider::render`]) and back ([`provider::parse`]); answers to chunks ([`provider::Decoder`]); requests judged and repaired ([`provider::check`], [`provider::repair`]) |
//!
//! Data flows one way; `provider` and `engine` never meet.

mod embedded;
mod error;
mod history;
mod log;
pub mod model;
pub mod provider;
mod record;
mod store;
#[cfg(feature = "transfer")]
pub mod transfer;

pub use error::{Error, Result};
pub use history::{
    Conversation, Cursor, Entry, EntryHeader, EntryKind, Interruption, MessageState, NextStep, PendingCall, ReportLine,
    Rule, StoredMessage, Summary, ToolKind, next_step,
};
pub use log::{
    AppendOptions, BackupSummary, Durability, ExpectedHead, Fork, Health, Item, Limits, ListCursor, ListItem, ListPage,
    ListQuery, NewConversation, Problem, Receipt, Redaction, Unfinished, Verification,
};
pub use store::{Begun, MessageWriter, StopHandle, Store, StoreOptions, Tail};

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
    #[doc = include_str!("docs/transfer.md")]
    pub mod transfer {}
    #[doc = include_str!("docs/changelog.md")]
    pub mod changelog {}
}
