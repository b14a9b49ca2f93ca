//! One store over several databases: each conversation is in one of them, and a map says in which.
//!
//! A conversation belongs to a bucket, one of 1,024, by its id; a fork to the bucket of its parent. Each bucket is in one
//! cluster. The clusters keep the map, and refuse what they do not have (`cluster.sql`); here is only a guess of it,
//! which an answer that may be wrong corrects. No other part of the store knows of this one.
//!
//! `member` is one cluster, `map` makes and checks the map of all, `places` guesses it, `route` finds a conversation, `fork`
//! places forks, `reading` goes on where a bucket went, `all` asks all clusters, `moving` moves a bucket. `log` is the log as a
//! store sees it.

mod all;
mod fork;
mod log;
mod map;
mod member;
mod moving;
mod places;
mod reading;
mod restore;
mod route;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;
use std::{fmt, fs};

use self::member::Cluster;
use self::places::Places;
use super::is_postgres;
use crate::error::{Error, Result};
use crate::log::{Clock, Migration, Opening, Vacuumed};
use crate::model::Timestamp;

pub(crate) use self::moving::{move_bucket, status};
pub(crate) use self::restore::restore;

/// How the URL of a list of clusters begins.
const SCHEME: &str = "shards:";

/// The log of all conversations, in several databases.
pub(crate) struct Sharded {
    clusters: Vec<Cluster>,
    places: Places,
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
        let urls = listed(url)?;
        let clusters = connect(&urls, &clock, window, opening, creates)?;
        if creates && map::members(&clusters)?.iter().all(Option::is_none) {
            map::make(&clusters)?;
        }
        let patience = patience(&clusters);
        let places = Places::new(map::read(&clusters, url, patience)?, clusters.len());
        let log = Self { clusters, places, patience };
        log.settle()?;
        Ok(log)
    }
}

/// Makes the schema in each cluster of a list, or makes older ones those of this version; then the map, if there is none, and
/// adds clusters that are new in the list.
pub(crate) fn migrate(url: &str) -> Result<Migration> {
    let urls = listed(url)?;
    let done = urls.iter().map(|url| super::migrate(url)).collect::<Result<Vec<_>>>()?;
    let clock: Clock = Arc::new(Timestamp::now);
    let opening = Opening { read_only: true, ..Opening::default() };
    map::make(&connect(&urls, &clock, Duration::ZERO, opening, false)?)?;
    let from = done.iter().map(|done| done.from).min().unwrap_or_default();
    let to = done.iter().map(|done| done.to).min().unwrap_or_default();
    Ok(Migration { from, to })
}

/// Writes the tables of each cluster again.
pub(crate) fn vacuum(url: &str, progress: &mut dyn FnMut(u64, u64)) -> Result<Vacuumed> {
    let urls = listed(url)?;
    let (all, mut sum) = (urls.len() as u64, Vacuumed::default());
    for (cluster, url) in (0..).zip(&urls) {
        let done = super::vacuum(url, &mut |done, of| progress(cluster * of + done, all * of))?;
        sum.bytes_before += done.bytes_before;
        sum.bytes_after += done.bytes_after;
    }
    Ok(sum)
}

fn connect(urls: &[String], clock: &Clock, window: Duration, opening: Opening, creates: bool) -> Result<Vec<Cluster>> {
    urls.iter().map(|url| Cluster::open(url, Arc::clone(clock), window, opening, creates)).collect()
}

/// How long a call waits for a bucket that is being moved.
fn patience(clusters: &[Cluster]) -> Duration {
    clusters.iter().map(|cluster| cluster.log().patience).max().unwrap_or_default()
}

/// Whether a URL names a list of clusters.
pub(crate) fn is_sharded(url: &str) -> bool {
    url.starts_with(SCHEME)
}

/// The URLs of the clusters, in the order of their numbers.
fn listed(url: &str) -> Result<Vec<String>> {
    let path = url.strip_prefix(SCHEME).unwrap_or(url);
    let path = path.strip_prefix("//").unwrap_or(path);
    let text = fs::read_to_string(path).map_err(Error::io(format!("read the list of clusters {path}")))?;
    parse(path, &text)
}

/// A line may hold a password: no error quotes it.
fn parse(path: &str, text: &str) -> Result<Vec<String>> {
    let lines = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let mut urls: Vec<String> = Vec::new();
    for (number, line) in lines {
        let problem = |problem: &str| Error::InvalidInput(format!("{path}, line {number}: {problem}"));
        if !is_postgres(line) {
            return Err(problem("expected the URL of a cluster, postgres://USER:PASSWORD@HOST:PORT/DATABASE"));
        }
        if urls.iter().any(|url| url == line) {
            return Err(problem("this cluster is in the list already"));
        }
        urls.push(line.to_owned());
    }
    if urls.is_empty() {
        return Err(Error::InvalidInput(format!("{path} lists no cluster: write the URL of one into each line")));
    }
    Ok(urls)
}
