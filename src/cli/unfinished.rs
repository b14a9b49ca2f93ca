use conversation_store::Unfinished;

use super::failure::{Exit, Outcome};
use super::location::Location;
use super::output::Output;
use super::text;

const EXAMPLES: &str = "\
Examples:
  convo unfinished
  convo unfinished --owner ada
  convo unfinished --json | jq -r .conversation

After a crash, these are the answers that were cut off and that no later message follows. Lists those of all owners, \
unless --owner names one.";

/// List the messages that were begun and are not finished
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {}

pub(super) fn run(_: &Args, location: &Location, output: &mut Output) -> Outcome {
    let mut found = location.read()?.unfinished()?;
    found.retain(|unfinished| location.owner().is_none_or(|owner| unfinished.owner == owner));
    for unfinished in &found {
        output.result(unfinished, || text(unfinished))?;
    }
    if found.is_empty() && output.is_text() {
        output.text("no unfinished messages")?;
    }
    Ok(Exit::Done)
}

fn text(unfinished: &Unfinished) -> String {
    let name = unfinished.key.clone().unwrap_or_else(|| unfinished.conversation.to_string());
    format!("{}: message {}, {}", text::printable(&name), unfinished.message_index, unfinished.state.as_str())
}
