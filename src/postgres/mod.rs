//! The log on PostgreSQL: many processes write and read one store.
//!
//! Each write is a call of a function (`functions.sql`), which locks the conversation's row, gives the numbers, and
//! writes one row for the record. Appends that wait at one time share a call. What the log decides on (titles, rewinds, forks,
//! redactions) it reads first, and the function takes it only if nothing has changed since. Nothing is frozen in a process, and
//! nothing of a conversation is kept in one.
//!
//! What a process does keep, each has for itself: `database` its connections, on a runtime of its own; `reader` whom forks
//! were forked from; `gathering` the appends that wait; `writers` the open messages, which `streams` sends; `leases` what says
//! that this program lives; `settings` what the server's settings break;
//! `followed` what is known of conversations that somebody follows; `gate` whether it still writes.
//!
//! `append`, `change` and `redact` write; `list` and `verify` read; `backup` and `restore` are this log's half of a backup;
//! `log` is the log as a store sees it. [`cluster`] is a store over several databases. To add a column: a step in `schema`, its
//! name in `rows`, and the functions that write it.

mod append;
mod backup;
mod change;
pub(crate) mod cluster;
mod connection;
mod database;
mod failure;
mod followed;
mod gate;
mod gathering;
mod leases;
mod list;
mod log;
mod reader;
mod redact;
mod restore;
mod rows;
mod schema;
mod settings;
mod statement;
mod streams;
#[cfg(test)]
mod tests;
mod url;
mod verify;
mod writers;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;

use self::database::Database;
use self::followed::Followed;
use self::gate::Gate;
use self::gathering::Gathering;
use self::leases::Leases;
use self::reader::Reader;
use self::settings::Settings;
use self::streams::Streams;
use self::url::Url;
use self::writers::Writers;
use crate::error::Result;
use crate::log::{Clock, Migration, Opening, Vacuumed};

pub(crate) use self::restore::restore;
pub(crate) use self::url::is_postgres;

/// Makes the schema in the database of a URL, or makes an older one that of this version.
pub(crate) fn migrate(url: &str) -> Result<Migration> {
    schema::migrate(&Database::connect(&Url::parse(url)?)?)
}

/// Writes the tables in the database of a URL again. `progress` is called with tables done, and of all.
pub(crate) fn vacuum(url: &str, progress: &mut dyn FnMut(u64, u64)) -> Result<Vacuumed> {
    schema::vacuum(&Database::connect(&Url::parse(url)?)?, progress)
}

/// Between two looks at leases: a part of a lease.
const LOOKS_A_LEASE: u32 = 3;

/// The log of all conversations, in a database.
pub(crate) struct Postgres {
    database: Arc<Database>,
    gate: Arc<Gate>,
    gathering: Arc<Gathering>,
    reader: Reader,
    writers: Arc<Writers>,
    streams: Arc<Streams>,
    leases: Arc<Leases>,
    followed: Arc<Followed>,
    /// How long a change is tried again while others are faster.
    patience: Duration,
    settings: Arc<Settings>,
    /// What goes on beside the calls.
    tasks: Vec<AbortHandle>,
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres").field("at", &self.database.calls().shown).finish_non_exhaustive()
    }
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

    fn start(database: Database, url: &Url, clock: Clock, window: Duration, opening: Opening) -> Result<Self> {
        let (database, gate) = (Arc::new(database), Arc::new(Gate::new(clock, opening.read_only)));
        let settings = Arc::new(Settings::read(Arc::clone(&database))?);
        let (writers, followed) = (Arc::<Writers>::default(), Arc::new(Followed::new(Arc::clone(&database))));
        let reader = Reader::new(Arc::clone(&database), Arc::clone(&writers));
        let leases = Arc::new(Leases::new(Arc::clone(&database), Arc::clone(&writers), url.lease));
        let streams =
            Streams::new(Arc::clone(&database), Arc::clone(&gate), Arc::clone(&writers), Arc::clone(&followed));
        let (streams, patience, tasks) = (Arc::new(streams), url.timeout, Vec::new());
        let gathering = Arc::new(Gathering::new(Arc::clone(&database), url.pool));
        let mut log =
            Self { database, gate, gathering, reader, writers, streams, leases, followed, patience, settings, tasks };
        log.start_tasks(url, window)?;
        Ok(log)
    }

    fn start_tasks(&mut self, url: &Url, window: Duration) -> Result<()> {
        let Some(runtime) = self.database.handle() else { return Ok(()) };
        self.tasks.push(runtime.spawn(Followed::look_for_news(Arc::clone(&self.followed))).abort_handle());
        let pause = url.lease / LOOKS_A_LEASE;
        let (settings, gate) = (Arc::clone(&self.settings), Arc::clone(&self.gate));
        self.tasks.push(runtime.spawn(Settings::watch(settings, gate, pause)).abort_handle());
        if !self.gate.is_read_only() {
            self.interrupt_expired()?;
            self.tasks.push(runtime.spawn(Streams::send_windows(Arc::clone(&self.streams), window)).abort_handle());
            let (leases, gate) = (Arc::clone(&self.leases), Arc::clone(&self.gate));
            self.tasks.push(runtime.spawn(Leases::keep(leases, gate, pause)).abort_handle());
            self.tasks.push(runtime.spawn(Streams::sweep(Arc::clone(&self.streams), pause)).abort_handle());
        }
        Ok(())
    }

    /// Interrupts the messages whose programs are gone.
    fn interrupt_expired(&self) -> Result<()> {
        let streams = Arc::clone(&self.streams);
        self.database.wait(async move { streams.interrupt_expired().await })?
    }

    /// Takes no more writes, writes what was collected, and lets go of what is still being written. A second call does
    /// nothing.
    pub(crate) fn close(&self) -> Result<()> {
        if !self.gate.close() {
            return Ok(());
        }
        let written = if self.gate.is_read_only() { Ok(()) } else { self.streams.flush_all() };
        let released = self.leases.release();
        self.followed.close();
        written.and(released)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let _ = self.close();
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}
