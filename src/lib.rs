//! An append-only store for LLM conversations. Documentation follows with the layers.

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
mod writer;

pub use conversation::Conversation;
pub use entry::{Entry, EntryHeader, EntryKind};
pub use error::{Error, Result};
pub use group::{MessageState, StoredMessage};
pub use log::{
    AppendOptions, Cursor, Durability, ExpectedHead, Limits, ListItem, ListPage, ListQuery, Problem, Receipt,
    Redaction, Verification,
};
pub use next_step::{NextStep, PendingCall, next_step};
pub use reconcile::{ReportLine, Rule};
pub use store::{Store, StoreOptions};
pub use tail::{StopHandle, Tail};
pub use writer::MessageWriter;
