//! What a store asks of a log, and what every log does alike.
//!
//! A log keeps conversations durably and in order. It does not know what they mean. [`Log`] is the contract: [`crate::Store`]
//! knows nothing else of it. To add a log: a folder beside `embedded/` that implements [`Log`] and passes `conformance/`, and
//! an arm in `store/open.rs`. A log around another one is an `Around`, and writes only what it does differently.
//!
//! `contract`, `options`, `results` and `list` are what goes in and what comes out. What every log does alike is here, once:
//! - writing: `limits`, `append` (what is taken, and when), `decision` (what control entries may do), `writer` (an open message),
//!   `fork` and `redaction` (what they take over, or write again);
//! - reading: `segments` (where entries are), `reading` (entries, messages), `hidden` (what is rewound and removed), `items`
//!   (what has a provider's id), `records` (single records, gaps), `replay` (the head that records give), `check` (whether the
//!   head is what they give), `followers`.

pub(crate) mod append;
pub(crate) mod check;
mod contract;
pub(crate) mod decision;
pub(crate) mod followers;
pub(crate) mod fork;
pub(crate) mod hidden;
pub(crate) mod items;
pub(crate) mod limits;
pub(crate) mod list;
pub(crate) mod options;
pub(crate) mod reading;
pub(crate) mod records;
pub(crate) mod redaction;
pub(crate) mod replay;
pub(crate) mod results;
pub(crate) mod segments;
pub(crate) mod writer;

#[cfg(feature = "server")]
pub(crate) use contract::Around;
pub(crate) use contract::{Clock, Control, Controlled, Log, OpenMessage, Opening, Order, Reading, View, Visit, Wait};
pub use limits::Limits;
pub use list::{Fork, ListCursor, ListItem, ListPage, ListQuery, ListSort};
pub(crate) use options::ForkAt;
pub use options::{AppendOptions, Changes, Durability, ExpectedHead, NewConversation};
pub use results::{
    BackupSummary, Health, Item, Problem, Receipt, Redaction, Size, TableSize, Unfinished, Vacuumed, Verification,
};
#[cfg(feature = "postgres")]
pub use results::{Migration, MovingBucket, ShardCluster, Shards};

/// Locks a log's own data. If a thread panicked while it held the lock, the data is as it was between two complete steps.
#[cfg(any(feature = "client", feature = "mcp", feature = "postgres", feature = "search", feature = "server"))]
pub(crate) fn locked<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
