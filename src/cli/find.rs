use conversation_store::Item;
use conversation_store::model::Name;
use serde::Serialize;

use super::failure::{Exit, Failure, Outcome};
use super::output::Output;
use super::{Location, text};

const EXAMPLES: &str = "\
Examples:
  convo find msg_01XFDUDYJgAACzvnptvVoYEL
  convo find rs_68af4030baa48193b0b43b4c2a176a1a --in chat-42

The ids are the providers': of messages, and of items and blocks that are chunks here. Not those of tool calls.";

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

#[derive(Serialize)]
struct Shown<'a> {
    conversation: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    message_index: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    chunk_index: Option<u32>,
    seq: u64,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let store = location.read()?;
    let items = match &args.r#in {
        Some(name) => store.find_item(Name::from(name), &args.item_id)?.into_iter().collect(),
        None => store.find_item_everywhere(&args.item_id)?,
    };
    for item in &items {
        let Item { conversation, key, message_index, chunk_index, seq } = item;
        let (conversation, key) = (conversation.to_string(), key.as_deref());
        let shown = Shown { conversation, key, message_index: *message_index, chunk_index: *chunk_index, seq: *seq };
        output.result(&shown, || {
            let chunk = chunk_index.map_or_else(String::new, |chunk| format!(", chunk {chunk}"));
            let name = text::printable(key.unwrap_or(&shown.conversation));
            format!("{name}: message {message_index}{chunk}, seq {seq}")
        })?;
    }
    if items.is_empty() {
        return Err(Failure::failed(format!("no message has the item id {}", args.item_id)));
    }
    Ok(Exit::Done)
}
