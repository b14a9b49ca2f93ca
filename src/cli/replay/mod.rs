//! A file of messages into the store, and its conversations back out as prompts.

mod compare;
mod conversation;

use std::collections::HashMap;
use std::path::PathBuf;

use conversation_store::model::{ConversationId, Name};
use conversation_store::{Error, Store};

use super::failure::{Exit, Failure, Outcome};
use super::lines::{self, Input, Lines};
use super::location::Location;
use super::output::{self, Output};
use super::progress::Progress;
use super::prompt::{Rendering, Shown};
use super::style::{BOLD, DIM};
use super::{report, text};
use conversation::Replayed;

const EXAMPLES: &str = "\
Examples:
  convo replay incident.jsonl --for openai-chat
  convo replay incident.jsonl --for openai-chat --json | jq .report
  convo replay - --for openai-chat/deepseek --store memory: < incident.jsonl

Each line is one durable append to the conversation that it names; where it names none, to one called as the file, \
without directory and extension (stdin for -). What is stored already is compared, not appended again: a second run \
adds nothing, and of a file that grew the new lines. A conversation that holds anything else is left as it is, and \
is an error; the others go on. Every conversation is then loaded from the store and its prompt printed.

With --json one object a conversation, on one line:
  {\"conversation\": \"1a997b08-...\", \"key\"?: \"chat-42\", \"request\": {...}, \"report\": [...]}
Where there is no prompt, it has \"error\": {\"kind\", \"message\", \"hint\"} in place of \"request\".";

/// Append a file of messages, line by line, then print the prompt of each of its conversations
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The messages; - for stdin
    file: PathBuf,
    #[command(flatten)]
    rendering: Rendering,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let renderer = args.rendering.prepare()?;
    let input = Input::open(&args.file)?;
    let store = location.create()?;
    let progress = Progress::bytes(input.length);
    let mut lines = Lines::new(input);
    let replay = Replay::read(&mut lines, &store, location, &lines::default_conversation(&args.file), &progress)?;
    drop(progress);
    if replay.conversations.is_empty() {
        output::note(&format!("{}: no messages, nothing was appended", lines.name()));
    }
    let mut exit = Exit::Done;
    for mut replayed in replay.conversations {
        replayed.finish(lines.name());
        let shown = match replayed.conflict.take() {
            Some(conflict) => Shown::failed(&replayed.name, conflict),
            None => match renderer.render(&store, &replayed.name) {
                Ok(shown) => shown,
                Err(error) => Shown::failed(&replayed.name, error.into()),
            },
        };
        if shown.exit() != Exit::Done {
            exit = shown.exit();
        }
        print(shown, &replayed, output)?;
    }
    Ok(exit)
}

/// The conversations of a file, in the order in which they first appear.
#[derive(Default)]
struct Replay {
    conversations: Vec<Replayed>,
    places: HashMap<ConversationId, usize>,
}

impl Replay {
    fn read(
        lines: &mut Lines,
        store: &Store,
        location: &Location,
        default: &str,
        progress: &Progress,
    ) -> Result<Self, Failure> {
        let mut replay = Self::default();
        while let Some(line) = lines.next()? {
            let name = location.name(line.conversation.as_deref().unwrap_or(default));
            let place = lines.place();
            let replayed = replay.conversation(store, name)?;
            match replayed.take(store, &line.message, &place) {
                Ok(()) => {}
                Err(error @ (Error::StaleHead { .. } | Error::NameTaken { .. } | Error::Corrupt { .. })) => {
                    replayed.conflict = Some(Failure::from(error).at(&place));
                }
                Err(error) => return Err(Failure::from(error).at(&place)),
            }
            progress.set(lines.position());
        }
        Ok(replay)
    }

    fn conversation(&mut self, store: &Store, name: Name) -> Result<&mut Replayed, Failure> {
        let place = match self.places.get(&name.id()) {
            Some(place) => *place,
            None => {
                self.places.insert(name.id(), self.conversations.len());
                self.conversations.push(Replayed::begin(store, name)?);
                self.conversations.len() - 1
            }
        };
        // Every position in the map is a conversation's.
        self.conversations.get_mut(place).ok_or_else(|| Failure::failed("a conversation was lost on the way"))
    }
}

fn print(shown: Shown, replayed: &Replayed, output: &mut Output) -> Result<(), Failure> {
    if output.is_json() {
        return output.json(&shown);
    }
    let label = text::printable(shown.label()).into_owned();
    let summary = replayed.summary();
    if output.is_text() {
        output.text(&format!("{BOLD}{label}{BOLD:#}  {DIM}{summary}{DIM:#}"))?;
    } else {
        output::note(&format!("{label}: {summary}"));
    }
    if let Some(request) = &shown.request {
        if output.is_text() {
            output.text(&text::printable(&text::pretty_json(request.get())))?;
            output.text(&shown_report(&shown))?;
        } else {
            output.json(request)?;
        }
    }
    if !output.is_text() {
        if shown.report.is_empty() && shown.error.is_none() {
            output::note(&format!("{label}: report: nothing was left out or altered"));
        }
        output.report(Some(&label), &shown.report);
    }
    if let Some(error) = shown.error {
        output.flush()?;
        output::error(&error.at(&label));
    }
    Ok(())
}

/// The report as text below the request.
fn shown_report(shown: &Shown) -> String {
    if shown.report.is_empty() {
        return format!("{DIM}report: nothing was left out or altered{DIM:#}\n");
    }
    report::text(None, &shown.report) + "\n"
}
