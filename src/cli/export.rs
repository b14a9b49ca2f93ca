use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use conversation_store::model::Name;
use conversation_store::transfer;
use conversation_store::{ListQuery, Store};

use super::failure::{Exit, Failure, Outcome};
use super::formats::{self, Way};
use super::location::Location;
use super::output::{self, Output};
use super::progress::Progress;
use super::text;

const EXAMPLES: &str = "\
Examples:
  convo export chat-42 --format markdown --out chat-42.md
  convo export --all --format transcript --out all.jsonl
  convo export chat-42 --format html > chat-42.html

The transcript is lossless: `convo import` reads it back as the same messages. For any other format, stderr counts \
what was left out or altered. An unknown format is refused with the list of formats.";

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
    #[arg(long, value_name = "NAME")]
    format: String,
    /// The file to write, which must not exist; stdout by default
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let format = formats::named(&args.format, Way::Export)?;
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
            let mut file = BufWriter::new(create(path)?);
            let summary = transfer::export(&store, names, format, &mut file, &mut advance)?;
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
    for (kind, count) in &summary.left_out {
        output::note(&format!("left out or altered: {count} {kind}"));
    }
    if args.out.is_some() {
        output.result(&summary, || {
            format!(
                "{}, {}",
                text::count(summary.conversations, "conversation"),
                text::count(summary.messages, "message")
            )
        })?;
    }
    Ok(Exit::Done)
}

/// The file to write. One that exists is left alone.
fn create(path: &Path) -> Result<File, Failure> {
    let shown = path.display();
    File::create_new(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::usage(format!("{shown} exists already; an export replaces no file"))
            .with_hint("give another name with --out, or remove that file first"),
        _ => Failure::usage(format!("cannot create {shown}: {error}")),
    })
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
