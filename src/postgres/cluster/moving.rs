//! The steps of moving a bucket from one database to another: what `cluster.sql` does not do by itself is copying.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::member::{BUCKETS, Bucket, BucketState, Cluster, Member};
use super::{connect, listed, map};
use crate::error::{Error, Result};
use crate::log::{Clock, MovingBucket, Opening, ShardCluster, Shards};
use crate::model::{ConversationId, Timestamp};
use crate::postgres::database::Session;
use crate::postgres::rows::{digest, get, number};
use crate::postgres::statement::{Statement, signed};

/// Conversations that are copied in one transaction.
const CONVERSATIONS: u64 = 100;
/// Records that are copied at once, unless their bytes are enough.
const RECORDS: u64 = 1_000;
const RECORD_BYTES: u64 = 4 * 1024 * 1024;
/// Conversations that are erased in one transaction.
const ERASED: u64 = 200;

/// A bucket that is on its way.
#[derive(Clone, Copy, Debug)]
struct Transfer<'a> {
    bucket: u64,
    from: &'a Cluster,
    to: &'a Cluster,
    /// The numbers of both clusters.
    numbers: (u64, u64),
    /// Who moves it: of several programs, the one that began last.
    mover: [u8; 16],
}

/// A conversation as it is in one of the clusters.
struct Row {
    incarnation: u64,
    commit: u64,
    redactions: u64,
    next_seq: u64,
    deleted: bool,
}

impl Row {
    fn of(row: &tokio_postgres::Row) -> Result<Self> {
        Ok(Self {
            incarnation: number(row, "incarnation")?,
            commit: number(row, "commit_no")?,
            redactions: number(row, "redactions")?,
            next_seq: number(row, "next_seq")?,
            deleted: get(row, "deleted")?,
        })
    }

    /// From which seq on it has more than a copy; nothing, if what the copy has may have changed.
    fn more_than(&self, copy: &Self) -> Option<u64> {
        let is_same = self.incarnation == copy.incarnation && self.redactions == copy.redactions;
        (is_same && !self.deleted && !copy.deleted).then_some(copy.next_seq)
    }
}

/// What has changed of a page of conversations.
#[derive(Default)]
struct Changes {
    /// The ids of those that are copied from their beginning, or are there no more.
    erased: Vec<Vec<u8>>,
    /// The ids of those that are copied, and from which seq on.
    ids: Vec<Vec<u8>>,
    from: Vec<i64>,
    rows: Vec<(Row, Vec<u8>)>,
}

impl Transfer<'_> {
    /// Begins, or takes over from a program that was cut off. Whether all was copied already.
    fn arrive(&self) -> Result<bool> {
        const SQL: &str = "SELECT cs_arrive_v1($1, $2, $3) AS state";
        let statement = Statement::repeatable(SQL).with(self.bucket).with(self.numbers.0).with(&self.mover);
        Ok(get::<&str>(&self.to.database().row(statement)?, "state")? == "arrived")
    }

    /// Interrupts the messages whose programs are gone: nobody else may be there to do it.
    fn sweep(&self) -> Result<()> {
        self.from.log().interrupt_expired()
    }

    /// Ends writing, unless messages are being written: gives how many conversations have such messages.
    fn freeze(&self) -> Result<u64> {
        const SQL: &str = "SELECT cs_freeze_v1($1, $2) AS writing";
        let statement = Statement::repeatable(SQL).with(self.bucket).with(self.numbers.1);
        number(&self.from.database().row(statement)?, "writing")
    }

    /// Copies what has changed since it was copied: gives how many conversations that are.
    fn copy(&self) -> Result<u64> {
        let (mut after, mut copied) = (Vec::new(), 0);
        loop {
            let (changed, last) = self.copy_page(&after)?;
            copied += changed;
            match last {
                Some(last) => after = last,
                None => return Ok(copied),
            }
        }
    }

    /// Copies what has changed of some conversations. Both sides are one moment each. Gives how many, and the id of the last
    /// one, if more may follow.
    fn copy_page(&self, after: &[u8]) -> Result<(u64, Option<Vec<u8>>)> {
        const IS_HERE: &str = "SELECT FROM cs_bucket b WHERE b.bucket = $1 AND b.state IN ('here', 'leaving')";
        const PAGE: &str = "SELECT c.conv_id, c.incarnation, c.commit_no, c.redactions, c.next_seq, c.deleted, \
                            convert_to(c::text, 'UTF8') AS head FROM cs_in_bucket_v1($1, $2, $3) c ORDER BY c.conv_id";
        let source = self.from.database().session_of_steps()?;
        source.script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
        if source.query(Statement::repeatable(IS_HERE).with(self.bucket))?.is_empty() {
            return Err(Error::Busy(format!("another program has moved bucket {}", self.bucket)));
        }
        let page = Statement::repeatable(PAGE).with(self.bucket).with(after).with(CONVERSATIONS);
        let page = source.query(page)?;
        let mut ids = Vec::new();
        for row in &page {
            ids.push(get::<&[u8]>(row, "conv_id")?.to_vec());
        }
        let last = ids.last().cloned().filter(|_| ids.len() as u64 == CONVERSATIONS);

        let target = self.to.database().session_of_steps()?;
        target.script("BEGIN ISOLATION LEVEL READ COMMITTED")?;
        self.check_own(&target)?;
        let mut changes = self.changes(&target, after, last.as_deref(), &page)?;
        changes.keep_free(&target)?;
        if !changes.is_empty() {
            changes.erase(&target)?;
            changes.insert(&target, self.bucket)?;
            changes.copy_records(&source, &target)?;
            changes.copy_rest(&source, &target)?;
        }
        target.end()?;
        let _ = source.end();
        Ok((changes.len(), last))
    }

    fn check_own(&self, target: &Session<'_>) -> Result<()> {
        const OWN: &str = "SELECT cs_own_move_v1($1, $2)";
        target.query(Statement::once(OWN).with(self.bucket).with(&self.mover)).map(|_| ())
    }

    /// What of a page is not as it was copied.
    fn changes(
        &self,
        target: &Session<'_>,
        after: &[u8],
        last: Option<&[u8]>,
        page: &[tokio_postgres::Row],
    ) -> Result<Changes> {
        const COPIED: &str = "SELECT a.conv_id, a.incarnation, a.commit_no, a.redactions, a.next_seq, a.deleted \
                              FROM cs_arriving a WHERE a.bucket = $1 AND a.conv_id > $2 AND ($3 IS NULL OR a.conv_id <= $3)";
        let copied = Statement::repeatable(COPIED).with(self.bucket).with(after).with(last.map(<[u8]>::to_vec));
        let mut copies: HashMap<Vec<u8>, Row> = HashMap::new();
        for row in &target.query(copied)? {
            copies.insert(get::<&[u8]>(row, "conv_id")?.to_vec(), Row::of(row)?);
        }
        let mut changes = Changes::default();
        for row in page {
            let (id, now) = (get::<&[u8]>(row, "conv_id")?.to_vec(), Row::of(row)?);
            let copy = copies.remove(&id);
            if copy.as_ref().is_some_and(|copy| copy.commit == now.commit && copy.incarnation == now.incarnation) {
                continue;
            }
            let from = copy.and_then(|copy| now.more_than(&copy));
            if from.is_none() {
                changes.erased.push(id.clone());
            }
            changes.ids.push(id);
            changes.from.push(signed(from.unwrap_or_default()));
            changes.rows.push((now, get::<&[u8]>(row, "head")?.to_vec()));
        }
        // Those that were copied, and are there no more.
        changes.erased.extend(copies.into_keys());
        changes.erased.sort_unstable();
        Ok(changes)
    }

    /// All is copied. What says where forks are goes with it.
    fn complete(&self) -> Result<()> {
        // One that was announced and not made is left where it is.
        const FAMILY: &str = "SELECT f.conv_id, f.bucket, f.token FROM cs_family f WHERE f.bucket = $1 \
                              AND EXISTS (SELECT FROM cs_conversation t WHERE t.conv_id = f.conv_id)";
        const PLACED: &str =
            "SELECT p.conv_id, p.bucket, p.token FROM cs_placed p WHERE cs_bucket_of_v1(p.conv_id) = $1";
        const NO_FAMILY: &str = "DELETE FROM cs_family f WHERE f.bucket = $1 \
                                 OR f.conv_id IN (SELECT a.conv_id FROM cs_arriving a WHERE a.bucket = $1)";
        const NO_PLACED: &str = "DELETE FROM cs_placed p WHERE cs_bucket_of_v1(p.conv_id) = $1";
        const INTO_FAMILY: &str = "INSERT INTO cs_family SELECT u.id, u.bucket, u.token \
                                   FROM unnest($1, $2, $3) AS u(id, bucket, token) ON CONFLICT DO NOTHING";
        const INTO_PLACED: &str = "INSERT INTO cs_placed SELECT u.id, u.bucket, u.token \
                                   FROM unnest($1, $2, $3) AS u(id, bucket, token)";
        const ARRIVED: &str = "UPDATE cs_bucket SET state = 'arrived' WHERE bucket = $1";
        // The bucket is frozen: neither changes any more.
        let source = self.from.database();
        let family = source.query(Statement::repeatable(FAMILY).with(self.bucket))?;
        let placed = source.query(Statement::repeatable(PLACED).with(self.bucket))?;
        let target = self.to.database().session_of_steps()?;
        // Nobody announces a fork meanwhile: who does it later sees that the names have arrived. A mover whose machine is gone
        // lets go, too.
        target.script(
            "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = '30s'; SELECT pg_advisory_xact_lock(716338497, 0)",
        )?;
        self.check_own(&target)?;
        for (rows, erase, write) in [(family, NO_FAMILY, INTO_FAMILY), (placed, NO_PLACED, INTO_PLACED)] {
            target.query(Statement::once(erase).with(self.bucket))?;
            let (mut ids, mut buckets, mut tokens) = (Vec::new(), Vec::new(), Vec::new());
            for row in &rows {
                ids.push(digest(row, "conv_id")?.to_vec());
                buckets.push(signed(number(row, "bucket")?));
                tokens.push(signed(number(row, "token")?));
            }
            target.query(Statement::once(write).with(ids).with(buckets).with(tokens))?;
        }
        target.query(Statement::once(ARRIVED).with(self.bucket))?;
        target.end()
    }

    /// The bucket is in the one cluster no more, and then in the other one.
    fn switch(&self) -> Result<()> {
        const LEAVE: &str = "SELECT cs_leave_v1($1, $2)";
        const TAKE: &str = "SELECT cs_take_v1($1)";
        // They take as long as the bucket is large: no limit ends them.
        let leave = Statement::once(LEAVE).with(self.bucket).with(self.numbers.1);
        let source = self.from.database().session()?;
        source.query(leave)?;
        let target = self.to.database().session()?;
        target.query(Statement::once(TAKE).with(self.bucket)).map(|_| ())
    }
}

impl Cluster {
    /// Gives up that a bucket comes here from a cluster that it has left. `now`: where it is.
    fn give_up(&self, bucket: u64, from: u64, now: u64) -> Result<()> {
        const SQL: &str = "SELECT cs_give_up_v1($1, $2, $3)";
        self.database().query(Statement::once(SQL).with(bucket).with(from).with(now))?;
        self.clear(bucket)
    }

    /// Erases what buckets left that went to other clusters.
    fn clear(&self, bucket: u64) -> Result<()> {
        const SQL: &str = "SELECT cs_clear_v1($1, $2) AS erased";
        let session = self.database().session_of_steps()?;
        loop {
            let rows = session.query(Statement::once(SQL).with(bucket).with(ERASED))?;
            if rows.first().map_or(Ok(0), |row| number(row, "erased"))? == 0 {
                return Ok(());
            }
        }
    }
}

impl Changes {
    const fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.erased.is_empty()
    }

    const fn len(&self) -> u64 {
        self.ids.len() as u64
    }

    /// Leaves out the names that have a conversation here by now: a fork in another bucket, after the one that was copied was
    /// deleted. None comes while the transaction lasts.
    fn keep_free(&mut self, target: &Session<'_>) -> Result<()> {
        const DECIDE: &str = "SELECT cs_decide_v1(u.id) FROM unnest($1) AS u(id)";
        const TAKEN: &str = "SELECT t.conv_id FROM cs_conversation t WHERE t.conv_id = ANY ($1)";
        let mut all = [self.ids.as_slice(), self.erased.as_slice()].concat();
        all.sort_unstable();
        all.dedup();
        target.query(Statement::once(DECIDE).with(all.clone()))?;
        for row in &target.query(Statement::repeatable(TAKEN).with(all))? {
            let taken: &[u8] = get(row, "conv_id")?;
            self.erased.retain(|id| id != taken);
            if let Some(at) = self.ids.iter().position(|id| id == taken) {
                self.ids.remove(at);
                self.from.remove(at);
                self.rows.remove(at);
            }
        }
        Ok(())
    }

    fn erase(&self, target: &Session<'_>) -> Result<()> {
        const COPIES: &str = "DELETE FROM cs_arriving a WHERE a.conv_id = ANY ($1)";
        const LEFT: &str = "DELETE FROM cs_left l WHERE l.conv_id = ANY ($1)";
        const ERASE: &str = "SELECT cs_erase_v1($1)";
        [COPIES, LEFT, ERASE]
            .iter()
            .try_for_each(|sql| target.query(Statement::once(sql).with(self.erased.clone())).map(|_| ()))
    }

    fn insert(&mut self, target: &Session<'_>, bucket: u64) -> Result<()> {
        const SQL: &str = "INSERT INTO cs_arriving SELECT u.id, $1, u.incarnation, u.commit_no, u.redactions, u.next_seq, \
            u.deleted, u.head FROM unnest($2, $3, $4, $5, $6, $7, $8) \
            AS u(id, incarnation, commit_no, redactions, next_seq, deleted, head) \
            ON CONFLICT (conv_id) DO UPDATE SET bucket = $1, incarnation = excluded.incarnation, \
            commit_no = excluded.commit_no, redactions = excluded.redactions, next_seq = excluded.next_seq, \
            deleted = excluded.deleted, head = excluded.head";
        let column = |of: fn(&Row) -> u64| -> Vec<i64> { self.rows.iter().map(|(row, _)| signed(of(row))).collect() };
        let statement = Statement::once(SQL)
            .with(bucket)
            .with(self.ids.clone())
            .with(column(|row| row.incarnation))
            .with(column(|row| row.commit))
            .with(column(|row| row.redactions))
            .with(column(|row| row.next_seq))
            .with(self.rows.iter().map(|(row, _)| row.deleted).collect::<Vec<_>>());
        let heads: Vec<Vec<u8>> = self.rows.iter_mut().map(|(_, head)| std::mem::take(head)).collect();
        target.query(statement.with(heads)).map(|_| ())
    }

    /// Rows go from one database to the other as text: their columns are not looked at.
    fn copy_records(&self, source: &Session<'_>, target: &Session<'_>) -> Result<()> {
        const READ: &str = "SELECT r.conv_id, r.first_seq, convert_to(r::text, 'UTF8') AS line FROM (\
            SELECT i.conv_id, i.first_seq, sum(octet_length(i.body)) OVER (ORDER BY i.conv_id, i.first_seq \
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before \
            FROM unnest($1, $2) AS u(id, low) JOIN cs_record i ON i.conv_id = u.id AND i.first_seq >= u.low \
            WHERE (i.conv_id, i.first_seq) > ($3, $4) ORDER BY i.conv_id, i.first_seq LIMIT $5) p \
            JOIN cs_record r ON r.conv_id = p.conv_id AND r.first_seq = p.first_seq \
            WHERE coalesce(p.before, 0) < $6 ORDER BY r.conv_id, r.first_seq";
        const WRITE: &str = "INSERT INTO cs_record SELECT (x.one).* FROM (\
            SELECT convert_from(u.line, 'UTF8')::cs_record AS one FROM unnest($1) AS u(line) OFFSET 0) x";
        let mut after = (Vec::new(), 0);
        loop {
            let read = Statement::repeatable(READ).with(self.ids.clone()).with(self.from.clone());
            let rows = source.query(read.with(after.0.clone()).with(after.1).with(RECORDS).with(RECORD_BYTES))?;
            let Some(last) = rows.last() else { return Ok(()) };
            after = (get::<&[u8]>(last, "conv_id")?.to_vec(), number(last, "first_seq")?);
            target.query(Statement::once(WRITE).with(lines(&rows)?))?;
        }
    }

    /// Idempotency keys and item ids.
    fn copy_rest(&self, source: &Session<'_>, target: &Session<'_>) -> Result<()> {
        const KEYS: &str = "SELECT convert_to(k::text, 'UTF8') AS line FROM unnest($1, $2) AS u(id, low) \
                            JOIN cs_key k ON k.conv_id = u.id AND k.first_seq >= u.low";
        const INTO_KEYS: &str = "INSERT INTO cs_key SELECT (x.one).* FROM (\
            SELECT convert_from(u.line, 'UTF8')::cs_key AS one FROM unnest($1) AS u(line) OFFSET 0) x";
        const ITEMS: &str = "SELECT convert_to(i::text, 'UTF8') AS line FROM unnest($1, $2) AS u(id, low) \
                             JOIN cs_item i ON i.conv_id = u.id AND i.seq >= u.low";
        const INTO_ITEMS: &str = "INSERT INTO cs_item SELECT (x.one).* FROM (\
            SELECT convert_from(u.line, 'UTF8')::cs_item AS one FROM unnest($1) AS u(line) OFFSET 0) x";
        for (read, write) in [(KEYS, INTO_KEYS), (ITEMS, INTO_ITEMS)] {
            let rows = source.query(Statement::repeatable(read).with(self.ids.clone()).with(self.from.clone()))?;
            target.query(Statement::once(write).with(lines(&rows)?))?;
        }
        Ok(())
    }
}

fn lines(rows: &[tokio_postgres::Row]) -> Result<Vec<Vec<u8>>> {
    rows.iter().map(|row| Ok(get::<&[u8]>(row, "line")?.to_vec())).collect()
}

/// The bucket is copied again while it is written, until few conversations have changed, or so often.
const COPIES: u32 = 5;
const FEW: u64 = 20;
/// Between two looks whether messages are still being written.
const PAUSE: Duration = Duration::from_millis(100);

/// What the clusters of a list have.
pub(crate) fn status(url: &str) -> Result<Shards> {
    let (clusters, members) = open(url)?;
    let mut shards = Shards::default();
    for (cluster, member) in clusters.iter().zip(&members) {
        let here = member.buckets.iter().filter(|bucket| bucket.state.is_readable()).map(|bucket| bucket.bucket);
        let (at, buckets) = (cluster.shown().to_owned(), ranges(here));
        shards.clusters.push(ShardCluster { cluster: member.cluster, at, buckets });
        let coming = member.buckets.iter().filter(|bucket| is_coming(bucket.state));
        shards.moving.extend(
            coming.filter_map(|bucket| {
                Some(MovingBucket { bucket: bucket.bucket, from: bucket.peer?, to: member.cluster })
            }),
        );
    }
    Ok(shards)
}

/// Moves a bucket to a cluster. `wait`: how long messages that are being written in it are waited for.
pub(crate) fn move_bucket(url: &str, bucket: u64, to: u64, wait: Duration) -> Result<()> {
    if bucket >= BUCKETS {
        return Err(Error::InvalidInput(format!(
            "there are {BUCKETS} buckets, the first of them is 0: there is no {bucket}"
        )));
    }
    let (clusters, members) = open(url)?;
    let of = |number: u64| usize::try_from(number).ok().and_then(|number| clusters.get(number));
    let Some(target) = of(to) else {
        return Err(Error::InvalidInput(format!(
            "the list has {} clusters, the first of them is 0: there is no {to}",
            clusters.len()
        )));
    };
    let (mut here, mut coming, mut overtaken) = (None, None, Vec::new());
    for (known, cluster) in of_bucket(&members, bucket) {
        match (known.state, known.peer) {
            (state, _) if state.is_readable() => here = Some(cluster),
            (state, Some(from)) if is_coming(state) && comes_from(&members, bucket, from, cluster) => {
                coming = Some((from, cluster));
            }
            (BucketState::Arriving, Some(from)) => overtaken.extend(of(cluster).map(|cluster| (cluster, from))),
            _ => {}
        }
    }
    // Two programs began to move it at once, and one of them did.
    if let Some(now) = here {
        overtaken.iter().try_for_each(|(cluster, from)| cluster.give_up(bucket, *from, now))?;
    }
    let from = match (here, coming) {
        (_, Some((_, on_its_way))) if on_its_way != to => {
            return Err(Error::InvalidInput(format!(
                "bucket {bucket} is on its way to cluster {on_its_way}: end that move first"
            )));
        }
        (_, Some((from, _))) => from,
        // What an earlier move left is erased where it is.
        (Some(here), None) if here == to => return clusters.iter().try_for_each(|cluster| cluster.clear(bucket)),
        (Some(here), None) => here,
        (None, None) => return Err(map::nowhere(bucket)),
    };
    let source = of(from).ok_or_else(|| map::nowhere(bucket))?;
    let mover = *ConversationId::new().as_bytes();
    let transfer = Transfer { bucket, from: source, to: target, numbers: (from, to), mover };
    run(&transfer, wait)
}

/// What each cluster knows of a bucket, with the cluster's number.
fn of_bucket(members: &[Member], bucket: u64) -> impl Iterator<Item = (&Bucket, u64)> {
    let all = members.iter().flat_map(|member| member.buckets.iter().map(|known| (known, member.cluster)));
    all.filter(move |(known, _)| known.bucket == bucket)
}

/// Whether a bucket that is coming to a cluster can still come from another one.
fn comes_from(members: &[Member], bucket: u64, from: u64, to: u64) -> bool {
    let mut there = of_bucket(members, bucket).filter(|(_, cluster)| *cluster == from);
    there.any(|(known, _)| known.state == BucketState::Here || known.peer == Some(to))
}

fn run(transfer: &Transfer<'_>, wait: Duration) -> Result<()> {
    let bucket = transfer.bucket;
    // Of an earlier stay.
    transfer.to.clear(bucket)?;
    if !transfer.arrive()? {
        for _ in 0..COPIES {
            if transfer.copy()? <= FEW {
                break;
            }
        }
        freeze(transfer, wait)?;
        transfer.copy()?;
        transfer.complete()?;
    }
    transfer.switch()?;
    transfer.from.clear(bucket)
}

/// Ends writing, once no message of the bucket is being written.
fn freeze(transfer: &Transfer<'_>, wait: Duration) -> Result<()> {
    let until = Instant::now() + wait;
    loop {
        let writing = transfer.freeze()?;
        if writing == 0 {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(Error::Busy(format!(
                "{writing} conversations of bucket {} have messages that are being written: nothing was moved; try again, or \
                 wait longer",
                transfer.bucket
            )));
        }
        sleep(PAUSE);
        transfer.sweep()?;
    }
}

/// The clusters of a list, and what they know. It is not checked that each bucket is in one: a move that was cut off leaves one
/// in none.
fn open(url: &str) -> Result<(Vec<Cluster>, Vec<Member>)> {
    let clock: Clock = Arc::new(Timestamp::now);
    let opening = Opening { read_only: true, ..Opening::default() };
    let clusters = connect(&listed(url)?, &clock, Duration::ZERO, opening, false)?;
    let members = map::complete(&clusters, url)?;
    Ok((clusters, members))
}

const fn is_coming(state: BucketState) -> bool {
    matches!(state, BucketState::Arriving | BucketState::Arrived)
}

/// Numbers in their order as ranges: the first and the last of each.
fn ranges(numbers: impl Iterator<Item = u64>) -> Vec<[u64; 2]> {
    let mut ranges: Vec<[u64; 2]> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some([_, last]) if *last + 1 == number => *last = number,
            _ => ranges.push([number, number]),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_ranges() {
        assert_eq!(ranges([0, 1, 2, 7, 9, 10].into_iter()), [[0, 2], [7, 7], [9, 10]]);
    }
}
