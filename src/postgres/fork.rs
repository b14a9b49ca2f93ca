//! Forks: conversations that read the first entries of another one.

use super::append::random;
use super::change::Attempts;
use super::rows::{some_number, with_names};
use super::segment::Segment;
use super::shared::{Outcome, Shared};
use super::value::Statement;
use crate::error::{Error, Result};
use crate::log::chain::Records;
use crate::log::limits::check_key;
use crate::log::names::Names;
use crate::log::{Order, Reading, View, past};
use crate::model::{ConversationId, Name};
use crate::record::{Head, Parent};

impl Shared {
    /// Makes a conversation that shares the entries up to `at_seq`. `announced`: the token with which it was announced, where
    /// it is in another bucket than that of its id.
    pub(super) fn fork(&self, parent: &Name, at_seq: Option<u64>, child: &Name, announced: Option<u64>) -> Result<()> {
        check_key(child)?;
        self.check_writable()?;
        let attempts = Attempts::new(self);
        while !self.try_fork(parent, at_seq, child, announced)? {
            attempts.again(parent)?;
        }
        Ok(())
    }

    fn try_fork(&self, parent: &Name, at_seq: Option<u64>, child: &Name, announced: Option<u64>) -> Result<bool> {
        const SQL: &str = "SELECT * FROM cs_fork_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, \
                           $17, $18, $19, $20)";
        const ANNOUNCED: &str = "SELECT * FROM cs_fork_placed_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, \
                                 $14, $15, $16, $17, $18, $19, $20, $21)";
        let view = self.view(parent)?.ok_or_else(|| Error::no_conversation(parent))?;
        // A fork has the owner of its parent, unless its name says otherwise.
        let child = &match child.owner() {
            Some(_) => child.clone(),
            None => child.clone().with_owner(view.head.owner.as_str()),
        };
        let last = view.last_seq();
        let at_seq = past::fork_point(parent, last, at_seq)?;
        if child.id() == view.id {
            return Err(Error::NameTaken { conversation: child.clone(), actual: last });
        }
        let segments = self.segments(&view)?;
        let (shared, past) = self.past(&view, &segments, at_seq)?;
        let chain: Vec<Vec<u8>> = segments.iter().map(|segment| segment.conversation.as_bytes().to_vec()).collect();
        let statement = match announced {
            Some(token) => Statement::once(ANNOUNCED).with(token),
            None => Statement::once(SQL),
        };
        let statement = statement
            .with(view.id.as_bytes())
            .with(view.head.incarnation)
            .with(chain)
            .with(view.commit)
            .with(child.id().as_bytes())
            .with(child.owner().unwrap_or_default().as_bytes())
            .with(child.key())
            .with(self.now())
            .with(random())
            .with(&shared.conversation)
            .with(shared.at_seq)
            .with(shared.incarnation)
            .with(shared.commit)
            .with(past.next_message_index)
            .with(past.last_hide)
            .with(past.last_meta);
        let row = self.database.row(with_names(statement, &past))?;
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

    /// What a fork at `at_seq` is bound to, and the head as it was there, as far as a fork takes it over.
    fn past(&self, view: &View, segments: &[Segment], at_seq: u64) -> Result<(Parent, Head)> {
        if at_seq == 0 {
            let incarnation = view.head.incarnation;
            let shared = Parent { conversation: *view.id.as_bytes(), at_seq, incarnation, commit: 0 };
            return Ok((shared, past::empty(&view.head)));
        }
        let segment = segments.iter().find(|segment| (segment.first..=segment.last).contains(&at_seq));
        let (owner, incarnation) =
            segment.map_or((view.id, view.head.incarnation), |segment| (segment.conversation, segment.incarnation));
        let records = self.records(view.id, segments);
        let commit = records.record(at_seq, "a record", |record| Ok(Some(record.header.commit)))?;
        let shared = Parent { conversation: *owner.as_bytes(), at_seq, incarnation, commit };
        let past = past::head_at(&view.head, at_seq, &records, || self.names(view.id, segments, at_seq))?;
        Ok((shared, past))
    }

    /// Where single records of segments are read.
    pub(super) fn records<'a>(&'a self, id: ConversationId, segments: &'a [Segment]) -> Records<'a> {
        Records::new(id, move |seq, visit| self.read(id, segments, seq..=seq, Order::Ascending, visit))
    }

    /// Title and tags as the entries up to `last` give them.
    pub(super) fn names(&self, id: ConversationId, segments: &[Segment], last: u64) -> Result<Names> {
        let mut names = Names::default();
        self.read(id, segments, 1..=last, Order::Ascending, &mut |reading| {
            if let Reading::Record { record, last, .. } = reading {
                names.read(record, last);
            }
            std::ops::ControlFlow::Continue(())
        })?;
        Ok(names)
    }
}
