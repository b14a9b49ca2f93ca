//! What a store asks of a log, and what every log does alike.
//!
//! A log keeps conversations durably and in order; what they mean is not its matter. [`Log`] is the seam: [`crate::Store`]
//! knows nothing else of it. To add a log: a folder beside `embedded/` that implements [`Log`] and passes `conformance/`,
//! and a row in `store/open.rs`.
//!
//! What every log does alike is here, once: limits, the order of the list, titles, what control entries do, and reading
//! ([`reading`]): entries, messages, what is hidden.

pub(crate) mod chain;
pub(crate) mod collected;
pub(crate) mod control;
pub(crate) mod decision;
pub(crate) mod followers;
pub(crate) mod health;
pub(crate) mod limits;
pub(crate) mod list;
pub(crate) mod names;
mod opening;
pub(crate) mod options;
pub(crate) mod past;
pub(crate) mod reading;
pub(crate) mod replay;
pub(crate) mod results;
pub(crate) mod rewriting;
pub(crate) mod run;
mod seam;
pub(crate) mod terms;
pub(crate) mod title;
pub(crate) mod verification;
mod view;

pub(crate) use control::{Control, Controlled};
pub use health::Health;
pub use limits::Limits;
pub use list::{Fork, ListCursor, ListItem, ListPage, ListQuery};
pub(crate) use opening::{Clock, Opening};
pub use options::{AppendOptions, Durability, ExpectedHead, NewConversation};
pub use results::{BackupSummary, Item, Receipt, Redaction, Size, TableSize, Unfinished};
#[cfg(feature = "postgres")]
pub use results::{Migration, MovingBucket, ShardCluster, Shards};
pub(crate) use seam::{Log, OpenMessage};
pub use verification::{Problem, Verification};
pub(crate) use view::{Order, Reading, View, Visit, Wait};

/// A lock of a log's own data. A thread that panicked while it held it left what it guards as it was between two whole steps.
#[cfg(any(feature = "client", feature = "postgres"))]
pub(crate) fn locked<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
