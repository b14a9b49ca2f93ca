//! Entries to messages: by message index, never by neighbours. Two messages whose fragments alternate come out whole.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::model::{Chunk, FinishReason, Message, Metadata, Role, Timestamp};
use crate::record::{self, ChunkLine, Line, MessageHeader, Record, Rewind};

/// A message in its place.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredMessage {
    /// Its index in the conversation: 0-based, never reused; visible indices may have gaps.
    pub index: u64,
    /// Whether it is complete.
    pub state: MessageState,
    /// The seq of its first entry.
    pub first_seq: u64,
    /// The seq of its last entry.
    pub last_seq: u64,
    /// The chunks' indexes in the log, for each chunk of the message.
    pub chunk_indexes: Vec<u32>,
    /// The message.
    pub message: Message,
}

impl StoredMessage {
    /// The index in the log of the chunk at a position.
    #[must_use]
    pub fn chunk_index(&self, position: usize) -> u32 {
        let index = self.chunk_indexes.get(position).copied();
        index.unwrap_or_else(|| u32::try_from(position).unwrap_or(u32::MAX))
    }

    /// The message with the chunks at these positions only.
    pub(crate) fn select(&self, keep: impl Fn(usize) -> bool) -> Self {
        let mut selected = self.clone();
        let kept = |position: &usize| keep(*position);
        let positions: Vec<usize> = (0..self.message.chunks.len()).filter(kept).collect();
        selected.chunk_indexes = positions.iter().map(|position| self.chunk_index(*position)).collect();
        selected.message.chunks =
            positions.iter().filter_map(|position| self.message.chunks.get(*position)).cloned().collect();
        selected
    }

    /// Drops the chunks that do not fit.
    pub(crate) fn retain(&mut self, keep: impl Fn(&Chunk) -> bool) {
        if !self.message.chunks.iter().all(&keep) {
            *self = self.select(|position| self.message.chunks.get(position).is_some_and(&keep));
        }
    }
}

/// A summary that prompts use in place of the messages that it covers. The messages stay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compaction {
    /// The seq of its entry.
    pub seq: u64,
    /// The index of the last message that it covers.
    pub through: u64,
    /// What was said up to there.
    pub summary: String,
}

/// Whether a message is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageState {
    /// It was appended whole, or finished.
    Complete,
    /// Its writer lives in this open store; more may come.
    Streaming,
    /// Its writer is gone: dropped, or of an earlier opening of the store. Nothing more comes.
    Interrupted,
    /// It is not in the log: made to answer a call, with the index of the call's message, or, in prompts, to tell a summary.
    Synthetic,
}

impl MessageState {
    /// The state's name in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Streaming => "streaming",
            Self::Interrupted => "interrupted",
            Self::Synthetic => "synthetic",
        }
    }
}

/// All visible messages in the order of their index, the summary of some of them, and what could not be read.
#[derive(Debug, Default)]
pub(crate) struct Grouped {
    pub(crate) messages: Vec<StoredMessage>,
    pub(crate) compaction: Option<Compaction>,
    pub(crate) damage: Vec<Error>,
}

/// A message as far as it was read.
#[derive(Debug)]
struct Building {
    role: Role,
    created_at: Timestamp,
    metadata: Metadata,
    finish_reason: Option<FinishReason>,
    usage: Option<crate::model::Json>,
    first_seq: u64,
    last_seq: u64,
    state: MessageState,
    /// Whether its beginning was read: without it, its state is not known.
    begun: bool,
    chunks: BTreeMap<u32, Vec<Chunk>>,
}

/// Collects records in order of seq.
#[derive(Debug)]
pub(crate) struct Grouper {
    epoch: u64,
    /// The messages whose writers live.
    live: Vec<u64>,
    messages: BTreeMap<u64, Building>,
    rewinds: Vec<Rewind>,
    compactions: Vec<Compaction>,
    damage: Vec<Error>,
}

impl Grouper {
    pub(crate) fn new(epoch: u64, live: Vec<u64>) -> Self {
        let (rewinds, compactions, damage) = (Vec::new(), Vec::new(), Vec::new());
        Self { epoch, live, messages: BTreeMap::new(), rewinds, compactions, damage }
    }

    /// Takes a record; entries above `last` do not belong to the conversation. `own` unless it is an ancestor's.
    pub(crate) fn push(&mut self, record: &Record<'_>, last: u64, own: bool) {
        let mut last_message = None;
        for line in record.lines() {
            let taken = line.and_then(|(seq, line)| {
                if let Line::Chunk(line) = &line {
                    let index = record.message_index(line.message);
                    if seq > last {
                        // Behind the point of the fork: a message that goes on there is not whole.
                        self.interrupt(index);
                    }
                    last_message = Some(index);
                }
                if seq <= last { self.line(record, seq, &line, own) } else { Ok(()) }
            });
            if let Err(error) = taken {
                self.damaged(error);
            }
        }
        if let Some(index) = last_message.filter(|_| record.header.cut) {
            self.interrupt(index);
        }
    }

    pub(crate) fn damaged(&mut self, error: Error) {
        self.damage.push(error);
    }

    fn line(&mut self, record: &Record<'_>, seq: u64, line: &Line<'_>, own: bool) -> Result<()> {
        match line {
            Line::Chunk(line) => self.chunk(record, seq, line),
            Line::Begin(begin) => {
                let index = record.message_index(begin.message);
                let live = own && begin.epoch == Some(self.epoch) && self.live.contains(&index);
                let message = self.message(record, begin.message, begin.role, seq)?;
                message.begin(&begin.header)?;
                message.state = match begin.epoch {
                    None => MessageState::Complete,
                    Some(_) if live => MessageState::Streaming,
                    Some(_) => MessageState::Interrupted,
                };
                Ok(())
            }
            Line::Finish(finish) => {
                let message = self.message(record, finish.message, finish.role, seq)?;
                message.state = MessageState::Complete;
                message.end(&finish.header)
            }
            Line::Rewind(rewind) => {
                self.rewinds.push(*rewind);
                Ok(())
            }
            Line::Compaction(compaction) => {
                let (through, summary) = (compaction.through, compaction.summary.to_owned());
                self.compactions.push(Compaction { seq, through, summary });
                Ok(())
            }
            Line::Meta(_) | Line::Redact(_) | Line::Unknown(_) => Ok(()),
        }
    }

    fn chunk(&mut self, record: &Record<'_>, seq: u64, line: &ChunkLine<'_>) -> Result<()> {
        let message = self.message(record, line.message, line.role, seq)?;
        if let Some(header) = &line.header {
            message.begin(header)?;
            message.state = MessageState::Complete;
        }
        let chunk = line.chunk()?;
        let fragments = message.chunks.entry(line.chunk).or_default();
        match fragments.last_mut() {
            Some(before) if before.check_fragment(&chunk).is_ok() => {
                let _ = before.push_fragment(chunk);
            }
            // A writer refuses a fragment that does not fit; should one stand in a log, it is kept as it is.
            _ => fragments.push(chunk),
        }
        Ok(())
    }

    fn message(&mut self, record: &Record<'_>, relative: u64, role: u8, seq: u64) -> Result<&mut Building> {
        let role = record::role(role)?;
        let message = self.messages.entry(record.message_index(relative)).or_insert_with(|| Building {
            role,
            created_at: Timestamp::from_micros(record.header.time),
            metadata: Metadata::default(),
            finish_reason: None,
            usage: None,
            first_seq: seq,
            last_seq: seq,
            state: MessageState::Interrupted,
            begun: false,
            chunks: BTreeMap::new(),
        });
        message.last_seq = seq;
        Ok(message)
    }

    fn interrupt(&mut self, index: u64) {
        if let Some(message) = self.messages.get_mut(&index) {
            message.state = MessageState::Interrupted;
        }
    }

    pub(crate) fn finish(self) -> Grouped {
        let Self { messages, rewinds, mut compactions, mut damage, .. } = self;
        let hidden = |index: u64| rewinds.iter().any(|rewind| (rewind.to..rewind.end).contains(&index));
        // The newest whose messages are all visible: a rewind into them hides the last one, too.
        compactions.retain(|compaction| messages.contains_key(&compaction.through) && !hidden(compaction.through));
        let mut found = Vec::new();
        for (index, building) in messages {
            if hidden(index) {
                continue;
            }
            if !building.begun && damage.is_empty() {
                damage.push(Error::Corrupt {
                    conversation: None,
                    seq: Some(building.first_seq),
                    detail: format!("message {index} has no beginning"),
                });
            }
            found.push(building.build(index));
        }
        Grouped { messages: found, compaction: compactions.pop(), damage }
    }
}

impl Building {
    fn begin(&mut self, header: &MessageHeader<'_>) -> Result<()> {
        self.begun = true;
        self.metadata = header.metadata()?;
        self.finish_reason = header.finish_reason();
        self.usage = header.usage()?;
        Ok(())
    }

    /// What the end says of the model and the message's id is more exact than what the beginning said; else the beginning
    /// counts.
    fn end(&mut self, header: &MessageHeader<'_>) -> Result<()> {
        self.finish_reason = header.finish_reason();
        self.usage = header.usage()?;
        let before = std::mem::replace(&mut self.metadata, header.metadata()?);
        let now = &mut self.metadata;
        now.model = now.model.take().or(before.model);
        now.id = now.id.take().or(before.id);
        now.provider = before.provider.or(now.provider.take());
        now.created_at = before.created_at.or(now.created_at);
        now.turn_id = before.turn_id.or(now.turn_id.take());
        now.step_id = before.step_id.or(now.step_id.take());
        now.native = before.native.or(now.native.take());
        let said = std::mem::replace(&mut now.extra, before.extra);
        for (name, value) in said.iter() {
            if now.extra.get(name).is_none() {
                now.extra.push(name, value.clone());
            }
        }
        Ok(())
    }

    fn build(self, index: u64) -> StoredMessage {
        let mut metadata = self.metadata;
        metadata.created_at = metadata.created_at.or(Some(self.created_at));
        let finish_reason = match self.state {
            MessageState::Interrupted => self.finish_reason.or(Some(FinishReason::Interrupted)),
            _ => self.finish_reason,
        };
        let chunks =
            self.chunks.into_iter().flat_map(|(index, chunks)| chunks.into_iter().map(move |chunk| (index, chunk)));
        let (chunk_indexes, chunks) = chunks.unzip();
        let message = Message { role: self.role, chunks, finish_reason, usage: self.usage, metadata };
        let (state, first_seq, last_seq) = (self.state, self.first_seq, self.last_seq);
        StoredMessage { index, state, first_seq, last_seq, chunk_indexes, message }
    }
}
