//! Everything that can be derived again is derived again, and compared.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::database::Database;
use super::list;
use super::reader::Reader;
use super::rows::{self, Beginning, Stored, number};
use super::schema::is_member;
use super::statement::Statement;
use crate::error::Result;
use crate::log::check::Check;
use crate::log::replay::verify_record;
use crate::log::segments::{Segment, Segmented};
use crate::log::{Order, Problem, Reading, Verification, View};
use crate::model::ConversationId;
use crate::record::{Head, key};

/// How often a conversation is looked at again that changes meanwhile.
const LOOKS: usize = 10;

/// Checks everything; `progress` is called with conversations done, and of all.
pub(super) fn verify(database: &Database, reader: &Reader, progress: &mut dyn FnMut(u64, u64)) -> Result<Verification> {
    Verifier { database, reader }.verify(progress)
}

struct Verifier<'a> {
    database: &'a Database,
    reader: &'a Reader,
}

impl Verifier<'_> {
    fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Verification> {
        let mut found = Verification::default();
        let ids = list::conversations(self.database)?;
        let all = ids.len() as u64;
        for id in ids {
            self.verify_one(id, &mut found)?;
            found.conversations += 1;
            progress(found.conversations, all);
        }
        self.verify_orphans(&mut found)?;
        Ok(found)
    }

    fn verify_one(&self, id: ConversationId, found: &mut Verification) -> Result<()> {
        for look in 1..=LOOKS {
            let Some(view) = self.reader.view_of(id)? else { return Ok(()) };
            let mut seen = Verification::default();
            self.verify_view(&view, &mut seen)?;
            // What changes while it is read may look wrong.
            let is_settled = seen.problems.is_empty()
                || look == LOOKS
                || self.reader.view_of(id)?.is_some_and(|now| now.through == view.through);
            if is_settled {
                found.entries += seen.entries;
                found.problems.append(&mut seen.problems);
                return Ok(());
            }
        }
        Ok(())
    }

    fn verify_view(&self, view: &View, found: &mut Verification) -> Result<()> {
        let (id, head) = (view.id, &*view.head);
        let segments = self.reader.segments(view)?;
        let Some((own, ancestors)) = segments.split_last() else { return Ok(()) };
        for segment in ancestors {
            for seq in [segment.first, segment.last] {
                let read = self.reader.records(&[*segment]).record(seq, "a record", |_| Ok(Some(())));
                found.problems.extend(read.err().map(|error| Problem::from_error(id, &error)));
            }
        }
        let Some(stored) = self.reader.stored(&[id])?.remove(&id) else { return Ok(()) };
        let mut check = Check::new(id, head);
        self.verify_records(*own, &stored, &mut check, found)?;
        self.reader.read(&segments, 1..=view.last_seq(), Order::Ascending, &mut |reading| {
            match reading {
                Reading::Damaged(_) => check.damaged(),
                Reading::Stray(_) => {}
                Reading::Record { record, last, .. } => check.read(record, last, found),
            }
            ControlFlow::Continue(())
        })?;
        check.end(found);
        self.verify_keys(id, head, found)
    }

    /// Reads a conversation's own records.
    fn verify_records(
        &self,
        own: Segment,
        stored: &Stored,
        check: &mut Check<'_>,
        found: &mut Verification,
    ) -> Result<()> {
        const ITEMS: &str = "SELECT i.digest, i.seq FROM cs_item i WHERE i.conv_id = $1";
        let id = own.conversation;
        let Beginning { last_hide, last_meta, next_message, .. } = stored.origin;
        let first = Head { last_hide, last_meta, ..stored.head.clone() };
        let (mut items, mut expected, mut is_damaged) = (BTreeSet::new(), Some(next_message), false);
        // What comes after the last seq is more than the head says.
        let all = Segment { last: own.last + 1, ..own };
        self.reader.read(&[all], own.first..=own.last.max(own.first), Order::Ascending, &mut |reading| {
            match reading {
                Reading::Damaged(error) | Reading::Stray(error) => {
                    // A fork may have no entries yet.
                    if own.first <= own.last {
                        found.problems.push(Problem::from_error(id, &error));
                        is_damaged = true;
                    }
                    expected = None;
                }
                Reading::Record { record, .. } => {
                    verify_record(id, record, expected, found);
                    expected = Some(record.header.next_message_index);
                    check.own(record, &first);
                    record.item_keys(id, u64::MAX, &mut items);
                }
            }
            ControlFlow::Continue(())
        })?;
        let rows = self.database.query(Statement::repeatable(ITEMS).with(id.as_bytes()))?;
        let kept: Result<BTreeSet<_>> =
            rows.iter().map(|row| Ok(key::item(id, &rows::digest(row, "digest")?, number(row, "seq")?))).collect();
        if !is_damaged && kept? != items {
            found.problems.push(Problem::of(id, "the index of its item ids is not what its entries give"));
        }
        if is_damaged {
            check.damaged();
        }
        Ok(())
    }

    fn verify_keys(&self, id: ConversationId, head: &Head, found: &mut Verification) -> Result<()> {
        const KEYS: &str = "SELECT count(*) AS stray FROM cs_key k WHERE k.conv_id = $1 AND k.last_seq >= $2";
        let row = self.database.row(Statement::repeatable(KEYS).with(id.as_bytes()).with(head.next_seq))?;
        if number(&row, "stray")? > 0 {
            found.problems.push(Problem::of(id, "an idempotency record names entries that are not there"));
        }
        Ok(())
    }

    /// Records of no conversation.
    fn verify_orphans(&self, found: &mut Verification) -> Result<()> {
        const ORPHANS: &str = "SELECT DISTINCT r.conv_id FROM cs_record r WHERE NOT EXISTS (SELECT FROM cs_conversation t \
                               WHERE t.conv_id = r.conv_id AND t.incarnation = r.incarnation) LIMIT 1000";
        // What a move of a bucket has copied, or has still to erase, has no head for a while.
        const OF_MEMBER: &str = "SELECT DISTINCT r.conv_id FROM cs_record r WHERE NOT EXISTS (SELECT FROM cs_conversation t \
                                 WHERE t.conv_id = r.conv_id AND t.incarnation = r.incarnation) \
                                 AND NOT EXISTS (SELECT FROM cs_arriving a WHERE a.conv_id = r.conv_id) \
                                 AND NOT EXISTS (SELECT FROM cs_left l WHERE l.conv_id = r.conv_id) LIMIT 1000";
        let orphans = if is_member(self.database)? { OF_MEMBER } else { ORPHANS };
        for row in self.database.query(Statement::repeatable(orphans))? {
            found.problems.push(Problem::of(rows::id(&row, "conv_id")?, "it has records, but no head"));
        }
        Ok(())
    }
}
