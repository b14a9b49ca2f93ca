//! What is asked of all clusters.

use std::cmp::Reverse;
use std::panic::resume_unwind;
use std::sync::PoisonError;
use std::thread;

use super::Sharded;
use crate::error::{Error, Result};
use crate::log::{ListPage, ListQuery, Log};
use crate::model::ConversationId;
use crate::postgres::{BUCKETS, Postgres};

impl Sharded {
    /// Asks all clusters at once. One that does not answer makes it an error, which names it.
    pub(super) fn each<T: Send>(&self, ask: impl Fn(&Postgres) -> Result<T> + Sync) -> Result<Vec<T>> {
        thread::scope(|scope| {
            let ask = &ask;
            let asked: Vec<_> = self.clusters.iter().map(|cluster| scope.spawn(move || ask(cluster))).collect();
            asked.into_iter().map(|answer| answer.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        })
    }

    /// Asks all clusters while no bucket comes or goes: each conversation is then in one of the answers.
    pub(super) fn each_at_one_map<T: Send>(&self, ask: impl Fn(&Postgres) -> Result<T> + Sync) -> Result<Vec<T>> {
        let mut patience = self.patience();
        loop {
            let before = self.settled.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let answers = self.each(&ask)?;
            if self.settle()? && *self.settled.lock().unwrap_or_else(PoisonError::into_inner) == before {
                return Ok(answers);
            }
            patience.again(0)?;
        }
    }

    /// Notes how often buckets have moved, if each is in a cluster now. Fails if some are in clusters that are not known here.
    pub(super) fn settle(&self) -> Result<bool> {
        let seen = self.each(Postgres::readable_buckets)?;
        seen.iter().enumerate().for_each(|(cluster, seen)| self.note_moves(cluster, seen.moves));
        let is_settled = seen.iter().map(|seen| seen.readable).sum::<u64>() == BUCKETS;
        let (known, now) =
            (self.clusters.len() as u64, seen.iter().map(|seen| seen.clusters).max().unwrap_or_default());
        if is_settled {
            let moves = seen.into_iter().map(|seen| seen.moves).collect();
            *self.settled.lock().unwrap_or_else(PoisonError::into_inner) = moves;
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
        let mut has_more = pages.iter().any(|page| page.next.is_some());
        let (mut items, mut unreadable) = (Vec::new(), Vec::new());
        for page in pages {
            items.extend(page.items);
            unreadable.extend(page.unreadable);
        }
        items.sort_unstable_by_key(|item| Reverse(item.cursor().0));
        has_more |= items.len() > query.limit;
        items.truncate(query.limit);
        let next = items.last().filter(|_| has_more).map(|item| item.cursor());
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
