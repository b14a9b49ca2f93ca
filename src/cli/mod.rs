//! The program `convo`: its commands, and what they share. A command is its arguments and a function, with its text for people.
//!
//! - `append`, `ingest`, `import`, `replay`: messages in. `export`, `show`, `entries`, `prompt`, `list`, `search`: messages
//!   out. `usage`: what they took.
//! - `change` (what does not erase), `erase`; `store`, `postgres` (the store as a whole); `request`, `explain`, `live_check`
//!   (without a store).
//! - `bench`, `serve`, `proxy`, `mcp`, `completions`, `man`.
//! - Shared: `location` (which store), `lines` (files of messages), `values` (arguments), `output`, `text`, `failure`.
//!
//! A file of one command has `Args` and `run`; a file of several has a struct and a function with the name of each.
//!
//! **To add a command**: these two, a variant of [`Command`], an arm in [`Command::run`]. `tests/program/help.rs` says what is
//! missing.

mod append;
mod bench;
mod change;
mod completions;
mod entries;
mod erase;
mod explain;
mod export;
mod failure;
mod import;
mod ingest;
mod lines;
mod list;
#[cfg(feature = "client")]
mod live_check;
mod location;
mod man;
#[cfg(feature = "mcp")]
mod mcp;
mod output;
mod overview;
#[cfg(feature = "postgres")]
mod postgres;
mod prompt;
#[cfg(feature = "server")]
mod proxy;
mod replay;
mod request;
#[cfg(feature = "search")]
mod search;
#[cfg(feature = "server")]
mod serve;
mod show;
mod store;
mod text;
mod usage;
mod values;

use std::process::ExitCode;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{
    ArgAction, Args, ColorChoice, Command as Program, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum,
};

use failure::{Exit, Failure, Outcome};
use location::Location;
use output::{Form, Output};
use values::seconds;

const EXAMPLES: &str = "\
Examples:
  convo repair refused.json --for openai-chat
  convo append chat-42 messages.jsonl
  convo show chat-42
  convo prompt chat-42 --for anthropic
  convo help prompt    # one command
  convo help           # all commands, in groups

CONVERSATION is a UUID or any other text: your own key for a conversation. `convo append` creates it. `convo show` \
prints the numbers that commands take: MESSAGE follows the word message, CHUNK the word chunk, SEQ (a position in the \
log) the word seq.

The store is the one that --store names; otherwise CONVO_STORE; otherwise ./convo.db if it exists; otherwise your own: \
$XDG_DATA_HOME/convo/store.db, by default ~/.local/share/convo/store.db. --store takes sled:DIRECTORY; fjall:DIRECTORY, \
postgres://USER@HOST/DATABASE, or shards:FILE, a list of such databases, if it is built in; http://HOST:PORT, the store of a running `convo serve`, with the key in \
CONVO_KEY, if it is built in; backup:FILE, to read a backup; memory:, to try something out. \
sled:DIRECTORY?cache_mb=128 sets the cache; ?sync=never is for throw-away stores: a power cut destroys them.

Each --owner has its own keys: one key names a different conversation for each. Without --owner, a key names a \
conversation that has no owner, and a UUID names a conversation of any owner.

Results go to stdout: text on a terminal, otherwise JSON, one line each; --text and --json choose. Reports, notes and \
errors go to stderr; with --json they are JSON too: {\"error\": {\"kind\", \"message\", \"cure\", \"exit_code\"}}, \
{\"warning\"}, {\"note\"}, or a line of a report.

On a terminal, long output goes through CONVO_PAGER, otherwise PAGER, otherwise less. A terminal gets colours, unless \
NO_COLOR is set; --color overrides both.

Exit code: 0 done; 1 done, but look at the result: findings of check, problems of verify, an answer that is an error \
or was cut off, nothing found; 2 failed, or used in a wrong way.";

/// Keep LLM conversations, and replay them into prompts that providers accept
#[derive(Debug, Parser)]
#[command(name = "convo", version, after_help = EXAMPLES)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
struct Global {
    /// The store, as in sled:DIRECTORY; `convo --help` lists the other forms, and the default
    #[arg(long, global = true, env = "CONVO_STORE", hide_env_values = true, value_name = "URL", display_order = 100)]
    store: Option<String>,
    /// Whose conversations; by default those without an owner
    #[arg(long, global = true, value_name = "OWNER", display_order = 101)]
    owner: Option<String>,
    /// How long to wait for a store that another process has open
    #[arg(long, global = true, value_name = "SECONDS", default_value = "2", value_parser = seconds, display_order = 102)]
    wait: Duration,
    /// Print JSON on stdout and stderr, even on a terminal
    #[arg(long, global = true, display_order = 103)]
    json: bool,
    /// Print text, even if stdout is no terminal
    #[arg(long, global = true, conflicts_with = "json", display_order = 104)]
    text: bool,
    /// Print no notes, reports or progress; warnings and errors stay
    #[arg(long, short, global = true, display_order = 105)]
    quiet: bool,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", display_order = 106)]
    color: Color,
    /// Print long output at once, without a pager
    #[arg(long, global = true, display_order = 107)]
    no_pager: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
enum Command {
    Append(append::Args),
    Ingest(ingest::Args),
    Import(import::Args),
    Export(export::Args),
    Replay(replay::Args),
    Prompt(prompt::Prompt),
    Show(show::Args),
    #[command(alias = "entries")]
    Log(entries::Args),
    #[command(alias = "next")]
    NextStep(prompt::Next),
    List(list::List),
    #[cfg(feature = "search")]
    Search(search::Args),
    #[command(alias = "find-id")]
    FindItem(list::FindItem),
    Unfinished(list::Unfinished),
    Fork(change::Fork),
    Rewind(change::Rewind),
    Summarize(change::Summarize),
    Title(change::Title),
    Tag(change::Tag),
    Metadata(change::Metadata),
    #[command(alias = "remove")]
    Hide(change::Hide),
    Redact(erase::Redact),
    Delete(erase::Delete),
    Prune(erase::Prune),
    Verify(store::Verify),
    #[command(alias = "health")]
    Status(store::Status),
    Backup(store::Backup),
    Restore(store::Restore),
    Vacuum(store::Vacuum),
    #[cfg(feature = "postgres")]
    Migrate(postgres::Migrate),
    #[cfg(feature = "postgres")]
    Shards(postgres::Buckets),
    Usage(usage::Args),
    Bench(bench::Args),
    Check(request::Check),
    Explain(explain::Args),
    #[cfg(feature = "client")]
    LiveCheck(live_check::Args),
    Repair(request::Repair),
    Targets(request::Targets),
    Completions(completions::Args),
    Man(man::Args),
    #[cfg(feature = "server")]
    Serve(serve::Serve),
    #[cfg(feature = "server")]
    Proxy(proxy::Args),
    #[cfg(feature = "mcp")]
    Mcp(mcp::Args),
    #[cfg(feature = "server")]
    Healthcheck(serve::Healthcheck),
    #[cfg(feature = "server")]
    Keys(serve::Keys),
    /// Print the OpenAPI document of the server
    #[cfg(feature = "server")]
    #[command(after_help = "Examples:\n  convo openapi > openapi.json")]
    Openapi,
}

/// Commands that were renamed.
const FORMER_COMMANDS: &[(&str, &str)] = &[("compact", "summarize"), ("find", "find-item")];
/// Options that were renamed.
const FORMER_OPTIONS: &[(&str, &str)] = &[("--max-tokens", "--window-tokens"), ("--dialect", "--for WIRE/DIALECT")];

/// Runs the program.
pub(crate) fn run() -> ExitCode {
    let early = Early::read(std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()));
    early.color.apply();
    if early.wants_overview {
        // A reader that has gone misses nothing else.
        let _ = overview::print(&program());
        return Exit::Done.into();
    }
    let parsed = program().color(early.color.of_help()).try_get_matches();
    let Cli { global, command } = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        // clap reports help as an error with exit code 0. A reader that has gone misses nothing else.
        Err(error) if error.exit_code() == 0 => {
            let _ = error.print();
            return Exit::Done.into();
        }
        Err(error) => return misused(&error, early.json).into(),
    };
    let Global { store, owner, wait, json, text, quiet, no_pager, .. } = global;
    let mut output = Output::new(Form { json, text, quiet, unpaged: no_pager });
    let outcome = command.run(&Location::new(store, owner, wait), &mut output);
    let ended = output.end_pages();
    match outcome.and_then(|exit| ended.map(|()| exit)) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            if !failure.is_reader_gone() {
                output::error(&failure);
            }
            failure.exit.into()
        }
    }
}

/// Reports a command line that cannot be read.
fn misused(error: &clap::Error, json: bool) -> Exit {
    let _ = Output::new(Form { json, ..Form::default() });
    let arguments: Vec<_> = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    match former(error).or_else(|| repeated(error, &arguments)) {
        Some(failure) => output::error(&failure),
        None if json => {
            let text = error.to_string();
            let problem = text.split("\n\n").next().unwrap_or(&text).trim_start_matches("error: ");
            output::error(&Failure::usage(problem).with_cure("`convo help COMMAND` describes the arguments"));
        }
        // It is no failure if nobody reads it.
        None => _ = error.print(),
    }
    Exit::Failed
}

/// The program's arguments, for parsing, completions and the manual.
fn program() -> Program {
    Cli::command()
}

/// What is needed to report a command line that cannot be parsed.
struct Early {
    json: bool,
    color: Color,
    /// Whether somebody asks for help, and for nothing else.
    wants_overview: bool,
}

impl Early {
    fn read(arguments: impl Iterator<Item = String>) -> Self {
        let arguments: Vec<String> = arguments.take_while(|argument| argument != "--").collect();
        let wants_overview = matches!(&*arguments, [only] if only == "help" || only == "-h");
        let colors = arguments.iter().zip(arguments.iter().skip(1).map(Some).chain([None]));
        let named = colors.filter_map(|(argument, next)| match argument.strip_prefix("--color")? {
            "" => next.map(String::as_str),
            value => value.strip_prefix('='),
        });
        let color = named.last().and_then(|name| Color::from_str(name, false).ok()).unwrap_or(Color::Auto);
        Self { json: arguments.iter().any(|argument| argument == "--json"), color, wants_overview }
    }
}

impl Color {
    /// Sets it for all output from now on. Auto looks at NO_COLOR, CLICOLOR and TERM too.
    fn apply(self) {
        match self {
            Self::Auto => {}
            Self::Always => anstream::ColorChoice::Always.write_global(),
            Self::Never => anstream::ColorChoice::Never.write_global(),
        }
    }

    const fn of_help(self) -> ColorChoice {
        match self {
            Self::Auto => ColorChoice::Auto,
            Self::Always => ColorChoice::Always,
            Self::Never => ColorChoice::Never,
        }
    }
}

/// The failure of a command line that uses a former name.
fn former(error: &clap::Error) -> Option<Failure> {
    let (kind, names, prefix) = match error.kind() {
        ErrorKind::InvalidSubcommand => (ContextKind::InvalidSubcommand, FORMER_COMMANDS, "convo "),
        ErrorKind::UnknownArgument => (ContextKind::InvalidArg, FORMER_OPTIONS, ""),
        _ => return None,
    };
    let Some(ContextValue::String(given)) = error.get(kind) else { return None };
    let (former, now) = names.iter().find(|(former, _)| former == given)?;
    Some(Failure::usage(format!("`{prefix}{former}` is now `{prefix}{now}`")))
}

/// The failure of a command line that gives an option several values at once, though each needs the option.
fn repeated(error: &clap::Error, arguments: &[String]) -> Option<Failure> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else { return None };
    if given.starts_with('-') {
        return None;
    }
    let at = arguments.iter().position(|argument| argument == given)?;
    let before = arguments.get(..at)?.iter().rfind(|argument| argument.starts_with("--"))?;
    let option = before.split_once('=').map_or(&**before, |(option, _)| option);
    let name = option.strip_prefix("--")?;
    let program = program();
    let mut options = program.get_subcommands().flat_map(Program::get_arguments);
    let takes_several = |arg: &clap::Arg| arg.get_long() == Some(name) && matches!(arg.get_action(), ArgAction::Append);
    let cure = format!("give it for each of them: {option} A {option} B");
    options
        .any(takes_several)
        .then(|| Failure::usage(format!("{option} takes one value, and `{given}` is another one")).with_cure(cure))
}

impl Command {
    fn run(self, location: &Location, output: &mut Output) -> Outcome {
        match self {
            Self::Append(args) => append::run(&args, location, output),
            Self::Ingest(args) => ingest::run(&args, location, output),
            Self::Import(args) => import::run(&args, location, output),
            Self::Export(args) => export::run(&args, location, output),
            Self::Replay(args) => replay::run(&args, location, output),
            Self::Prompt(args) => prompt::prompt(&args, location, output),
            Self::Show(args) => show::run(&args, location, output),
            Self::Log(args) => entries::run(&args, location, output),
            Self::NextStep(args) => prompt::next(&args, location, output),
            Self::List(args) => list::list(args, location, output),
            Self::Fork(args) => change::fork(&args, location, output),
            Self::Rewind(args) => change::rewind(&args, location, output),
            Self::Summarize(args) => change::summarize(&args, location, output),
            Self::Tag(args) => change::tag(&args, location, output),
            #[cfg(feature = "search")]
            Self::Search(args) => search::run(&args, location, output),
            Self::FindItem(args) => list::find_item(&args, location, output),
            Self::Unfinished(args) => list::unfinished(&args, location, output),
            Self::Title(args) => change::title(&args, location, output),
            Self::Metadata(args) => change::metadata(&args, location, output),
            Self::Hide(args) => change::remove(&args, location, output),
            Self::Redact(args) => erase::redact(&args, location, output),
            Self::Delete(args) => erase::delete(&args, location, output),
            Self::Prune(args) => erase::prune(&args, location, output),
            Self::Verify(args) => store::verify(&args, location, output),
            Self::Status(args) => store::health(&args, location, output),
            Self::Backup(args) => store::backup(&args, location, output),
            Self::Restore(args) => store::restore(&args, location, output),
            Self::Vacuum(args) => store::vacuum(&args, location, output),
            #[cfg(feature = "postgres")]
            Self::Migrate(args) => postgres::migrate(&args, location, output),
            #[cfg(feature = "postgres")]
            Self::Shards(args) => postgres::buckets(&args, location, output),
            Self::Usage(args) => usage::run(&args, location, output),
            Self::Bench(args) => bench::run(&args, location, output),
            Self::Check(args) => request::check(&args, output),
            Self::Explain(args) => explain::run(&args, output),
            #[cfg(feature = "client")]
            Self::LiveCheck(args) => live_check::run(&args, output),
            Self::Repair(args) => request::repair(&args, output),
            Self::Targets(args) => request::targets(&args, output),
            Self::Completions(args) => completions::run(&args, program(), output),
            Self::Man(args) => man::run(&args, program(), output),
            #[cfg(feature = "server")]
            Self::Serve(args) => serve::serve(&args, location, output),
            #[cfg(feature = "server")]
            Self::Proxy(args) => proxy::run(&args, location, output),
            #[cfg(feature = "mcp")]
            Self::Mcp(args) => mcp::run(&args, location),
            #[cfg(feature = "server")]
            Self::Healthcheck(args) => serve::healthcheck(&args, output),
            #[cfg(feature = "server")]
            Self::Keys(args) => serve::keys(&args, location, output),
            #[cfg(feature = "server")]
            Self::Openapi => output.verbatim(&conversation_store::server::openapi()).map(|()| Exit::Done),
        }
    }
}
