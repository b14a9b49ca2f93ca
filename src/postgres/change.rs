//! What happens to a conversation as a whole: decided on what was read, and written if nothing has changed since.

use std::sync::Arc;
use std::time::Instant;

use super::rows::{number, with_names};
use super::shared::{Outcome, Shared};
use super::value::Statement;
use super::writer::Closed;
use crate::error::{Error, Result};
use crate::log::decision::{Change, Decision};
use crate::log::{Controlled, Receipt, View};
use crate::model::Name;
use crate::record::{self, TitleSource};

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
    pub(super) fn new(shared: &Shared) -> Self {
        Self { until: Instant::now() + shared.patience }
    }

    /// Fails once it has taken too long.
    pub(super) fn again(&self, name: &Name) -> Result<()> {
        if Instant::now() < self.until {
            return Ok(());
        }
        Err(Error::Busy(format!("conversation {name} changes faster than this change of it can be made: try again")))
    }
}

impl Shared {
    /// Writes an entry about a conversation as a whole. Nothing, if it has changed since it was decided on.
    pub(super) fn control(&self, decided: Decided<'_>) -> Result<Option<Controlled>> {
        const SQL: &str = "SELECT * FROM cs_control_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, \
                           $14, $15)";
        let Decided { name, view, decision: Decision { body, closes, change } } = decided;
        let tags = change.tags(&view.head);
        let head = changed(view, change);
        // Nobody may have redacted the text that a title was made of.
        let is_made = matches!(head.title_source, TitleSource::Message(_)) && head.title != view.head.title;
        let segments = if is_made { self.segments(view)? } else { Vec::new() };
        let chain: Vec<Vec<u8>> = segments.iter().map(|segment| segment.conversation.as_bytes().to_vec()).collect();
        let statement = Statement::once(SQL)
            .with(view.id.as_bytes())
            .with(view.head.incarnation)
            .with(view.through)
            .with(self.now())
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
        self.watched.moved(view.id, view.head.incarnation, seq + 1);
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
}

/// The head with a change, but not moved: the database moves it.
fn changed(view: &View, change: Change) -> record::Head {
    let mut head = Arc::unwrap_or_clone(Arc::clone(&view.head));
    change.apply(&mut head);
    head
}
