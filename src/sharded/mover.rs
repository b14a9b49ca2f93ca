//! Moving a bucket: it is copied while it is written, then frozen for what has changed meanwhile, then switched, then erased
//! where it was. A move that was cut off goes on when it is asked for again.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::{connect, list_file, map};
use crate::error::{Error, Result};
use crate::log::{Clock, MovingBucket, Opening, ShardCluster, Shards};
use crate::model::{ConversationId, Timestamp};
use crate::postgres::{BUCKETS, Bucket, BucketState, Member, Postgres, Transfer};

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
            (BucketState::Arriving, Some(from)) => overtaken.extend(of(cluster).map(|log| (log, from))),
            _ => {}
        }
    }
    // Two programs began to move it at once, and one of them did.
    if let Some(now) = here {
        overtaken.iter().try_for_each(|(log, from)| log.give_up(bucket, *from, now))?;
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
fn open(url: &str) -> Result<(Vec<Postgres>, Vec<Member>)> {
    let clock: Clock = Arc::new(Timestamp::now);
    let opening = Opening { read_only: true, ..Opening::default() };
    let clusters = connect(&list_file::read(url)?, &clock, Duration::ZERO, opening, false)?;
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
