use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::ValueEnum;
use conversation_store::transfer::{self, Branches, ImportOptions, ImportSummary, Imported, Input};

use super::failure::{Exit, Outcome};
use super::location::Location;
use super::output::{self, Output, Progress};
use super::text;
use super::text::{BOLD, DIM, ERROR};
use super::values::{self, Way, number};

const EXAMPLES: &str = "\
Examples:
  convo import chatgpt-export.zip
  # what would be taken, and what not
  convo import ~/.claude/projects --dry-run
  convo import conversations.json --branches current --owner ada
  convo import rows.jsonl --format rows

The format is recognised from the file. A conversation is named FORMAT:ID, with the ID of the export. The branch that \
was shown becomes the conversation; each other branch becomes a fork of it. A second run adds what is new: a \
conversation that grew gets its new messages; one that changed in its middle becomes a fork, which is reported. \
Whatever could not be imported is counted and named.

Exit code: 0 done, 1 if any conversation failed, 2 if nothing was recognised.";

/// Import conversations from another program's export
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The export: a file, a folder of files, a zip archive; - for stdin
    file: PathBuf,
    /// The format, if it should not be recognised from the file; a wrong name prints the list
    #[arg(long, value_name = "NAME")]
    format: Option<String>,
    /// Which branches to import
    #[arg(long, value_enum, default_value_t = Which::All)]
    branches: Which,
    /// Count what would be imported, and store nothing
    #[arg(long)]
    dry_run: bool,
    /// The most conversations to import
    #[arg(long, value_name = "N", value_parser = number::<u64>)]
    limit: Option<u64>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Which {
    /// The shown branch, and each other one as a fork
    All,
    /// Only the shown branch
    Current,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let format = args.format.as_deref().map(|name| values::format_named(name, Way::Import)).transpose()?;
    let store = if args.dry_run { None } else { Some(location.create()?) };
    let input = if args.file.as_os_str() == "-" { Input::Stdin } else { Input::Path(&args.file) };
    let mut options = ImportOptions::default();
    options.format = format.map(str::to_owned);
    options.owner = location.owner().map(str::to_owned);
    options.limit = args.limit;
    options.branches = match args.branches {
        Which::All => Branches::All,
        Which::Current => Branches::Current,
    };
    let bar = Progress::bytes(Some(0));
    // A reader that does not wait for the lines still wants the conversations stored.
    output.outlive_reader();
    let mut printed = Ok(());
    let summary = transfer::import(store.as_ref(), input, &options, &mut |event| match event {
        transfer::Progress::Conversation(imported) => {
            let line = output.result(imported, || line(imported));
            if printed.is_ok() {
                printed = line;
            }
        }
        transfer::Progress::Note(note) => output::note(note),
        transfer::Progress::Bytes(done, all) => bar.set_of(done, all),
        _ => {}
    })?;
    drop(bar);
    printed?;
    output.result(&summary, || sum(&summary, args.dry_run))?;
    Ok(if summary.failed > 0 { Exit::Findings } else { Exit::Done })
}

/// `chatgpt:7  Picnic  6 messages, 1 fork, 6 new; skipped: 1 empty_message`
fn line(imported: &Imported) -> String {
    let name = imported.key.as_deref().or(imported.source_id.as_deref()).unwrap_or("?");
    let name = text::cut(name, 60);
    let title = imported.title.as_deref().map_or_else(String::new, |title| format!("  {}", text::cut(title, 40)));
    if let Some(error) = &imported.error {
        return format!("{BOLD}{name}{BOLD:#}{title}  {ERROR}failed:{ERROR:#} {}", text::printable(error));
    }
    let mut parts = vec![text::count(imported.messages, "message")];
    if imported.branches > 0 {
        parts.push(text::count(imported.branches, "fork"));
    }
    parts.push(format!("{} new", imported.added));
    let parts = parts.join(", ") + &skipped(&imported.skipped);
    format!("{BOLD}{name}{BOLD:#}{title}  {DIM}{}{DIM:#}", text::printable(&parts))
}

fn sum(summary: &ImportSummary, dry_run: bool) -> String {
    let imported = if dry_run { "would be imported" } else { "imported" };
    let parts = [
        format!("{} {imported}", text::count(summary.conversations, "conversation")),
        format!("{} failed", summary.failed),
        text::count(summary.messages, "message"),
        text::count(summary.branches, "fork"),
        text::count(summary.added, "new message"),
    ];
    text::printable(&(parts.join(", ") + &skipped(&summary.skipped))).into_owned()
}

/// The counts of what was not imported unchanged, if there are any.
fn skipped(skipped: &BTreeMap<String, u64>) -> String {
    if skipped.is_empty() {
        return String::new();
    }
    let counts = skipped.iter().map(|(kind, count)| format!("{count} {kind}")).collect::<Vec<_>>();
    format!("; skipped: {}", counts.join(", "))
}
