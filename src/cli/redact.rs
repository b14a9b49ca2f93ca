use serde::Serialize;

use super::confirm::confirm;
use super::failure::{Exit, Outcome};
use super::location::Location;
use super::output::{Output, warn};
use super::text;
use super::values::{conversation, number};

const EXAMPLES: &str = "\
Examples:
  convo redact chat-42 1
  # one chunk of that message
  convo redact chat-42 1 --chunk 0
  # without being asked, as scripts need it
  convo redact chat-42 1 --yes

Texts, arguments, results, images and unknown fields are erased; role, index, call ids and tool names stay. Forks that \
share the message lose its content too.

Earlier backups still hold the content, and so may bytes that the store freed and has not reused. To get rid of those, \
run `convo backup`, then `convo restore` into a new store.";

/// Erase the content of a message for good; its place stays
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
    /// Do not ask; required if there is no terminal to ask on
    #[arg(long, short)]
    yes: bool,
}

#[derive(Serialize)]
struct Shown<'a> {
    conversation: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    message_index: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    chunk_index: Option<u32>,
    seq: u64,
    /// Summaries that may quote the message.
    summaries: Vec<u64>,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let (store, name) = (location.open()?, location.name(&args.conversation));
    let chunk = args.chunk.map_or_else(String::new, |chunk| format!("chunk {chunk} of "));
    let what = format!("{chunk}message {} of {}", args.message, text::printable(&name.to_string()));
    confirm(args.yes, &format!("Erase {what} for good?"), "nothing was erased")?;
    let redaction = store.redact(&name, args.message, args.chunk)?;
    #[cfg(feature = "search")]
    super::search::follow(location, &store, &store.describe(&name)?.owner)?;
    let shown = Shown {
        conversation: name.id().to_string(),
        key: name.key(),
        message_index: args.message,
        chunk_index: args.chunk,
        seq: redaction.seq,
        summaries: redaction.summaries,
    };
    output.result(&shown, || format!("erased {what}; what may still hold it: convo help redact"))?;
    for seq in &shown.summaries {
        warn(&format!("the summary at seq {seq} may quote it, and was left as it is"));
    }
    Ok(Exit::Done)
}
