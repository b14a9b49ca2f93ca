use conversation_store::model::Timestamp;
use conversation_store::{ListItem, Pruned, Retention};
use serde::Serialize;

use super::confirm::confirm;
use super::failure::{Exit, Outcome};
use super::location::Location;
use super::output::{self, Output};
use super::text;
use super::values::number;

const EXAMPLES: &str = "\
Examples:
  convo prune --idle 90d --dry-run
  convo prune --idle 90d --owner ada --keep-last 20
  # without being asked, as a timer needs it
  convo prune --idle 1w --tag scratch --yes --json >> pruned.jsonl

Erases the conversations of --owner, or those without an owner, in which nothing has happened for the time of --idle. \
One that is used meanwhile stays. The output names each of them, and has nothing of what was said: keep it as the record.

What forks share stays until the last of them is deleted.";

/// Erase the conversations that nobody has used for a time
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// How long nothing has happened: 90d, 2w, 36h, 5min
    #[arg(long, value_name = "TIME", value_parser = micros)]
    idle: i64,
    /// Only conversations with this tag; given twice, with both
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
struct Shown<'a> {
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

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let mut retention = Retention::new(Timestamp::from_micros(Timestamp::now().as_micros().saturating_sub(args.idle)))
        .with_owner(location.owner().unwrap_or_default())
        .with_keep_last(args.keep_last);
    retention.tags.clone_from(&args.tag);
    let store = if args.dry_run { location.read()? } else { location.open()? };
    // What was erased is reported to the end, also where nobody reads it.
    output.outlive_reader();
    let mut printed = Ok(());
    let mut print = |item: &ListItem, output: &mut Output| {
        if printed.is_ok() {
            printed = output.result(&shown(item, !args.dry_run), || line(item, args.dry_run));
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

fn shown(item: &ListItem, deleted: bool) -> Shown<'_> {
    let ListItem { id, key, last_activity, last_seq, .. } = item;
    Shown {
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
