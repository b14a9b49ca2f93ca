//! A file of messages into the store, and its conversations back out as prompts.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;

use conversation_store::model::{ConversationId, Message, Name};
use conversation_store::{AppendOptions, Cursor, Error, ExpectedHead, MessageState, Result, Store, StoredMessage};

use super::failure::{Exit, Failure, Outcome};
use super::lines::{self, Input, Lines};
use super::location::Location;
use super::output::{self, Output, Progress};
use super::prompt::{Rendering, Shown};
use super::text;
use super::text::{BOLD, DIM};

const EXAMPLES: &str = "\
Examples:
  convo replay incident.jsonl --for openai-chat
  convo replay incident.jsonl --for openai-chat --json | jq .report
  convo replay - --for openai-chat/deepseek --store memory: < incident.jsonl

Each line is one durable append to the conversation that it names. If it names none, the conversation has the name of \
the file, without directory and extension (stdin for -). What is stored already is compared, and not appended again: a \
second run adds nothing, or the new lines of a file that grew. A conversation that holds anything else is left as it is, \
and is an error; the others go on. Then each conversation is loaded from the store, and its prompt is printed.

With --json one object a conversation, on one line:
  {\"conversation\": \"1a997b08-...\", \"key\"?: \"chat-42\", \"request\": {...}, \"report\": [...]}
Where there is no prompt, it has \"error\": {\"kind\", \"message\", \"cure\"} in place of \"request\".";

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
            None => match renderer.render(&store, &replayed.name, None) {
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
                Err(
                    error @ (Error::StaleHead { .. }
                    | Error::StaleCursor { .. }
                    | Error::NameTaken { .. }
                    | Error::Corrupt { .. }),
                ) => {
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
    text::report(None, &shown.report) + "\n"
}

/// A conversation of the file, as far as its lines were read.
struct Replayed {
    name: Name,
    /// Why its remaining lines are skipped.
    conflict: Option<Failure>,
    /// What the store holds and no line was compared with yet.
    stored: VecDeque<StoredMessage>,
    /// Its end; nothing before its first message.
    end: Option<Cursor>,
    compared: u64,
    appended: u64,
}

impl Replayed {
    /// Looks up what the store holds.
    fn begin(store: &Store, name: Name) -> Result<Self> {
        let mut replayed = Self { name, conflict: None, stored: VecDeque::new(), end: None, compared: 0, appended: 0 };
        let beginning = match store.tail(&replayed.name, 0) {
            Ok(tail) => tail.cursor(),
            Err(Error::NotFound { .. }) => return Ok(replayed),
            Err(error) => return Err(error),
        };
        let item = store.describe(&replayed.name)?;
        replayed.end = Some(beginning.with_seq(item.last_seq));
        match store.load_raw(&replayed.name) {
            Ok(messages) => replayed.stored = messages.into(),
            Err(error @ Error::Corrupt { .. }) => replayed.conflict = Some(error.into()),
            Err(error) => return Err(error),
        }
        if item.hidden > 0 && replayed.conflict.is_none() {
            let hidden = text::count(item.hidden, "hidden message");
            replayed.refuse(&format!("it has {hidden}, which are not in the file"));
        }
        Ok(replayed)
    }

    /// Compares the next line with what is stored, or appends it.
    fn take(&mut self, store: &Store, message: &Message, place: &str) -> Result<()> {
        if self.conflict.is_some() {
            return Ok(());
        }
        let Some(stored) = self.stored.pop_front() else { return self.append(store, message) };
        match difference(&stored, message) {
            None => self.compared += 1,
            Some(what) => self.refuse(&format!(
                "{place} differs from stored message {} (seq {}): {what}",
                stored.index, stored.first_seq
            )),
        }
        Ok(())
    }

    fn append(&mut self, store: &Store, message: &Message) -> Result<()> {
        let expected = self.end.map_or(ExpectedHead::NewConversation, ExpectedHead::AtCursor);
        let options = AppendOptions::new().with_expected(expected);
        let receipt = store.append_with(&self.name, std::slice::from_ref(message), &options)?;
        self.end = Some(match self.end {
            Some(end) => end.with_seq(receipt.last_seq),
            None => store.tail(&self.name, receipt.last_seq)?.cursor(),
        });
        self.appended += 1;
        Ok(())
    }

    /// The file is at its end: no stored message may be left over.
    fn finish(&mut self, file: &str) {
        if let (None, Some(stored)) = (&self.conflict, self.stored.front()) {
            let problem = format!(
                "the store has {} more than {file}, from message {} (seq {}) on",
                text::count(self.stored.len(), "message"),
                stored.index,
                stored.first_seq
            );
            self.refuse(&problem);
        }
    }

    fn refuse(&mut self, problem: &str) {
        let conflict = Failure::new("conflict", format!("conflict: {problem}; nothing was appended to it"));
        let cure = format!("replay into another store (--store URL), or `convo delete {}` first", self.name);
        self.conflict = Some(conflict.with_cure(cure));
    }

    /// What was done with its lines.
    fn summary(&self) -> String {
        format!("{} appended, {} stored already", text::count(self.appended, "line"), self.compared)
    }
}

/// How a line differs from the store, if it does. A line without a time has the time of its append.
fn difference(stored: &StoredMessage, line: &Message) -> Option<String> {
    if stored.state != MessageState::Complete {
        return Some(format!("the stored message is {}, not complete", stored.state.as_str()));
    }
    let said = &stored.message;
    if said.role != line.role {
        return Some(format!("role is {} in the store, {} in the line", said.role, line.role));
    }
    let chunks = said.chunks.iter().zip(&line.chunks).position(|(stored, line)| stored != line);
    if let Some(chunk) = chunks {
        return Some(format!("chunks[{chunk}] differs"));
    }
    if said.chunks.len() != line.chunks.len() {
        return Some(format!(
            "{} in the store, {} in the line",
            text::count(said.chunks.len(), "chunk"),
            line.chunks.len()
        ));
    }
    if said.finish_reason != line.finish_reason {
        return Some("finish_reason differs".to_owned());
    }
    if said.usage != line.usage {
        return Some("usage differs".to_owned());
    }
    let mut metadata = said.metadata.clone();
    if line.metadata.created_at.is_none() {
        metadata.created_at = None;
    }
    if metadata.created_at != line.metadata.created_at {
        return Some("created_at differs".to_owned());
    }
    (metadata != line.metadata).then(|| "model, provider, ids or further fields differ".to_owned())
}
