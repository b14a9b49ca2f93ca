//! What a conversation is, without disk or windows: its lines, in a Vec. A fork has its own copy of what it shares.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use conversation_store::model::{Body, Chunk, FinishReason, Json, Message, Metadata, Output, Role, Timestamp};
use conversation_store::{Interruption, MessageState, StoredMessage, Summary};

/// One entry of the log.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// The record that it stands in: forks share it.
    pub(super) record: usize,
    pub(super) message: Option<u64>,
    pub(super) time: i64,
    pub(super) what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    /// A chunk of a message that was appended whole, of so many chunks.
    Whole {
        message: Message,
        chunk: usize,
    },
    /// A message that was appended whole, and is empty.
    Empty(Message),
    Begin(Role, Metadata),
    Fragment(u32, Chunk),
    Finish(FinishReason),
    Interrupt(Interruption),
    Rewind {
        to: u64,
        end: u64,
    },
    Remove {
        message: u64,
        chunk: Option<u32>,
    },
    /// Title, all tags that there are after it, metadata: those that it sets.
    Meta {
        title: Option<Option<String>>,
        tags: Option<Vec<String>>,
        metadata: Option<Json>,
    },
    Summary {
        through: u64,
        summary: String,
    },
    Redact {
        message: u64,
        chunk: Option<u32>,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Conversation {
    /// Which of all that were made it is.
    pub(super) made: usize,
    /// With what a fork inherits.
    pub(super) lines: Vec<Line>,
    /// The conversation whose lines these are up to here.
    pub(super) parent: Option<(usize, usize)>,
    pub(super) created: i64,
    pub(super) activity: i64,
    /// Idempotency keys: the content, the lines, the message indexes.
    pub(super) keys: HashMap<u8, Kept>,
}

#[derive(Clone, Debug)]
pub(super) struct Kept {
    /// Unless it was redacted.
    pub(super) content: Option<Content>,
    pub(super) first_seq: u64,
    pub(super) last_seq: u64,
    pub(super) message_indexes: Vec<u64>,
}

/// What a key stands for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Content {
    Append(Vec<Message>),
    Begin(Role, Metadata),
}

/// A writer that somebody holds.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    pub(super) conversation: usize,
    pub(super) message: u64,
    /// Nothing can be added any more.
    pub(super) closed: bool,
    /// The chunks that have begun.
    pub(super) begun: BTreeSet<u32>,
}

/// Where a message that is being put together stands.
struct Building {
    state: MessageState,
    seqs: (u64, u64),
    chunks: BTreeMap<u32, Chunk>,
    message: Message,
    expected_chunks: usize,
}

/// The text of a chunk that grows.
fn text_of(chunk: &mut Chunk) -> &mut String {
    match &mut chunk.body {
        Body::Text { text, .. } | Body::Thinking { text, .. } | Body::ToolCall { arguments: text, .. } => text,
        other => panic!("{other:?} does not grow"),
    }
}

/// A chunk's content, forgotten; of its later fragments nothing is left.
fn forget(chunk: &mut Chunk, is_first: bool) {
    match &mut chunk.body {
        Body::Thinking { text, .. } => text.clear(),
        Body::ToolCall { arguments, .. } => *arguments = if is_first { "{}" } else { "" }.to_owned(),
        Body::Text { text, .. } => *text = if is_first { "[redacted]" } else { "" }.to_owned(),
        Body::ToolResult { output, .. } => *output = Output::Text("[redacted]".to_owned()),
        other => panic!("{other:?} is in no test"),
    }
}

impl Conversation {
    pub(super) fn new(made: usize, time: i64) -> Self {
        Self { made, lines: Vec::new(), parent: None, created: time, activity: time, keys: HashMap::new() }
    }

    /// The index of the next message.
    pub(super) fn next_message(&self) -> u64 {
        next_message(&self.lines)
    }

    /// What `load_raw` gives; `live` are the messages with a writer.
    pub(super) fn messages(&self, live: &BTreeSet<u64>) -> Vec<StoredMessage> {
        let lines = &self.lines;
        let inherited = self.parent.map_or(0, |(_, at)| at);
        let mut found: BTreeMap<u64, Building> = BTreeMap::new();
        for (seq, line) in (1..).zip(lines) {
            let Some(index) = line.message else { continue };
            let building = found.entry(index).or_insert_with(|| Building {
                state: MessageState::Interrupted,
                seqs: (seq, seq),
                chunks: BTreeMap::new(),
                message: Message::new(Role::Assistant, []),
                expected_chunks: 0,
            });
            building.seqs.1 = seq;
            match &line.what {
                What::Whole { message, chunk } => {
                    building.chunks.insert(u32::try_from(*chunk).unwrap(), message.chunks[*chunk].clone());
                    building.expected_chunks = message.chunks.len();
                    building.state = MessageState::Complete;
                    building.message = message.clone();
                }
                What::Empty(message) => {
                    building.state = MessageState::Complete;
                    building.message = message.clone();
                }
                What::Begin(role, metadata) => {
                    building.message.role = *role;
                    building.message.metadata = metadata.clone();
                    if seq > inherited as u64 && live.contains(&index) {
                        building.state = MessageState::Streaming;
                    }
                }
                What::Fragment(chunk, fragment) => {
                    let mut fragment = fragment.clone();
                    match building.chunks.get_mut(chunk) {
                        Some(before) => text_of(before).push_str(text_of(&mut fragment)),
                        None => _ = building.chunks.insert(*chunk, fragment),
                    }
                }
                What::Finish(reason) => {
                    building.state = MessageState::Complete;
                    building.message.finish_reason = Some(reason.clone());
                }
                What::Interrupt(_) => building.state = MessageState::Interrupted,
                _ => {}
            }
            if building.message.metadata.created_at.is_none() {
                building.message.metadata.created_at = Some(Timestamp::from_micros(lines[first(lines, index)].time));
            }
        }
        let hidden = hidden(lines);
        found
            .into_iter()
            .filter(|(index, _)| !hidden.contains(index))
            .map(|(index, building)| building.done(index, &removed(lines, index)))
            .collect()
    }
}

impl Conversation {
    /// The summary that prompts use.
    pub(super) fn summary(&self) -> Option<Summary> {
        let hidden = rewound(&self.lines);
        let summaries = (1..).zip(&self.lines).filter_map(|(seq, line)| match &line.what {
            What::Summary { through, summary } if !hidden.contains(through) => {
                Some(Summary::new(seq, *through, summary.clone()))
            }
            _ => None,
        });
        summaries.last()
    }

    /// Where an item id stands first: seq, message, chunk.
    pub(super) fn find(&self, item: &str) -> Option<(u64, u64, Option<u32>)> {
        let hidden = hidden(&self.lines);
        let lines = (1..).zip(&self.lines).filter_map(|(seq, line)| Some((seq, line.message?, &line.what)));
        let mut visible = lines.filter(|(_, message, _)| !hidden.contains(message));
        let is_there = |index, chunk: &usize| !removed(&self.lines, index).contains(&u32::try_from(*chunk).unwrap());
        visible.find_map(|(seq, index, what)| match what {
            What::Whole { message, chunk }
                if message.chunks[*chunk].id.as_deref() == Some(item) && is_there(index, chunk) =>
            {
                Some((seq, index, u32::try_from(*chunk).ok()))
            }
            What::Whole { message, chunk: 0 } | What::Empty(message)
                if message.metadata.id.as_deref() == Some(item) =>
            {
                Some((seq, index, None))
            }
            What::Begin(_, metadata) if metadata.id.as_deref() == Some(item) => Some((seq, index, None)),
            _ => None,
        })
    }

    /// Messages of its own that were begun and are not finished: those that were interrupted and that no later one follows,
    /// and those that are open.
    pub(super) fn unfinished(&self) -> (BTreeSet<u64>, BTreeSet<u64>) {
        let (mut interrupted, mut open) = (BTreeSet::new(), BTreeSet::new());
        let inherited = self.parent.map_or(0, |(_, at)| at);
        for (at, line) in self.lines.iter().enumerate().skip(inherited) {
            let is_first = line.message.is_some_and(|message| first(&self.lines, message) == at);
            if is_first {
                interrupted.clear();
            }
            match (&line.what, line.message) {
                (What::Begin(..), Some(message)) => _ = open.insert(message),
                (What::Finish(_), Some(message)) => _ = open.remove(&message),
                (What::Interrupt(_), Some(message)) => {
                    open.remove(&message);
                    // A later message may follow it already.
                    if message + 1 == next_message(&self.lines[..=at]) {
                        interrupted.insert(message);
                    }
                }
                (What::Rewind { to, .. }, _) => {
                    open.retain(|message| message < to);
                    interrupted.retain(|message| message < to);
                }
                (What::Remove { message, chunk: None }, _) => {
                    open.remove(message);
                    interrupted.remove(message);
                }
                _ => {}
            }
        }
        (interrupted, open)
    }

    /// The metadata, and the tags.
    pub(super) fn metadata(&self) -> Option<Json> {
        self.lines.iter().rev().find_map(|line| match &line.what {
            What::Meta { metadata, .. } => metadata.clone(),
            _ => None,
        })
    }

    pub(super) fn tags(&self) -> Vec<String> {
        let tags = self.lines.iter().rev().find_map(|line| match &line.what {
            What::Meta { tags, .. } => tags.clone(),
            _ => None,
        });
        tags.unwrap_or_default()
    }

    pub(super) fn last_seq(&self) -> u64 {
        self.lines.len() as u64
    }

    pub(super) fn is_visible(&self, message: u64) -> bool {
        message < self.next_message() && !hidden(&self.lines).contains(&message)
    }

    /// The seqs of summaries that may quote a message.
    pub(super) fn quoting(&self, message: u64) -> Vec<u64> {
        let quotes = |line: &Line| matches!(line.what, What::Summary { through, .. } if through >= message);
        (1..).zip(&self.lines).filter(|(_, line)| quotes(line)).map(|(seq, _)| seq).collect()
    }
}

fn first(lines: &[Line], message: u64) -> usize {
    lines.iter().position(|line| line.message == Some(message)).unwrap()
}

/// The index of the next message behind these lines.
pub(super) fn next_message(lines: &[Line]) -> u64 {
    lines.iter().filter_map(|line| line.message).max().map_or(0, |last| last + 1)
}

/// The messages that rewinds among these lines hide.
fn rewound(lines: &[Line]) -> BTreeSet<u64> {
    let rewinds = lines.iter().filter_map(|line| match line.what {
        What::Rewind { to, end } => Some(to..end),
        _ => None,
    });
    rewinds.flatten().collect()
}

/// The messages that rewinds and removals among these lines hide.
fn hidden(lines: &[Line]) -> BTreeSet<u64> {
    let removals = lines.iter().filter_map(|line| match line.what {
        What::Remove { message, chunk: None } => Some(message),
        _ => None,
    });
    rewound(lines).into_iter().chain(removals).collect()
}

/// The chunks of a message that were removed.
fn removed(lines: &[Line], index: u64) -> BTreeSet<u32> {
    let removals = lines.iter().filter_map(|line| match line.what {
        What::Remove { message, chunk } if message == index => chunk,
        _ => None,
    });
    removals.collect()
}

impl Line {
    /// Whether it holds something of a message, or of one chunk of it.
    pub(super) fn is_of(&self, message: u64, chunk: Option<u32>) -> bool {
        let of = match &self.what {
            What::Whole { chunk, .. } => u32::try_from(*chunk).ok(),
            What::Fragment(chunk, _) => Some(*chunk),
            What::Empty(_) | What::Begin(..) => return self.message == Some(message) && chunk.is_none(),
            _ => return false,
        };
        self.message == Some(message) && (chunk.is_none() || chunk == of)
    }

    /// Forgets what it holds. `seen` are the chunks of which an earlier fragment was forgotten.
    pub(super) fn forget(&mut self, seen: &mut BTreeSet<u32>) {
        match &mut self.what {
            What::Whole { message, chunk } => {
                let is_first = seen.insert(u32::try_from(*chunk).unwrap());
                forget(&mut message.chunks[*chunk], is_first);
            }
            What::Fragment(chunk, fragment) => forget(fragment, seen.insert(*chunk)),
            _ => {}
        }
    }
}

impl Building {
    fn done(mut self, index: u64, removed: &BTreeSet<u32>) -> StoredMessage {
        if self.chunks.len() < self.expected_chunks {
            self.state = MessageState::Interrupted;
        }
        if self.state == MessageState::Interrupted && self.message.finish_reason.is_none() {
            self.message.finish_reason = Some(FinishReason::Interrupted);
        }
        self.chunks.retain(|chunk, _| !removed.contains(chunk));
        let (chunk_indexes, chunks) = self.chunks.into_iter().unzip();
        let message = Message { chunks, ..self.message };
        let mut stored = StoredMessage::new(index, self.state, message);
        (stored.first_seq, stored.last_seq) = self.seqs;
        stored.chunk_indexes = chunk_indexes;
        stored
    }
}

/// A message of so many chunks.
pub(super) fn message(role: Role, chunks: Vec<Chunk>, model: Option<String>, created_at: Option<i64>) -> Message {
    let created_at = created_at.map(Timestamp::from_micros);
    Message { metadata: Metadata { model, created_at, ..Metadata::default() }, ..Message::new(role, chunks) }
}
