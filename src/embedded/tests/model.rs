//! What a conversation is, without disk, forks or windows: its lines, in a Vec.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::history::{MessageState, StoredMessage, Summary};
use crate::model::{Body, Chunk, FinishReason, Message, Metadata, Output, Role, Timestamp};

/// One entry of the log.
#[derive(Clone, Debug)]
pub(super) struct Line {
    /// The record that holds it: forks share it.
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
    Begin(Role),
    Fragment(u32, Chunk),
    Finish(FinishReason),
    Interrupt,
    Rewind {
        to: u64,
        end: u64,
    },
    Title,
    /// All tags after it.
    Tags(Vec<String>),
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
    /// Everything that is queued, with what a fork inherits.
    pub(super) lines: Vec<Line>,
    /// How many lines readers see; none if it does not exist for them.
    pub(super) published: Option<usize>,
    /// The conversation whose lines these are up to here.
    pub(super) parent: Option<(usize, usize)>,
    pub(super) created: i64,
    pub(super) activity: i64,
    pub(super) published_activity: i64,
    pub(super) tags: Vec<String>,
    /// Idempotency keys: the content, the lines, the message indexes.
    pub(super) keys: HashMap<u8, Kept>,
}

#[derive(Clone, Debug)]
pub(super) struct Kept {
    /// Unless it was redacted.
    pub(super) content: Option<Vec<Message>>,
    pub(super) first_seq: u64,
    pub(super) last_seq: u64,
    pub(super) message_indexes: Vec<u64>,
}

/// A writer that the test holds.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    pub(super) conversation: usize,
    pub(super) message: u64,
    /// Nothing can be added any more.
    pub(super) closed: bool,
    pub(super) pending: Vec<(u32, Chunk)>,
    /// The chunks that have begun.
    pub(super) begun: BTreeSet<u32>,
}

/// The place of a message that is being assembled.
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

/// A chunk's content, forgotten; nothing is left of its later fragments.
fn forget(chunk: &mut Chunk, is_first: bool) {
    match &mut chunk.body {
        Body::Thinking { text, .. } => text.clear(),
        Body::ToolCall { arguments, .. } => *arguments = if is_first { "{}" } else { "" }.to_owned(),
        Body::Text { text, .. } => *text = if is_first { "[redacted]" } else { "" }.to_owned(),
        Body::ToolResult { output, .. } => *output = Output::Text("[redacted]".to_owned()),
        other => panic!("{other:?} is in no test"),
    }
}

/// Adds a fragment to those of a message.
pub(super) fn grow(chunks: &mut Vec<(u32, Chunk)>, index: u32, mut chunk: Chunk) {
    match chunks.iter_mut().find(|(known, _)| *known == index) {
        Some((_, before)) => text_of(before).push_str(text_of(&mut chunk)),
        None => chunks.push((index, chunk)),
    }
}

impl Conversation {
    pub(super) fn new(time: i64) -> Self {
        Self {
            lines: Vec::new(),
            published: None,
            parent: None,
            created: time,
            activity: time,
            published_activity: time,
            tags: Vec::new(),
            keys: HashMap::new(),
        }
    }

    /// The index of the next message.
    pub(super) fn next_message(&self) -> u64 {
        next_message(&self.lines)
    }

    /// The lines that readers see.
    pub(super) fn visible(&self) -> &[Line] {
        &self.lines[..self.published.unwrap_or(0)]
    }

    /// What `load_raw` gives; `live` are the messages with a writer.
    pub(super) fn messages(&self, live: &BTreeSet<u64>) -> Vec<StoredMessage> {
        let lines = self.visible();
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
                What::Begin(role) => {
                    building.message.role = *role;
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
                What::Interrupt => building.state = MessageState::Interrupted,
                What::Rewind { .. } | What::Title | What::Tags(_) | What::Summary { .. } | What::Redact { .. } => {}
            }
            if building.message.metadata.created_at.is_none() {
                building.message.metadata.created_at = Some(Timestamp::from_micros(lines[first(lines, index)].time));
            }
        }
        let hidden = hidden(lines);
        found
            .into_iter()
            .filter(|(index, _)| !hidden.contains(index))
            .map(|(index, building)| building.done(index))
            .collect()
    }
}

impl Conversation {
    /// The summary that prompts use.
    pub(super) fn summary(&self) -> Option<Summary> {
        let hidden = hidden(self.visible());
        let summaries = (1..).zip(self.visible()).filter_map(|(seq, line)| match &line.what {
            What::Summary { through, summary } if !hidden.contains(through) => {
                Some(Summary { seq, through: *through, text: summary.clone() })
            }
            _ => None,
        });
        summaries.last()
    }

    /// The first place of an item id: seq, message, chunk.
    pub(super) fn find(&self, item: &str) -> Option<(u64, u64, Option<u32>)> {
        let hidden = hidden(self.visible());
        let lines = (1..).zip(self.visible()).filter_map(|(seq, line)| Some((seq, line.message?, &line.what)));
        let mut visible = lines.filter(|(_, message, _)| !hidden.contains(message));
        visible.find_map(|(seq, index, what)| match what {
            What::Whole { message, chunk } if message.chunks[*chunk].id.as_deref() == Some(item) => {
                Some((seq, index, u32::try_from(*chunk).ok()))
            }
            What::Whole { message, chunk: 0 } | What::Empty(message)
                if message.metadata.id.as_deref() == Some(item) =>
            {
                Some((seq, index, None))
            }
            _ => None,
        })
    }

    /// Messages of its own that were begun and are neither closed nor hidden.
    pub(super) fn open(&self) -> Vec<u64> {
        let hidden = hidden(&self.lines);
        let own = self.lines.iter().skip(self.parent.map_or(0, |(_, at)| at));
        let mut open: Vec<u64> = Vec::new();
        for (line, message) in own.filter_map(|line| Some((line, line.message?))) {
            match line.what {
                What::Begin(_) if !hidden.contains(&message) => open.push(message),
                What::Finish(_) | What::Interrupt => open.retain(|known| *known != message),
                _ => {}
            }
        }
        open
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

/// The index of the next message after these lines.
pub(super) fn next_message(lines: &[Line]) -> u64 {
    lines.iter().filter_map(|line| line.message).max().map_or(0, |last| last + 1)
}

/// The messages that rewinds among these lines hide.
pub(super) fn hidden(lines: &[Line]) -> BTreeSet<u64> {
    let rewinds = lines.iter().filter_map(|line| match line.what {
        What::Rewind { to, end } => Some(to..end),
        _ => None,
    });
    rewinds.flatten().collect()
}

impl Line {
    /// Whether it holds something of a message, or of one chunk of it.
    pub(super) fn is_of(&self, message: u64, chunk: Option<u32>) -> bool {
        let of = match &self.what {
            What::Whole { chunk, .. } => u32::try_from(*chunk).ok(),
            What::Fragment(chunk, _) => Some(*chunk),
            What::Empty(_) | What::Begin(_) => return self.message == Some(message) && chunk.is_none(),
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
    fn done(mut self, index: u64) -> StoredMessage {
        if self.chunks.len() < self.expected_chunks {
            self.state = MessageState::Interrupted;
        }
        if self.state == MessageState::Interrupted && self.message.finish_reason.is_none() {
            self.message.finish_reason = Some(FinishReason::Interrupted);
        }
        let (chunk_indexes, chunks) = self.chunks.into_iter().unzip();
        let message = Message { chunks, ..self.message };
        StoredMessage {
            index,
            state: self.state,
            first_seq: self.seqs.0,
            last_seq: self.seqs.1,
            chunk_indexes,
            message,
        }
    }
}

/// A message of so many chunks.
pub(super) fn message(role: Role, chunks: Vec<Chunk>, model: Option<String>, created_at: Option<i64>) -> Message {
    let created_at = created_at.map(Timestamp::from_micros);
    Message { metadata: Metadata { model, created_at, ..Metadata::default() }, ..Message::new(role, chunks) }
}
