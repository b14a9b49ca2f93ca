use serde::Serialize;

use super::failure::{Exit, Outcome};
use super::location::Location;
use super::output::Output;
use super::text;
use super::values::conversation;

const EXAMPLES: &str = "\
Examples:
  convo tag chat-42 work later
  convo tag chat-42 --remove later
  # prints the tags
  convo tag chat-42
  convo list --tag work";

/// Add, remove or print a conversation's tags
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The conversation
    #[arg(value_parser = conversation())]
    conversation: String,
    /// The tags to add
    tags: Vec<String>,
    /// A tag to remove; may be given several times
    #[arg(long, value_name = "TAG")]
    remove: Vec<String>,
}

#[derive(Serialize)]
struct Shown<'a> {
    conversation: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    tags: Vec<String>,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let name = location.name(&args.conversation);
    let (add, remove): (Vec<&str>, Vec<&str>) =
        (args.tags.iter().map(String::as_str).collect(), args.remove.iter().map(String::as_str).collect());
    let tags = if args.tags.is_empty() && args.remove.is_empty() {
        location.read()?.describe(&name)?.tags
    } else {
        let store = location.open()?;
        store.untag(&name, &remove)?;
        store.tag(&name, &add)?
    };
    let shown = Shown { conversation: name.id().to_string(), key: name.key(), tags };
    let lines =
        if shown.tags.is_empty() { "no tags".to_owned() } else { text::printable(&shown.tags.join("\n")).into_owned() };
    output.result(&shown, || lines)?;
    Ok(Exit::Done)
}
