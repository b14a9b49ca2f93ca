//! SQLite files, read-only. A file may be hostile: only plain tables are read, and no more than fits in memory.

use std::collections::HashMap;
use std::path::Path;

use rusqlite::limits::Limit;
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};

use super::foreign::{Broken, Taken};
use super::values::LIMIT;

/// A row by the names of its columns.
pub(crate) type Row = HashMap<String, Value>;

/// A database that is read, conversation by conversation.
pub(crate) struct Database {
    connection: Connection,
    tables: Vec<String>,
    /// Bytes that the conversation may still have.
    room: std::cell::Cell<usize>,
}

impl Database {
    /// Opens a database that nobody writes meanwhile, or one with its log beside it, without changing either.
    pub(crate) fn open(path: &Path) -> rusqlite::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        // The views and triggers of an untrusted file cannot run anything.
        connection.pragma_update(None, "trusted_schema", false)?;
        connection.pragma_update(None, "query_only", true)?;
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, i32::try_from(LIMIT).unwrap_or(i32::MAX))?;
        let mut database = Self { connection, tables: Vec::new(), room: std::cell::Cell::new(LIMIT) };
        database.tables = database.plain_tables()?;
        Ok(database)
    }

    /// The names of its tables. Virtual tables, views, and tables with computed columns are no tables: reading them runs
    /// what the file states.
    fn plain_tables(&self) -> rusqlite::Result<Vec<String>> {
        let sql = "SELECT name AS name FROM sqlite_master m WHERE type = 'table' AND rootpage > 0 \
                   AND NOT EXISTS (SELECT 1 FROM pragma_table_xinfo(m.name) WHERE hidden > 0) ORDER BY name";
        let mut names = Vec::new();
        self.rows(sql, "", &mut |mut row| {
            names.extend(text(&mut row, "name"));
            true
        })?;
        Ok(names)
    }

    /// Whether it has these tables.
    pub(crate) fn has(&self, tables: &[&str]) -> bool {
        tables.iter().all(|table| self.tables.iter().any(|known| known == table))
    }

    /// The names of a table's columns.
    pub(crate) fn columns(&self, table: &str) -> rusqlite::Result<Vec<String>> {
        let mut names = Vec::new();
        self.rows("SELECT name AS name FROM pragma_table_info(?1)", table, &mut |mut row| {
            names.extend(text(&mut row, "name"));
            true
        })?;
        Ok(names)
    }

    /// The names of its tables.
    pub(crate) fn tables(&self) -> &[String] {
        &self.tables
    }

    /// The next conversation may have as many bytes as any.
    pub(crate) fn next_conversation(&self) {
        self.room.set(LIMIT);
    }

    /// A conversation, unless it was larger than one may be.
    pub(crate) fn whole(&self, foreign: super::foreign::Foreign) -> Taken {
        if self.room.get() > 0 {
            return Ok(foreign);
        }
        let why = format!("it is larger than {LIMIT} bytes (256 MiB)");
        Err(Broken { id: Some(foreign.id), title: foreign.title, why })
    }

    /// Calls `each` with the rows of a query until it returns false, or the conversation is too large.
    pub(crate) fn rows(&self, sql: &str, parameter: &str, each: &mut dyn FnMut(Row) -> bool) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let parameters: &[&dyn rusqlite::ToSql] = if statement.parameter_count() > 0 { &[&parameter] } else { &[] };
        let mut rows = statement.query(parameters)?;
        while let Some(row) = rows.next()? {
            let cell = |(at, name): (usize, &String)| Ok((name.clone(), value(row.get_ref(at)?)));
            let row: Row = names.iter().enumerate().map(cell).collect::<rusqlite::Result<_>>()?;
            let bytes: usize = row.values().map(bytes).sum();
            self.room.set(self.room.get().saturating_sub(bytes));
            if self.room.get() == 0 || !each(row) {
                break;
            }
        }
        Ok(())
    }

    /// The rows of a query, if all of these tables exist: a version that does not have one of them has no such rows.
    pub(crate) fn all(&self, tables: &[&str], sql: &str, parameter: &str) -> rusqlite::Result<Vec<Row>> {
        let mut found = Vec::new();
        if self.has(tables) {
            self.rows(sql, parameter, &mut |row| {
                found.push(row);
                true
            })?;
        }
        Ok(found)
    }
}

/// A cell. Text that is not UTF-8 is mended.
fn value(cell: rusqlite::types::ValueRef<'_>) -> Value {
    use rusqlite::types::ValueRef;
    match cell {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => Value::Integer(number),
        ValueRef::Real(number) => Value::Real(number),
        ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    }
}

fn bytes(value: &Value) -> usize {
    const NUMBER: usize = 16;
    match value {
        Value::Text(text) => text.len() + NUMBER,
        Value::Blob(bytes) => bytes.len() + NUMBER,
        _ => NUMBER,
    }
}

/// Takes a cell that holds a text or an integer; an empty text is none.
pub(crate) fn text(row: &mut Row, name: &str) -> Option<String> {
    match row.remove(name)? {
        Value::Text(text) => Some(text).filter(|text| !text.is_empty()),
        Value::Integer(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A cell as JSON: a text that holds JSON is that. None for an empty cell, or for bytes.
pub(crate) fn json(value: Value) -> Option<crate::model::Json> {
    match value {
        Value::Text(text) if !text.is_empty() => {
            crate::model::Json::new(text.clone()).ok().or_else(|| super::take::json_of(&text))
        }
        Value::Integer(number) => super::take::json_of(&number),
        Value::Real(number) => super::take::json_of(&number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::foreign::Foreign;

    #[test]
    fn a_conversation_that_is_too_large_fails_and_the_next_one_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        let sql = "CREATE TABLE t (x TEXT); INSERT INTO t VALUES ('0123456789'), ('0123456789'), ('0123456789');";
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let database = Database::open(&path).unwrap();
        database.room.set(60);
        assert_eq!(database.all(&["t"], "SELECT * FROM t", "").unwrap().len(), 2);
        let why = database.whole(Foreign::new("c")).unwrap_err().why;
        assert!(why.contains("256 MiB"), "{why}");
        database.next_conversation();
        assert_eq!(database.all(&["t"], "SELECT * FROM t", "").unwrap().len(), 3);
        assert!(database.whole(Foreign::new("c")).is_ok());
    }
}
