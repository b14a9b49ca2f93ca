//! Writes into batches: the queue, group commit, the order in which things are published.

pub(crate) mod admission;
pub(crate) mod committer;
pub(crate) mod state;
pub(crate) mod ticker;
