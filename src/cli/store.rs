//! The store as a whole: how it is, whether it is whole, copies of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use conversation_store::model::ConversationId;
use conversation_store::{Error, Problem, Size, Store, Verification};
use serde::Serialize;

use super::failure::{Exit, Failure, Outcome};
use super::location::Location;
use super::output::{self, Output, Progress};
use super::text;
use super::text::ERROR;

/// Show whether the store is well, and how much it holds
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  convo status
  convo status --json | jq .size

Opens the store to read it, and prints what is wrong with it as a whole, and how much it holds. Reads no conversation: \
verify does. The rows of a store in PostgreSQL are those of the database's statistics. Exit code 1 if anything is wrong.")]
pub(super) struct Status {}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    health: conversation_store::Health,
    size: Size,
}

pub(super) fn health(_: &Status, location: &Location, output: &mut Output) -> Outcome {
    let store = location.read()?;
    let shown = Shown { health: store.health(), size: store.size()? };
    output.result(&shown, || size(&shown.size))?;
    Ok(if shown.health == conversation_store::Health::default() { Exit::Done } else { Exit::Findings })
}

/// What is wrong, the opening has reported.
fn size(size: &Size) -> String {
    let mut out = text::count(size.conversations, "conversation");
    if let Some(bytes) = size.bytes {
        out.push_str(&format!(", {}", text::count(bytes, "byte")));
    }
    if !size.tables.is_empty() {
        let titles = ["table", "rows", "bytes"].map(str::to_owned);
        let rows =
            size.tables.iter().map(|table| [table.name.clone(), table.rows.to_string(), table.bytes.to_string()]);
        let rows: Vec<_> = std::iter::once(titles).chain(rows).collect();
        out.push_str(&format!("\n\n{}", text::titled_table(&rows).trim_end()));
    }
    out
}

/// Check the whole store for damage
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  convo verify
  convo verify --store backup:chats.backup --json | jq .problems
  # is everything there that `convo bench --acks` saw acknowledged?
  convo verify --acks acks.txt

Reads everything and derives again what can be derived. Writes nothing, unless --accept-loss is given. Exit code 1 if \
anything is wrong.")]
pub(super) struct Verify {
    /// Continue with a store that lost acknowledged data to damage: accept what is left as everything there was
    #[arg(long)]
    accept_loss: bool,
    /// What must be there, as `convo bench --acks` writes it: lines of `conversation last_seq`. An unfinished last line
    /// is ignored
    #[arg(long, value_name = "FILE")]
    acks: Option<PathBuf>,
}

pub(super) fn verify(args: &Verify, location: &Location, output: &mut Output) -> Outcome {
    let acks = args.acks.as_deref().map(Acks::read).transpose()?;
    let store = if args.accept_loss { location.open_accepting_loss()? } else { location.read()? };
    let progress = Progress::conversations();
    let mut found = store.verify(|done, all| progress.set_of(done, all))?;
    drop(progress);
    if let Some(acks) = acks {
        found.problems.extend(acks.missing(&store)?);
    }
    output.result(&found, || verified(&found))?;
    Ok(if found.problems.is_empty() { Exit::Done } else { Exit::Findings })
}

fn verified(found: &Verification) -> String {
    let line = |problem: &Problem| format!("{ERROR}problem:{ERROR:#} {}\n", text::printable(&problem.to_string()));
    let problems: String = found.problems.iter().map(line).collect();
    let (conversations, entries) = (text::count(found.conversations, "conversation"), found.entries);
    let damaged: BTreeSet<_> = found.problems.iter().filter_map(|problem| problem.conversation).collect();
    let verdict = match (found.problems.len(), damaged.len()) {
        (0, _) => "no problems".to_owned(),
        (count, 0) => text::count(count, "problem"),
        (count, damaged) => format!("{} in {}", text::count(count, "problem"), text::count(damaged, "conversation")),
    };
    format!("{problems}{conversations}, {entries} entries: {verdict}")
}

/// The last acknowledged seq of each conversation.
#[derive(Debug, PartialEq, Eq)]
struct Acks(BTreeMap<ConversationId, u64>);

impl Acks {
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let file = File::open(path).map_err(|error| Failure::usage(format!("cannot read {shown}: {error}")))?;
        Self::parse(BufReader::new(file), &shown.to_string())
    }

    /// A line without an end was being written when the writer stopped: it proves nothing.
    fn parse(mut input: impl BufRead, name: &str) -> Result<Self, Failure> {
        let mut acks = BTreeMap::new();
        let mut line = Vec::new();
        for number in 1_u64.. {
            line.clear();
            let read = input.read_until(b'\n', &mut line);
            read.map_err(|error| Failure::failed(format!("cannot read {name}: {error}")))?;
            let Some(line) = line.strip_suffix(b"\n") else { break };
            let (conversation, seq) = pair(line).ok_or_else(|| {
                Failure::usage(format!("{name}:{number}: expected `conversation last_seq`, a UUID and a number"))
            })?;
            let last = acks.entry(conversation).or_insert(0);
            *last = seq.max(*last);
        }
        Ok(Self(acks))
    }

    /// Entries that were acknowledged and are missing.
    pub(super) fn missing(&self, store: &Store) -> Result<Vec<Problem>, Failure> {
        let mut missing = Vec::new();
        for (conversation, acknowledged) in &self.0 {
            let last = match store.describe(*conversation) {
                Ok(item) => item.last_seq,
                Err(Error::NotFound { .. }) => 0,
                // The verification itself reports it.
                Err(Error::Corrupt { .. }) => continue,
                Err(error) => return Err(error.into()),
            };
            if last < *acknowledged {
                let detail = format!("it was acknowledged up to seq {acknowledged}, and ends before that");
                missing.push(Problem::new(Some(*conversation), Some(last + 1), detail));
            }
        }
        Ok(missing)
    }
}

fn pair(line: &[u8]) -> Option<(ConversationId, u64)> {
    let (conversation, seq) = std::str::from_utf8(line).ok()?.trim_end_matches('\r').split_once(' ')?;
    Some((conversation.parse().ok()?, seq.parse().ok()?))
}

/// Write the whole store to a new file
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  convo backup chats.backup
  # a backup is read as it is
  convo list --store backup:chats.backup
  convo restore chats.backup --store sled:restored.db

The backup is one file, compressed and checksummed. It appears complete or not at all. A store that another process \
has open cannot be backed up from outside: that process does it itself, with Store::backup or with the server's backup \
call.")]
pub(super) struct Backup {
    /// The file; it must not exist yet
    file: PathBuf,
}

pub(super) fn backup(args: &Backup, location: &Location, output: &mut Output) -> Outcome {
    let store = location.read()?;
    let progress = Progress::conversations();
    let summary = store.backup(&args.file, |done, all| progress.set_of(done, all))?;
    drop(progress);
    output.result(&summary, || {
        format!("{} in {}", text::count(summary.conversations, "conversation"), text::count(summary.bytes, "byte"))
    })?;
    Ok(Exit::Done)
}

/// Create a store from a backup
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  convo restore chats.backup --store sled:restored.db

Use it to get a store back, or to change the engine. A damaged file is reported before anything is created. An interrupted restore leaves no store: remove its \
directory, then restore again.")]
pub(super) struct Restore {
    /// The backup
    file: PathBuf,
}

pub(super) fn restore(args: &Restore, location: &Location, output: &mut Output) -> Outcome {
    let progress = Progress::bytes(Some(0));
    let url = location.url()?;
    let restored = Store::restore(&args.file, &url, |done, all| progress.set_of(done, all));
    let summary = restored.map_err(|error| match error {
        Error::InvalidInput(_) => {
            Failure::from(error).with_cure(format!("the store is {url}: --store names another one"))
        }
        error => Failure::from(error),
    })?;
    drop(progress);
    output.result(&summary, || {
        format!("{} from {}", text::count(summary.conversations, "conversation"), text::count(summary.bytes, "byte"))
    })?;
    Ok(Exit::Done)
}

/// Write the store's files again, without what was erased
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  convo redact chat-42 1 --yes
  convo vacuum

A store keeps the bytes of what was deleted or redacted until it reuses them. This writes all that is there to new files, \
compares them, and puts them in the place of the old ones. No other process may have the store open, and the disk needs room \
for a second store. If it is interrupted, the store is as it was, or the next command finishes it.

In PostgreSQL it is VACUUM FULL: nobody reads or writes a table while it is written again, and the role has to own the tables. \
A transaction that began before an erasure keeps the erased rows: end it, then run this again. \
The log of the database, its replicas and its backups are the database's matter. The store of a server is written again on the \
server's machine, while the server does not run.

Backups, and copies that were made of a damaged store, still hold what they held. So may the blocks of the disk.")]
pub(super) struct Vacuum {}

pub(super) fn vacuum(_: &Vacuum, location: &Location, output: &mut Output) -> Outcome {
    let progress = Progress::steps();
    let vacuumed = location.patiently(|url| Store::vacuum(url, |done, all| progress.set_of(done, all)))?;
    drop(progress);
    output.result(&vacuumed, || {
        let bytes = |bytes| text::count(bytes, "byte");
        format!("{}, before {}", bytes(vacuumed.bytes_after), bytes(vacuumed.bytes_before))
    })?;
    for copy in &vacuumed.set_aside {
        output::warn(&format!("{} is a copy of the store, and holds what it held: remove it", copy.display()));
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use conversation_store::model::Message;

    use super::*;

    #[test]
    fn problems_come_first_and_the_verdict_last() {
        let plain = |found: &Verification| anstream::adapter::strip_str(&verified(found)).to_string();
        let mut found = Verification::default();
        (found.conversations, found.entries) = (1, 14);
        assert_eq!(plain(&found), "1 conversation, 14 entries: no problems");
        found.problems = vec![Problem::new(None, None, "a key cannot be read")];
        found.conversations = 2;
        let wanted = "problem: store: a key cannot be read\n2 conversations, 14 entries: 1 problem";
        assert_eq!(plain(&found), wanted);
    }

    const A: &str = "07070707-0707-0707-0707-070707070707";

    fn parse(text: &str) -> Result<Acks, Failure> {
        Acks::parse(text.as_bytes(), "acks")
    }

    #[test]
    fn the_highest_seq_counts_and_a_line_without_end_does_not() {
        let acks = parse(&format!("{A} 2\n{A} 14\n{A} 3\r\n{A} 15")).unwrap();
        assert_eq!(acks, Acks([(A.parse().unwrap(), 14)].into()));
        assert_eq!(parse("").unwrap(), Acks(BTreeMap::new()));
        for bad in ["x 1\n", "\n", &format!("{A}\n"), &format!("{A} x\n")] {
            let error = parse(&format!("{A} 1\n{bad}")).unwrap_err();
            assert_eq!(error.message, "acks:2: expected `conversation last_seq`, a UUID and a number");
        }
    }

    #[test]
    fn what_is_not_there_is_a_problem() {
        let store = Store::open("memory:").unwrap();
        let id: ConversationId = A.parse().unwrap();
        let missing = |seq| parse(&format!("{A} {seq}\n")).unwrap().missing(&store).unwrap();
        assert_eq!(missing(1).len(), 1);
        store.append(id, &[Message::user("a"), Message::user("b")]).unwrap();
        assert_eq!(missing(2), []);
        assert_eq!(missing(7)[0].seq, Some(3));
    }
}
