//! What readers see of a conversation at one moment, and what they are shown and wait for.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::error::Error;
use crate::model::{ConversationId, Name};
use crate::record::{Head, Record};

/// A conversation as readers see it at one moment.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) id: ConversationId,
    pub(crate) head: Arc<Head>,
    /// The messages whose writers live.
    pub(crate) live: Vec<u64>,
    /// Which opening of the log this is.
    pub(crate) epoch: u64,
    /// The last commit when it was taken.
    pub(crate) commit: u64,
    /// The last commit whose records belong to it.
    pub(crate) through: u64,
}

impl View {
    /// The last seq.
    pub(crate) fn last_seq(&self) -> u64 {
        self.head.next_seq.saturating_sub(1)
    }
}

/// What a reader is shown.
#[derive(Debug)]
pub(crate) enum Reading<'a> {
    /// A record; entries above `last` do not belong to the conversation. `own` unless it is an ancestor's.
    Record { record: &'a Record<'a>, last: u64, own: bool },
    /// Entries from this error's seq on cannot be read; later records may follow.
    Damaged(Error),
    /// A value under this conversation's name that is none of its records: nothing of the conversation is missing here.
    Stray(Error),
}

/// What a log calls for each record, until it breaks.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(Reading<'_>) -> ControlFlow<()>;

/// An order of seqs, or of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Ascending,
    Descending,
}

/// What somebody waits for.
#[derive(Debug)]
pub(crate) struct Wait<'a> {
    pub(crate) name: &'a Name,
    pub(crate) incarnation: u64,
    /// The last seq that is known.
    pub(crate) seq: u64,
    pub(crate) timeout: Duration,
    pub(crate) stopped: &'a AtomicBool,
}
