//! What is asked of all clusters, and put together.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::Path;
use std::thread;

use super::Sharded;
use super::member::{BUCKETS, Cluster};
use crate::error::{Error, Result};
use crate::log::{BackupSummary, Health, ListCursor, ListPage, ListQuery, Log, Size, TableSize, Verification};
use crate::model::ConversationId;
use crate::postgres::Postgres;
use crate::postgres::backup::Moment;

impl Sharded {
    /// Asks all clusters at once. One that does not answer makes it an error, which names it.
    fn each<T: Send>(&self, ask: impl Fn(&Cluster) -> Result<T> + Sync) -> Result<Vec<T>> {
        thread::scope(|scope| {
            let ask = &ask;
            let asked: Vec<_> = self.clusters.iter().map(|cluster| scope.spawn(move || ask(cluster))).collect();
            asked.into_iter().map(|answer| answer.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        })
    }

    /// Asks all clusters while no bucket comes or goes: each conversation is then in one of the answers.
    fn each_at_one_map<T: Send>(&self, ask: impl Fn(&Postgres) -> Result<T> + Sync) -> Result<Vec<T>> {
        let mut patience = self.patience();
        loop {
            let before = self.places.settled();
            let answers = self.each(|cluster| ask(cluster.log()))?;
            if self.settle()? && self.places.settled() == before {
                return Ok(answers);
            }
            patience.again(0)?;
        }
    }

    /// Notes how often buckets have moved, if each is in a cluster now. Fails if some are in clusters that are not known here.
    pub(super) fn settle(&self) -> Result<bool> {
        let seen = self.each(Cluster::readable_buckets)?;
        seen.iter().enumerate().for_each(|(cluster, seen)| self.places.note_moves(cluster, seen.moves));
        let is_settled = seen.iter().map(|seen| seen.readable).sum::<u64>() == BUCKETS;
        let (known, now) =
            (self.clusters.len() as u64, seen.iter().map(|seen| seen.clusters).max().unwrap_or_default());
        if is_settled {
            self.places.settle(seen.into_iter().map(|seen| seen.moves).collect());
        } else if seen.iter().any(|seen| seen.furthest.is_some_and(|furthest| furthest >= known)) {
            return Err(Error::InvalidInput(format!(
                "the store has {now} clusters by now, and had {known} in the list with which it was opened: add the new ones to \
                 the list, and open it again"
            )));
        }
        Ok(is_settled)
    }

    /// A page of the list: the first of what the pages of all clusters have.
    pub(super) fn list(&self, query: &ListQuery) -> Result<ListPage> {
        let pages = self.each_at_one_map(|cluster| cluster.list(query))?;
        // What follows the end of one page that goes on may come after items that this page does not have.
        let ends = pages.iter().filter_map(|page| page.next).map(|next| next.0);
        let stopped = ends.reduce(|one, other| if query.follows(one, other) { other } else { one });
        let (mut items, mut unreadable) = (Vec::new(), Vec::new());
        for page in pages {
            items.extend(page.items);
            unreadable.extend(page.unreadable);
        }
        items.retain(|item| stopped.is_none_or(|stopped| !query.follows(query.place(item), stopped)));
        items.sort_unstable_by(|one, other| query.sort.compare(query.place(one), query.place(other)));
        let has_more = items.len() > query.limit;
        items.truncate(query.limit);
        let last = items.last().filter(|_| has_more).map(|item| query.place(item));
        let next = last.or(stopped).map(ListCursor);
        Ok(ListPage { items, unreadable, next })
    }

    /// The conversations that each cluster gives, by their ids.
    pub(super) fn ids(
        &self,
        ask: impl Fn(&Postgres) -> Result<Vec<ConversationId>> + Sync,
    ) -> Result<Vec<ConversationId>> {
        let mut ids = self.each_at_one_map(ask)?.concat();
        ids.sort_unstable();
        Ok(ids)
    }
}

impl Sharded {
    pub(super) fn health(&self) -> Health {
        let mut health = Health::default();
        for (at, cluster) in self.clusters.iter().enumerate() {
            let Health { closed, warnings, .. } = Log::health(cluster.log());
            health.closed |= closed;
            let named = warnings.iter().map(|warning| format!("cluster {at}, {}: {warning}", cluster.shown()));
            health.warnings.extend(named);
        }
        health
    }

    /// The sums of all clusters.
    pub(super) fn size(&self) -> Result<Size> {
        let mut sum = Size::default();
        let mut tables: BTreeMap<String, TableSize> = BTreeMap::new();
        for size in self.each(|cluster| cluster.log().size())? {
            sum.conversations += size.conversations;
            sum.bytes = Some(sum.bytes.unwrap_or_default() + size.bytes.unwrap_or_default());
            for table in size.tables {
                let name = table.name.clone();
                let known = tables.entry(name).or_insert(TableSize { rows: 0, bytes: 0, ..table.clone() });
                (known.rows, known.bytes) = (known.rows + table.rows, known.bytes + table.bytes);
            }
        }
        sum.tables = tables.into_values().collect();
        Ok(sum)
    }

    /// Checks one cluster after the other.
    pub(super) fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Verification> {
        let mut found = Verification::default();
        let all = self.each(|cluster| Ok(cluster.log().conversations()?.len() as u64))?.iter().sum::<u64>();
        for cluster in &self.clusters {
            let before = found.conversations;
            let of_one = cluster.log().verify(&mut |done, of| progress(before + done, all.max(before + of)))?;
            found.conversations += of_one.conversations;
            found.entries += of_one.entries;
            found.problems.extend(of_one.problems);
        }
        Ok(found)
    }

    /// Writes what all clusters have into one file. Each cluster gives one moment of its own.
    pub(super) fn backup(&self, path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<BackupSummary> {
        let clusters: Vec<&Postgres> = self.clusters.iter().map(Cluster::log).collect();
        let mut patience = self.patience();
        loop {
            let before = self.places.settled();
            let moment = Moment::begin(&clusters)?;
            if self.settle()? && self.places.settled() == before {
                return moment.write(path, progress);
            }
            patience.again(0)?;
        }
    }

    /// Does something with each cluster, whatever becomes of the others: gives the first error.
    pub(super) fn all(&self, work: impl Fn(&Postgres) -> Result<()>) -> Result<()> {
        self.clusters.iter().map(Cluster::log).map(work).fold(Ok(()), Result::and)
    }
}
