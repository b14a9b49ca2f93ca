//! What readers see: a conversation as it is now, and its records, across forks.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use tokio_postgres::Row;

use super::database::Database;
use super::rows::{self, Kept, Stored, conversation_columns, get, number, record_columns};
use super::statement::Statement;
use super::writers::Writers;
use crate::error::{Error, Result};
use crate::log::records::Gaps;
use crate::log::segments::{Segment, Segmented};
use crate::log::{Order, Reading, View, Visit, locked};
use crate::model::{ConversationId, Name};
use crate::record;

/// Records that come at once, unless their bytes are enough.
const PAGE: i64 = 1_000;
/// No more records come at once after so many bytes of them.
const PAGE_BYTES: i64 = 4 * 1024 * 1024;
/// Forks whose ancestors are remembered.
const FORKS: usize = 10_000;

/// The conversations in whose logs the entries are, as a statement takes them.
pub(super) fn ids_of(segments: &[Segment]) -> Vec<Vec<u8>> {
    segments.iter().map(|segment| segment.conversation.as_bytes().to_vec()).collect()
}

/// What forks read of others, by id and incarnation.
type Ancestors = HashMap<(ConversationId, u64), Arc<[Segment]>>;

/// Reads what is stored.
pub(super) struct Reader {
    database: Arc<Database>,
    /// They know whose messages are still written here.
    writers: Arc<Writers>,
    /// What was looked up of them: it never changes.
    ancestors: Mutex<Ancestors>,
}

impl Reader {
    pub(super) fn new(database: Arc<Database>, writers: Arc<Writers>) -> Self {
        Self { database, writers, ancestors: Mutex::default() }
    }

    /// As [`Self::view`], of a conversation that has to be there.
    pub(super) fn present(&self, name: &Name) -> Result<View> {
        self.view(name)?.ok_or_else(|| Error::no_conversation(name))
    }

    /// The conversation of a name as it is now, if there is one.
    pub(super) fn view(&self, name: &Name) -> Result<Option<View>> {
        Ok(self.view_of(name.id())?.filter(|view| name.allows(&view.head.owner)))
    }

    /// A conversation as it is now, of any owner. `commit` of the view counts redactions of what it reads; `through` is the
    /// number of the row's last change.
    pub(super) fn view_of(&self, id: ConversationId) -> Result<Option<View>> {
        const SQL: &str = concat!(
            "SELECT ",
            conversation_columns!(),
            ", CASE WHEN t.parent_seq > 0 THEN cs_redactions_v1(t.conv_id) ELSE t.redactions END AS seen_redactions, ",
            "CASE WHEN cardinality(t.open_messages) = 0 THEN '{}'::bigint[] ELSE ARRAY(",
            "SELECT o.message FROM cs_open o JOIN cs_holder h ON h.holder = o.holder ",
            "WHERE o.conv_id = t.conv_id AND o.message = ANY (t.open_messages) AND h.until > clock_timestamp() ",
            "ORDER BY o.message) END AS live FROM cs_conversation t WHERE t.conv_id = $1 AND NOT t.deleted"
        );
        // Asked before the look, too: an end that is written meanwhile is not seen by it.
        let mut ending = self.writers.ending(id);
        let rows = self.database.query(Statement::repeatable(SQL).with(id.as_bytes()))?;
        let Some(row) = rows.first() else { return Ok(None) };
        ending.extend(self.writers.ending(id));
        let stored = rows::conversation(row)?;
        let mut live: Vec<u64> = get::<Vec<i64>>(row, "live")?.into_iter().map(i64::cast_unsigned).collect();
        live.retain(|index| !ending.contains(index));
        Ok(Some(View {
            id,
            head: Arc::new(stored.head),
            live,
            epoch: rows::EPOCH,
            commit: number(row, "seen_redactions")?,
            through: stored.commit,
        }))
    }

    /// Where a view's entries are, oldest first.
    pub(super) fn segments(&self, view: &View) -> Result<Vec<Segment>> {
        let head = &view.head;
        let (conversation, incarnation) = (view.id, head.incarnation);
        let own =
            Segment { conversation, first: head.first_seq(), last: view.last_seq(), incarnation, through: u64::MAX };
        let mut segments = match head.parent.filter(|parent| parent.at_seq > 0) {
            Some(_) => self.ancestors(conversation, incarnation)?.to_vec(),
            None => Vec::new(),
        };
        segments.push(own);
        Ok(segments)
    }

    /// What a fork reads of others, oldest first.
    fn ancestors(&self, id: ConversationId, incarnation: u64) -> Result<Arc<[Segment]>> {
        const SQL: &str = "WITH RECURSIVE line AS (\
            SELECT 0 AS depth, t.parent_id, t.parent_seq, t.parent_incarnation FROM cs_conversation t \
            WHERE t.conv_id = $1 AND t.incarnation = $2 \
            UNION ALL \
            SELECT l.depth + 1, t.parent_id, t.parent_seq, t.parent_incarnation \
            FROM line l JOIN cs_conversation t ON t.conv_id = l.parent_id AND t.incarnation = l.parent_incarnation \
            WHERE l.parent_seq > 0) \
            SELECT parent_id, parent_seq, parent_incarnation FROM line WHERE parent_seq > 0 ORDER BY depth DESC";
        if let Some(line) = locked(&self.ancestors).get(&(id, incarnation)) {
            return Ok(Arc::clone(line));
        }
        let rows = self.database.query(Statement::repeatable(SQL).with(id.as_bytes()).with(incarnation))?;
        let (mut segments, mut first) = (Vec::new(), 1);
        for row in &rows {
            let last = number(row, "parent_seq")?;
            let conversation = rows::id(row, "parent_id")?;
            let incarnation = number(row, "parent_incarnation")?;
            segments.push(Segment { conversation, first, last, incarnation, through: u64::MAX });
            first = last + 1;
        }
        let line: Arc<[Segment]> = segments.into();
        // A fork that is gone by now has no line: that is not to be remembered.
        if !line.is_empty() {
            let mut ancestors = locked(&self.ancestors);
            if ancestors.len() >= FORKS {
                ancestors.clear();
            }
            ancestors.insert((id, incarnation), Arc::clone(&line));
        }
        Ok(line)
    }

    /// Some records of a segment; `reaches_back`: with the one that holds the first seq.
    fn page(&self, segment: &Segment, low: u64, high: u64, reaches_back: bool, order: Order) -> Result<Vec<Row>> {
        const ASCENDING: &str = concat!(
            "SELECT * FROM (SELECT ",
            record_columns!(),
            ", sum(octet_length(r.body)) OVER (ORDER BY r.first_seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS \
             before FROM cs_record r WHERE r.conv_id = $1 AND r.incarnation = $2 AND r.first_seq <= $4 \
             AND r.first_seq >= CASE WHEN $5 THEN coalesce((SELECT max(s.first_seq) FROM cs_record s WHERE s.conv_id = $1 \
             AND s.first_seq <= $3), $3) ELSE $3 END ORDER BY r.first_seq LIMIT $6) p \
             WHERE coalesce(p.before, 0) < $7 ORDER BY p.first_seq"
        );
        const DESCENDING: &str = concat!(
            "SELECT * FROM (SELECT ",
            record_columns!(),
            ", sum(octet_length(r.body)) OVER (ORDER BY r.first_seq DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS \
             before FROM cs_record r WHERE r.conv_id = $1 AND r.incarnation = $2 AND r.first_seq <= $4 \
             AND r.first_seq >= CASE WHEN $5 THEN coalesce((SELECT max(s.first_seq) FROM cs_record s WHERE s.conv_id = $1 \
             AND s.first_seq <= $3), $3) ELSE $3 END ORDER BY r.first_seq DESC LIMIT $6) p \
             WHERE coalesce(p.before, 0) < $7 ORDER BY p.first_seq DESC"
        );
        let sql = if order == Order::Ascending { ASCENDING } else { DESCENDING };
        self.database.query(
            Statement::repeatable(sql)
                .with(segment.conversation.as_bytes())
                .with(segment.incarnation)
                .with(low)
                .with(high)
                .with(reaches_back)
                .with(PAGE)
                .with(PAGE_BYTES),
        )
    }

    /// The seqs of entries that may bear an item id, the last so many of them, in order.
    pub(super) fn item_seqs(&self, view: &View, item: &str, most: usize) -> Result<Vec<u64>> {
        const SQL: &str = "SELECT i.seq FROM cs_item i WHERE i.conv_id = $1 AND i.digest = $2 AND i.seq BETWEEN $3 AND $4 \
                           ORDER BY i.seq DESC LIMIT $5";
        let mut seqs = Vec::new();
        for segment in self.segments(view)?.into_iter().rev() {
            let left = most - seqs.len();
            if left == 0 {
                break;
            }
            let rows = self.database.query(
                Statement::repeatable(SQL)
                    .with(segment.conversation.as_bytes())
                    .with(&record::digest(item.as_bytes()))
                    .with(segment.first)
                    .with(segment.last)
                    .with(left as u64),
            )?;
            for row in &rows {
                seqs.push(number(row, "seq")?);
            }
        }
        seqs.reverse();
        Ok(seqs)
    }

    /// Conversations, whether they were deleted or not, as they are now.
    pub(super) fn stored(&self, ids: &[ConversationId]) -> Result<HashMap<ConversationId, Stored>> {
        const SQL: &str =
            concat!("SELECT ", conversation_columns!(), " FROM cs_conversation t WHERE t.conv_id = ANY ($1)");
        let ids: Vec<Vec<u8>> = ids.iter().map(|id| id.as_bytes().to_vec()).collect();
        let rows = self.database.query(Statement::repeatable(SQL).with(ids))?;
        let stored = rows.iter().map(|row| rows::conversation(row).map(|stored| (stored.id, stored)));
        stored.collect()
    }
}

impl Segmented for Reader {
    fn read_segment(
        &self,
        segment: Segment,
        from: u64,
        own: bool,
        order: Order,
        visit: Visit<'_>,
    ) -> Result<ControlFlow<()>> {
        let Segment { conversation, last, .. } = segment;
        if from > last {
            return Ok(ControlFlow::Continue(()));
        }
        // The record that holds the first seq may begin before it.
        let (mut low, mut high) = (from, last);
        let mut gaps: Option<Gaps> = None;
        let mut is_first = true;
        loop {
            let rows = self.page(&segment, low, high, is_first || order == Order::Descending, order)?;
            for row in &rows {
                let kept = Kept::of(row)?;
                let start = if order == Order::Ascending { kept.first_seq.min(from) } else { from };
                let gaps = gaps.get_or_insert_with(|| Gaps::new(conversation, order, start..=last));
                // A record that ends before: the one that holds the seq is missing.
                if kept.first_seq + kept.entries <= from {
                    match order {
                        Order::Ascending => {
                            gaps.pass(from);
                            low = low.max(kept.first_seq + 1);
                        }
                        Order::Descending => high = kept.first_seq.saturating_sub(1),
                    }
                    continue;
                }
                match kept.open(conversation) {
                    Ok(record) => {
                        if let Some(gap) = gaps.step(kept.first_seq, kept.entries)
                            && visit(Reading::Damaged(gap)).is_break()
                        {
                            return Ok(ControlFlow::Break(()));
                        }
                        if visit(Reading::Record { record: &record, last, own }).is_break() {
                            return Ok(ControlFlow::Break(()));
                        }
                    }
                    Err(error) => {
                        gaps.lose();
                        if visit(Reading::Damaged(error)).is_break() {
                            return Ok(ControlFlow::Break(()));
                        }
                    }
                }
                match order {
                    Order::Ascending => low = kept.first_seq + kept.entries.max(1),
                    Order::Descending => high = kept.first_seq.saturating_sub(1),
                }
            }
            let is_done = rows.is_empty() || low > high || high < from;
            is_first = false;
            if is_done {
                break;
            }
        }
        let rest = gaps.unwrap_or_else(|| Gaps::new(conversation, order, from..=last)).rest(from, last);
        Ok(rest.map_or(ControlFlow::Continue(()), |gap| visit(Reading::Damaged(gap))))
    }
}
