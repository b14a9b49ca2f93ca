use std::path::PathBuf;

use conversation_store::{Error, Store};

use super::failure::{Exit, Failure, Outcome};
use super::location::Location;
use super::output::Output;
use super::progress::Progress;
use super::text;

const EXAMPLES: &str = "\
Examples:
  convo restore chats.backup --store sled:restored.db

Use it to get a store back, to make a store smaller, to get rid of what was deleted or redacted, or to change the \
engine. A damaged file is reported before anything is created. An interrupted restore leaves no store: remove its \
directory, then restore again.";

/// Create a store from a backup
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The backup
    file: PathBuf,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let progress = Progress::bytes(Some(0));
    let url = location.url()?;
    let restored = Store::restore(&args.file, &url, |done, all| progress.set_of(done, all));
    let summary = restored.map_err(|error| match error {
        Error::InvalidInput(_) => {
            Failure::from(error).with_hint(format!("the store is {url}: --store names another one"))
        }
        error => Failure::from(error),
    })?;
    drop(progress);
    output.result(&summary, || {
        format!("{} from {}", text::count(summary.conversations, "conversation"), text::count(summary.bytes, "byte"))
    })?;
    Ok(Exit::Done)
}
