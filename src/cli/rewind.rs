use super::failure::{Exit, Outcome};
use super::location::Location;
use super::output::Output;
use super::receipt;
use super::values::{conversation, number};

const EXAMPLES: &str = "\
Examples:
  # message 1 and all after it are hidden: to edit, or to ask again
  convo rewind chat-42 1

The entries stay in the log: `convo entries` shows them. To keep both branches, `convo fork` first.";

/// Hide a message and all messages after it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The conversation
    #[arg(value_parser = conversation())]
    conversation: String,
    /// The first message to hide: its number, as `convo show` prints it
    #[arg(value_parser = number::<u64>)]
    message: u64,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let name = location.name(&args.conversation);
    let receipt = location.open()?.rewind(&name, args.message)?;
    receipt::print(&name, &receipt, output)?;
    Ok(Exit::Done)
}
