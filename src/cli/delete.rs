use conversation_store::ListItem;
use conversation_store::model::Name;
use serde::Serialize;

use super::confirm::confirm;
use super::failure::{Exit, Outcome};
use super::location::Location;
use super::output::Output;
use super::text;
use super::values::conversation;

const EXAMPLES: &str = "\
Examples:
  convo delete chat-42
  # without being asked, as scripts need it
  convo delete chat-42 --yes

What its forks share stays until the last of them is deleted; until then its name is not free. The store keeps the \
freed bytes until it reuses them.";

/// Erase a conversation
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The conversation
    #[arg(value_parser = conversation())]
    conversation: String,
    /// Do not ask; required if there is no terminal to ask on
    #[arg(long, short)]
    yes: bool,
}

#[derive(Serialize)]
struct Shown<'a> {
    deleted: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let (store, name) = (location.open()?, location.name(&args.conversation));
    let item = store.describe(&name)?;
    confirm(args.yes, &question(&name, &item), "nothing was deleted")?;
    store.delete(&name)?;
    #[cfg(feature = "search")]
    super::search::follow(location, &store, &item.owner)?;
    let shown = Shown { deleted: item.id.to_string(), key: item.key.as_deref() };
    output.result(&shown, || format!("deleted {}", text::printable(shown.key.unwrap_or(&shown.deleted))))?;
    Ok(Exit::Done)
}

fn question(name: &Name, item: &ListItem) -> String {
    let title = item.title.as_ref().map_or_else(String::new, |title| format!(" \"{}\"", text::cut(title, 60)));
    let name = name.to_string();
    format!("Delete {}{title}, {}?", text::printable(&name), text::count(item.messages, "message"))
}
