use std::path::PathBuf;

use super::failure::{Exit, Outcome};
use super::lines::Input;
use super::location::Location;
use super::output::Output;
use super::receipt;
use super::values::{conversation, number};

const EXAMPLES: &str = "\
Examples:
  convo summarize chat-42 --through 1 --summary summary.txt
  summarizer chat-42 | convo summarize chat-42 --through 1 --summary -

Prompts use the summary in place of the messages up to message 1, except system messages. The messages stay: `convo \
show` and `convo entries` print them. The newest summary counts; rewinding into what it covers undoes it.";

/// Let prompts use a summary in place of the first messages
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The conversation
    #[arg(value_parser = conversation())]
    conversation: String,
    /// The last message that the summary covers: its number, as `convo show` prints it
    #[arg(long, value_name = "MESSAGE", value_parser = number::<u64>)]
    through: u64,
    /// The file with the summary; - for stdin
    #[arg(long, value_name = "FILE")]
    summary: PathBuf,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let name = location.name(&args.conversation);
    let summary = Input::open(&args.summary)?.read_text()?;
    let receipt = location.open()?.summarize(&name, args.through, summary.trim_end())?;
    receipt::print(&name, &receipt, output)?;
    Ok(Exit::Done)
}
