//! The map of buckets: it is kept in the clusters, made once, and checked at each opening.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::member::{BUCKETS, Bucket, BucketState, Cluster, Member};
use crate::error::{Error, Result};
use crate::model::ConversationId;

/// Between two looks at a map in which buckets move.
const PAUSE: Duration = Duration::from_millis(20);

/// What each cluster knows of the store.
pub(super) fn members(clusters: &[Cluster]) -> Result<Vec<Option<Member>>> {
    clusters.iter().map(Cluster::member).collect()
}

/// The cluster of each bucket; fails if the list is not that of a store, or the map is damaged.
pub(super) fn read(clusters: &[Cluster], url: &str, patience: Duration) -> Result<Vec<usize>> {
    let until = Instant::now() + patience;
    loop {
        let known = complete(clusters, url)?;
        // A bucket that moves meanwhile may be seen twice, or not at all.
        match check_buckets(&known) {
            Err(Error::Corrupt { .. }) if Instant::now() < until => sleep(PAUSE),
            map => return map,
        }
    }
}

/// What each cluster knows of the store; fails if the list is not that of a store.
pub(super) fn complete(clusters: &[Cluster], url: &str) -> Result<Vec<Member>> {
    let mut known = Vec::new();
    for (member, cluster) in members(clusters)?.into_iter().zip(clusters) {
        match member {
            Some(member) => known.push(member),
            None if known.is_empty() => return Err(Error::NotFound { what: format!("a store at {url}") }),
            None => {
                let shown = cluster.shown();
                let text = format!("PostgreSQL at {shown} is no cluster of the store yet: `convo migrate` adds it");
                return Err(Error::InvalidInput(text));
            }
        }
    }
    check_list(clusters, &known)?;
    Ok(known)
}

/// Fails unless each cluster is where the list has it, and the list has them all.
fn check_list(clusters: &[Cluster], members: &[Member]) -> Result<()> {
    let listed = clusters.len() as u64;
    check_places(clusters, members.iter().map(Some))?;
    match members.iter().map(|member| member.clusters).find(|known| *known != listed) {
        None => Ok(()),
        Some(known) if known > listed => Err(Error::InvalidInput(format!(
            "the store has {known} clusters, and the list has {listed}: add those that are missing to its end"
        ))),
        Some(known) => Err(Error::InvalidInput(format!(
            "the list has {listed} clusters, and the store has {known}: `convo migrate` adds the others"
        ))),
    }
}

/// Fails if a cluster is not where the list has it.
fn check_places<'a>(clusters: &[Cluster], members: impl Iterator<Item = Option<&'a Member>>) -> Result<()> {
    let mut first: Option<&Member> = None;
    for ((at, cluster), member) in (0..).zip(clusters).zip(members) {
        let (shown, Some(member)) = (cluster.shown(), member) else { continue };
        if first.is_some_and(|first| first.store_id != member.store_id) {
            let text = format!("PostgreSQL at {shown} is a cluster of another sharded store: take it out of the list");
            return Err(Error::InvalidInput(text));
        }
        if member.cluster != at {
            return Err(Error::InvalidInput(format!(
                "PostgreSQL at {shown} is cluster {} of its store, and the list has it as cluster {at}: keep the order in which \
                 the clusters were added",
                member.cluster
            )));
        }
        first = first.or(Some(member));
    }
    Ok(())
}

/// Fails if two of the clusters are one database.
fn check_distinct(clusters: &[Cluster]) -> Result<()> {
    let mut known = BTreeSet::new();
    for cluster in clusters {
        if !known.insert(cluster.tables()?) {
            let shown = cluster.shown();
            let text = format!("PostgreSQL at {shown} is in the list twice, under two names: take one of them out");
            return Err(Error::InvalidInput(text));
        }
    }
    Ok(())
}

/// The cluster of each bucket.
fn check_buckets(members: &[Member]) -> Result<Vec<usize>> {
    let mut map: Vec<Option<usize>> = vec![None; BUCKETS as usize];
    let mut on_its_way = map.clone();
    for (at, member) in members.iter().enumerate() {
        for bucket in &member.buckets {
            let places = match bucket.state {
                state if state.is_readable() => &mut map,
                BucketState::Arrived => &mut on_its_way,
                _ => continue,
            };
            let number = bucket.bucket;
            let Some(place) = usize::try_from(number).ok().and_then(|number| places.get_mut(number)) else {
                return Err(damaged(format!("cluster {at} has a bucket {number}, and there are {BUCKETS}")));
            };
            if let Some(other) = place.replace(at) {
                return Err(damaged(format!("bucket {number} is in the clusters {other} and {at}")));
            }
        }
    }
    let places = map.into_iter().zip(on_its_way).enumerate();
    // One that left, and is not there yet, will be.
    places.map(|(bucket, (here, coming))| here.or(coming).ok_or_else(|| nowhere(bucket as u64))).collect()
}

/// Fails if a bucket is being moved.
pub(super) fn check_still(clusters: &[Cluster], url: &str) -> Result<()> {
    let members = complete(clusters, url)?;
    let mut known = members.iter().flat_map(|member| &member.buckets);
    match known.find(|bucket| !matches!(bucket.state, BucketState::Here | BucketState::Gone)) {
        None => Ok(()),
        Some(Bucket { bucket, .. }) => Err(Error::Busy(format!("bucket {bucket} is being moved: end that move first"))),
    }
}

pub(super) fn nowhere(bucket: u64) -> Error {
    damaged(format!("bucket {bucket} is in no cluster"))
}

/// Makes the map, or adds the clusters that are new in the list. What was cut off goes on where it was.
pub(super) fn make(clusters: &[Cluster]) -> Result<()> {
    let Some(first) = clusters.first() else { return Ok(()) };
    first.alone(|| {
        let members = members(clusters)?;
        check_places(clusters, members.iter().map(Option::as_ref))?;
        check_distinct(clusters)?;
        let count = clusters.len() as u64;
        if let Some(more) = members.iter().flatten().map(|member| member.clusters).find(|known| *known > count) {
            return Err(Error::InvalidInput(format!(
                "the store has {more} clusters, and the list has {count}: add those that are missing to its end"
            )));
        }
        let store_id =
            members.iter().flatten().next().map_or_else(|| *ConversationId::new().as_bytes(), |it| it.store_id);
        let homes = homes(clusters, &members)?;
        for ((at, cluster), buckets) in (0..).zip(clusters).zip(homes) {
            cluster.join(&store_id, at, count, &buckets)?;
        }
        Ok(())
    })
}

/// The buckets that each cluster gets: those that are in none yet.
fn homes(clusters: &[Cluster], members: &[Option<Member>]) -> Result<Vec<Vec<u64>>> {
    let known: BTreeSet<u64> =
        members.iter().flatten().flat_map(|member| member.buckets.iter().map(|bucket| bucket.bucket)).collect();
    let mut filled = Vec::new();
    for (at, (cluster, member)) in clusters.iter().zip(members).enumerate() {
        if member.is_none() && cluster.has_any()? {
            filled.push((at, cluster.shown()));
        }
    }
    if let Some((_, shown)) = filled.get(1).or(filled.first().filter(|_| !known.is_empty())) {
        return Err(Error::InvalidInput(format!(
            "PostgreSQL at {shown} has conversations of its own: a store of one database becomes the first cluster, and the \
             others are added empty"
        )));
    }
    let mut homes = vec![Vec::new(); clusters.len()];
    for bucket in (0..BUCKETS).filter(|bucket| !known.contains(bucket)) {
        let even = bucket * clusters.len() as u64 / BUCKETS;
        // What one database has stays where it is.
        let at = filled.first().map_or(usize::try_from(even).unwrap_or_default(), |(at, _)| *at);
        match (homes.get_mut(at), members.get(at)) {
            (Some(home), Some(None)) => home.push(bucket),
            _ => return Err(nowhere(bucket)),
        }
    }
    Ok(homes)
}

/// That the map is not as it should be.
fn damaged(detail: String) -> Error {
    Error::Corrupt { conversation: None, seq: None, detail: format!("the map of buckets: {detail}") }
}
