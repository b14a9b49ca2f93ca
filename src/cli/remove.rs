use super::failure::{Exit, Outcome};
use super::output::Output;
use super::{Location, receipt};

const EXAMPLES: &str = "\
Examples:
  convo remove chat-42 3             message 3 is gone from the conversation and from prompts
  convo remove chat-42 3 --chunk 1   of that message, one chunk

The log keeps it: `convo entries` shows it. `convo redact` erases it for good.";

/// Hide one message, or one chunk of it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The conversation
    conversation: String,
    /// The message's index, as `convo show` gives it
    index: u64,
    /// Only this chunk of the message
    #[arg(long, value_name = "N")]
    chunk: Option<u32>,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let name = location.name(&args.conversation);
    let receipt = location.open()?.remove(&name, args.index, args.chunk)?;
    receipt::print(&name, &receipt, output)?;
    Ok(Exit::Done)
}
