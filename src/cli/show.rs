//! A conversation for people, or its messages as JSON.

use std::thread;
use std::time::{Duration, SystemTime};

use conversation_store::model::{self, Audio, Body, Chunk, File, Name, Part, PartBody};
use conversation_store::{ListItem, MessageState, ReportLine, Store, StoredMessage, Summary, Tail};

use super::failure::{Exit, Failure, Outcome};
use super::location::Location;
use super::output::{self, Output};
use super::text::{self, BOLD, DIM, ERROR, Layout, WARNING, style_of};
use super::values::{conversation, positive};

/// The time between two looks at a conversation that is followed.
const PAUSE: Duration = Duration::from_millis(300);

const EXAMPLES: &str = "\
Examples:
  convo show chat-42
  # the newest 2 messages, nothing folded
  convo show chat-42 --last 2 --full
  # and what comes, as it comes
  convo show chat-42 --last 2 --follow
  # as it was appended, nothing repaired
  convo show chat-42 --raw
  convo show chat-42 --json | jq -r .role
  convo show chat-42 --text > chat.txt

On a terminal a text of more than 30 lines is folded; --full shows all of it, and JSON has everything. The report on \
stderr names what was repaired.

An answer that was cut short and goes on in the next message is printed as one: its second half comes after \
`… message`.

The number after the word message is the MESSAGE of rewind, hide, redact, summarize --through and fork --through. The \
number after the word chunk is a CHUNK. fork --at and log --since take a SEQ.";

/// Print the messages of a conversation
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The conversation
    #[arg(value_parser = conversation())]
    conversation: String,
    /// Only the newest messages
    #[arg(long, value_name = "N", value_parser = positive)]
    last: Option<u64>,
    /// Continue, and print what arrives, until Ctrl-C. A message is printed once it is complete. A store in a directory is
    /// open only for moments, so that other processes can write to it
    #[arg(long, short)]
    follow: bool,
    /// Fold nothing
    #[arg(long)]
    full: bool,
    /// The messages as they were appended: nothing is repaired, and nothing is folded
    #[arg(long)]
    raw: bool,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    let name = location.name(&args.conversation);
    let folded = Layout::folded("--full shows them");
    let layout = if args.raw || args.full { folded.whole() } else { folded };
    let store = location.read()?;
    let Shown { item, mut messages, report, summary } = load(&store, &name, args.raw)?;
    let followed = if args.follow { Some(Followed::new(location, store, &name, item.last_seq)?) } else { None };
    if !args.follow {
        output.begin_pages();
    }
    if output.is_text() {
        output.text(&heading(&name, &item))?;
    }
    let is_empty = messages.is_empty();
    let left_out =
        messages.len().saturating_sub(args.last.map_or(usize::MAX, |last| last.try_into().unwrap_or(usize::MAX)));
    let first = messages.get(left_out).map_or(0, |first| first.index);
    if left_out > 0 && output.is_text() {
        output.text(&format!("\n{DIM}… {} before: --last leaves them out{DIM:#}", text::count(left_out, "message")))?;
    }
    let mut before: Option<StoredMessage> = None;
    for stored in messages.drain(left_out..) {
        output.result(&stored, || text(&stored, before.as_ref(), layout))?;
        before = Some(stored);
    }
    if is_empty && output.is_text() && !args.follow {
        output.text("\nno messages")?;
    }
    output.end_pages()?;
    output.report(None, &report.into_iter().filter(|line| is_from(line, first)).collect::<Vec<_>>());
    if let Some(Summary { seq, through, .. }) = summary {
        output::note(&format!("prompts use the summary of seq {seq} in place of the messages up to {through}"));
    }
    match followed {
        Some(followed) => Err(follow(followed, &name, before, args.raw, layout, output)),
        None => Ok(Exit::Done),
    }
}

/// Whether a line of the report is about the messages that are shown.
fn is_from(line: &ReportLine, first: u64) -> bool {
    line.message_index.is_none_or(|index| index >= first)
}

/// Prints the messages after `before` as they are completed; ends with the failure that stops it.
fn follow(
    mut followed: Followed<'_>,
    name: &Name,
    mut before: Option<StoredMessage>,
    raw: bool,
    layout: Layout,
    output: &mut Output,
) -> Failure {
    let mut step = || -> Result<(), Failure> {
        thread::sleep(PAUSE);
        // A process that has the store open writes to it: its messages are printed when it is done.
        let messages = match followed.look(name, raw) {
            Err(failure) if failure.code == "busy" => return Ok(()),
            looked => looked?.map_or_else(Vec::new, |shown| shown.messages),
        };
        for stored in messages {
            if before.as_ref().is_some_and(|before| stored.index <= before.index) {
                continue;
            }
            if stored.state == MessageState::Streaming {
                break;
            }
            output.result(&stored, || text(&stored, before.as_ref(), layout))?;
            before = Some(stored);
        }
        output.flush()
    };
    loop {
        if let Err(failure) = step() {
            return failure;
        }
    }
}

/// `chat-42  Cache design  4 messages, 2 hidden  last seq 9`.
fn heading(name: &Name, item: &ListItem) -> String {
    let title = item.title.as_ref().map_or_else(String::new, |title| format!("  {}", text::cut(title, 60)));
    let hidden = if item.hidden > 0 { format!(", {} hidden", item.hidden) } else { String::new() };
    let (messages, seq) = (text::count(item.messages, "message"), item.last_seq);
    let name = name.to_string();
    format!("{BOLD}{}{BOLD:#}{title}  {DIM}{messages}{hidden}  last seq {seq}{DIM:#}", text::printable(&name))
}

/// `message 3  assistant  seq 5 to 7  gpt-5  stop  2026-01-02 03:04:05 UTC`, then its chunks. What goes on with the answer of the
/// message before it has no heading of its own: `… message 4  seq 8`.
fn text(stored: &StoredMessage, before: Option<&StoredMessage>, layout: Layout) -> String {
    let message = &stored.message;
    let style = style_of(message.role);
    let continues = before.is_some_and(|before| stored.continues(before));
    let mut out = match continues {
        true => format!("  {DIM}… message{DIM:#} {BOLD}{}{BOLD:#}", stored.index),
        false => format!("\n{DIM}message{DIM:#} {BOLD}{}{BOLD:#}  {style}{}{style:#}", stored.index, message.role),
    };
    if stored.state != MessageState::Complete {
        out.push_str(&format!("  {WARNING}{}{WARNING:#}", stored.state.as_str()));
    }
    let seqs = match (stored.first_seq, stored.last_seq) {
        // What was made up for the prompt is in no log.
        _ if stored.state == MessageState::Synthetic => None,
        (first, last) if first == last => Some(format!("seq {first}")),
        (first, last) => Some(format!("seq {first} to {last}")),
    };
    let time = message.metadata.created_at.map(|time| format!("{} UTC", text::time(time)));
    let reason = message.finish_reason.as_ref().map(|reason| text::cut(reason.as_str(), 40));
    let model = message.metadata.model.as_ref().map(|model| text::cut(model, 40));
    for part in [seqs, model, reason, time].into_iter().flatten() {
        out.push_str(&format!("  {DIM}{part}{DIM:#}"));
    }
    out.push('\n');
    let is_one = message.chunks.len() < 2;
    for (position, chunk) in message.chunks.iter().enumerate() {
        let index = if is_one { None } else { Some(stored.chunk_index(position)) };
        out.push_str(&chunk_text(chunk, index, layout));
    }
    out
}

const INDENT: &str = "    ";
const DEEPER: &str = "      ";

/// A chunk, indented: text unchanged, anything else after its kind. `index`: its number, if there is more than one.
fn chunk_text(chunk: &Chunk, index: Option<u32>, layout: Layout) -> String {
    if let (Body::Text { text, .. }, None) = (&chunk.body, index) {
        return text::wrap(text, INDENT, layout);
    }
    let style = if matches!(chunk.body, Body::Error { .. }) { ERROR } else { DIM };
    let kind = chunk.body.kind().replace('_', " ");
    let number = index.map_or_else(String::new, |index| format!("{DIM}chunk {index}{DIM:#}  "));
    let mut out = format!("{INDENT}{number}{style}{}{style:#}", text::printable(&kind));
    let label = label(&chunk.body);
    if !label.is_empty() {
        out.push_str(&format!("  {}", text::cut(&label, layout.width)));
    }
    out.push('\n');
    for content in contents(chunk) {
        out.push_str(&text::wrap(&content, DEEPER, layout));
    }
    out
}

/// A chunk on one line.
pub(super) fn summary(chunk: &Chunk) -> String {
    let contents = contents(chunk).join(" ");
    match (&chunk.body, label(&chunk.body)) {
        (Body::Text { text, .. }, _) => text.clone(),
        (body, label) if label.is_empty() => format!("{}: {contents}", body.kind()),
        (body, label) => format!("{} {label}: {contents}", body.kind()),
    }
}

/// The chunk's label.
fn label(body: &Body) -> String {
    match body {
        Body::ToolCall { id, name, .. } => format!("{name} {id}"),
        Body::ToolResult { tool_call_id, name, is_error, .. } => {
            let failed = if *is_error == Some(true) { Some("failed") } else { None };
            [name.as_deref(), Some(tool_call_id), failed].into_iter().flatten().collect::<Vec<_>>().join(" ")
        }
        Body::File(file) => file.name.clone().unwrap_or_default(),
        Body::Error { code, .. } => code.clone().unwrap_or_default(),
        Body::Opaque { provider, kind, .. } => format!("{provider} {kind}"),
        _ => String::new(),
    }
}

/// The chunk's content, for people.
fn contents(chunk: &Chunk) -> Vec<String> {
    match &chunk.body {
        Body::Text { text, .. } | Body::Refusal { text } => vec![text.clone()],
        Body::Thinking { text, redacted, .. } => {
            let redacted = redacted.as_ref().map(|data| format!("redacted, {} bytes", data.len()));
            [Some(text.clone()).filter(|text| !text.is_empty()), redacted].into_iter().flatten().collect()
        }
        Body::ToolCall { arguments, .. } => vec![arguments.clone()],
        Body::ToolResult { output: model::Output::Text(text), .. } => vec![text.clone()],
        Body::ToolResult { output: model::Output::Parts(parts), .. } => parts.iter().map(part).collect(),
        Body::Image(image) => vec![address(&image.url)],
        Body::Audio(value) => vec![audio(value)],
        Body::File(value) => vec![file(value)],
        Body::Error { message, .. } => vec![message.clone()],
        Body::Opaque { json, .. } => vec![json.to_string()],
        _ => chunk.extra.iter().map(|(name, json)| format!("{name}: {json}")).collect(),
    }
}

fn part(part: &Part) -> String {
    match &part.body {
        PartBody::Text { text } => text.clone(),
        PartBody::Image(image) => format!("image {}", address(&image.url)),
        PartBody::Audio(value) => format!("audio {}", audio(value)),
        PartBody::File(value) => format!("file {}", file(value)),
        PartBody::Json { json } => json.to_string(),
        other => other.kind().to_owned(),
    }
}

fn audio(audio: &Audio) -> String {
    let place = audio.url.as_deref().map(address).or_else(|| audio.data.as_deref().map(data));
    [audio.transcript.clone(), place].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn file(file: &File) -> String {
    file.url.as_deref().map(address).or_else(|| file.data.as_deref().map(data)).unwrap_or_default()
}

/// An address; for a data URL, its type and length.
fn address(url: &str) -> String {
    match url.strip_prefix("data:").and_then(|rest| rest.split_once(',')) {
        Some((kind, content)) => format!("data:{kind}, {} characters", content.len()),
        None => url.to_owned(),
    }
}

fn data(base64: &str) -> String {
    format!("{} characters of base64", base64.len())
}

/// How long a store that others write to is asked for news at a time.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is stored of a conversation at one moment.
struct Shown {
    item: ListItem,
    messages: Vec<StoredMessage>,
    report: Vec<ReportLine>,
    summary: Option<Summary>,
}

/// Reads a conversation. `raw`: as it was appended, with nothing repaired.
fn load(store: &Store, name: &Name, raw: bool) -> Result<Shown, Failure> {
    let item = store.describe(name)?;
    if raw {
        return Ok(Shown { item, messages: store.load_raw(name)?, report: Vec::new(), summary: None });
    }
    let conversation = store.load(name)?;
    let (report, summary) = (conversation.report().to_vec(), conversation.summary().cloned());
    Ok(Shown { item, messages: conversation.into_messages(), report, summary })
}

/// A store that is followed.
enum Followed<'a> {
    /// It stays open, and is asked for news.
    Shared(Store, Tail),
    /// It is opened where its files have changed since this time: a process that has it open keeps all others out.
    Directory(&'a Location, Option<SystemTime>),
}

impl<'a> Followed<'a> {
    /// Of a store that was read, after this seq at the earliest.
    fn new(location: &'a Location, store: Store, name: &Name, last_seq: u64) -> Result<Self, Failure> {
        if !location.is_shared() {
            return Ok(Self::Directory(location, None));
        }
        let tail = store.tail(name, last_seq)?;
        Ok(Self::Shared(store, tail))
    }

    /// What is stored now, if there may be something new.
    fn look(&mut self, name: &Name, raw: bool) -> Result<Option<Shown>, Failure> {
        match self {
            Self::Shared(store, tail) => {
                let is_new = !tail.next(PATIENCE)?.is_empty();
                is_new.then(|| load(store, name, raw)).transpose()
            }
            Self::Directory(location, seen) => {
                let changed = location.changed();
                if changed.is_some() && changed == *seen {
                    return Ok(None);
                }
                let loaded = location.read().and_then(|store| load(&store, name, raw));
                // From before the store was read: what is written during the read is printed next time.
                if loaded.is_ok() {
                    *seen = changed;
                }
                loaded.map(Some)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use conversation_store::model::{Message, Timestamp};

    use super::*;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn people_read_who_said_what() {
        let store = Store::open("memory:").unwrap();
        let mut answer = Message::assistant([
            Chunk::thinking("Look first."),
            Chunk::tool_call("call_1", "run", r#"{"command":"ls"}"#),
            Chunk::error("overloaded"),
        ]);
        answer.finish_reason = Some("tool_calls".into());
        let mut messages = [Message::user("hi\u{1b}[2J\nthere"), answer, Message::tool("call_1", "a\nb\nc\nd")];
        for message in &mut messages {
            message.metadata.created_at = Some(Timestamp::from_micros(0));
        }
        store.append("chat", &messages).unwrap();
        let layout = Layout { width: 60, lines: 2, more: "--full shows them" };
        let shown: String =
            store.load_raw("chat").unwrap().iter().map(|stored| plain(&text(stored, None, layout))).collect();
        let wanted = "
message 0  user  seq 1  1970-01-01 00:00:00 UTC
    hi\\u{1b}[2J
    there

message 1  assistant  seq 2 to 4  tool_calls  1970-01-01 00:00:00 UTC
    chunk 0  thinking
      Look first.
    chunk 1  tool call  run call_1
      {\"command\":\"ls\"}
    chunk 2  error
      overloaded

message 2  tool  seq 5  1970-01-01 00:00:00 UTC
    tool result  call_1
      a
      b
      … 2 more lines, 2 characters: --full shows them
";
        assert_eq!(shown, wanted);
        let heading = heading(&Name::from("chat"), &store.describe("chat").unwrap());
        assert_eq!(plain(&heading), "chat  hi\\u{1b}[2J  3 messages  last seq 5");
    }

    #[test]
    fn halves_of_an_answer_are_read_as_one() {
        let store = Store::open("memory:").unwrap();
        let said = |text: &str, reason: &str| {
            let mut message = Message::assistant([Chunk::text(text)]);
            message.finish_reason = Some(reason.into());
            message.metadata.created_at = Some(Timestamp::from_micros(0));
            message
        };
        let answers = [said("A cold", "length"), said("night", "pause_turn"), said(".", "stop"), said("More.", "stop")];
        store.append("chat", &answers).unwrap();
        let messages = store.load_raw("chat").unwrap();
        let befores = [None].into_iter().chain(messages.iter().map(Some));
        let shown: String = messages
            .iter()
            .zip(befores)
            .map(|(stored, before)| plain(&text(stored, before, Layout::folded(""))))
            .collect();
        let wanted = "
message 0  assistant  seq 1  length  1970-01-01 00:00:00 UTC
    A cold
  … message 1  seq 2  pause_turn  1970-01-01 00:00:00 UTC
    night
  … message 2  seq 3  stop  1970-01-01 00:00:00 UTC
    .

message 3  assistant  seq 4  stop  1970-01-01 00:00:00 UTC
    More.
";
        assert_eq!(shown, wanted);
    }

    #[test]
    fn other_states_are_named() {
        let store = Store::open("memory:").unwrap();
        let call = Chunk::tool_call("c", "run", "{}");
        store.append("chat", &[Message::assistant([call]), Message::user("go on")]).unwrap();
        let conversation = store.load("chat").unwrap();
        let synthetic = conversation.messages().get(1).map(|stored| plain(&text(stored, None, Layout::folded(""))));
        assert!(synthetic.unwrap().starts_with("\nmessage 0  tool  synthetic"));
    }
}
