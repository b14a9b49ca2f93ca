//! A store in PostgreSQL: its tables, and its buckets over several databases.

use std::time::Duration;

use conversation_store::{Migration, Shards, Store};
use serde::Serialize;

use super::failure::{Exit, Outcome};
use super::location::Location;
use super::output::Output;
use super::text;
use super::values::seconds;

/// Create or update the tables of a store in PostgreSQL
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  convo migrate --store postgres://convo_owner@localhost/chats
  convo migrate --store shards:clusters

Makes the tables and functions of a store in PostgreSQL, or brings those of an older program up to date: all of it, or \
nothing. Programs that have the store open go on. Name a role that may create tables; the programs that use the store \
need one that may not. Of shards:FILE, it does so in each cluster, then makes the map of buckets, and adds new clusters.")]
pub(super) struct Migrate {}

pub(super) fn migrate(_: &Migrate, location: &Location, output: &mut Output) -> Outcome {
    let migration = Store::migrate(&location.url()?)?;
    output.result(&migration, || migrated(migration))?;
    Ok(Exit::Done)
}

fn migrated(Migration { from, to, .. }: Migration) -> String {
    match from {
        0 => format!("made version {to}"),
        from if from == to => format!("version {to}, as before"),
        from => format!("version {from} is version {to} now"),
    }
}

/// Show and move the buckets of a store over several databases
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  convo shards status --store shards:clusters
  convo shards move 7 --to 1 --store shards:clusters

A store over several databases has 1,024 buckets, and each is in one cluster. `move` copies a bucket while it is written, \
then stops writing in it for what has changed meanwhile, and switches. Programs that have the store open go on in the other \
cluster. A move that was cut off goes on when it is run again.")]
pub(super) struct Buckets {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Print which buckets each cluster has, and which are being moved
    Status,
    /// Move a bucket to another cluster
    Move {
        /// The bucket, from 0 to 1023
        bucket: u64,
        /// The number of the cluster, from 0
        #[arg(long, value_name = "CLUSTER")]
        to: u64,
        /// How long messages that are being written in the bucket are waited for
        #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
        for_writers: Duration,
    },
}

#[derive(Serialize)]
struct Moved {
    bucket: u64,
    to: u64,
}

pub(super) fn buckets(args: &Buckets, location: &Location, output: &mut Output) -> Outcome {
    let url = location.url()?;
    match args.action {
        Action::Status => {
            let shards = Store::shards(&url)?;
            output.result(&shards, || status(&shards))?;
        }
        Action::Move { bucket, to, for_writers } => {
            Store::move_bucket(&url, bucket, to, for_writers)?;
            output.result(&Moved { bucket, to }, || format!("bucket {bucket} is in cluster {to}"))?;
        }
    }
    Ok(Exit::Done)
}

fn status(shards: &Shards) -> String {
    let titles = ["cluster", "where", "buckets"].map(str::to_owned);
    let rows = shards.clusters.iter().map(|cluster| {
        let ranges = cluster.buckets.iter().map(|[first, last]| match last - first {
            0 => first.to_string(),
            _ => format!("{first}-{last}"),
        });
        [cluster.cluster.to_string(), cluster.at.clone(), ranges.collect::<Vec<_>>().join(", ")]
    });
    let rows: Vec<_> = std::iter::once(titles).chain(rows).collect();
    let mut out = text::titled_table(&rows).trim_end().to_owned();
    for moving in &shards.moving {
        out.push_str(&format!(
            "\nbucket {} is on its way from cluster {} to {}",
            moving.bucket, moving.from, moving.to
        ));
    }
    out
}
