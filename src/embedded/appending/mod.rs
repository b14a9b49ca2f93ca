//! Appends and open messages: checked, numbered, queued.
//!
//! [`Appender`] resolves a write against the queued head of its conversation, gives it its place by [`Numbering`], and
//! queues it, all under the log's lock. The deltas of an open message are collected by its writer, whose own lock is
//! taken before the log's, never after.

mod append;
mod numbering;
mod stream;

use std::sync::Arc;

use crate::embedded::catalogue::Catalogue;
use crate::embedded::commit::Committer;
use crate::embedded::engine::Engine;

pub(crate) use numbering::{Draft, Numbering, header};

/// Appends messages.
#[derive(Debug)]
pub(crate) struct Appender {
    engine: Arc<dyn Engine>,
    commit: Arc<Committer>,
    catalogue: Arc<Catalogue>,
    numbering: Numbering,
}

impl Appender {
    pub(crate) fn new(
        engine: Arc<dyn Engine>,
        commit: Arc<Committer>,
        catalogue: Arc<Catalogue>,
        numbering: Numbering,
    ) -> Self {
        Self { engine, commit, catalogue, numbering }
    }
}
