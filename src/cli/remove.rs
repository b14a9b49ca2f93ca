use super::failure::{Exit, Outcome};
use super::location::Location;
use super::output::Output;
use super::receipt;
use super::values::{conversation, number};

const EXAMPLES: &str = "\
Examples:
  # message 1 is gone from the conversation and from prompts
  convo remove chat-42 1
  # one chunk of message 2
  convo remove chat-42 2 --chunk 0

The log keeps the message: `convo entries` shows it. `convo redact` erases it for good.";

/// Hide one message, or one chunk of it
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The conversation
    #[arg(value_parser = conversation())]
    conversation: String,
    /// The message: its number, as `convo show` prints it
    #[arg(value_parser = number::<u64>)]
    message: u64,
    /// Only this chunk of the message: its number, as `convo show` prints it
    #[arg(long, value_name = "CHUNK", value_parser = number::<u32>)]
    chunk: Option<u32>,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let name = location.name(&args.conversation);
    let receipt = location.open()?.remove(&name, args.message, args.chunk)?;
    receipt::print(&name, &receipt, output)?;
    Ok(Exit::Done)
}
