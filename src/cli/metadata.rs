use conversation_store::model::Json;
use serde::Serialize;

use super::failure::{Exit, Failure, Outcome};
use super::location::Location;
use super::output::Output;
use super::text;
use super::values::conversation;

const EXAMPLES: &str = "\
Examples:
  convo metadata chat-42
  # replaces it as a whole
  convo metadata chat-42 '{\"project\": 7}'
  # empties it
  convo metadata chat-42 '{}'";

/// Replace or print a conversation's metadata
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The conversation
    #[arg(value_parser = conversation())]
    conversation: String,
    /// A JSON object, up to 64 KiB
    #[arg(value_name = "JSON")]
    metadata: Option<String>,
}

#[derive(Serialize)]
struct Shown<'a> {
    conversation: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Json>,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let name = location.name(&args.conversation);
    let metadata = match &args.metadata {
        Some(text) => {
            let json = Json::new(text).map_err(|error| Failure::usage(format!("the metadata is not JSON: {error}")))?;
            location.open()?.set_metadata(&name, &json)?;
            Some(json)
        }
        None => location.read()?.metadata(&name)?,
    };
    let shown = Shown { conversation: name.id().to_string(), key: name.key(), metadata };
    output.result(&shown, || {
        shown
            .metadata
            .as_ref()
            .map_or_else(|| "no metadata".to_owned(), |json| text::printable(json.as_str()).into_owned())
    })?;
    Ok(Exit::Done)
}
