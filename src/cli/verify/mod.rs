mod acks;

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::failure::{Exit, Outcome};
use super::location::Location;
use super::output::Output;
use super::progress::Progress;
use super::style::ERROR;
use super::text;
use acks::Acks;
use conversation_store::{Problem, Verification};

const EXAMPLES: &str = "\
Examples:
  convo verify
  convo verify --store backup:chats.backup --json | jq .problems
  # is everything there that `convo bench --acks` saw acknowledged?
  convo verify --acks acks.txt

Reads everything and derives again what can be derived. Writes nothing, unless --accept-loss is given. Exit code 1 if \
anything is wrong.";

/// Check the whole store for damage
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Continue with a store that lost acknowledged data to damage: accept what is left as everything there was
    #[arg(long)]
    accept_loss: bool,
    /// What must be there, as `convo bench --acks` writes it: lines of `conversation last_seq`. An unfinished last line
    /// is ignored
    #[arg(long, value_name = "FILE")]
    acks: Option<PathBuf>,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let acks = args.acks.as_deref().map(Acks::read).transpose()?;
    let store = if args.accept_loss { location.open_accepting_loss()? } else { location.read()? };
    let progress = Progress::conversations();
    let mut found = store.verify(|done, all| progress.set_of(done, all))?;
    drop(progress);
    if let Some(acks) = acks {
        found.problems.extend(acks.missing(&store)?);
    }
    output.result(&found, || text(&found))?;
    Ok(if found.problems.is_empty() { Exit::Done } else { Exit::Findings })
}

fn text(found: &Verification) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_come_first_and_the_verdict_last() {
        let plain = |found: &Verification| anstream::adapter::strip_str(&text(found)).to_string();
        let mut found = Verification::default();
        (found.conversations, found.entries) = (1, 14);
        assert_eq!(plain(&found), "1 conversation, 14 entries: no problems");
        found.problems = vec![Problem::new(None, None, "a key cannot be read")];
        found.conversations = 2;
        let wanted = "problem: store: a key cannot be read\n2 conversations, 14 entries: 1 problem";
        assert_eq!(plain(&found), wanted);
    }
}
