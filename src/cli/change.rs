//! What one conversation is called, what it shows, and where it goes on: title, tags, metadata, forks, summaries, what is
//! hidden. Nothing here erases.

use std::path::PathBuf;

use conversation_store::model::{ConversationId, Json, Name, StartedBy};
use conversation_store::{Error, Store};
use serde::Serialize;

use super::failure::{Exit, Failure, Outcome};
use super::lines::Input;
use super::location::Location;
use super::output::{self, Output};
use super::text;
use super::values::{conversation, number};

/// A conversation by its names, and what was changed or asked for.
#[derive(Serialize)]
struct Shown<'a> {
    conversation: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Json>,
}

impl<'a> Shown<'a> {
    fn new(name: &'a Name) -> Self {
        Self { conversation: name.id().to_string(), key: name.key(), title: None, tags: None, metadata: None }
    }
}

/// Set or print a conversation's title
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  # prints the title
  convo title chat-42
  convo title chat-42 \"Cache design\"
  # the first user text gives it again
  convo title chat-42 --derive")]
pub(super) struct Title {
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

pub(super) fn title(args: &Title, location: &Location, output: &mut Output) -> Outcome {
    let name = location.name(&args.conversation);
    let store = if args.title.is_some() || args.derive {
        let store = location.open()?;
        store.set_title(&name, args.title.as_deref())?;
        store
    } else {
        location.read()?
    };
    let title = store.describe(&name)?.title;
    let line = title.as_deref().map_or("no title".into(), text::printable).into_owned();
    output.result(&Shown { title: title.clone(), ..Shown::new(&name) }, || line)?;
    Ok(Exit::Done)
}

/// Add, remove or print a conversation's tags
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  convo tag chat-42 work later
  convo tag chat-42 --remove later
  # prints the tags
  convo tag chat-42
  # a sub-agent's conversation: what started it
  convo tag notes --started-by chat-42 --message 1 --call call_1
  convo list --started-by chat-42
  convo list --tag work")]
pub(super) struct Tag {
    /// The conversation
    #[arg(value_parser = conversation())]
    conversation: String,
    /// The tags to add
    tags: Vec<String>,
    /// A tag to remove; `--remove A --remove B`: both
    #[arg(long, value_name = "TAG")]
    remove: Vec<String>,
    #[command(flatten)]
    starter: Starter,
}

/// What started a conversation.
#[derive(Debug, clap::Args)]
pub(super) struct Starter {
    /// The conversation that started it, as an agent starts a sub-agent
    #[arg(long, value_name = "CONVERSATION", value_parser = conversation())]
    started_by: Option<String>,
    /// The message of that conversation
    #[arg(long, value_name = "MESSAGE", requires = "started_by")]
    message: Option<u64>,
    /// The id of the tool call in that message
    #[arg(long, value_name = "ID", requires = "message")]
    call: Option<String>,
}

impl Starter {
    pub(super) fn link(&self, location: &Location) -> Option<StartedBy> {
        let conversation = location.name(self.started_by.as_deref()?).id();
        Some(StartedBy { conversation, message: self.message, call: self.call.clone() })
    }
}

pub(super) fn tag(args: &Tag, location: &Location, output: &mut Output) -> Outcome {
    let name = location.name(&args.conversation);
    let links = args.starter.link(location).map_or_else(Vec::new, |link| link.tags());
    let (add, remove): (Vec<&str>, Vec<&str>) = (
        args.tags.iter().chain(&links).map(String::as_str).collect(),
        args.remove.iter().map(String::as_str).collect(),
    );
    let tags = if add.is_empty() && remove.is_empty() {
        location.read()?.describe(&name)?.tags
    } else {
        let store = location.open()?;
        store.untag(&name, &remove)?;
        store.tag(&name, &add)?
    };
    let lines = if tags.is_empty() { "no tags".to_owned() } else { text::printable(&tags.join("\n")).into_owned() };
    output.result(&Shown { tags: Some(tags), ..Shown::new(&name) }, || lines)?;
    Ok(Exit::Done)
}

/// Replace or print a conversation's metadata
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  convo metadata chat-42
  # replaces it as a whole
  convo metadata chat-42 '{\"project\": 7}'
  # empties it
  convo metadata chat-42 '{}'")]
pub(super) struct Metadata {
    /// The conversation
    #[arg(value_parser = conversation())]
    conversation: String,
    /// A JSON object, up to 64 KiB
    #[arg(value_name = "JSON")]
    metadata: Option<String>,
}

pub(super) fn metadata(args: &Metadata, location: &Location, output: &mut Output) -> Outcome {
    let name = location.name(&args.conversation);
    let metadata = match &args.metadata {
        Some(text) => {
            let json = Json::new(text).map_err(|error| Failure::usage(format!("the metadata is not JSON: {error}")))?;
            location.open()?.set_metadata(&name, &json)?;
            Some(json)
        }
        None => location.read()?.metadata(&name)?,
    };
    let line = metadata.as_ref().map_or("no metadata".into(), |json| text::printable(json.as_str())).into_owned();
    output.result(&Shown { metadata: metadata.clone(), ..Shown::new(&name) }, || line)?;
    Ok(Exit::Done)
}

/// Create a conversation that continues from a point of this one
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  # a new conversation that goes on from here
  convo fork chat-42
  # one that shares the messages up to message 1, to try another answer
  convo fork chat-42 --through 1 --as try-2
  # one that shares the log up to seq 2
  convo fork chat-42 --at 2

The fork shares its beginning with this conversation: it costs the same whatever its length. --through leaves out what \
is hidden here; --at takes the conversation as it was at that SEQ.")]
pub(super) struct Fork {
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

pub(super) fn fork(args: &Fork, location: &Location, output: &mut Output) -> Outcome {
    let (store, parent) = (location.open()?, location.name(&args.conversation));
    let child = args.name.as_ref().map_or_else(|| Name::from(ConversationId::new()), |name| location.name(name));
    match args.through {
        Some(message) => fork_through(&store, &parent, message, &child)?,
        None => store.fork_to(&parent, args.at, &child)?,
    }
    output.result(&Shown::new(&child), || child.id().to_string())?;
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

/// Hide a message and all messages after it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  # message 1 and all after it are hidden: to edit, or to ask again
  convo rewind chat-42 1

The entries stay in the log: `convo log` shows them. To keep both branches, `convo fork` first.")]
pub(super) struct Rewind {
    /// The conversation
    #[arg(value_parser = conversation())]
    conversation: String,
    /// The first message to hide: its number, as `convo show` prints it
    #[arg(value_parser = number::<u64>)]
    message: u64,
}

pub(super) fn rewind(args: &Rewind, location: &Location, output: &mut Output) -> Outcome {
    let name = location.name(&args.conversation);
    let receipt = location.open()?.rewind(&name, args.message)?;
    output::receipt(&name, &receipt, output)?;
    Ok(Exit::Done)
}

/// Hide one message, or one chunk of it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  # message 1 is gone from the conversation and from prompts
  convo hide chat-42 1
  # one chunk of message 2
  convo hide chat-42 2 --chunk 0

The log keeps the message: `convo log` shows it. `convo redact` erases it for good.")]
pub(super) struct Hide {
    /// The conversation
    #[arg(value_parser = conversation())]
    conversation: String,
    /// The message: its number, as `convo show` prints it
    #[arg(value_parser = number::<u64>)]
    message: u64,
    /// Only this chunk of the message: its number, as `convo show` prints it
    #[arg(long, value_name = "CHUNK", value_parser = number::<u32>)]
    chunk: Option<u32>,
}

pub(super) fn remove(args: &Hide, location: &Location, output: &mut Output) -> Outcome {
    let name = location.name(&args.conversation);
    let receipt = location.open()?.remove(&name, args.message, args.chunk)?;
    output::receipt(&name, &receipt, output)?;
    Ok(Exit::Done)
}

/// Let prompts use a summary in place of the first messages
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  convo summarize chat-42 --through 1 --summary summary.txt
  summarizer chat-42 | convo summarize chat-42 --through 1 --summary -

Prompts use the summary in place of the messages up to message 1, except system messages. The messages stay: `convo \
show` and `convo log` print them. The newest summary counts; rewinding into what it covers undoes it.")]
pub(super) struct Summarize {
    /// The conversation
    #[arg(value_parser = conversation())]
    conversation: String,
    /// The last message that the summary covers: its number, as `convo show` prints it
    #[arg(long, value_name = "MESSAGE", value_parser = number::<u64>)]
    through: u64,
    /// The file with the summary; - for stdin
    #[arg(long, value_name = "FILE")]
    summary: PathBuf,
}

pub(super) fn summarize(args: &Summarize, location: &Location, output: &mut Output) -> Outcome {
    let name = location.name(&args.conversation);
    let summary = Input::open(&args.summary)?.read_text()?;
    let receipt = location.open()?.summarize(&name, args.through, summary.trim_end())?;
    output::receipt(&name, &receipt, output)?;
    Ok(Exit::Done)
}
