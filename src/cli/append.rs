use std::path::PathBuf;

use conversation_store::model::{Message, Name};
use conversation_store::provider::{self, Target};
use conversation_store::{AppendOptions, Cursor, ExpectedHead, Limits, Receipt, Store};

use super::failure::{Exit, Failure, Outcome};
use super::lines::{Input, LIMIT, Lines};
use super::location::Location;
use super::output::{self, Output};
use super::progress::Progress;
use super::request::{self, Request};
use super::text;
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
durable once its receipt is printed. Blank lines are skipped. A bad line stops the command; the lines before it stay. \
Without --key, a file that is appended twice is there twice.

A tool call, and its result, which has the call's id:
  {\"role\": \"assistant\", \"chunks\": [{\"type\": \"tool_call\", \"id\": \"call_1\", \"name\": \"search\", \"arguments\": \
{\"q\": \"tea\"}}]}
  {\"role\": \"tool\", \"chunks\": [{\"type\": \"tool_result\", \"tool_call_id\": \"call_1\", \"content\": \"...\"}]}

With --from, the file is a provider's request, an array of its messages, or one of its messages per line. Broken \
requests are accepted too; the report on stderr names what could not be read exactly.";

/// Append messages, one JSON object per line: one durable append and one receipt for each
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
    // On a terminal the receipts show enough progress.
    let progress = (!output.is_text()).then(|| Progress::bytes(input.length));
    let mut append = Append::new(args, location)?;
    // A reader that does not wait for the receipts still wants the messages stored.
    output.outlive_reader();
    let mut lines = Lines::new(input);
    if args.atomic {
        let messages = append.read_all(&mut lines)?;
        if !messages.is_empty() {
            append.append(&messages, output).map_err(|failure| failure.at(lines.name()))?;
        }
    } else {
        while let Some(message) = append.read(&mut lines)? {
            let appended = append.append(std::slice::from_ref(&message), output);
            appended.map_err(|failure| failure.at(&lines.place()))?;
            if let Some(progress) = &progress {
                progress.set(lines.position());
            }
        }
    }
    drop(progress);
    if append.appends == 0 {
        output::note(&format!("{}: no messages, nothing was appended", lines.name()));
    }
    Ok(Exit::Done)
}

/// The messages of a request.
fn append_request(args: &Args, from: Target, location: &Location, output: &mut Output) -> Outcome {
    let Request { name, json } = request::read_messages(&args.file)?;
    let parsed = provider::parse(from, &json).map_err(|error| Failure::from(error).at(&name))?;
    let mut append = Append::new(args, location)?;
    output.outlive_reader();
    output.report(None, &parsed.notes);
    let appends = parsed.messages.chunks(if args.atomic { parsed.messages.len().max(1) } else { 1 });
    for (number, messages) in appends.enumerate() {
        let place = if args.atomic { name.clone() } else { format!("{name}: message {number}") };
        append.append(messages, output).map_err(|failure| failure.at(&place))?;
    }
    if append.appends == 0 {
        output::note(&format!("{name}: no messages, nothing was appended"));
    }
    Ok(Exit::Done)
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
    /// How many appends are done.
    appends: usize,
}

impl<'a> Append<'a> {
    fn new(args: &'a Args, location: &Location) -> Result<Self, Failure> {
        let (store, name) = (location.create()?, location.name(&args.conversation));
        Ok(Self { store, name, expected: expected(args.expect), key: args.key.as_deref(), appends: 0 })
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
            .with_hint("`convo replay` appends each line to the conversation that it names")),
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
                .with_hint("leave --atomic out, or split the file"));
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
        output::receipt(&self.name, &receipt, output)?;
        output.flush()
    }
}
