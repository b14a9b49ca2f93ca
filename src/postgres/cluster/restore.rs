//! A backup of any log, put into the clusters of a sharded store: each family of forks into the bucket of its first
//! conversation.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::member::bucket_of;
use super::{connect, listed, map, patience};
use crate::backup;
use crate::error::Result;
use crate::log::{BackupSummary, Clock, Opening};
use crate::model::{ConversationId, Timestamp};
use crate::postgres::database::Session;
use crate::postgres::restore::{begin, fill};
use crate::postgres::statement::{Statement, signed};
use crate::record::{Head, Parent, Tombstone, key};

/// Rows that are inserted at once.
const ROWS: usize = 1_000;

/// What is known of the families of a backup: the incarnation and the parent of each fork.
#[derive(Default)]
struct Families(HashMap<ConversationId, (u64, Option<Parent>)>);

impl Families {
    fn take(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let Some(id) = key::parse_id(key) else { return Ok(()) };
        let known = match key.first() {
            Some(&key::HEAD) => Head::open(key, value).map(|head| (head.incarnation, head.parent))?,
            Some(&key::TOMBSTONE) => Tombstone::open(key, value).map(|it| (it.incarnation, it.parent))?,
            _ => return Ok(()),
        };
        self.0.insert(id, known);
        Ok(())
    }

    /// The bucket of a conversation: that of the first one of its family.
    fn bucket(&self, mut id: ConversationId) -> u64 {
        // No family is as long: damage may have made a circle of it.
        for _ in 0..self.0.len() {
            let parent = self.0.get(&id).and_then(|(_, parent)| *parent);
            let parent = parent.filter(|parent| {
                self.0.get(&parent.id()).is_some_and(|(incarnation, _)| *incarnation == parent.incarnation)
            });
            match parent {
                Some(parent) => id = parent.id(),
                None => break,
            }
        }
        bucket_of(id)
    }
}

/// Fills the clusters of a list, each in one transaction. `progress` is called with bytes read, and of the file.
pub(crate) fn restore(file: &Path, url: &str, progress: &mut dyn FnMut(u64, u64)) -> Result<BackupSummary> {
    let clock: Clock = Arc::new(Timestamp::now);
    let clusters = connect(&listed(url)?, &clock, Duration::ZERO, Opening::default(), true)?;
    if map::members(&clusters)?.iter().all(Option::is_none) {
        map::make(&clusters)?;
    }
    let patience = patience(&clusters);
    let map = map::read(&clusters, url, patience)?;
    map::check_still(&clusters, url)?;
    let mut families = Families::default();
    backup::open(file)?.read(&mut |key, value, _| families.take(key, value))?;
    let cluster_of = |bucket: u64| usize::try_from(bucket).ok().and_then(|bucket| map.get(bucket)).copied();
    let sessions = clusters.iter().map(|cluster| begin(cluster.database())).collect::<Result<Vec<_>>>()?;
    for session in &sessions {
        // They are put where they belong: nothing is to be checked.
        session.script("SET LOCAL conversation_store.moving = 'on'")?;
    }
    let summary = fill(backup::open(file)?, &sessions, |id| cluster_of(families.bucket(id)), progress)?;
    for (at, session) in sessions.iter().enumerate() {
        place_forks(session, &families, |bucket| cluster_of(bucket) == Some(at))?;
    }
    sessions.into_iter().try_for_each(Session::end)?;
    Ok(summary)
}

/// Notes the forks that are not in the buckets of their ids, there and here.
fn place_forks(session: &Session<'_>, families: &Families, is_here: impl Fn(u64) -> bool) -> Result<()> {
    const HERE: &str = "INSERT INTO cs_family SELECT u.id, u.bucket, 0 FROM unnest($1, $2) AS u(id, bucket)";
    const AWAY: &str = "INSERT INTO cs_placed SELECT u.id, u.bucket, 0 FROM unnest($1, $2) AS u(id, bucket)";
    let placed = families.0.keys().map(|id| (*id, families.bucket(*id)));
    let placed: Vec<_> = placed.filter(|(id, bucket)| *bucket != bucket_of(*id)).collect();
    let of_here = |sql, chosen: &dyn Fn(&(ConversationId, u64)) -> bool| -> Result<()> {
        let chosen: Vec<_> = placed.iter().filter(|it| chosen(it)).collect();
        for chunk in chosen.chunks(ROWS) {
            let ids: Vec<Vec<u8>> = chunk.iter().map(|(id, _)| id.as_bytes().to_vec()).collect();
            let buckets: Vec<i64> = chunk.iter().map(|(_, bucket)| signed(*bucket)).collect();
            session.query(Statement::once(sql).with(ids).with(buckets))?;
        }
        Ok(())
    };
    of_here(HERE, &|(_, bucket)| is_here(*bucket))?;
    of_here(AWAY, &|(id, _)| is_here(bucket_of(*id)))
}
