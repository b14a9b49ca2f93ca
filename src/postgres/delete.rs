//! Deletion: a conversation goes with one call; of one that forks read, what they read stays until the last of them goes.

use super::Postgres;
use super::change::Attempts;
use super::rows::{self, get, some_number};
use super::segment::Segment;
use super::shared::{Outcome, Shared};
use super::value::Statement;
use super::writer::Closed;
use crate::error::{Error, Result};
use crate::history::Cursor;
use crate::log::past;
use crate::model::{ConversationId, Name};
use crate::record::{self, Record};

/// What became of a record that is to be written again.
enum Cut {
    Done,
    /// Something was redacted meanwhile.
    Again,
    /// Its conversation is not here.
    Absent,
}

/// The conversation is deleted already, whatever becomes of the rest of its last record.
pub(crate) fn truncated(id: ConversationId, cut: Result<bool>) {
    if let Err(error) = cut {
        tracing::warn!("of {id}, which is deleted, what follows the last fork stays until the forks go: {error}");
    }
}

impl Postgres {
    /// As [`Shared::remove`].
    pub(crate) fn remove(&self, name: &Name, at: Option<Cursor>) -> Result<Option<(ConversationId, u64)>> {
        self.shared.remove(name, at)
    }

    /// As [`Shared::truncate`].
    pub(crate) fn truncate(&self, id: ConversationId, keep_to: u64) -> Result<bool> {
        self.shared.truncate(id, keep_to)
    }
}

impl Shared {
    /// Deletes a conversation. Gives the one of which forks still read a part, and up to which seq: the rest of its last
    /// record is to be truncated.
    pub(super) fn remove(&self, name: &Name, at: Option<Cursor>) -> Result<Option<(ConversationId, u64)>> {
        const SQL: &str = "SELECT * FROM cs_delete_v1($1, $2, $3, $4)";
        self.check_writable()?;
        let statement = Statement::once(SQL)
            .with(name.id().as_bytes())
            .with(name.owner())
            .with(at.map(|at| at.seq))
            .with(at.and_then(|at| at.incarnation));
        let row = self.database.row(statement)?;
        let conversation = || name.clone();
        match Outcome::of(&row)? {
            Outcome::Done => {}
            Outcome::Gone => return Err(Error::no_conversation(name)),
            Outcome::Moved => return Err(Error::StaleCursor { conversation: conversation() }),
            Outcome::NotAsExpected => {
                let (expected, actual) = (at.unwrap_or_default().seq, rows::number(&row, "o_last")?);
                return Err(Error::StaleHead { conversation: conversation(), expected, actual });
            }
            other => return Err(other.unexpected()),
        }
        self.writers.close(name.id(), 0, Closed::Deleted);
        self.watched.gone(name.id());
        Ok(match (get::<Option<&[u8]>>(&row, "o_kept")?, some_number(&row, "o_keep_to")?) {
            (Some(_), Some(keep_to)) => Some((rows::id(&row, "o_kept")?, keep_to)),
            _ => None,
        })
    }

    /// Writes the record that holds the last entry that forks read again, without what comes after it. False: its
    /// conversation is not here.
    pub(super) fn truncate(&self, id: ConversationId, keep_to: u64) -> Result<bool> {
        let attempts = Attempts::new(self);
        loop {
            match self.try_truncate(id, keep_to)? {
                Cut::Done => return Ok(true),
                Cut::Again => attempts.again(&id.into())?,
                Cut::Absent => return Ok(false),
            }
        }
    }

    fn try_truncate(&self, id: ConversationId, keep_to: u64) -> Result<Cut> {
        const SQL: &str = "SELECT * FROM cs_truncate_v1($1, $2, $3, $4, $5, $6, $7, $8, $9)";
        let Some(stored) = self.stored(&[id])?.remove(&id).filter(|stored| stored.deleted) else {
            return Ok(Cut::Absent);
        };
        let head = &stored.head;
        let first = head.first_seq();
        let kept = Segment { conversation: id, first, last: keep_to, incarnation: head.incarnation };
        let segments = [kept];
        let records = self.records(id, &segments);
        let next_message_index = past::next_message_index_at(&records, keep_to)?;
        let cut = records.record(keep_to, "a record", |record: &Record<'_>| {
            let goes_on = record.first_seq + record.len() > keep_to + 1;
            let cut = goes_on.then(|| record::truncate(record, keep_to, next_message_index)).transpose()?;
            Ok(Some(cut.map(|(header, body)| (record.first_seq, header, body))))
        })?;
        let Some((first_seq, header, body)) = cut else { return Ok(Cut::Done) };
        let row = self.database.row(
            Statement::repeatable(SQL)
                .with(id.as_bytes())
                .with(head.incarnation)
                .with(keep_to)
                .with(stored.redactions)
                .with(first_seq)
                .with(record::seal_entries(id, &body))
                .with(body.entries())
                .with(header.next_message_index)
                .with(header.cut),
        )?;
        // Where more forks are gone by now, the deletion of the last of them does this.
        match Outcome::of(&row)? {
            Outcome::Done => Ok(Cut::Done),
            Outcome::Gone => Ok(Cut::Absent),
            Outcome::Moved => Ok(match self.stored(&[id])?.remove(&id) {
                None => Cut::Absent,
                Some(now) if now.redactions == stored.redactions => Cut::Done,
                Some(_) => Cut::Again,
            }),
            other => Err(other.unexpected()),
        }
    }
}
