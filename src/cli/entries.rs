use std::time::Duration;

use conversation_store::{Cursor, Entry, EntryKind};
use serde::Serialize;

use super::failure::{Exit, Failure, Outcome};
use super::location::Location;
use super::output::{self, Output};
use super::values::{conversation, number};
use super::{show, text};

const EXAMPLES: &str = "\
Examples:
  convo log chat-42
  # what came after seq 2, for sync
  convo log chat-42 --since 2 --json
  # what others write, as they write it
  convo log chat-42 --follow

The log itself, in order of SEQ, including what was rewound or removed. As JSON, one entry per line with the cursor \
after it (for --since, and for append --expect), without a limit unless --limit is given. Others can write while this program reads where programs share a store: through `convo serve` \
(--store http://...), or in PostgreSQL.";

/// Entries that a terminal gets if no limit is given.
const PAGE: usize = 200;
/// Between two looks whether --follow is to go on.
const PATIENCE: Duration = Duration::from_secs(60);

/// Print the entries of a conversation's log
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The conversation
    #[arg(value_parser = conversation())]
    conversation: String,
    /// Only entries after this seq, or after a cursor as this command prints it
    #[arg(long, value_name = "SEQ", default_value = "0")]
    since: Cursor,
    /// The most entries to print; on a terminal 200 by default
    #[arg(long, value_parser = number::<usize>)]
    limit: Option<usize>,
    /// Go on with new entries as they become durable, until the command is ended
    #[arg(long)]
    follow: bool,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let (store, name) = (location.read()?, location.name(&args.conversation));
    let last_seq = store.describe(&name)?.last_seq;
    if args.since.seq() > last_seq {
        return Err(Failure::new(
            "cursor_out_of_range",
            format!("--since {} is not a cursor of conversation {name}: its last seq is {last_seq}", args.since),
        )
        .with_cure("--since 0 starts from the beginning; is it the same conversation, and the same store?"));
    }
    let default = if output.is_text() && !args.follow { PAGE } else { usize::MAX };
    let mut tail = store.tail(&name, args.since)?;
    let (mut since, mut left) = (tail.cursor(), args.limit.unwrap_or(default));
    let patience = if args.follow { PATIENCE } else { Duration::ZERO };
    if !args.follow {
        output.begin_pages();
    }
    while left > 0 {
        let mut entries = tail.next(patience)?;
        if entries.is_empty() && args.follow {
            continue;
        }
        entries.truncate(left);
        let Some(last) = entries.last() else { break };
        (since, left) = (since.with_seq(last.seq), left - entries.len());
        if output.is_text() {
            output.text(&text(&entries))?;
        } else {
            for entry in &entries {
                output.json(&Shown { entry, cursor: since.with_seq(entry.seq) })?;
            }
        }
        if args.follow {
            output.flush()?;
        }
    }
    output.end_pages()?;
    if output.is_text() && since.seq() < last_seq {
        output::note(&format!("there are more: --since {since}"));
    }
    Ok(Exit::Done)
}

/// An entry, and the place after it.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    entry: &'a Entry,
    cursor: Cursor,
}

fn text(entries: &[Entry]) -> String {
    let row = |entry: &Entry| {
        let number = |number: Option<u64>| number.map_or_else(String::new, |number| number.to_string());
        [
            entry.seq.to_string(),
            text::time(entry.created_at),
            entry.kind.name().to_owned(),
            number(entry.message_index),
            number(entry.chunk_index.map(u64::from)),
            entry.role.map_or_else(String::new, |role| role.to_string()),
            content(&entry.kind),
        ]
    };
    let heads = ["SEQ", "TIME (UTC)", "KIND", "MESSAGE", "CHUNK", "ROLE", ""].map(str::to_owned);
    text::titled_table(&std::iter::once(heads).chain(entries.iter().map(row)).collect::<Vec<_>>())
}

fn content(kind: &EntryKind) -> String {
    let content = match kind {
        EntryKind::Chunk { chunk, .. } => show::summary(chunk),
        EntryKind::Finish { header } => {
            header.finish_reason.as_ref().map_or_else(String::new, |reason| reason.as_str().to_owned())
        }
        EntryKind::Meta { title: Some(Some(title)), .. } => format!("title: {title}"),
        EntryKind::Rewind { end } => format!("hides messages below {end}"),
        EntryKind::Summary { text } => text.clone(),
        EntryKind::Unknown { kind } => format!("kind byte {kind}"),
        _ => String::new(),
    };
    text::cut(&content, 60)
}

#[cfg(test)]
mod tests {
    use conversation_store::model::{Chunk, Message, Timestamp};
    use conversation_store::{Store, StoreOptions};

    use super::*;

    fn store() -> Store {
        StoreOptions::new().with_clock(|| Timestamp::from_micros(0)).open("memory:").unwrap()
    }

    #[test]
    fn people_read_one_entry_a_line() {
        let store = store();
        let call = Chunk::tool_call("call_1", "ls", "{}");
        store.append("c", &[Message::user("hello\nthere"), Message::assistant([call])]).unwrap();
        store.set_title("c", Some("Files")).unwrap();
        store.rewind("c", 1).unwrap();
        let wanted = "\
SEQ  TIME (UTC)           KIND    MESSAGE  CHUNK  ROLE
1    1970-01-01 00:00:00  chunk   0        0      user       hello…
2    1970-01-01 00:00:00  chunk   1        0      assistant  tool_call ls call_1: {}
3    1970-01-01 00:00:00  meta                               title: Files
4    1970-01-01 00:00:00  rewind  1                          hides messages below 2
";
        let shown = text(&store.entries("c", .., 9).unwrap());
        assert_eq!(anstream::adapter::strip_str(&shown).to_string(), wanted);
    }
}
