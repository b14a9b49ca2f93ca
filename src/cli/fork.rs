use conversation_store::model::{ConversationId, Name};
use serde::Serialize;

use super::Location;
use super::failure::{Exit, Outcome};
use super::output::Output;

const EXAMPLES: &str = "\
Examples:
  convo fork chat-42                     a new conversation that goes on from here
  convo fork chat-42 --at 14 --as try-2  one that goes on behind seq 14

The fork shares the entries up to that seq: it costs the same whatever their number.";

/// Make a new conversation that goes on from a point of this one
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The conversation to fork
    conversation: String,
    /// The last seq that the fork shares; all if it is not given
    #[arg(long, value_name = "SEQ")]
    at: Option<u64>,
    /// The fork's name: your key, or a UUID; a new UUID if it is not given
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,
}

#[derive(Serialize)]
struct Shown<'a> {
    conversation: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let child = args.name.as_ref().map_or_else(|| Name::from(ConversationId::new()), |name| location.name(name));
    location.open()?.fork_to(location.name(&args.conversation), args.at, &child)?;
    let shown = Shown { conversation: child.id().to_string(), key: child.key() };
    output.result(&shown, || shown.conversation.clone())?;
    Ok(Exit::Done)
}
