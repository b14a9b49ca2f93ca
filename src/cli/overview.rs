//! What `convo help` prints: all commands, in groups, in one screen.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use clap::Command;

use super::text::BOLD;

/// Groups of commands. The commands of the first ones have a line each.
const GROUPS: &[(&str, &[&str])] = &[
    ("Everyday", &["append", "ingest", "show", "list", "search", "prompt", "next-step", "usage"]),
    ("Repair", &["repair", "check", "explain"]),
    ("Serve", &["proxy", "serve", "mcp", "keys"]),
    ("Change", &["fork", "rewind", "hide", "redact", "delete", "title", "tag", "metadata", "summarize", "prune"]),
    ("Move", &["import", "export", "replay", "backup", "restore"]),
    (
        "Operate",
        &[
            "status",
            "verify",
            "vacuum",
            "log",
            "find-item",
            "unfinished",
            "bench",
            "migrate",
            "shards",
            "healthcheck",
            "openapi",
            "targets",
            "live-check",
            "completions",
            "man",
        ],
    ),
];
/// Groups whose commands have a line each.
const DESCRIBED: usize = 3;
/// Columns of a name, and of a line.
const NAME: usize = 12;
const LINE: usize = 80;

const EXAMPLES: &str = "\
Examples:
  convo proxy anthropic
  convo repair refused.json --for openai-chat
  convo show chat-42
  convo prompt chat-42 --for anthropic
  convo help prompt

`convo help COMMAND` has the options of a command, and examples. `convo --help`
has what all commands have in common: --store and its forms, --owner, --json.
";

/// Prints the overview.
pub(super) fn print(program: &Command) -> io::Result<()> {
    anstream::stdout().write_all(text(program).as_bytes())
}

fn text(program: &Command) -> String {
    let mut text = String::new();
    if let Some(about) = program.get_about() {
        let _ = writeln!(text, "{about}\n");
    }
    let _ = writeln!(text, "{BOLD}Usage:{BOLD:#} convo COMMAND ...\n");
    for (at, (group, names)) in GROUPS.iter().enumerate() {
        let known = names.iter().filter_map(|name| program.find_subcommand(name));
        let _ = writeln!(text, "{BOLD}{group}{BOLD:#}");
        if at < DESCRIBED {
            for command in known {
                let _ = writeln!(text, "  {:NAME$}{}", command.get_name(), first_words(command));
            }
        } else {
            listed(&mut text, known.map(Command::get_name));
        }
        text.push('\n');
    }
    text.push_str(EXAMPLES);
    text
}

/// What a command does, as far as it fits into a line.
fn first_words(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let short = about.split([':', ';']).next().unwrap_or_default().to_owned();
    if NAME + 2 + short.len() <= LINE {
        return short;
    }
    short.split(',').next().unwrap_or_default().to_owned()
}

fn listed<'n>(text: &mut String, names: impl Iterator<Item = &'n str>) {
    let mut line = String::from(" ");
    let mut names = names.peekable();
    while let Some(name) = names.next() {
        let end = if names.peek().is_some() { "," } else { "" };
        if line.len() + name.len() + 2 > LINE {
            let _ = writeln!(text, "{line}");
            line = String::from(" ");
        }
        let _ = write!(line, " {name}{end}");
    }
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let program = super::super::program();
        let mut grouped: Vec<_> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        grouped.sort_unstable();
        let all = grouped.len();
        grouped.dedup();
        assert_eq!(grouped.len(), all, "each once");
        for command in program.get_subcommands().map(Command::get_name) {
            assert!(grouped.contains(&command), "{command} is in no group");
        }
        let lines = text(&program);
        assert!(lines.lines().count() <= 48, "one screen: {lines}");
        assert!(lines.lines().all(|line| line.chars().count() <= LINE), "{lines}");
    }
}
