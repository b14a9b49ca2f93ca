use std::env;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use conversation_store::model::Name;
use conversation_store::transfer::{self, Agent, ExportSummary};
use conversation_store::{ListQuery, Store};

use super::failure::{Exit, Failure, Outcome};
use super::location::Location;
use super::output::{self, Output, Progress};
use super::text;
use super::values::{self, Way};

const EXAMPLES: &str = "\
Examples:
  # pictures become files in chat-42-files, which the text links
  convo export chat-42 --format markdown --out chat-42.md
  convo export --all --format transcript --out all.jsonl
  convo export chat-42 --format html > chat-42.html
  # go on in Claude Code with what Codex or another program said
  convo export chat-42 --to claude-code

The transcript is lossless: `convo import` reads it back as the same messages. For any other format, stderr counts \
what was left out or altered. An unknown format is refused with the list of formats.

--to writes a session into the folder of the program ($CLAUDE_CONFIG_DIR or ~/.claude, $CODEX_HOME or ~/.codex), for the folder in \
which this command runs, and prints the command that goes on with it. The session has what was said, with calls and their results; \
thinking only if the program's own vendor signed it; no instructions, because the program has its own.";

/// Write conversations in another program's format, or for people
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The conversation
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    conversation: Option<String>,
    /// All conversations of the owner
    #[arg(long)]
    all: bool,
    /// The format; a wrong name prints the list
    #[arg(long, value_name = "NAME", required_unless_present = "to")]
    format: Option<String>,
    /// Write it as a session that this program goes on with: claude-code, codex
    #[arg(long, value_name = "PROGRAM", value_parser = agent, conflicts_with_all = ["format", "out", "all"])]
    to: Option<Agent>,
    /// The file to write, which must not exist; stdout by default. Pictures, sounds and documents of a Markdown file become
    /// files in the folder FILE-files beside it; on stdout pictures stay in the text
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    if let (Some(agent), Some(name)) = (args.to, &args.conversation) {
        return hand_over(name, agent, location, output);
    }
    let format = values::format_named(args.format.as_deref().unwrap_or_default(), Way::Export)?;
    let store = location.read()?;
    let mut names: Vec<Name> = args.conversation.iter().map(|name| location.name(name)).collect();
    if args.all {
        names = all(&store, location.owner().unwrap_or_default())?;
    }
    let progress = Progress::bytes(Some(names.len() as u64));
    let mut done = 0;
    let mut advance = |_: &Name| {
        done += 1;
        progress.set(done);
    };
    let summary = match &args.out {
        Some(path) => {
            let folder = (format == "markdown").then(|| folder_beside(path)).transpose()?;
            let mut file = BufWriter::new(create(path)?);
            let summary = match &folder {
                Some(folder) => transfer::export_markdown(&store, names, folder, &mut file, &mut advance),
                None => transfer::export(&store, names, format, &mut file, &mut advance),
            };
            if summary.is_err() {
                // It would be in the way of the next one.
                let _ = fs::remove_file(path);
            }
            let summary = summary?;
            file.into_inner()
                .map_err(|error| Failure::failed(error.to_string()))?
                .sync_all()
                .map_err(|error| Failure::output(&error))?;
            summary
        }
        None => {
            let mut gone = false;
            let stdout = Stdout { inner: io::stdout().lock(), gone: &mut gone };
            let mut stdout = BufWriter::new(stdout);
            let summary = transfer::export(&store, names, format, &mut stdout, &mut advance)?;
            drop(stdout);
            summary
        }
    };
    drop(progress);
    left_out(&summary);
    if args.out.is_some() {
        output.result(&summary, || {
            let beside =
                if summary.files > 0 { format!(", {}", text::count(summary.files, "file")) } else { String::new() };
            let conversations = text::count(summary.conversations, "conversation");
            format!("{conversations}, {}{beside}", text::count(summary.messages, "message"))
        })?;
    }
    Ok(Exit::Done)
}

fn agent(text: &str) -> Result<Agent, &'static str> {
    text.parse().map_err(|_| "expected claude-code or codex")
}

/// Hands a conversation over to a program that goes on with it here.
fn hand_over(name: &str, agent: Agent, location: &Location, output: &mut Output) -> Outcome {
    let (variable, folder) = agent.folder();
    let own = || env::home_dir().map(|home| home.join(folder));
    let home = env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from).or_else(own);
    let home = home.ok_or_else(|| {
        Failure::usage(format!("you have no home directory: name the program's folder in {variable}"))
    })?;
    let work = env::current_dir().map_err(|error| Failure::failed(format!("cannot name the folder: {error}")))?;
    let store = location.read()?;
    let session = transfer::hand_over(&store, location.name(name), agent, &home, &work)?;
    left_out(&session.summary);
    output.result(&session, || session.command.clone())?;
    Ok(Exit::Done)
}

fn left_out(summary: &ExportSummary) {
    for (kind, count) in &summary.left_out {
        output::note(&format!("left out or altered: {count} {kind}"));
    }
}

/// The file to write. One that exists is left alone.
fn create(path: &Path) -> Result<File, Failure> {
    let shown = path.display();
    File::create_new(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::usage(format!("{shown} exists already; an export replaces no file"))
            .with_cure("give another name with --out, or remove that file first"),
        _ => Failure::usage(format!("cannot create {shown}: {error}")),
    })
}

/// The folder for the files beside an export: `chat-42-files` for `chat-42.md`.
fn folder_beside(path: &Path) -> Result<PathBuf, Failure> {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push("-files");
    let folder = path.with_file_name(name);
    if folder.exists() {
        let failure = Failure::usage(format!("{} exists already; an export replaces no file", folder.display()));
        return Err(failure.with_cure("give another name with --out, or remove that folder first"));
    }
    Ok(folder)
}

/// All conversations of an owner.
fn all(store: &Store, owner: &str) -> Result<Vec<Name>, Failure> {
    let mut names = Vec::new();
    let mut query = ListQuery::new().with_owner(owner);
    loop {
        let page = store.list(&query)?;
        names.extend(page.items.iter().map(|item| Name::from(item.id)));
        match page.next {
            Some(next) => query = query.with_after(next),
            None => return Ok(names),
        }
    }
}

/// Writes to stdout; a reader that has gone has what it wanted.
struct Stdout<'a> {
    inner: io::StdoutLock<'static>,
    gone: &'a mut bool,
}

impl Write for Stdout<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if *self.gone {
            return Ok(bytes.len());
        }
        match self.inner.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                *self.gone = true;
                Ok(bytes.len())
            }
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if *self.gone { Ok(()) } else { self.inner.flush() }
    }
}
