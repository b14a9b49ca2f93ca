//! The list of conversations, those that are unfinished, and how much the tables hold.

use std::sync::Arc;

use tokio_postgres::Row;

use super::database::Database;
use super::rows::{self, conversation_columns};
use super::statement::Statement;
use crate::error::{Error, Result};
use crate::log::list::{Listed, MOST_SCANNED, Pager, Place};
use crate::log::{ListPage, ListQuery, ListSort, Problem, Size, TableSize};
use crate::model::ConversationId;

/// Conversations that are read at once, at least, where some are left out of the page.
const ROWS: usize = 200;
/// Conversations that are read at once, at most.
const MOST_ROWS: usize = 10_000;
const MICROS_A_MINUTE: i64 = 60_000_000;
/// Before all conversations of a list: no time is as late.
const TOP: (i64, [u8; 16]) = (i64::MAX, [u8::MAX; 16]);
/// Before all conversations of a list that begins with the oldest.
const BOTTOM: (i64, [u8; 16]) = (i64::MIN, [0; 16]);

/// Reads the owner's list. One statement sees one moment. A page that needs several has them in one
/// transaction: otherwise a conversation that moves between two of them would be missed.
pub(super) fn page(database: &Database, query: &ListQuery) -> Result<ListPage> {
    let mut scan = Scan::new(query)?;
    let rows = database.query(scan.statement())?;
    if scan.take(&rows)? {
        return Ok(scan.pager.page());
    }
    database.at_one_moment(|session| {
        let mut scan = Scan::new(query)?;
        while !scan.take(&session.query(scan.statement())?)? {}
        Ok(scan.pager.page())
    })
}

/// All conversations.
pub(super) fn conversations(database: &Database) -> Result<Vec<ConversationId>> {
    ids(database, "SELECT t.conv_id FROM cs_conversation t WHERE NOT t.deleted ORDER BY t.conv_id")
}

/// The conversations with messages that are not finished.
pub(super) fn unfinished(database: &Database) -> Result<Vec<ConversationId>> {
    ids(
        database,
        "SELECT t.conv_id FROM cs_conversation t WHERE NOT t.deleted \
         AND (cardinality(t.open_messages) > 0 OR cardinality(t.interrupted) > 0) ORDER BY t.conv_id",
    )
}

fn ids(database: &Database, sql: &'static str) -> Result<Vec<ConversationId>> {
    let rows = database.query(Statement::repeatable(sql))?;
    rows.iter().map(|row| rows::id(row, "conv_id")).collect()
}

/// Reads the statistics of the tables, and not the tables: it takes as long for many rows as for few.
pub(super) fn size(database: &Database) -> Result<Size> {
    // A table that was not looked at yet has its rows counted as they came and went. Parts of a table count as one.
    const SQL: &str = "SELECT coalesce(p.relname, c.relname)::text AS name, \
        sum(CASE WHEN c.reltuples < 0 THEN pg_stat_get_live_tuples(c.oid) ELSE c.reltuples::bigint END)::bigint AS rows, \
        sum(pg_total_relation_size(c.oid))::bigint AS bytes \
        FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid LEFT JOIN pg_class p ON p.oid = i.inhparent \
        WHERE c.relkind = 'r' AND c.relname LIKE 'cs\\_%' \
        AND c.relnamespace = (SELECT m.relnamespace FROM pg_class m WHERE m.oid = to_regclass('cs_schema')) \
        GROUP BY 1 ORDER BY 1";
    let rows = database.query(Statement::repeatable(SQL))?;
    let tables = rows.iter().map(|row| {
        Ok(TableSize {
            name: rows::get(row, "name")?,
            rows: rows::number(row, "rows")?,
            bytes: rows::number(row, "bytes")?,
        })
    });
    let tables = tables.collect::<Result<Vec<_>>>()?;
    let conversations = tables.iter().find(|table| table.name == "cs_conversation").map_or(0, |table| table.rows);
    let bytes = tables.iter().map(|table| table.bytes).sum();
    Ok(Size { conversations, bytes: Some(bytes), tables })
}

/// A page of the list that is being read.
struct Scan<'a> {
    query: &'a ListQuery,
    pager: Pager<'a>,
    /// The place of the last conversation that was read.
    after: (i64, [u8; 16]),
    /// How many of those that were read belong to the page.
    found: usize,
    scanned: usize,
}

impl<'a> Scan<'a> {
    fn new(query: &'a ListQuery) -> Result<Self> {
        let top = if query.sort == ListSort::Oldest { BOTTOM } else { TOP };
        let after = query.begins().map_or(top, |place| (place.micros, *place.conversation.as_bytes()));
        Ok(Self { query, pager: Pager::new(query)?, after, found: 0, scanned: 0 })
    }

    /// How many are read at once: as many as the page needs, and one more.
    fn rows(&self) -> usize {
        let least = if self.query.filters() { ROWS.max(self.scanned) } else { 1 };
        self.query.limit.saturating_add(1).clamp(least.min(MOST_ROWS), MOST_ROWS)
    }

    /// The next conversations. Their index has minutes: those of one minute are sorted when they are read.
    fn statement(&self) -> Statement {
        const NEWEST: &str = concat!(
            "SELECT ",
            conversation_columns!(),
            " FROM cs_conversation t WHERE t.owner = $1 AND NOT t.deleted AND t.minute <= $2 \
             AND (t.last_activity, t.conv_id) < ($3, $4) AND t.tags @> $5 \
             AND ($7::bytea IS NULL OR t.parent_id = $7 AND t.parent_seq > 0) \
             ORDER BY t.minute DESC, t.last_activity DESC, t.conv_id DESC LIMIT $6"
        );
        const OLDEST: &str = concat!(
            "SELECT ",
            conversation_columns!(),
            " FROM cs_conversation t WHERE t.owner = $1 AND NOT t.deleted AND t.minute >= $2 \
             AND (t.last_activity, t.conv_id) > ($3, $4) AND t.tags @> $5 \
             AND ($7::bytea IS NULL OR t.parent_id = $7 AND t.parent_seq > 0) \
             ORDER BY t.minute, t.last_activity, t.conv_id LIMIT $6"
        );
        const CREATED: &str = concat!(
            "SELECT ",
            conversation_columns!(),
            " FROM cs_conversation t WHERE t.owner = $1 AND NOT t.deleted AND t.minute >= $2 \
             AND (t.created, t.conv_id) < ($3, $4) AND t.tags @> $5 \
             AND ($7::bytea IS NULL OR t.parent_id = $7 AND t.parent_seq > 0) \
             ORDER BY t.created DESC, t.conv_id DESC LIMIT $6"
        );
        let (micros, id) = &self.after;
        let minute = micros.max(&0) / MICROS_A_MINUTE;
        let (sql, minute) = match self.query.sort {
            ListSort::Newest => (NEWEST, minute),
            ListSort::Oldest => (OLDEST, minute),
            ListSort::Created => (CREATED, 0),
        };
        // An owner may have one conversation or most, a tag may be of all or of one.
        Statement::repeatable(sql)
            .planned_anew()
            .with(self.query.owner.as_bytes())
            .with(minute)
            .with(*micros)
            .with(id)
            .with(rows::tags(&self.query.tags))
            .with(self.rows() as u64)
            .with(self.query.forked_from.map(|parent| parent.as_bytes().to_vec()))
    }

    /// Takes what a statement gave. Whether the page has all that it needs.
    fn take(&mut self, rows: &[Row]) -> Result<bool> {
        let wanted = self.rows();
        let column = if self.query.sort == ListSort::Created { "created" } else { "last_activity" };
        for row in rows {
            let id = rows::id(row, "conv_id")?;
            let place = Place { micros: rows::get(row, column)?, conversation: id };
            if self.query.ends().is_some_and(|ends| !self.query.follows(ends, place)) {
                return Ok(true);
            }
            self.after = (place.micros, *id.as_bytes());
            self.scanned += 1;
            match rows::conversation(row) {
                Ok(stored) => {
                    self.found += usize::from(self.pager.add(Listed { id, head: Arc::new(stored.head) }));
                    if self.found > self.query.limit {
                        return Ok(true);
                    }
                }
                Err(error @ Error::Corrupt { .. }) => self.pager.unreadable.push(Problem::from_error(id, &error)),
                Err(error) => return Err(error),
            }
        }
        if rows.len() < wanted {
            return Ok(true);
        }
        let is_bounded = self.query.filters() && self.query.sort != ListSort::Created;
        if is_bounded && self.scanned >= MOST_SCANNED {
            let (micros, id) = self.after;
            self.pager.stop(Place { micros, conversation: ConversationId::from_bytes(id) });
            return Ok(true);
        }
        Ok(false)
    }
}
