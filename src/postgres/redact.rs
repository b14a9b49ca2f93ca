//! Forgetting: the only write that changes what was written.

use super::Postgres;
use super::change::Attempts;
use super::rows::{Outcome, number, some_number};
use super::statement::{Statement, signed};
use crate::error::Result;
use crate::log::Redaction;
use crate::log::decision::check_written;
use crate::log::redaction::Rewriting;
use crate::log::segments::{Segment, segment_of};
use crate::model::{ConversationId, Name};
use crate::record::{self, Body, Redact};

impl Postgres {
    /// Erases the content of a message, or of one chunk of it, everywhere that it is read.
    pub(super) fn redact_message(&self, name: &Name, message: u64, chunk: Option<u32>) -> Result<Redaction> {
        self.gate.check_writable()?;
        let attempts = Attempts::new(self.patience);
        loop {
            if let Some(redaction) = self.try_redact(name, message, chunk)? {
                return Ok(redaction);
            }
            attempts.again(name)?;
        }
    }

    /// Nothing, if something has changed since it was read.
    fn try_redact(&self, name: &Name, message: u64, chunk: Option<u32>) -> Result<Option<Redaction>> {
        const SQL: &str = "SELECT * FROM cs_redact_v1($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
        let view = self.reader.present(name)?;
        check_written(name, &view, message..=message)?;
        let segments = self.reader.segments(&view)?;
        // As they are before anything of them is read.
        let chain: Vec<ConversationId> = segments.iter().map(|segment| segment.conversation).collect();
        // What this program collected for a message whose writer is gone is a part of it.
        if self.streams.flush_dropped(&chain)? {
            return Ok(None);
        }
        let mut locks = self.reader.stored(&chain)?;
        if locks.get(&view.id).is_none_or(|own| own.commit != view.through) {
            return Ok(None);
        }
        let mut rewriting = Rewriting::new(message, chunk);
        rewriting.read(&self.reader, &segments, 1..=view.last_seq())?;
        rewriting.check_found(name)?;
        let shared = segment_of(&segments, rewriting.first_seq).filter(|segment| segment.conversation != view.id);
        if let Some(segment) = shared.filter(|_| !rewriting.is_whole()) {
            self.rewrite_rest(name, segment, &mut rewriting)?;
        }
        let body = Body::redaction(Redact { message, chunk })?;
        let (mut owners, mut firsts, mut lasts, mut bodies) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for record in &rewriting.records {
            owners.push(record.owner.as_bytes().to_vec());
            firsts.push(signed(record.first_seq));
            lasts.push(signed(record.last_seq()));
            bodies.push(record::seal_entries(record.owner, &record.body));
        }
        let (ids, commits): (Vec<_>, Vec<_>) =
            locks.drain().map(|(id, stored)| (id.as_bytes().to_vec(), signed(stored.commit))).unzip();
        let row = self.database.row(
            Statement::once(SQL)
                .with(view.id.as_bytes())
                .with(self.gate.now())
                .with(message)
                .with(rewriting.first_seq)
                .with(record::seal_entries(view.id, &body))
                .with(ids)
                .with(commits)
                .with(owners)
                .with(firsts)
                .with(lasts)
                .with(bodies),
        )?;
        match Outcome::of(&row)? {
            Outcome::Done => {}
            Outcome::Moved => return Ok(None),
            other => return Err(other.unexpected()),
        }
        let seq = number(&row, "o_seq")?;
        self.followed.moved(view.id, view.head.incarnation, seq + 1);
        rewriting.done(seq).map(Some)
    }

    /// Rewrites the part of a message after the point of a fork, in the log in which it began.
    fn rewrite_rest(&self, name: &Name, shared: &Segment, rewriting: &mut Rewriting) -> Result<()> {
        const KEPT: &str = "SELECT max(t.parent_seq) AS last FROM cs_conversation t \
                            WHERE t.parent_id = $1 AND t.parent_incarnation = $2 AND t.parent_seq > 0";
        let id = shared.conversation;
        let last = match self.reader.view_of(id)?.filter(|view| view.head.incarnation == shared.incarnation) {
            Some(view) => {
                check_written(name, &view, rewriting.message..=rewriting.message)?;
                Some(view.last_seq())
            }
            // It was deleted: what other forks read is left of it.
            None => {
                let kept = Statement::repeatable(KEPT).with(id.as_bytes()).with(shared.incarnation);
                some_number(&self.database.row(kept)?, "last")?
            }
        };
        let Some(last) = last.filter(|last| *last > shared.last) else { return Ok(()) };
        let whole = Segment { last, ..*shared };
        rewriting.after = shared.last;
        rewriting.read(&self.reader, &[whole], shared.last + 1..=last)
    }
}
