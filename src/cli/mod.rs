//! The commands: one file each, with its arguments, its `run`, and its text for people.
//!
//! To add one: a file with `Args` and `run`, a variant of [`Command`], an arm in [`Command::run`].

mod append;
mod backup;
mod bench;
mod check;
mod confirm;
mod delete;
mod entries;
mod export;
mod failure;
mod find;
mod fork;
mod import;
mod ingest;
mod lines;
mod list;
mod metadata;
mod next;
mod output;
mod progress;
mod prompt;
mod receipt;
mod redact;
mod remove;
mod repair;
mod replay;
mod request;
mod restore;
mod rewind;
mod show;
mod summarize;
mod tag;
mod text;
mod title;
mod tools;
mod unfinished;
mod verify;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use conversation_store::model::Name;
use conversation_store::{Error, Health, Store, StoreOptions};

use failure::{Exit, Failure, Outcome};
use output::{Output, warn};

const EXAMPLES: &str = "\
Examples:
  convo repair refused.json --for openai-chat
  convo replay incident.jsonl --for openai-chat
  convo append chat-42 messages.jsonl
  convo prompt chat-42 --for openai-chat/deepseek
  convo show chat-42

CONVERSATION is a UUID, or any other text: your own key for a conversation.
Results go to stdout: text on a terminal, JSON elsewhere. Reports and errors go to stderr.
Exit code: 0 done, 1 findings or a failed operation, 2 usage or malformed input.";

/// Keeps LLM conversations, and replays them into prompts that providers accept
#[derive(Debug, Parser)]
#[command(name = "convo", version, after_help = EXAMPLES)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Args)]
struct Global {
    /// Where the store is: sled:DIRECTORY, or fjall:DIRECTORY where that is built in; backup:FILE, for reading only;
    /// memory: to try something out. sled:DIRECTORY?cache_mb=128 sets the cache; ?sync=never is for throw-away stores: a
    /// power cut takes them
    #[arg(
        long,
        global = true,
        env = "CONVO_STORE",
        default_value = "sled:./convo.db",
        value_name = "URL",
        display_order = 100
    )]
    store: String,
    /// Whose conversations are meant: a key names another conversation for each owner. Without it a key names one that has
    /// no owner, and a UUID anybody's
    #[arg(long, global = true, value_name = "OWNER", display_order = 101)]
    owner: Option<String>,
    /// Print JSON, also on a terminal
    #[arg(long, global = true, display_order = 102)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    Append(append::Args),
    Ingest(ingest::Args),
    Import(import::Args),
    Export(export::Args),
    Replay(replay::Args),
    Prompt(prompt::Args),
    Show(show::Args),
    Entries(entries::Args),
    Next(next::Args),
    List(list::Args),
    Find(find::Args),
    Unfinished(unfinished::Args),
    Fork(fork::Args),
    Rewind(rewind::Args),
    Summarize(summarize::Args),
    Title(title::Args),
    Tag(tag::Args),
    Metadata(metadata::Args),
    Remove(remove::Args),
    Redact(redact::Args),
    Delete(delete::Args),
    Verify(verify::Args),
    Backup(backup::Args),
    Restore(restore::Args),
    Bench(bench::Args),
    Check(check::Args),
    Repair(repair::Args),
    /// The name that `summarize` had
    #[command(hide = true, disable_help_flag = true)]
    Compact(Former),
}

/// Whatever a command was given that has another name now.
#[derive(Debug, Args)]
struct Former {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _arguments: Vec<String>,
}

/// Where the commands find their store.
struct Location {
    url: String,
    owner: Option<String>,
}

/// Runs the program.
pub(crate) fn run() -> ExitCode {
    let Cli { global, command } = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help is an error to clap, of exit code 0. Who does not read it misses nothing else.
            let _ = error.print();
            return if error.exit_code() == 0 { Exit::Done } else { Exit::Usage }.into();
        }
    };
    let mut output = Output::new(global.json);
    let outcome = command.run(&Location { url: global.store, owner: global.owner }, &mut output);
    let flushed = output.flush();
    match outcome.and_then(|exit| flushed.map(|()| exit)) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            if !failure.is_reader_gone() {
                output::error(&failure);
            }
            failure.exit.into()
        }
    }
}

impl Command {
    fn run(self, location: &Location, output: &mut Output) -> Outcome {
        match self {
            Self::Append(args) => append::run(&args, location, output),
            Self::Ingest(args) => ingest::run(&args, location, output),
            Self::Import(args) => import::run(&args, location, output),
            Self::Export(args) => export::run(&args, location, output),
            Self::Replay(args) => replay::run(&args, location, output),
            Self::Prompt(args) => prompt::run(&args, location, output),
            Self::Show(args) => show::run(&args, location, output),
            Self::Entries(args) => entries::run(&args, location, output),
            Self::Next(args) => next::run(&args, location, output),
            Self::List(args) => list::run(args, location, output),
            Self::Fork(args) => fork::run(&args, location, output),
            Self::Rewind(args) => rewind::run(&args, location, output),
            Self::Summarize(args) => summarize::run(&args, location, output),
            Self::Tag(args) => tag::run(&args, location, output),
            Self::Find(args) => find::run(&args, location, output),
            Self::Unfinished(args) => unfinished::run(&args, location, output),
            Self::Title(args) => title::run(&args, location, output),
            Self::Metadata(args) => metadata::run(&args, location, output),
            Self::Remove(args) => remove::run(&args, location, output),
            Self::Compact(_) => Err(Failure::usage("`convo compact` is called `convo summarize` now")
                .with_hint("`convo summarize --help` shows its arguments")),
            Self::Redact(args) => redact::run(&args, location, output),
            Self::Delete(args) => delete::run(&args, location, output),
            Self::Verify(args) => verify::run(&args, location, output),
            Self::Backup(args) => backup::run(&args, location, output),
            Self::Restore(args) => restore::run(&args, location, output),
            Self::Bench(args) => bench::run(&args, location, output),
            Self::Check(args) => check::run(&args, output),
            Self::Repair(args) => repair::run(&args, output),
        }
    }
}

impl Location {
    /// Opens the store; one that is not there is created.
    fn create(&self) -> Result<Store, Failure> {
        self.open_with(&StoreOptions::new())
    }

    /// Opens the store, which has to be there, to write.
    fn open(&self) -> Result<Store, Failure> {
        self.open_with(&StoreOptions::new().with_create(false))
    }

    /// Opens a store that lost acknowledged data, so that it can be written again.
    fn open_accepting_loss(&self) -> Result<Store, Failure> {
        self.open_with(&StoreOptions::new().with_create(false).with_accept_loss(true))
    }

    /// Opens the store, which has to be there, to read; what keeps it from being written is told.
    fn read(&self) -> Result<Store, Failure> {
        let store = self.open_with(&StoreOptions::new().with_create(false).with_read_only(true))?;
        let Health { went_back, watermark_lost, disk_full, damage, .. } = store.health();
        for detail in damage {
            warn(&format!("the store is damaged: {detail}"));
        }
        if let Some((from, to)) = went_back {
            warn(&format!("{}: what is left can be read", Error::WentBack { from, to }));
        }
        if watermark_lost {
            warn("the store's file `watermark` is damaged or missing: what is there can be read, more may be lost");
        }
        if disk_full {
            warn("the disk is full: the store can be read; make room to write");
        }
        Ok(store)
    }

    fn open_with(&self, options: &StoreOptions) -> Result<Store, Failure> {
        let store = options.open(&self.url).map_err(|error| self.not_opened(error))?;
        if let Some(copy) = store.health().set_aside {
            let copy = copy.display();
            warn(&format!(
                "damage kept the store from opening as it was, and more may be lost; a copy of it is at {copy}"
            ));
        }
        Ok(store)
    }

    fn url(&self) -> &str {
        &self.url
    }

    /// Whose conversations are meant.
    fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    /// The conversation that the caller names.
    fn name(&self, conversation: &str) -> Name {
        let name = Name::from(conversation);
        match &self.owner {
            Some(owner) => name.with_owner(owner),
            None => name,
        }
    }

    fn not_opened(&self, error: Error) -> Failure {
        match error {
            Error::NotFound { .. } => Failure::failed(format!("there is no store at {}", self.url))
                .with_hint("`convo append` and `convo replay` make one; --store URL or CONVO_STORE names another"),
            Error::Corrupt { .. } => Failure::from(error)
                .with_hint("the store cannot be opened: put its directory aside as it is, and restore a backup"),
            other => other.into(),
        }
    }
}
