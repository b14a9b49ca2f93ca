//! One store over several databases: each conversation is in one of them, and a map says in which.
//!
//! A conversation belongs to a bucket, one of 1,024, by its id; a fork to the bucket of its parent. Each bucket is in one
//! cluster. The clusters keep the map, and refuse what they do not have (`postgres/cluster.sql`); here is only a guess of it,
//! which an answer that may be wrong corrects. No other part of the store knows of this one.
//!
//! `map` makes and checks the map, `route` finds a conversation, `fork` places forks, `reading` and `following` go on where a
//! bucket went, `merge` asks all clusters.

mod following;
mod fork;
mod list_file;
mod map;
mod merge;
mod mover;
mod reading;
mod restore;
mod route;
mod seam;
#[cfg(test)]
mod tests;
mod whole;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::error::Result;
use crate::log::{Clock, Migration, Opening};
use crate::model::{ConversationId, Timestamp};
use crate::postgres::{self, Postgres};

pub(crate) use self::list_file::is_sharded;
pub(crate) use self::mover::{move_bucket, status};
pub(crate) use self::restore::restore;

/// The log of all conversations, in several databases.
pub(crate) struct Sharded {
    clusters: Vec<Postgres>,
    /// The cluster of each bucket, as it was last seen.
    map: Vec<AtomicUsize>,
    /// The buckets of forks that are not in those of their ids, as they were last seen.
    placed: Mutex<HashMap<ConversationId, u64>>,
    /// How often buckets had come or gone when a cluster was last looked at: by cluster.
    moves: Vec<AtomicU64>,
    /// The same, when each bucket was in a cluster.
    settled: Mutex<Vec<u64>>,
    /// How long a call waits for a bucket that is being moved.
    patience: Duration,
}

impl fmt::Debug for Sharded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sharded").field("clusters", &self.clusters).finish_non_exhaustive()
    }
}

impl Sharded {
    /// Opens the log over the clusters of a list. `creates`: a store that is not there is made.
    pub(crate) fn open(url: &str, clock: Clock, window: Duration, opening: Opening, creates: bool) -> Result<Self> {
        let creates = creates && !opening.read_only;
        let urls = list_file::read(url)?;
        let clusters = connect(&urls, &clock, window, opening, creates)?;
        if creates && map::members(&clusters)?.iter().all(Option::is_none) {
            map::make(&clusters)?;
        }
        let patience = clusters.iter().map(Postgres::patience).max().unwrap_or_default();
        let map = map::read(&clusters, url, patience)?.into_iter().map(AtomicUsize::new).collect();
        let moves = clusters.iter().map(|_| AtomicU64::new(0)).collect();
        let log = Self { clusters, map, placed: Mutex::default(), moves, settled: Mutex::default(), patience };
        log.settle()?;
        Ok(log)
    }
}

/// Makes the schema in each cluster of a list, or makes older ones those of this version; then the map, if there is none, and
/// adds clusters that are new in the list.
pub(crate) fn migrate(url: &str) -> Result<Migration> {
    let urls = list_file::read(url)?;
    let done = urls.iter().map(|url| postgres::migrate(url)).collect::<Result<Vec<_>>>()?;
    let clock: Clock = Arc::new(Timestamp::now);
    let opening = Opening { read_only: true, ..Opening::default() };
    map::make(&connect(&urls, &clock, Duration::ZERO, opening, false)?)?;
    let from = done.iter().map(|done| done.from).min().unwrap_or_default();
    let to = done.iter().map(|done| done.to).min().unwrap_or_default();
    Ok(Migration { from, to })
}

fn connect(urls: &[String], clock: &Clock, window: Duration, opening: Opening, creates: bool) -> Result<Vec<Postgres>> {
    let open = |url: &String| Postgres::open_member(url, Arc::clone(clock), window, opening, creates);
    urls.iter().map(open).collect()
}
