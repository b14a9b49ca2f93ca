//! The tables and functions, and whether they are of this version.

use tokio_postgres::Row;

use super::database::Database;
use super::rows::get;
use super::value::Statement;
use crate::error::{Error, Result};
use crate::model::ConversationId;

/// The version of the schema that this program works with.
const VERSION: u32 = 1;
const IS_THERE: &str = "SELECT to_regclass('cs_schema') IS NOT NULL AS is_there";
const TABLES: &str = include_str!("tables.sql");
const FUNCTIONS: &str = include_str!("functions.sql");

/// Fails unless the schema is there and of this version. `creates`: one that is not there is made.
pub(super) fn check(database: &Database, creates: bool) -> Result<()> {
    if !is_there(database.row(Statement::repeatable(IS_THERE))?)? {
        if !creates {
            return Err(Error::NotFound { what: format!("a store in PostgreSQL at {}", database.calls().shown) });
        }
        create(database)?;
    }
    let row = database.row(Statement::repeatable("SELECT version FROM cs_schema"))?;
    let found = u32::try_from(get::<i32>(&row, "version")?).unwrap_or_default();
    let what = format!("the schema in PostgreSQL at {}", database.calls().shown);
    match found {
        VERSION => Ok(()),
        newer if newer > VERSION => Err(Error::UnsupportedVersion { what, found, supported: VERSION }),
        older => {
            Err(Error::InvalidInput(format!("{what} has version {older}, this program needs {VERSION}: migrate it")))
        }
    }
}

fn is_there(row: Row) -> Result<bool> {
    get(&row, "is_there")
}

/// Makes tables and functions. Two programs may try at once: one of them waits, and finds them made.
fn create(database: &Database) -> Result<()> {
    const INSERT: &str = "INSERT INTO cs_schema (version, store_id) VALUES ($1::bigint::integer, $2)";
    let session = database.session()?;
    session.script("BEGIN; SELECT pg_advisory_xact_lock(7163384950271)")?;
    if session.query(Statement::repeatable(IS_THERE))?.pop().map_or(Ok(false), is_there)? {
        return Ok(());
    }
    session.script(TABLES)?;
    session.script(FUNCTIONS)?;
    let store_id = ConversationId::new();
    session.query(Statement::once(INSERT).with(u64::from(VERSION)).with(store_id.as_bytes()))?;
    session.script("COMMIT")
}

/// What of the server's settings does not go with the promise that nothing acknowledged is lost.
pub(super) fn warnings(database: &Database) -> Result<Vec<String>> {
    const SETTINGS: &str = "SELECT current_setting('synchronous_commit') AS synchronous_commit, \
                            current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes, \
                            current_setting('synchronous_standby_names') AS standbys";
    let row = database.row(Statement::repeatable(SETTINGS))?;
    let setting = |name: &str| get::<String>(&row, name);
    let mut warnings = Vec::new();
    match setting("synchronous_commit")?.as_str() {
        "off" => warnings.push(
            "synchronous_commit is off: a crash of the server takes what was acknowledged in its last moments"
                .to_owned(),
        ),
        "local" if !setting("standbys")?.is_empty() => warnings.push(
            "synchronous_commit is local: the loss of the primary takes what was acknowledged and not replicated yet"
                .to_owned(),
        ),
        _ => {}
    }
    for (name, said) in [
        ("fsync", "fsync is off: a power cut takes what was acknowledged, or the whole database"),
        ("full_page_writes", "full_page_writes is off: a power cut may damage the database"),
    ] {
        if setting(name)? == "off" {
            warnings.push(said.to_owned());
        }
    }
    Ok(warnings)
}
