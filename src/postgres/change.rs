//! What happens to a conversation as a whole: control entries, forks, deletions. Each is decided on what was read, and written
//! if nothing has changed since.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Postgres;
use super::reader::ids_of;
use super::rows::{self, Outcome, get, number, random, some_number, with_names};
use super::statement::Statement;
use crate::error::{Error, Result};
use crate::history::Cursor;
use crate::log::decision::{Change, Decision};
use crate::log::limits::check_key;
use crate::log::segments::{Segment, Segmented};
use crate::log::writer::Closed;
use crate::log::{Controlled, ForkAt, Receipt, View, fork};
use crate::model::{ConversationId, Name};
use crate::record::{self, Record, TitleSource};

/// What was decided on a view, and is to be written.
pub(super) struct Decided<'a> {
    pub(super) name: &'a Name,
    pub(super) view: &'a View,
    pub(super) decision: Decision,
}

/// Tries again while others are faster.
pub(super) struct Attempts {
    until: Instant,
}

impl Attempts {
    pub(super) fn new(patience: Duration) -> Self {
        Self { until: Instant::now() + patience }
    }

    /// Fails once it has taken too long.
    pub(super) fn again(&self, name: &Name) -> Result<()> {
        if Instant::now() < self.until {
            return Ok(());
        }
        Err(Error::Busy(format!("conversation {name} changes faster than this change of it can be made: try again")))
    }
}

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
    /// Writes an entry about a conversation as a whole. Nothing, if it has changed since it was decided on.
    pub(super) fn write_control(&self, decided: Decided<'_>) -> Result<Option<Controlled>> {
        const SQL: &str = "SELECT * FROM cs_control_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, \
                           $14, $15)";
        let Decided { name, view, decision: Decision { body, closes, change } } = decided;
        let tags = change.tags(&view.head);
        let head = changed(view, change);
        // Nobody may have redacted the text that a title was made of.
        let is_made = matches!(head.title_source, TitleSource::Message(_)) && head.title != view.head.title;
        let chain = if is_made { ids_of(&self.reader.segments(view)?) } else { Vec::new() };
        let statement = Statement::once(SQL)
            .with(view.id.as_bytes())
            .with(view.head.incarnation)
            .with(view.through)
            .with(self.gate.now())
            .with(record::seal_entries(view.id, &body));
        let statement = with_names(statement, &head)
            .with(head.last_hide)
            .with(head.last_meta)
            .with(head.open.as_slice())
            .with(head.interrupted.as_slice())
            .with(chain)
            .with(view.commit);
        let row = self.database.row(statement)?;
        match Outcome::of(&row)? {
            Outcome::Done => {}
            Outcome::Moved => return Ok(None),
            Outcome::Gone => return Err(Error::no_conversation(name)),
            other => return Err(other.unexpected()),
        }
        if let Some(first) = closes {
            self.writers.close(view.id, first, Closed::Rewound);
        }
        let seq = number(&row, "o_seq")?;
        self.followed.moved(view.id, view.head.incarnation, seq + 1);
        let receipt = Receipt {
            conversation: view.id,
            first_seq: seq,
            last_seq: seq,
            message_indexes: Vec::new(),
            durable: true,
            duplicate: false,
        };
        Ok(Some(Controlled { receipt, tags }))
    }

    /// Makes a conversation that shares the entries of another one. `announced`: the token with which it was announced, where
    /// it is in another bucket than that of its id.
    pub(super) fn make_fork(&self, parent: &Name, at: ForkAt, child: &Name, announced: Option<u64>) -> Result<()> {
        check_key(child)?;
        self.gate.check_writable()?;
        let attempts = Attempts::new(self.patience);
        while !self.try_fork(parent, at, child, announced)? {
            attempts.again(parent)?;
        }
        Ok(())
    }

    fn try_fork(&self, parent: &Name, at: ForkAt, child: &Name, announced: Option<u64>) -> Result<bool> {
        const SQL: &str = "SELECT * FROM cs_fork_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, \
                           $17, $18, $19, $20)";
        const ANNOUNCED: &str = "SELECT * FROM cs_fork_placed_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, \
                                 $14, $15, $16, $17, $18, $19, $20, $21)";
        let view = self.reader.present(parent)?;
        // A fork has the owner of its parent, unless its name says otherwise.
        let child = &match child.owner() {
            Some(_) => child.clone(),
            None => child.clone().with_owner(view.head.owner.as_str()),
        };
        let last = view.last_seq();
        let at_seq = fork::fork_point(parent, last, at.seq)?;
        if child.id() == view.id {
            return Err(Error::NameTaken { conversation: child.clone(), actual: last });
        }
        let segments = self.reader.segments(&view)?;
        let (shared, head) = fork::past(&self.reader, view.id, &view.head, &segments, at_seq)?;
        let statement = match announced {
            Some(token) => Statement::once(ANNOUNCED).with(token),
            None => Statement::once(SQL),
        };
        let statement = statement
            .with(view.id.as_bytes())
            .with(view.head.incarnation)
            .with(ids_of(&segments))
            .with(view.commit)
            .with(child.id().as_bytes())
            .with(child.owner().unwrap_or_default().as_bytes())
            .with(child.key())
            .with(self.gate.past(at.time))
            .with(random())
            .with(&shared.conversation)
            .with(shared.at_seq)
            .with(shared.incarnation)
            .with(shared.commit)
            .with(head.next_message_index)
            .with(head.last_hide)
            .with(head.last_meta);
        let row = self.database.row(with_names(statement, &head))?;
        let conversation = child.clone();
        match Outcome::of(&row)? {
            Outcome::Done => Ok(true),
            Outcome::Moved => Ok(false),
            Outcome::Gone => Err(Error::no_conversation(parent)),
            Outcome::SharedByForks => Err(Error::SharedByForks { conversation }),
            Outcome::NotAsExpected => {
                let actual = some_number(&row, "o_last")?.unwrap_or_default();
                Err(Error::NameTaken { conversation, actual })
            }
            Outcome::Held => Err(Error::Busy(format!("another fork takes the name {conversation}: try again"))),
            other => Err(other.unexpected()),
        }
    }

    /// Deletes a conversation. Gives the one of which forks still read a part, and up to which seq: the rest of its last
    /// record is to be truncated.
    pub(super) fn erase(&self, name: &Name, at: Option<Cursor>) -> Result<Option<(ConversationId, u64)>> {
        const SQL: &str = "SELECT * FROM cs_delete_v1($1, $2, $3, $4)";
        self.gate.check_writable()?;
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
        self.followed.gone(name.id());
        Ok(match (get::<Option<&[u8]>>(&row, "o_kept")?, some_number(&row, "o_keep_to")?) {
            (Some(_), Some(keep_to)) => Some((rows::id(&row, "o_kept")?, keep_to)),
            _ => None,
        })
    }

    /// Writes the record that holds the last entry that forks read again, without what comes after it. False: its
    /// conversation is not here.
    pub(super) fn truncate(&self, id: ConversationId, keep_to: u64) -> Result<bool> {
        let attempts = Attempts::new(self.patience);
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
        let Some(stored) = self.reader.stored(&[id])?.remove(&id).filter(|stored| stored.deleted) else {
            return Ok(Cut::Absent);
        };
        let head = &stored.head;
        let first = head.first_seq();
        let (incarnation, through) = (head.incarnation, u64::MAX);
        let segments = [Segment { conversation: id, first, last: keep_to, incarnation, through }];
        let records = self.reader.records(&segments);
        let next_message_index = fork::next_message_index_at(&records, keep_to)?;
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
            Outcome::Moved => Ok(match self.reader.stored(&[id])?.remove(&id) {
                None => Cut::Absent,
                Some(now) if now.redactions == stored.redactions => Cut::Done,
                Some(_) => Cut::Again,
            }),
            other => Err(other.unexpected()),
        }
    }
}

/// The head with a change, but not moved: the database moves it.
fn changed(view: &View, change: Change) -> record::Head {
    let mut head = Arc::unwrap_or_clone(Arc::clone(&view.head));
    change.apply(&mut head);
    head
}
