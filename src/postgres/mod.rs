//! The log on PostgreSQL: many processes write and read one store.
//!
//! Each write is one call of one function (`functions.sql`), which locks the conversation's row, gives the numbers, and
//! writes one row for the record. What the log decides on (titles, rewinds, forks, redactions) it reads first, and the function
//! takes it only if nothing has changed since. Nothing is frozen in a process, and nothing of a conversation is kept in one.
//!
//! `database` makes calls, on a runtime of its own; `append`, `stream`, `change`, `fork`, `delete` and `redact` write;
//! `read`, `list` and `follow` read; `holding` knows whose messages are still being written.

mod append;
mod backup;
mod change;
pub(crate) mod cluster;
mod connection;
mod database;
mod delete;
mod failure;
mod follow;
mod fork;
mod holding;
mod lease;
mod list;
mod read;
mod redact;
mod restore;
mod rows;
mod schema;
mod seam;
mod segment;
mod shared;
mod size;
mod stream;
mod tls;
mod url;
mod value;
mod verify;
mod watched;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;

use crate::error::{Error, Result};
use crate::log::{Clock, Migration, Opening};
use crate::model::Name;

use self::database::Database;
pub(crate) use self::restore::restore;
use self::shared::Shared;
use self::url::Url;
pub(crate) use self::url::is_postgres;

/// Makes the schema in the database of a URL, or makes an older one that of this version.
pub(crate) fn migrate(url: &str) -> Result<Migration> {
    schema::migrate(&Database::connect(&Url::parse(url)?)?)
}

/// Between two looks at leases: a part of a lease.
const LOOKS_A_LEASE: u32 = 3;

/// The log of all conversations, in a database.
#[derive(Debug)]
pub(crate) struct Postgres {
    shared: Arc<Shared>,
    /// What goes on beside the calls.
    tasks: Vec<AbortHandle>,
}

impl Postgres {
    /// Opens the log in the database of a URL. `window` is how long what is streamed may wait; `creates`: a schema that is not
    /// there is made.
    pub(crate) fn open(url: &str, clock: Clock, window: Duration, opening: Opening, creates: bool) -> Result<Self> {
        let url = Url::parse(url)?;
        let database = Database::connect(&url)?;
        schema::check(&database, creates && !opening.read_only)?;
        schema::refuse_member(&database)?;
        Self::start(database, &url, clock, window, opening)
    }

    /// As [`Postgres::open`], of a database that is one cluster of a sharded store, or becomes one.
    pub(crate) fn open_member(
        url: &str,
        clock: Clock,
        window: Duration,
        opening: Opening,
        creates: bool,
    ) -> Result<Self> {
        let url = Url::parse(url)?;
        // A backup asks for the map while it keeps its moment.
        if url.pool < 2 {
            return Err(Error::InvalidInput(format!(
                "{}: pool=1 is too few for a cluster of a store: 2 at least",
                url.shown
            )));
        }
        let database = Database::connect(&url)?;
        schema::check(&database, creates && !opening.read_only)?;
        Self::start(database, &url, clock, window, opening)
    }

    fn start(database: Database, url: &Url, clock: Clock, window: Duration, opening: Opening) -> Result<Self> {
        let warnings = schema::warnings(&database)?;
        for warning in &warnings {
            tracing::warn!("PostgreSQL at {}: {warning}", url.shown);
        }
        let shared = Arc::new(Shared::new(database, clock, opening.read_only, url, warnings));
        let mut tasks = Vec::new();
        if let Some(runtime) = shared.database.handle() {
            tasks.push(runtime.spawn(Shared::look_for_news(Arc::clone(&shared))).abort_handle());
            if !opening.read_only {
                let swept = Arc::clone(&shared);
                shared.database.wait(async move { swept.interrupt_expired().await })??;
                tasks.push(runtime.spawn(Shared::send_windows(Arc::clone(&shared), window)).abort_handle());
                let pause = url.lease / LOOKS_A_LEASE;
                tasks.push(runtime.spawn(Shared::keep_leases(Arc::clone(&shared), pause)).abort_handle());
                tasks.push(runtime.spawn(Shared::sweep(Arc::clone(&shared), pause)).abort_handle());
            }
        }
        Ok(Self { shared, tasks })
    }

    /// Makes a fork that was announced with a token, in another bucket than that of its id.
    pub(crate) fn fork_announced(&self, parent: &Name, at_seq: Option<u64>, child: &Name, token: u64) -> Result<()> {
        self.shared.fork(parent, at_seq, child, Some(token))
    }

    /// Takes no more writes, writes what was collected, and lets go of what is still being written. A second call does
    /// nothing.
    pub(crate) fn close(&self) -> Result<()> {
        if !self.shared.enter_closed() {
            return Ok(());
        }
        let written = if self.shared.read_only { Ok(()) } else { self.shared.flush_all() };
        let released = self.shared.release();
        self.shared.watched.close();
        written.and(released)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let _ = self.close();
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}
