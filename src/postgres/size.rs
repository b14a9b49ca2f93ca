//! How much the tables hold.

use super::rows::{get, number};
use super::shared::Shared;
use super::value::Statement;
use crate::error::Result;
use crate::log::{Size, TableSize};

impl Shared {
    /// Reads the statistics of the tables, and not the tables: it takes as long for many rows as for few.
    pub(super) fn size(&self) -> Result<Size> {
        // A table that was not looked at yet has its rows counted as they came and went. Parts of a table count as one.
        const SQL: &str = "SELECT coalesce(p.relname, c.relname)::text AS name, \
            sum(CASE WHEN c.reltuples < 0 THEN pg_stat_get_live_tuples(c.oid) ELSE c.reltuples::bigint END)::bigint AS rows, \
            sum(pg_total_relation_size(c.oid))::bigint AS bytes \
            FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class p ON p.oid = i.inhparent \
            WHERE c.relkind = 'r' AND c.relname LIKE 'cs\\_%' \
            AND c.relnamespace = (SELECT m.relnamespace FROM pg_class m WHERE m.oid = to_regclass('cs_schema')) \
            GROUP BY 1 ORDER BY 1";
        let rows = self.database.query(Statement::repeatable(SQL))?;
        let tables = rows.iter().map(|row| {
            Ok(TableSize { name: get(row, "name")?, rows: number(row, "rows")?, bytes: number(row, "bytes")? })
        });
        let tables = tables.collect::<Result<Vec<_>>>()?;
        let conversations = tables.iter().find(|table| table.name == "cs_conversation").map_or(0, |table| table.rows);
        let bytes = tables.iter().map(|table| table.bytes).sum();
        Ok(Size { conversations, bytes: Some(bytes), tables })
    }
}
