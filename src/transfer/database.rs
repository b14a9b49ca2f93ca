//! SQLite files, read-only.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

/// Opens a database that nobody writes meanwhile, or one with its log beside it, without changing either.
pub(crate) fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = Connection::open_with_flags(path, flags)?;
    // The views and triggers of an untrusted file cannot run anything.
    database.pragma_update(None, "trusted_schema", false)?;
    database.pragma_update(None, "query_only", true)?;
    Ok(database)
}

/// The names of its tables.
pub(crate) fn tables(database: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")?;
    let names = statement.query_map([], |row| row.get(0))?;
    names.collect()
}
