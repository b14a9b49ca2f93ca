use conversation_store::{Migration, Store};

use super::failure::{Exit, Outcome};
use super::location::Location;
use super::output::Output;

const EXAMPLES: &str = "\
Examples:
  convo migrate --store postgres://convo_owner@localhost/chats
  convo migrate --store shards:clusters

Makes the tables and functions of a store in PostgreSQL, or brings those of an older program up to date: all of it, or \
nothing. Programs that have the store open go on. Name a role that may create tables; the programs that use the store \
need one that may not. Of shards:FILE, it does so in each cluster, then makes the map of buckets, and adds new clusters.";

/// Create or update the tables of a store in PostgreSQL
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {}

pub(super) fn run(_: &Args, location: &Location, output: &mut Output) -> Outcome {
    let migration = Store::migrate(&location.url()?)?;
    output.result(&migration, || text(migration))?;
    Ok(Exit::Done)
}

fn text(Migration { from, to, .. }: Migration) -> String {
    match from {
        0 => format!("made version {to}"),
        from if from == to => format!("version {to}, as before"),
        from => format!("version {from} is version {to} now"),
    }
}
