use std::path::PathBuf;

use conversation_store::model::{Message, Name};
use conversation_store::provider::{self, Target};
use conversation_store::{AppendOptions, Cursor, ExpectedHead, Limits, Receipt, Store};

use super::failure::{Exit, Failure, Outcome};
use super::lines::{Input, LIMIT, Lines};
use super::location::Location;
use super::output::{self, Output, Progress};
use super::request::{self, Request};
use super::text;
use super::text::DIM;
use super::values::conversation;

const EXAMPLES: &str = "\
Examples:
  # line by line, as they come: {\"role\": \"user\", \"chunks\": [...]}
  convo append chat-42 messages.jsonl
  agent | convo append chat-42
  # only if there is no such conversation yet
  convo append chat-43 messages.jsonl --expect 0
  # safe to repeat: what this key appended is not appended again
  convo append chat-42 messages.jsonl --key upload-7
  # the messages of a provider's request
  convo append chat-42 request.json --from anthropic

A line is one message as JSON: {\"role\": \"user\", \"chunks\": [{\"type\": \"text\", \"text\": \"hello\"}]}. It is \
durable once its receipt is printed: as JSON each message has one, as text one at the end is for all, or with --each too. Blank lines \
are skipped. A bad line stops the command; the lines before it stay, and the receipts name them. Without --key, a file that is \
appended twice is there twice.

A tool call, and its result, which has the call's id:
  {\"role\": \"assistant\", \"chunks\": [{\"type\": \"tool_call\", \"id\": \"call_1\", \"name\": \"search\", \"arguments\": \
{\"q\": \"tea\"}}]}
  {\"role\": \"tool\", \"chunks\": [{\"type\": \"tool_result\", \"tool_call_id\": \"call_1\", \"content\": \"...\"}]}

With --from, the file is a provider's request, an array of its messages, or one of its messages per line. Broken \
requests are accepted too; the report on stderr names what could not be read exactly.";

/// Append messages, one JSON object per line: a durable append for each
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The conversation; it is created if it does not exist
    #[arg(value_parser = conversation())]
    conversation: String,
    /// The messages; - for stdin
    #[arg(default_value = "-")]
    file: PathBuf,
    /// FILE is a request of this wire, or wire and dialect; or messages of it, one per line
    #[arg(long, value_name = "WIRE")]
    from: Option<Target>,
    /// Append all lines or none of them, as one append (at most 128 MiB and 10,000 messages)
    #[arg(long)]
    atomic: bool,
    /// Print a receipt for each message as soon as it is durable, as text too
    #[arg(long)]
    each: bool,
    /// Append only if the conversation ends here: a seq, or a cursor, which fits no later conversation of the same name; 0:
    /// only if there is no such conversation
    #[arg(long, value_name = "CURSOR")]
    expect: Option<Cursor>,
    /// Idempotency key: what was appended with it before is not appended again. The first message's append has KEY, the
    /// n-th has KEY#n; with --atomic the one append has KEY
    #[arg(long)]
    key: Option<String>,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    if let Some(from) = args.from {
        return append_request(args, from, location, output);
    }
    let input = Input::open(&args.file)?;
    let mut append = Append::new(args, location, output)?;
    // On a terminal, receipts for each message show enough progress.
    let progress = (!output.is_text() || !append.each).then(|| Progress::bytes(input.length));
    // A reader that does not wait for the receipts still wants the messages stored.
    output.outlive_reader();
    let mut lines = Lines::new(input);
    let appended = append.lines(args.atomic, &mut lines, progress.as_ref(), output);
    drop(progress);
    append.end(lines.name(), appended, output)
}

/// The messages of a request.
fn append_request(args: &Args, from: Target, location: &Location, output: &mut Output) -> Outcome {
    let Request { name, json } = request::read_messages(&args.file)?;
    let parsed = provider::parse(from, &json).map_err(|error| Failure::from(error).at(&name))?;
    let mut append = Append::new(args, location, output)?;
    output.outlive_reader();
    output.report(None, &parsed.notes);
    let mut appends = parsed.messages.chunks(if args.atomic { parsed.messages.len().max(1) } else { 1 }).enumerate();
    let appended = appends.try_for_each(|(number, messages)| {
        let place = if args.atomic { name.clone() } else { format!("{name}: message {number}") };
        append.append(messages, output).map_err(|failure| failure.at(&place))
    });
    append.end(&name, appended, output)
}

fn expected(expect: Option<Cursor>) -> ExpectedHead {
    match expect {
        None => ExpectedHead::Any,
        Some(at) if at == Cursor::default() => ExpectedHead::NewConversation,
        Some(at) => ExpectedHead::AtCursor(at),
    }
}

struct Append<'a> {
    store: Store,
    name: Name,
    expected: ExpectedHead,
    key: Option<&'a str>,
    /// Whether each append has its receipt.
    each: bool,
    /// How many appends are done.
    appends: usize,
    /// What they came to.
    sum: Option<Appended>,
}

/// What several appends came to.
struct Appended {
    first_seq: u64,
    last_seq: u64,
    first_message: Option<u64>,
    last_message: Option<u64>,
    /// How many messages: others may have appended between them.
    messages: usize,
    /// How many of them an earlier append with their key had stored.
    duplicates: usize,
}

impl Appended {
    fn add(&mut self, receipt: &Receipt) {
        let messages = receipt.message_indexes.len();
        self.last_seq = receipt.last_seq;
        self.first_message = self.first_message.or(receipt.message_indexes.first().copied());
        self.last_message = receipt.message_indexes.last().copied().or(self.last_message);
        self.messages += messages;
        self.duplicates += if receipt.duplicate { messages } else { 0 };
    }

    /// `3 messages, 4 to 6, seq 5 to 9`
    fn text(&self) -> String {
        let messages = match (self.first_message, self.last_message) {
            (Some(first), Some(last)) if first != last => {
                format!("{}, {first} to {last}, ", text::count(self.messages, "message"))
            }
            (Some(only), _) => format!("message {only}, "),
            (None, _) => String::new(),
        };
        let duplicates = match self.duplicates {
            0 => String::new(),
            all if all == self.messages => format!("{DIM}, stored already{DIM:#}"),
            some => format!("{DIM}, {some} of them stored already{DIM:#}"),
        };
        messages + &output::seqs(self.first_seq, self.last_seq) + &duplicates
    }
}

impl<'a> Append<'a> {
    fn new(args: &'a Args, location: &Location, output: &Output) -> Result<Self, Failure> {
        let (store, name) = (location.create()?, location.name(&args.conversation));
        let (expected, key) = (expected(args.expect), args.key.as_deref());
        // A program waits for them, a person counts them.
        let each = args.each || !output.is_text();
        Ok(Self { store, name, expected, key, each, appends: 0, sum: None })
    }

    fn lines(
        &mut self,
        atomic: bool,
        lines: &mut Lines,
        progress: Option<&Progress>,
        output: &mut Output,
    ) -> Result<(), Failure> {
        if atomic {
            let messages = self.read_all(lines)?;
            if messages.is_empty() {
                return Ok(());
            }
            return self.append(&messages, output).map_err(|failure| failure.at(lines.name()));
        }
        while let Some(message) = self.read(lines)? {
            let appended = self.append(std::slice::from_ref(&message), output);
            appended.map_err(|failure| failure.at(&lines.place()))?;
            if let Some(progress) = progress {
                progress.set(lines.position());
            }
        }
        Ok(())
    }

    /// Prints the receipt of what was appended, also where a failure ended it.
    fn end(self, input: &str, appended: Result<(), Failure>, output: &mut Output) -> Outcome {
        if let Some(sum) = &self.sum {
            output.text(&sum.text())?;
            output.flush()?;
        }
        appended?;
        if self.appends == 0 {
            output::note(&format!("{input}: no messages, nothing was appended"));
        }
        Ok(Exit::Done)
    }

    /// The next message.
    fn read(&self, lines: &mut Lines) -> Result<Option<Message>, Failure> {
        let Some(line) = lines.next()? else { return Ok(None) };
        let owned = |name: String| match self.name.owner() {
            Some(owner) => Name::from(name).with_owner(owner),
            None => Name::from(name),
        };
        match line.conversation.map(owned) {
            Some(other) if other.id() != self.name.id() => Err(Failure::usage(format!(
                "{}:1: conversation: expected {}, or none; found {other}",
                lines.place(),
                self.name
            ))
            .with_cure("`convo replay` appends each line to the conversation that it names")),
            _ => Ok(Some(line.message)),
        }
    }

    fn read_all(&self, lines: &mut Lines) -> Result<Vec<Message>, Failure> {
        let mut messages = Vec::new();
        while let Some(message) = self.read(lines)? {
            messages.push(message);
            let (most, place) = (Limits::APPEND_MESSAGES, lines.place());
            if messages.len() > most || lines.position() > LIMIT as u64 {
                return Err(Failure::usage(format!(
                    "{place}:1: --atomic takes at most {} and {LIMIT} bytes (128 MiB); nothing was appended",
                    text::count(most, "message")
                ))
                .with_cure("leave --atomic out, or split the file"));
            }
        }
        Ok(messages)
    }

    fn append(&mut self, messages: &[Message], output: &mut Output) -> Result<(), Failure> {
        let mut options = AppendOptions::new().with_expected(self.expected);
        if let Some(key) = self.key {
            let number = self.appends + 1;
            options =
                options.with_idempotency_key(if number == 1 { key.to_owned() } else { format!("{key}#{number}") });
        }
        let receipt: Receipt = self.store.append_with(&self.name, messages, &options)?;
        self.appends += 1;
        self.expected = match self.expected {
            ExpectedHead::Any => ExpectedHead::Any,
            ExpectedHead::AtCursor(at) => ExpectedHead::AtCursor(at.with_seq(receipt.last_seq)),
            _ => ExpectedHead::At(receipt.last_seq),
        };
        if self.each {
            output::receipt(&self.name, &receipt, output)?;
            return output.flush();
        }
        let new = || Appended {
            first_seq: receipt.first_seq,
            last_seq: receipt.last_seq,
            first_message: None,
            last_message: None,
            messages: 0,
            duplicates: 0,
        };
        self.sum.get_or_insert_with(new).add(&receipt);
        Ok(())
    }
}
