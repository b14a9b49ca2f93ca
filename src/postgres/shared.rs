//! What the log's calls and its tasks share.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio_postgres::Row;

use super::database::Database;
use super::lease::Lease;
use super::rows::{get, some_number};
use super::segment::Segment;
use super::url::Url;
use super::value::Statement;
use super::watched::Watched;
use super::writer::Writers;
use crate::error::{Error, Result};
use crate::log::Clock;
use crate::log::locked;
use crate::model::{ConversationId, Name};

/// Chains of forks that are remembered.
const LINES: usize = 10_000;

/// Where conversations' entries stand, by id and incarnation.
type Lines = HashMap<(ConversationId, u64), Arc<[Segment]>>;

/// What the log's calls and its tasks share.
pub(super) struct Shared {
    pub(super) database: Database,
    pub(super) clock: Clock,
    pub(super) read_only: bool,
    closed: AtomicBool,
    pub(super) writers: Writers,
    pub(super) watched: Watched,
    pub(super) lease: Lease,
    /// What was looked up of them: it never changes.
    pub(super) lines: Mutex<Lines>,
    /// How long a change is tried again while others are faster.
    pub(super) patience: Duration,
    /// What was noticed when the log was opened.
    pub(super) warnings: Vec<String>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres").field("at", &self.database.calls().shown).finish_non_exhaustive()
    }
}

/// What a function of the database answers first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    KeyUsed,
    NotAsExpected,
    AnotherOwners,
    SharedByForks,
    Closed,
    HolderExpired,
    LeaseExpired,
    Moved,
    Held,
    Gone,
}

impl Outcome {
    pub(super) fn of(row: &Row) -> Result<Self> {
        Ok(match get::<i32>(row, "o_outcome")? {
            0 => Self::Done,
            1 => Self::KeyUsed,
            2 => Self::NotAsExpected,
            3 => Self::AnotherOwners,
            4 => Self::SharedByForks,
            5 => Self::Closed,
            6 => Self::HolderExpired,
            7 => Self::LeaseExpired,
            8 => Self::Moved,
            9 => Self::Held,
            10 => Self::Gone,
            other => return Err(unexpected(&format!("the outcome {other}"))),
        })
    }

    /// That a function gave an outcome that it never gives.
    pub(super) fn unexpected(self) -> Error {
        unexpected(&format!("the outcome {self:?}"))
    }
}

fn unexpected(what: &str) -> Error {
    super::rows::corrupt(format!("a function gave {what}, which is not expected: is its schema of another program?"))
}

impl Shared {
    pub(super) fn new(database: Database, clock: Clock, read_only: bool, url: &Url, warnings: Vec<String>) -> Self {
        Self {
            database,
            clock,
            read_only,
            closed: AtomicBool::new(false),
            writers: Writers::default(),
            watched: Watched::default(),
            lease: Lease::new(url.lease),
            patience: url.timeout,
            lines: Mutex::default(),
            warnings,
        }
    }

    pub(super) fn now(&self) -> i64 {
        (self.clock)().as_micros()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Takes no more writes. Whether it took some before.
    pub(super) fn enter_closed(&self) -> bool {
        !self.closed.swap(true, Ordering::AcqRel)
    }

    /// Fails if nothing may be written.
    pub(super) fn check_writable(&self) -> Result<()> {
        match (self.is_closed(), self.read_only) {
            (true, _) => Err(Error::Closed),
            (_, true) => Err(Error::ReadOnly),
            _ => Ok(()),
        }
    }

    /// Notes where a conversation's entries stand.
    pub(super) fn remember_line(&self, key: (ConversationId, u64), line: &Arc<[Segment]>) {
        let mut lines = locked(&self.lines);
        if lines.len() >= LINES {
            lines.clear();
        }
        lines.insert(key, Arc::clone(line));
    }
}

/// The error of an append or a begin that was not taken.
pub(super) fn refused(outcome: Outcome, row: &Row, name: &Name, expected: ExpectedSeq) -> Error {
    let conversation = name.clone();
    let actual = some_number(row, "o_last").ok().flatten().unwrap_or_default();
    match (outcome, expected) {
        (Outcome::NotAsExpected, ExpectedSeq::New) => Error::NameTaken { conversation, actual },
        (Outcome::NotAsExpected, ExpectedSeq::At(expected)) => Error::StaleHead { conversation, expected, actual },
        (Outcome::AnotherOwners | Outcome::Gone, _) => Error::no_conversation(name),
        (Outcome::SharedByForks, _) => Error::SharedByForks { conversation },
        (other, _) => other.unexpected(),
    }
}

/// What a conversation has to be for a record to be taken.
#[derive(Clone, Copy, Debug)]
pub(super) enum ExpectedSeq {
    Any,
    New,
    At(u64),
}

impl ExpectedSeq {
    /// As a statement takes it.
    pub(super) fn with(self, statement: Statement) -> Statement {
        match self {
            Self::Any => statement.with(-1_i64),
            Self::New => statement.with(-2_i64),
            Self::At(seq) => statement.with(seq),
        }
    }
}
