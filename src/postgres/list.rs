//! The list of conversations, and those that are unfinished.

use std::sync::Arc;

use super::rows::{self, conversation_columns};
use super::shared::Shared;
use super::value::Statement;
use crate::error::{Error, Result};
use crate::log::Problem;
use crate::log::list::{ListPage, ListQuery, Listed, Pager};
use crate::model::ConversationId;

/// Conversations that are read at once.
const ROWS: u64 = 200;
const MICROS_A_MINUTE: i64 = 60_000_000;

impl Shared {
    /// Reads the owner's list minute by minute: within one, the heads have the order.
    pub(super) fn list(&self, query: &ListQuery) -> Result<ListPage> {
        const SQL: &str = concat!(
            "SELECT ",
            conversation_columns!(),
            " FROM cs_conversation t WHERE t.owner = $1 AND NOT t.deleted \
             AND (t.minute < $2 OR (t.minute = $2 AND t.conv_id > $3)) AND ($4::bytea IS NULL OR t.tags @> ARRAY[$4]) \
             ORDER BY t.minute DESC, t.conv_id LIMIT $5"
        );
        let mut pager = Pager::new(query)?;
        let tag = query.tags.first().map(|tag| tag.as_bytes().to_vec());
        let mut minute = query.after.map_or(i64::MAX, |cursor| cursor.0.micros.max(0) / MICROS_A_MINUTE);
        let mut after = Vec::new();
        // How many were found, and in which minute the last of them was.
        let (mut found, mut current) = (0, minute);
        loop {
            let rows = self.database.query(
                Statement::repeatable(SQL)
                    .with(query.owner.as_bytes())
                    .with(minute)
                    .with(after)
                    .with(tag.clone())
                    .with(ROWS),
            )?;
            for row in &rows {
                minute = rows::get(row, "minute")?;
                // Within a minute, any of them may be the newest.
                if found > query.limit && minute != current {
                    return Ok(pager.page());
                }
                current = minute;
                let id = rows::id(row, "conv_id")?;
                match rows::conversation(row) {
                    Ok(stored) => found += usize::from(pager.add(Listed { id, head: Arc::new(stored.head) })),
                    Err(error @ Error::Corrupt { .. }) => pager.unreadable.push(Problem::from_error(id, &error)),
                    Err(error) => return Err(error),
                }
            }
            let Some(last) = rows.last().filter(|_| rows.len() as u64 == ROWS) else { return Ok(pager.page()) };
            after = rows::id(last, "conv_id")?.as_bytes().to_vec();
        }
    }

    /// All conversations.
    pub(super) fn conversations(&self) -> Result<Vec<ConversationId>> {
        self.ids("SELECT t.conv_id FROM cs_conversation t WHERE NOT t.deleted ORDER BY t.conv_id")
    }

    /// The conversations with messages that are not finished.
    pub(super) fn unfinished(&self) -> Result<Vec<ConversationId>> {
        self.ids(
            "SELECT t.conv_id FROM cs_conversation t WHERE NOT t.deleted \
             AND (cardinality(t.open_messages) > 0 OR cardinality(t.interrupted) > 0) ORDER BY t.conv_id",
        )
    }

    fn ids(&self, sql: &'static str) -> Result<Vec<ConversationId>> {
        let rows = self.database.query(Statement::repeatable(sql))?;
        rows.iter().map(|row| rows::id(row, "conv_id")).collect()
    }
}
