use std::path::PathBuf;

use super::failure::{Exit, Outcome};
use super::location::Location;
use super::output::Output;
use super::progress::Progress;
use super::text;

const EXAMPLES: &str = "\
Examples:
  convo backup chats.backup
  # a backup is read as it is
  convo list --store backup:chats.backup
  convo restore chats.backup --store sled:restored.db

The backup is one file, compressed and checksummed. It appears complete or not at all. A store that another process \
has open cannot be backed up from outside: that process does it itself, with Store::backup or with the server's backup \
call.";

/// Write the whole store to a new file
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The file; it must not exist yet
    file: PathBuf,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let store = location.read()?;
    let progress = Progress::conversations();
    let summary = store.backup(&args.file, |done, all| progress.set_of(done, all))?;
    drop(progress);
    output.result(&summary, || {
        format!("{} in {}", text::count(summary.conversations, "conversation"), text::count(summary.bytes, "byte"))
    })?;
    Ok(Exit::Done)
}
