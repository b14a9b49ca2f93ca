use super::failure::{Exit, Failure, Outcome};
use super::location::Location;
use super::output::Output;
use super::text;

const EXAMPLES: &str = "\
Examples:
  convo find-id msg_01XFDUDYJgAACzvnptvVoYEL
  convo find-id rs_68af4030baa48193b0b43b4c2a176a1a --in chat-42

The ids are those that providers give to messages, items and blocks; not those of tool calls. Exit code 1 if no \
message has the id.";

/// Find the message with a provider's item id
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The provider's id of a message or an item
    item_id: String,
    /// Only in this conversation
    #[arg(long, value_name = "CONVERSATION")]
    r#in: Option<String>,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let store = location.read()?;
    let items = match &args.r#in {
        Some(name) => store.find_item(location.name(name), &args.item_id)?.into_iter().collect(),
        None => store.find_item_everywhere(&args.item_id)?,
    };
    for item in &items {
        output.result(item, || {
            let chunk = item.chunk_index.map_or_else(String::new, |chunk| format!(", chunk {chunk}"));
            let name = item.key.clone().unwrap_or_else(|| item.conversation.to_string());
            let name = text::printable(&name);
            format!("{name}: message {}{chunk}, seq {}", item.message_index, item.seq)
        })?;
    }
    if items.is_empty() {
        return Err(Failure::finding("not_found", format!("no message has the item id {}", args.item_id)));
    }
    Ok(Exit::Done)
}
