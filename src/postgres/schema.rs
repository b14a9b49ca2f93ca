//! The tables and functions, and whether this program can work with them.

use std::io::ErrorKind;

use tokio_postgres::Row;

use super::database::Database;
use super::rows::{corrupt, get, number};
use super::statement::Statement;
use crate::error::{Error, Result};
use crate::log::{Migration, Vacuumed};
use crate::model::ConversationId;

/// The version of the schema that this program works with.
const VERSION: u32 = 1;
/// The oldest version whose programs can work with this one.
const OLDEST: u32 = 1;
/// What makes each version of the one before it. A step adds, and takes nothing away that programs of the version before it
/// use: they go on while this program begins.
const STEPS: &[&str] = &[include_str!("tables.sql")];
/// The functions, under names that have a version too.
const FUNCTIONS: &str = include_str!("functions.sql");
/// A connection notes what it did not find. It looks again when it locks a table, here that of namespaces: another program may
/// have made the schema while this one waited for its turn.
const IS_THERE: &str = "SELECT to_regclass('cs_schema') IS NOT NULL AS is_there FROM pg_catalog.pg_namespace LIMIT 1";
const VERSIONS: &str = "SELECT version, oldest FROM cs_schema";

/// Fails unless the schema is there, and this program can work with it. `creates`: one that is not there is made.
pub(super) fn check(database: &Database, creates: bool) -> Result<()> {
    let shown = &database.calls().shown;
    if !is_there(&database.query(Statement::repeatable(IS_THERE))?)? {
        if !creates {
            return Err(Error::NotFound { what: format!("a store in PostgreSQL at {shown}") });
        }
        migrate(database).map_err(|error| match error {
            Error::Io { source, .. } if source.kind() == ErrorKind::PermissionDenied => Error::InvalidInput(format!(
                "there is no store in PostgreSQL at {shown}, and this role may not make one: `convo migrate` does, with a \
                 role that may"
            )),
            other => other,
        })?;
    }
    let found = Versions::of(&database.row(Statement::repeatable(VERSIONS))?)?;
    found.check_oldest(shown)?;
    if found.version < VERSION {
        return Err(Error::InvalidInput(format!(
            "the schema in PostgreSQL at {shown} has version {}, this program needs {VERSION}: `convo migrate` updates it",
            found.version
        )));
    }
    Ok(())
}

/// Fails if a database is a cluster of a sharded store: what is written to it alone passes by the map.
pub(super) fn refuse_member(database: &Database) -> Result<()> {
    if !is_member(database)? {
        return Ok(());
    }
    let shown = &database.calls().shown;
    Err(Error::InvalidInput(format!(
        "the database in PostgreSQL at {shown} is one cluster of a sharded store: open that store with `shards:FILE`, the file \
         that lists its clusters"
    )))
}

/// Whether a database is a cluster of a sharded store.
pub(super) fn is_member(database: &Database) -> Result<bool> {
    const SQL: &str = "SELECT to_regclass('cs_shards') IS NOT NULL AS is_there";
    is_there(&database.query(Statement::repeatable(SQL))?)
}

/// Makes the tables and functions, or makes older ones those of this version. All of it, or nothing. Of several programs that
/// do it at once, one does, and the others wait and find it done.
pub(super) fn migrate(database: &Database) -> Result<Migration> {
    const NEW: &str = "INSERT INTO cs_schema (version, oldest, store_id) VALUES (0, 0, $1)";
    const NOTE: &str = "UPDATE cs_schema SET version = $1::bigint::integer, oldest = $2::bigint::integer";
    // A comment takes no parameters.
    const SET_FUNCTIONS: &str = "SELECT cs_describe_v1($1)";
    let session = database.session()?;
    session.script("BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock(7163384950271)")?;
    let from = match is_there(&session.query(Statement::repeatable(IS_THERE))?)? {
        true => {
            let rows = session.query(Statement::repeatable(VERSIONS))?;
            let found = Versions::of(rows.first().ok_or_else(|| corrupt("it has no marker".to_owned()))?)?;
            found.check_oldest(&database.calls().shown)?;
            found.version
        }
        false => 0,
    };
    let migration = Migration { from, to: from.max(VERSION) };
    // Those of a later version have what this program needs.
    if from <= VERSION {
        for step in STEPS.iter().skip(usize::try_from(from).unwrap_or(usize::MAX)) {
            session.script(step)?;
        }
        if from == 0 {
            session.query(Statement::once(NEW).with(ConversationId::new().as_bytes()))?;
        }
        session.script(FUNCTIONS)?;
        session.query(Statement::once(SET_FUNCTIONS).with(functions()))?;
        session.query(Statement::once(NOTE).with(u64::from(VERSION)).with(u64::from(OLDEST)))?;
    }
    session.end()?;
    Ok(migration)
}

/// Writes the tables again. Each is locked meanwhile.
pub(super) fn vacuum(database: &Database, progress: &mut dyn FnMut(u64, u64)) -> Result<Vacuumed> {
    // A table of another owner would be passed over with a warning.
    const BYTES: &str = "SELECT sum(pg_total_relation_size(c.oid))::bigint AS bytes, \
                         bool_and(pg_has_role(c.relowner, 'USAGE')) AS is_own FROM pg_class c \
                         WHERE c.oid IN ('cs_record'::regclass, 'cs_conversation'::regclass, 'cs_key'::regclass, 'cs_item'::regclass)";
    // None of them runs in a transaction with others.
    const TABLES: &[&str] =
        &["VACUUM FULL cs_record", "VACUUM FULL cs_conversation", "VACUUM FULL cs_key", "VACUUM FULL cs_item"];
    check(database, false)?;
    let session = database.session()?;
    let look = || -> Result<Row> {
        session.query(Statement::repeatable(BYTES))?.pop().ok_or_else(|| corrupt("it has no tables".to_owned()))
    };
    let before = look()?;
    if !get::<bool>(&before, "is_own")? {
        return Err(Error::InvalidInput(format!(
            "the tables in PostgreSQL at {} are of another role, which alone may write them again: name that role in the URL",
            database.calls().shown
        )));
    }
    for (done, table) in (1..).zip(TABLES) {
        session.script(table)?;
        progress(done, TABLES.len() as u64);
    }
    let (bytes_before, bytes_after) = (number(&before, "bytes")?, number(&look()?, "bytes")?);
    Ok(Vacuumed { bytes_before, bytes_after, set_aside: Vec::new() })
}

/// The checksum of the functions that this program comes with. The comment on the table `cs_schema` has that of those that are
/// there: `functions N`.
pub(super) fn functions() -> u64 {
    u64::from(crc32fast::hash(FUNCTIONS.as_bytes()))
}

/// What a schema says of itself.
struct Versions {
    version: u32,
    /// The oldest version whose programs may use it.
    oldest: u32,
}

impl Versions {
    fn of(row: &Row) -> Result<Self> {
        let number = |column| Ok(u32::try_from(get::<i32>(row, column)?).unwrap_or_default());
        Ok(Self { version: number("version")?, oldest: number("oldest")? })
    }

    /// Fails if this program is too old for it.
    fn check_oldest(&self, shown: &str) -> Result<()> {
        if self.oldest <= VERSION {
            return Ok(());
        }
        let what = format!("the schema in PostgreSQL at {shown}");
        Err(Error::UnsupportedVersion { what, found: self.version, supported: VERSION })
    }
}

fn is_there(rows: &[Row]) -> Result<bool> {
    rows.first().map_or(Ok(false), |row| get(row, "is_there"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_has_a_step() {
        assert_eq!(STEPS.len(), VERSION as usize);
        assert!((1..=VERSION).contains(&OLDEST));
    }
}
