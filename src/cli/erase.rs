//! What is erased for good, and the question before it.

use std::io::{self, BufRead, IsTerminal, Write};

use conversation_store::model::{Name, Timestamp};
use conversation_store::{Error, ListItem, Pruned, Retention, Store};
use serde::Serialize;

use super::failure::{Exit, Failure, Outcome};
use super::location::Location;
use super::output::{self, Output, warn};
use super::text;
use super::values::{conversation, number};

/// Opens the store for erasing: what the proxy keeps of a conversation goes with it.
fn open(location: &Location) -> Result<Store, Failure> {
    let store = location.open()?;
    #[cfg(feature = "server")]
    let store = conversation_store::server::erasing(store);
    Ok(store)
}

/// Erase a conversation
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  convo delete chat-42
  # without being asked, as scripts need it
  convo delete chat-42 --yes

What its forks share stays until the last of them is deleted; until then its name is not free. The store keeps the \
freed bytes until it reuses them; `convo vacuum` writes it again without them.")]
pub(super) struct Delete {
    /// The conversation
    #[arg(value_parser = conversation())]
    conversation: String,
    /// Do not ask; required if there is no terminal to ask on
    #[arg(long, short)]
    yes: bool,
}

#[derive(Serialize)]
struct Deleted<'a> {
    deleted: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
}

pub(super) fn delete(args: &Delete, location: &Location, output: &mut Output) -> Outcome {
    let (store, name) = (open(location)?, location.name(&args.conversation));
    let item = match store.describe(&name) {
        Ok(item) => Some(item),
        // Damage set it aside: this is what removes it.
        Err(Error::Corrupt { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    confirm(args.yes, &deletes(&name, item.as_ref()), "nothing was deleted")?;
    store.delete(&name)?;
    #[cfg(feature = "search")]
    {
        let owner = item.as_ref().map_or_else(|| name.owner().unwrap_or_default(), |item| &item.owner);
        super::search::follow(location, &store, owner)?;
    }
    let key = item.as_ref().map_or_else(|| name.key(), |item| item.key.as_deref());
    let shown = Deleted { deleted: name.id().to_string(), key };
    output.result(&shown, || format!("deleted {}", text::printable(shown.key.unwrap_or(&shown.deleted))))?;
    Ok(Exit::Done)
}

fn deletes(name: &Name, item: Option<&ListItem>) -> String {
    let Some(item) = item else {
        return format!("Delete {}, which cannot be read?", text::printable(&name.to_string()));
    };
    let title = item.title.as_ref().map_or_else(String::new, |title| format!(" \"{}\"", text::cut(title, 60)));
    let name = name.to_string();
    format!("Delete {}{title}, {}?", text::printable(&name), text::count(item.messages, "message"))
}

/// Erase the content of a message for good; its place stays
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  convo redact chat-42 1
  # one chunk of that message
  convo redact chat-42 1 --chunk 0
  # without being asked, as scripts need it
  convo redact chat-42 1 --yes

Texts, arguments, results, images and unknown fields are erased. Role, index, ids and tool names stay. With --chunk, the \
message's own unknown fields are erased, too: they may quote the chunk. Forks that share the message lose its content, too.

Summaries, titles, tags and metadata that may quote the message stay, and are named, with their seqs. To erase them, too, make \
a `convo fork --at` the seq before the first of them, then `convo delete` the conversation.

Earlier backups still hold the content, and so may bytes that the store freed and has not reused: `convo vacuum` writes the \
store again without them.")]
pub(super) struct Redact {
    /// The conversation
    #[arg(value_parser = conversation())]
    conversation: String,
    /// The message: its number, as `convo show` prints it
    #[arg(value_parser = number::<u64>)]
    message: u64,
    /// Only this chunk of the message: its number, as `convo show` prints it
    #[arg(long, value_name = "CHUNK", value_parser = number::<u32>)]
    chunk: Option<u32>,
    /// Do not ask; required if there is no terminal to ask on
    #[arg(long, short)]
    yes: bool,
}

#[derive(Serialize)]
struct Redacted<'a> {
    conversation: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    message_index: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    chunk_index: Option<u32>,
    seq: u64,
    /// Summaries that may quote the message.
    summaries: Vec<u64>,
    /// Titles, tags and metadata that may.
    meta: Vec<u64>,
    /// Answers whose requests may.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    answers: Vec<u64>,
}

pub(super) fn redact(args: &Redact, location: &Location, output: &mut Output) -> Outcome {
    let (store, name) = (open(location)?, location.name(&args.conversation));
    let chunk = args.chunk.map_or_else(String::new, |chunk| format!("chunk {chunk} of "));
    let what = format!("{chunk}message {} of {}", args.message, text::printable(&name.to_string()));
    confirm(args.yes, &format!("Erase {what} for good?"), "nothing was erased")?;
    let redaction = store.redact(&name, args.message, args.chunk)?;
    #[cfg(feature = "search")]
    super::search::follow(location, &store, &store.describe(&name)?.owner)?;
    let shown = Redacted {
        conversation: name.id().to_string(),
        key: name.key(),
        message_index: args.message,
        chunk_index: args.chunk,
        seq: redaction.seq,
        summaries: redaction.summaries,
        meta: redaction.meta,
        answers: redaction.answers,
    };
    output.result(&shown, || format!("erased {what}; what may still hold it: convo help redact"))?;
    for seq in &shown.summaries {
        warn(&format!("the summary at seq {seq} may quote it, and was left as it is"));
    }
    for seq in &shown.meta {
        warn(&format!("the title, tags or metadata at seq {seq} may quote it, and were left as they are"));
    }
    for answer in &shown.answers {
        warn(&format!(
            "what a client sent later in its place is kept with message {answer}, and goes with its redaction"
        ));
    }
    Ok(Exit::Done)
}

/// Erase the conversations that nobody has used for a time
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  convo prune --idle 90d --dry-run
  convo prune --idle 90d --owner ada --keep-last 20
  # without being asked, as a timer needs it
  convo prune --idle 1w --tag scratch --yes --json >> pruned.jsonl

Erases the conversations of --owner, or those without an owner, in which nothing has happened for the time of --idle. \
One that is used meanwhile stays. The output names each of them, and has nothing of what was said: keep it as the record.

What forks share stays until the last of them is deleted.")]
pub(super) struct Prune {
    /// How long nothing has happened: 90d, 2w, 36h, 5min
    #[arg(long, value_name = "TIME", value_parser = micros)]
    idle: i64,
    /// Only conversations with this tag; `--tag A --tag B`: only those with both
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// Keep so many of the newest, however old they are
    #[arg(long, value_name = "N", value_parser = number::<usize>, default_value = "0")]
    keep_last: usize,
    /// Erase nothing; show what would be erased
    #[arg(long)]
    dry_run: bool,
    /// Do not ask; required if there is no terminal to ask on
    #[arg(long, short)]
    yes: bool,
}

#[derive(Serialize)]
struct Erased<'a> {
    conversation: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    last_activity: Timestamp,
    last_seq: u64,
    deleted: bool,
}

#[derive(Serialize)]
struct Sum {
    #[serde(skip_serializing_if = "Option::is_none")]
    would_erase: Option<u64>,
    erased: u64,
    used_meanwhile: u64,
    unreadable: u64,
}

pub(super) fn prune(args: &Prune, location: &Location, output: &mut Output) -> Outcome {
    let mut retention = Retention::new(Timestamp::from_micros(Timestamp::now().as_micros().saturating_sub(args.idle)))
        .with_owner(location.owner().unwrap_or_default())
        .with_keep_last(args.keep_last);
    retention.tags.clone_from(&args.tag);
    let store = if args.dry_run { location.read()? } else { open(location)? };
    // What was erased is reported to the end, also where nobody reads it.
    output.outlive_reader();
    let mut printed = Ok(());
    let mut print = |item: &ListItem, output: &mut Output| {
        if printed.is_ok() {
            printed = output.result(&erased(item, !args.dry_run), || line(item, args.dry_run));
        }
    };
    let mut sum = Sum { would_erase: None, erased: 0, used_meanwhile: 0, unreadable: 0 };
    if args.dry_run {
        let mut count = 0;
        sum.unreadable = store.idle(&retention, |item| {
            count += 1;
            print(item, output);
        })?;
        sum.would_erase = Some(count);
    } else {
        if !args.yes {
            let mut count = 0;
            store.idle(&retention, |_| count += 1)?;
            if count > 0 {
                confirm(false, &question(count, &retention), "nothing was deleted")?;
            }
        }
        let Pruned { erased, used, unreadable, .. } = store.prune(&retention, |item| print(item, output))?;
        (sum.erased, sum.used_meanwhile, sum.unreadable) = (erased, used, unreadable);
        #[cfg(feature = "search")]
        super::search::follow(location, &store, &retention.owner)?;
    }
    printed?;
    output.result(&sum, || text_of(&sum))?;
    if sum.unreadable > 0 {
        output::warn(&format!(
            "{} cannot be read, and stay: `convo verify` shows more",
            text::count(sum.unreadable, "conversation")
        ));
    }
    Ok(Exit::Done)
}

fn erased(item: &ListItem, deleted: bool) -> Erased<'_> {
    let ListItem { id, key, last_activity, last_seq, .. } = item;
    Erased {
        conversation: id.to_string(),
        key: key.as_deref(),
        last_activity: *last_activity,
        last_seq: *last_seq,
        deleted,
    }
}

fn line(item: &ListItem, dry_run: bool) -> String {
    let name = item.key.clone().unwrap_or_else(|| item.id.to_string());
    let done = if dry_run { "would delete" } else { "deleted" };
    let messages = text::count(item.messages, "message");
    format!("{done} {}, {messages}, last used {}", text::printable(&name), text::time(item.last_activity))
}

fn text_of(sum: &Sum) -> String {
    let used = match sum.used_meanwhile {
        0 => String::new(),
        count => format!("; {} in use by now", text::count(count, "conversation")),
    };
    match sum.would_erase {
        Some(count) => format!("{} would be deleted", text::count(count, "conversation")),
        None => format!("{} deleted{used}", text::count(sum.erased, "conversation")),
    }
}

fn question(count: u64, retention: &Retention) -> String {
    format!("Delete {}, last used before {}?", text::count(count, "conversation"), text::time(retention.idle_since))
}

/// A time, in microseconds.
fn micros(text: &str) -> Result<i64, String> {
    let idle = Retention::parse_idle(text).map_err(|error| error.to_string())?;
    i64::try_from(idle.as_micros()).map_err(|error| error.to_string())
}

/// Asks on a terminal, unless the command line has the answer. Without a terminal there is nobody to ask, so the
/// command line must have it. Fails unless the answer is yes.
fn confirm(yes: bool, question: &str, otherwise: &str) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(Failure::usage(format!("there is no terminal to ask on: {otherwise}"))
            .with_cure("--yes confirms it on the command line"));
    }
    let mut stderr = anstream::stderr();
    // A user who cannot see the question answers no.
    let _ = write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush());
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    read.map_err(|error| Failure::failed(format!("cannot read the answer: {error}")))?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::finding("declined", otherwise)),
    }
}
