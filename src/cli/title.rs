use serde::Serialize;

use super::failure::{Exit, Outcome};
use super::location::Location;
use super::output::Output;
use super::text;
use super::values::conversation;

const EXAMPLES: &str = "\
Examples:
  # prints the title
  convo title chat-42
  convo title chat-42 \"Cache design\"
  # the first user text gives it again
  convo title chat-42 --derive";

/// Set or print a conversation's title
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The conversation
    #[arg(value_parser = conversation())]
    conversation: String,
    /// The title, up to 1 KiB
    #[arg(conflicts_with = "derive")]
    title: Option<String>,
    /// Derive the title from the first user text again
    #[arg(long)]
    derive: bool,
}

#[derive(Serialize)]
struct Shown<'a> {
    conversation: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let name = location.name(&args.conversation);
    let store = if args.title.is_some() || args.derive {
        let store = location.open()?;
        store.set_title(&name, args.title.as_deref())?;
        store
    } else {
        location.read()?
    };
    let title = store.describe(&name)?.title;
    let shown = Shown { conversation: name.id().to_string(), key: name.key(), title };
    output.result(&shown, || {
        shown.title.as_deref().map_or_else(|| "no title".to_owned(), |title| text::printable(title).into_owned())
    })?;
    Ok(Exit::Done)
}
