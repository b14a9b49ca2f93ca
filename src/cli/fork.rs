use conversation_store::model::{ConversationId, Name};
use conversation_store::{Error, Store};
use serde::Serialize;

use super::failure::{Exit, Failure, Outcome};
use super::location::Location;
use super::output::Output;
use super::values::{conversation, number};

const EXAMPLES: &str = "\
Examples:
  # a new conversation that goes on from here
  convo fork chat-42
  # one that shares the messages up to message 1, to try another answer
  convo fork chat-42 --through 1 --as try-2
  # one that shares the log up to seq 2
  convo fork chat-42 --at 2

The fork shares its beginning with this conversation: it costs the same whatever its length. --through leaves out what \
is hidden here; --at takes the conversation as it was at that SEQ.";

/// Create a conversation that continues from a point of this one
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The conversation to fork
    #[arg(value_parser = conversation())]
    conversation: String,
    /// The last message that the fork shares: its number, as `convo show` prints it. Shares all without --through and
    /// --at
    #[arg(long, value_name = "MESSAGE", conflicts_with = "at", value_parser = number::<u64>)]
    through: Option<u64>,
    /// The last seq that the fork shares; 0 for none
    #[arg(long, value_name = "SEQ", value_parser = number::<u64>)]
    at: Option<u64>,
    /// The fork's name: your key, or a UUID; by default a new UUID
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
    let (store, parent) = (location.open()?, location.name(&args.conversation));
    let child = args.name.as_ref().map_or_else(|| Name::from(ConversationId::new()), |name| location.name(name));
    match args.through {
        Some(message) => fork_through(&store, &parent, message, &child)?,
        None => store.fork_to(&parent, args.at, &child)?,
    }
    let shown = Shown { conversation: child.id().to_string(), key: child.key() };
    output.result(&shown, || shown.conversation.clone())?;
    Ok(Exit::Done)
}

/// A fork in which the messages after this one are hidden. What is hidden in the parent stays hidden.
fn fork_through(store: &Store, parent: &Name, message: u64, child: &Name) -> Result<(), Failure> {
    // The message itself, and the next one that is not hidden.
    let found = store.messages(parent, message, 2)?;
    if found.first().is_none_or(|found| found.index != message) {
        let what = format!("message {message} in conversation {parent}");
        return Err(Error::NotFound { what }.into());
    }
    store.fork_to(parent, None, child)?;
    if let Some(next) = found.get(1) {
        store.rewind(child, next.index)?;
    }
    Ok(())
}
