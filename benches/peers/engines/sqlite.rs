//! SQLite as one writes it by hand for this job: WAL, `synchronous=FULL`, tables without rowid, prepared statements, one
//! transaction an append. Alone, each thread commits on its own connection; grouped, one leader commits for all.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use conversation_store::model::{ConversationId, Message};
use conversation_store::{Entry, StoredMessage};
use rusqlite::{Connection, OptionalExtension, Row as SqlRow, params};

use super::group::{Backend, Group};
use super::read::Found;
use super::rows::{Head, Job, Placed, stream};
use super::{CACHE_BYTES, Listed, Peer};

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS chunk (
        conversation BLOB NOT NULL, seq INTEGER NOT NULL, message INTEGER NOT NULL, chunk INTEGER, role INTEGER NOT NULL,
        time INTEGER NOT NULL, line BLOB NOT NULL, PRIMARY KEY (conversation, seq)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS head (
        conversation BLOB NOT NULL PRIMARY KEY, next_seq INTEGER NOT NULL, next_message INTEGER NOT NULL,
        created INTEGER NOT NULL, last_activity INTEGER NOT NULL, title TEXT) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS listing (
        minute INTEGER NOT NULL, conversation BLOB NOT NULL, PRIMARY KEY (minute, conversation)) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS receipt (
        conversation BLOB NOT NULL, key BLOB NOT NULL, first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL,
        message INTEGER NOT NULL, digest BLOB NOT NULL, PRIMARY KEY (conversation, key)) WITHOUT ROWID;";

const BEGIN: &str = "BEGIN IMMEDIATE";
const COMMIT: &str = "COMMIT";
const HEAD: &str = "SELECT next_seq, next_message, created, last_activity, title FROM head WHERE conversation = ?1";
const RECEIPT: &str = "SELECT first_seq, last_seq, message, digest FROM receipt WHERE conversation = ?1 AND key = ?2";
const PUT_CHUNK: &str = "INSERT INTO chunk VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const PUT_HEAD: &str = "INSERT OR REPLACE INTO head VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const PUT_LISTING: &str = "INSERT INTO listing VALUES (?1, ?2)";
const DELETE_LISTING: &str = "DELETE FROM listing WHERE minute = ?1 AND conversation = ?2";
const PUT_RECEIPT: &str = "INSERT INTO receipt VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const LOAD: &str = "SELECT seq, time, message, chunk, role, line FROM chunk WHERE conversation = ?1 ORDER BY seq";
const TAIL: &str =
    "SELECT seq, time, message, chunk, role, line FROM chunk WHERE conversation = ?1 ORDER BY seq DESC LIMIT ?2";
const LIST: &str = "
    SELECT next_seq, next_message, created, last_activity, title, conversation
    FROM listing CROSS JOIN head USING (conversation) ORDER BY minute DESC, listing.conversation DESC LIMIT ?1";

struct Sqlite {
    path: PathBuf,
    /// As many as there were threads at once.
    connections: Mutex<Vec<Connection>>,
    /// SQLite takes one writer at a time. Threads that wait here wake at once; SQLite's own busy handler sleeps.
    writing: Mutex<()>,
    group: Option<Group<Connection>>,
}

pub(super) fn open_alone(path: &Path) -> Box<dyn Peer> {
    open(path, false)
}

pub(super) fn open_grouped(path: &Path) -> Box<dyn Peer> {
    open(path, true)
}

fn open(path: &Path, grouped: bool) -> Box<dyn Peer> {
    std::fs::create_dir_all(path).unwrap();
    let path = path.join("peer.db");
    let connection = connect(&path);
    connection.execute_batch(SCHEMA).unwrap();
    let group = grouped.then(|| Group::new(connect(&path)));
    Box::new(Sqlite { path, connections: Mutex::new(vec![connection]), writing: Mutex::default(), group })
}

fn connect(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    let cache_kib = CACHE_BYTES / 1024;
    let pragmas = format!(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -{cache_kib}; \
         PRAGMA busy_timeout = 60000;"
    );
    connection.execute_batch(&pragmas).unwrap();
    connection.set_prepared_statement_cache_capacity(32);
    connection
}

impl Sqlite {
    /// Runs on a connection that no other thread uses meanwhile.
    fn with<T>(&self, run: impl FnOnce(&mut Connection) -> T) -> T {
        let free = self.connections.lock().unwrap().pop();
        let mut connection = free.unwrap_or_else(|| connect(&self.path));
        let result = run(&mut connection);
        self.connections.lock().unwrap().push(connection);
        result
    }

    fn write(&self, job: Job) -> Placed {
        match &self.group {
            Some(group) => group.write(job),
            None => self.with(|connection| {
                let _writing = self.writing.lock().unwrap();
                connection.commit(&[job])[0]
            }),
        }
    }
}

fn run(connection: &Connection, sql: &str, params: impl rusqlite::Params) {
    connection.prepare_cached(sql).unwrap().execute(params).unwrap();
}

fn head(row: &SqlRow<'_>) -> rusqlite::Result<Head> {
    Ok(Head {
        next_seq: row.get(0)?,
        next_message: row.get(1)?,
        created: row.get(2)?,
        last_activity: row.get(3)?,
        title: row.get(4)?,
    })
}

/// A row of `LOAD` or `TAIL`.
fn with_found<T>(row: &SqlRow<'_>, visit: impl FnOnce(Found<'_>) -> T) -> rusqlite::Result<T> {
    let line = row.get_ref(5)?.as_blob()?;
    let (seq, time, message) = (row.get(0)?, row.get(1)?, row.get(2)?);
    Ok(visit(Found { seq, time, message, chunk: row.get(3)?, role: row.get(4)?, line }))
}

impl Backend for Connection {
    fn commit(&mut self, jobs: &[Job]) -> Vec<Placed> {
        run(self, BEGIN, []);
        let placed = jobs.iter().map(|job| write(self, job)).collect();
        run(self, COMMIT, []);
        placed
    }
}

fn write(connection: &Connection, job: &Job) -> Placed {
    let id = job.conversation.as_bytes();
    if let Some((key, content)) = &job.receipt {
        let placed = |row: &SqlRow<'_>| {
            let (first_seq, last_seq, message, digest) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
            Ok(Placed { first_seq, last_seq, message, digest })
        };
        let found = connection.prepare_cached(RECEIPT).unwrap().query_row(params![id, key], placed);
        if let Some(placed) = found.optional().unwrap() {
            assert_eq!(placed.digest, *content);
            return placed;
        }
    }
    let before = connection.prepare_cached(HEAD).unwrap().query_row([id], head).optional().unwrap();
    let old_minute = before.as_ref().map(Head::minute);
    let (head, placed) = job.advance(before);
    for (seq, row) in (placed.first_seq..).zip(&job.rows) {
        let message = placed.message + row.message;
        run(connection, PUT_CHUNK, params![id, seq, message, row.chunk, row.role, head.last_activity, row.line]);
    }
    if old_minute != Some(head.minute()) {
        if let Some(old) = old_minute {
            run(connection, DELETE_LISTING, params![old, id]);
        }
        run(connection, PUT_LISTING, params![head.minute(), id]);
    }
    if let Some((key, content)) = &job.receipt {
        let Placed { first_seq, last_seq, message, .. } = placed;
        run(connection, PUT_RECEIPT, params![id, key, first_seq, last_seq, message, content]);
    }
    let Head { next_seq, next_message, created, last_activity, title } = head;
    run(connection, PUT_HEAD, params![id, next_seq, next_message, created, last_activity, title]);
    placed
}

impl Peer for Sqlite {
    fn append(&self, conversation: ConversationId, key: Option<&str>, messages: &[Message]) {
        self.write(Job::new(conversation, key, messages));
    }

    fn fill(&self, appends: &mut dyn Iterator<Item = (ConversationId, &[Message])>) {
        let mut jobs = appends.map(|(conversation, messages)| Job::new(conversation, None, messages));
        self.with(|connection| super::group::fill(connection, &mut jobs));
    }

    fn stream(&self, conversation: ConversationId, deltas: &[String]) {
        stream(conversation, deltas, |job| self.write(job));
    }

    fn load(&self, conversation: ConversationId) -> Vec<StoredMessage> {
        self.with(|connection| {
            let mut messages = Vec::new();
            let mut statement = connection.prepare_cached(LOAD).unwrap();
            let mut rows = statement.query([conversation.as_bytes()]).unwrap();
            while let Some(row) = rows.next().unwrap() {
                with_found(row, |found| found.collect(&mut messages)).unwrap();
            }
            messages
        })
    }

    fn tail(&self, conversation: ConversationId, count: usize) -> Vec<Entry> {
        self.with(|connection| {
            let mut statement = connection.prepare_cached(TAIL).unwrap();
            let rows = statement
                .query_map(params![conversation.as_bytes(), count], |row| with_found(row, |found| found.entry()));
            let mut entries: Vec<Entry> = rows.unwrap().map(Result::unwrap).collect();
            entries.reverse();
            entries
        })
    }

    fn list(&self, count: usize) -> Vec<Listed> {
        self.with(|connection| {
            let mut statement = connection.prepare_cached(LIST).unwrap();
            let rows =
                statement.query_map([count], |row| Ok(head(row)?.into_item(ConversationId::from_bytes(row.get(5)?))));
            rows.unwrap().map(Result::unwrap).collect()
        })
    }

    fn close(self: Box<Self>) {}
}
