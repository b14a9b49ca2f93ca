use super::failure::{Exit, Outcome};
use super::output::Output;
use super::{Location, receipt};

const EXAMPLES: &str = "\
Examples:
  convo rewind chat-42 7    messages 7 and later are gone from the conversation: edit, regenerate

The entries stay in the log: `convo entries` shows them. To keep both branches, `convo fork` first.";

/// Hide every message from an index on
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The conversation
    conversation: String,
    /// The index of the first message to hide, as `convo show` gives it
    index: u64,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let name = location.name(&args.conversation);
    let receipt = location.open()?.rewind(&name, args.index)?;
    receipt::print(&name, &receipt, output)?;
    Ok(Exit::Done)
}
