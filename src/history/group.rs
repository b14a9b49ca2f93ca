//! Entries to messages: by message index, never by neighbours. Two messages whose fragments alternate come out whole.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::ops::Range;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::model::{Chunk, FinishReason, Message, Metadata, Role, Timestamp};
use crate::record::{self, ChunkLine, Line, MessageHeader, Record, Remove, Rewind};

/// A message in its place.
///
/// As JSON: `index`, `state`, `first_seq`, `last_seq`, `chunk_indexes`, then the message's own fields.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct StoredMessage {
    /// Its index in the conversation: 0-based, never reused; visible indices may have gaps.
    pub index: u64,
    /// Whether it is complete.
    pub state: MessageState,
    /// The seq of its first entry.
    pub first_seq: u64,
    /// The seq of its last entry.
    pub last_seq: u64,
    /// The chunks' indexes in the log, for each chunk of the message, in the order of its chunks: 0-based, never reused.
    pub chunk_indexes: Vec<u32>,
    /// The message.
    #[serde(flatten)]
    pub message: Message,
}

impl StoredMessage {
    /// A message that is in no log: its seqs are 0, its chunks' indexes are their positions.
    #[must_use]
    pub fn new(index: u64, state: MessageState, message: Message) -> Self {
        let chunk_indexes = (0..).take(message.chunks.len()).collect();
        Self { index, state, first_seq: 0, last_seq: 0, chunk_indexes, message }
    }

    /// The index in the log of the chunk at a position.
    #[must_use]
    pub fn chunk_index(&self, position: usize) -> u32 {
        let index = self.chunk_indexes.get(position).copied();
        index.unwrap_or_else(|| u32::try_from(position).unwrap_or(u32::MAX))
    }

    /// The message with the chunks at those positions only that are to be kept.
    pub(crate) fn select(&self, keep: impl Fn(usize) -> bool) -> Self {
        self.pick((0..self.message.chunks.len()).filter(|position| keep(*position)))
    }

    /// The message with the chunks at these positions only. Costs nothing for the others.
    pub(crate) fn pick(&self, positions: impl Iterator<Item = usize>) -> Self {
        let Self { index, state, first_seq, last_seq, message, .. } = self;
        let Message { role, finish_reason, usage, metadata, chunks } = message;
        let picked = positions.filter_map(|position| Some((self.chunk_index(position), chunks.get(position)?.clone())));
        let (chunk_indexes, chunks) = picked.unzip();
        let (finish_reason, usage, metadata) = (finish_reason.clone(), usage.clone(), metadata.clone());
        let message = Message { role: *role, chunks, finish_reason, usage, metadata };
        Self { index: *index, state: *state, first_seq: *first_seq, last_seq: *last_seq, chunk_indexes, message }
    }

    /// A message of which only the place of its first entry is known.
    fn unread(index: u64, role: Role, time: i64, seq: u64) -> Self {
        let mut message = Message::new(role, Vec::with_capacity(1));
        message.metadata.created_at = Some(Timestamp::from_micros(time));
        let (state, chunk_indexes) = (MessageState::Interrupted, Vec::with_capacity(1));
        Self { index, state, first_seq: seq, last_seq: seq, chunk_indexes, message }
    }

    /// A message that was appended whole, with its first chunk.
    #[inline]
    fn whole(index: u64, time: i64, seq: u64, header: &MessageHeader<'_>, line: &ChunkLine<'_>) -> Result<Self> {
        let mut metadata = header.metadata()?;
        // The store's time, unless the caller gave one.
        metadata.created_at = metadata.created_at.or(Some(Timestamp::from_micros(time)));
        let (finish_reason, usage) = (header.finish_reason(), header.usage()?);
        let message =
            Message { role: record::role(line.role)?, chunks: vec![line.chunk()?], finish_reason, usage, metadata };
        let (state, chunk_indexes) = (MessageState::Complete, vec![line.chunk]);
        Ok(Self { index, state, first_seq: seq, last_seq: seq, chunk_indexes, message })
    }

    fn begin(&mut self, header: &MessageHeader<'_>) -> Result<()> {
        let Message { metadata, finish_reason, usage, .. } = &mut self.message;
        // The store's time, unless the caller gave one.
        let created_at = metadata.created_at;
        *metadata = header.metadata()?;
        metadata.created_at = metadata.created_at.or(created_at);
        *finish_reason = header.finish_reason();
        *usage = header.usage()?;
        Ok(())
    }

    /// What the end says of the model and the message's id is more exact than what the beginning said; else the beginning
    /// counts.
    fn end(&mut self, header: &MessageHeader<'_>) -> Result<()> {
        let Message { metadata, finish_reason, usage, .. } = &mut self.message;
        *finish_reason = header.finish_reason();
        *usage = header.usage()?;
        let end = header.metadata()?;
        if end == Metadata::default() {
            return Ok(());
        }
        let begin = std::mem::take(metadata);
        let mut extra = begin.extra;
        extra.add_new(end.extra.iter().map(|(name, value)| (name.to_owned(), value.clone())));
        *metadata = Metadata {
            model: end.model.or(begin.model),
            id: end.id.or(begin.id),
            provider: begin.provider.or(end.provider),
            created_at: begin.created_at.or(end.created_at),
            turn_id: begin.turn_id.or(end.turn_id),
            step_id: begin.step_id.or(end.step_id),
            native: begin.native.or(end.native),
            extra,
        };
        Ok(())
    }

    /// Adds a fragment to the chunk of its index that is last; a chunk that begins, or does not fit, comes after those of
    /// its index and below. `scattered`: whether a fragment came for a chunk that was not the last. From then on, they are
    /// collected as they come, and [`Self::gather`] puts them in order.
    fn add(&mut self, index: u32, chunk: Chunk, scattered: bool) -> bool {
        let Self { chunk_indexes, message, .. } = self;
        let last = chunk_indexes.last().copied();
        if scattered || last.is_some_and(|last| last > index) {
            chunk_indexes.push(index);
            message.chunks.push(chunk);
            return true;
        }
        self.append(index, chunk);
        false
    }

    /// Adds a fragment to the last chunk, if it is of its index and the fragment fits; else a chunk at the end.
    fn append(&mut self, index: u32, chunk: Chunk) {
        let Self { chunk_indexes, message, .. } = self;
        let before = message.chunks.last_mut().filter(|_| chunk_indexes.last() == Some(&index));
        match before {
            Some(before) if before.check_fragment(&chunk).is_ok() => {
                let _ = before.push_fragment(chunk);
            }
            // A writer refuses a fragment that does not fit; if one is in a log, it is kept as it is.
            _ => {
                chunk_indexes.push(index);
                message.chunks.push(chunk);
            }
        }
    }

    /// Puts scattered fragments in order, each after those of its index that came before it.
    fn gather(&mut self) {
        let indexes = std::mem::take(&mut self.chunk_indexes);
        let mut fragments: Vec<(u32, Chunk)> =
            indexes.into_iter().zip(std::mem::take(&mut self.message.chunks)).collect();
        fragments.sort_by_key(|(index, _)| *index);
        for (index, chunk) in fragments {
            self.append(index, chunk);
        }
    }

    /// Drops the chunks that do not fit.
    pub(crate) fn retain(&mut self, keep: impl Fn(&Chunk) -> bool) {
        if !self.message.chunks.iter().all(&keep) {
            *self = self.select(|position| self.message.chunks.get(position).is_some_and(&keep));
        }
    }
}

/// A summary that prompts use in place of the messages that it covers. The messages stay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The seq of its entry.
    pub seq: u64,
    /// The index of the last message that it covers.
    pub through: u64,
    /// What was said up to there.
    pub text: String,
}

impl Summary {
    /// A summary of the messages up to and including `through`.
    #[must_use]
    pub fn new(seq: u64, through: u64, text: impl Into<String>) -> Self {
        Self { seq, through, text: text.into() }
    }
}

/// Whether a message is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "server", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
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

/// The messages that rewinds hide: ranges of indexes, in order, none of which touches another.
#[derive(Debug)]
struct Hidden(Vec<Range<u64>>);

impl Hidden {
    fn by(rewinds: &[Rewind]) -> Self {
        let mut ranges: Vec<Range<u64>> = rewinds.iter().map(|rewind| rewind.to..rewind.end).collect();
        ranges.sort_unstable_by_key(|range| range.start);
        let mut hidden: Vec<Range<u64>> = Vec::new();
        for range in ranges {
            match hidden.last_mut().filter(|last| range.start <= last.end) {
                Some(last) => last.end = last.end.max(range.end),
                None => hidden.push(range),
            }
        }
        Self(hidden)
    }

    fn holds(&self, index: u64) -> bool {
        let before = self.0.partition_point(|range| range.start <= index);
        before.checked_sub(1).and_then(|at| self.0.get(at)).is_some_and(|range| range.contains(&index))
    }
}

/// All visible messages in the order of their index, the summary of some of them, and what could not be read.
#[derive(Debug, Default)]
pub(crate) struct Grouped {
    pub(crate) messages: Vec<StoredMessage>,
    pub(crate) summary: Option<Summary>,
    pub(crate) damage: Vec<Error>,
    /// An entry after [`Grouper::after`]'s seq hides or changes a message that was left out.
    pub(crate) reaches_back: bool,
}

/// The most messages that room is made for before they are read.
const RESERVED_MESSAGES: usize = 16_384;

/// Collects records in order of seq.
#[derive(Debug)]
pub(crate) struct Grouper {
    epoch: u64,
    /// The first message that is wanted: earlier ones are left out.
    from: u64,
    /// The last message that is wanted.
    through: u64,
    /// Entries after this seq are news.
    after: u64,
    reaches_back: bool,
    /// The messages whose writers live.
    live: Vec<u64>,
    /// In order of their index.
    messages: Vec<StoredMessage>,
    /// The messages whose beginning was not read: their state is not known.
    headless: HashSet<u64>,
    /// The messages that the log says were interrupted.
    ended: HashSet<u64>,
    /// The messages of whose chunks the fragments came scattered.
    scattered: HashSet<u64>,
    rewinds: Vec<Rewind>,
    removals: Vec<Remove>,
    summaries: Vec<Summary>,
    damage: Vec<Error>,
    /// Whether what rewinds and removals hide is left out.
    hides: bool,
}

impl Grouper {
    /// With room for about so many messages.
    pub(crate) fn new(epoch: u64, live: Vec<u64>, messages: usize) -> Self {
        let messages = Vec::with_capacity(messages.min(RESERVED_MESSAGES));
        Self {
            epoch,
            from: 0,
            through: u64::MAX,
            after: 0,
            reaches_back: false,
            live,
            messages,
            headless: HashSet::new(),
            ended: HashSet::new(),
            scattered: HashSet::new(),
            rewinds: Vec::new(),
            removals: Vec::new(),
            summaries: Vec::new(),
            damage: Vec::new(),
            hides: true,
        }
    }

    /// Leaves messages before this one out.
    pub(crate) fn from(mut self, message: u64) -> Self {
        self.from = message;
        self
    }

    /// Drops all messages but the first one, and leaves out those that come: what is left to read belongs to it alone.
    /// Summaries are dropped, too.
    pub(crate) fn keep_first(&mut self) {
        self.messages.truncate(1);
        self.summaries.clear();
        self.through = self.messages.first().map_or(u64::MAX, |first| first.index);
    }

    /// Keeps what rewinds and removals hide.
    pub(crate) fn with_hidden(mut self) -> Self {
        self.hides = false;
        self
    }

    /// Notes whether an entry after this seq hides or changes a message that is left out.
    pub(crate) fn after(mut self, seq: u64) -> Self {
        self.after = seq;
        self
    }

    /// The index of the message at a position, if nothing more of it can come.
    pub(crate) fn whole_at(&self, position: usize) -> Option<u64> {
        let stored = self.messages.get(position)?;
        let is_whole = stored.state == MessageState::Complete || self.ended.contains(&stored.index);
        is_whole.then_some(stored.index)
    }

    /// Takes a record; entries above `last` do not belong to the conversation. `own` unless it is an ancestor's.
    pub(crate) fn push(&mut self, record: &Record<'_>, last: u64, own: bool) {
        let mut last_message = None;
        for line in record.lines() {
            // By reference: an entry is large, and is not moved again.
            let taken = match line {
                Ok((seq, ref line)) => {
                    if let Line::Chunk(line) = line {
                        let index = record.message_index(line.message);
                        if seq > last {
                            // After the fork point: a message that goes on there is not whole.
                            self.interrupt(index);
                        }
                        last_message = Some(index);
                    }
                    if seq <= last { self.line(record, seq, line, own) } else { Ok(()) }
                }
                Err(error) => Err(error),
            };
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
        let concerned = match line {
            Line::Chunk(chunk) => record.message_index(chunk.message),
            Line::Begin(begin) => record.message_index(begin.message),
            Line::Finish(finish) => record.message_index(finish.message),
            Line::Interrupt(interrupt) => record.message_index(interrupt.message),
            Line::Rewind(rewind) => rewind.to,
            Line::Remove(remove) => remove.message,
            Line::Redact(redact) => redact.message,
            Line::Meta(_) | Line::Summary(_) | Line::Unknown(_) => u64::MAX,
        };
        let is_back = concerned < self.from;
        self.reaches_back |= is_back && seq > self.after;
        let is_left_out = is_back || concerned > self.through;
        match line {
            Line::Chunk(_) | Line::Begin(_) | Line::Finish(_) | Line::Interrupt(_) if is_left_out => Ok(()),
            Line::Chunk(line) => self.chunk(record, seq, line),
            Line::Begin(begin) => {
                let index = record.message_index(begin.message);
                let live = own && begin.epoch == Some(self.epoch) && self.live.contains(&index);
                self.change(record, seq, begin.message, begin.role, true, |stored| {
                    stored.begin(&begin.header)?;
                    stored.state = match begin.epoch {
                        None => MessageState::Complete,
                        Some(_) if live => MessageState::Streaming,
                        Some(_) => MessageState::Interrupted,
                    };
                    Ok(())
                })
            }
            Line::Finish(finish) => self.change(record, seq, finish.message, finish.role, false, |stored| {
                stored.state = MessageState::Complete;
                stored.end(&finish.header)
            }),
            Line::Rewind(rewind) => {
                self.rewinds.push(*rewind);
                Ok(())
            }
            Line::Summary(summary) => {
                let (through, text) = (summary.through, summary.text.to_owned());
                self.summaries.push(Summary { seq, through, text });
                Ok(())
            }
            Line::Remove(remove) => {
                self.removals.push(*remove);
                Ok(())
            }
            Line::Interrupt(interrupt) => {
                let index = record.message_index(interrupt.message);
                if let Some(stored) = self.find(index).ok().and_then(|at| self.messages.get_mut(at)) {
                    (stored.state, stored.last_seq) = (MessageState::Interrupted, seq);
                    self.ended.insert(index);
                }
                Ok(())
            }
            Line::Meta(_) | Line::Redact(_) | Line::Unknown(_) => Ok(()),
        }
    }

    fn chunk(&mut self, record: &Record<'_>, seq: u64, line: &ChunkLine<'_>) -> Result<()> {
        let of = record.message_index(line.message);
        if let Some(header) = line.header.as_ref().filter(|_| self.find(of) == Err(self.messages.len()))
            && let Ok(whole) = StoredMessage::whole(of, record.header.time, seq, header, line)
        {
            self.messages.push(whole);
            return Ok(());
        }
        let was_scattered = self.scattered.contains(&of);
        let mut scatters = false;
        let changed = self.change(record, seq, line.message, line.role, line.header.is_some(), |stored| {
            if let Some(header) = &line.header {
                stored.begin(header)?;
                stored.state = MessageState::Complete;
            }
            scatters = stored.add(line.chunk, line.chunk()?, was_scattered);
            Ok(())
        });
        if scatters && !was_scattered {
            self.scattered.insert(of);
        }
        changed
    }

    /// Changes the message of an entry, which may be its beginning; the first entry of a message makes it.
    fn change(
        &mut self,
        record: &Record<'_>,
        seq: u64,
        relative: u64,
        role: u8,
        begins: bool,
        change: impl FnOnce(&mut StoredMessage) -> Result<()>,
    ) -> Result<()> {
        let (index, role) = (record.message_index(relative), record::role(role)?);
        match self.find(index) {
            Ok(at) => {
                if begins {
                    self.headless.remove(&index);
                }
                self.messages.get_mut(at).map_or(Ok(()), |stored| {
                    stored.last_seq = seq;
                    change(stored)
                })
            }
            Err(at) => {
                if !begins {
                    self.headless.insert(index);
                }
                self.messages.insert(at, StoredMessage::unread(index, role, record.header.time, seq));
                self.messages.get_mut(at).map_or(Ok(()), change)
            }
        }
    }

    /// The position of a message, or where it would be. Nearly all entries belong to the newest message.
    fn find(&self, index: u64) -> std::result::Result<usize, usize> {
        let count = self.messages.len();
        match self.messages.last().map(|newest| newest.index.cmp(&index)) {
            Some(Ordering::Equal) => Ok(count - 1),
            Some(Ordering::Greater) => self.messages.binary_search_by_key(&index, |message| message.index),
            Some(Ordering::Less) | None => Err(count),
        }
    }

    fn interrupt(&mut self, index: u64) {
        if let Some(message) = self.find(index).ok().and_then(|at| self.messages.get_mut(at)) {
            message.state = MessageState::Interrupted;
        }
    }

    pub(crate) fn finish(self) -> Grouped {
        let Self { from, reaches_back, mut messages, headless, scattered, mut damage, hides, .. } = self;
        if !scattered.is_empty() {
            messages.iter_mut().filter(|stored| scattered.contains(&stored.index)).for_each(StoredMessage::gather);
        }
        let hidden = Hidden::by(&self.rewinds);
        // The newest whose messages are all visible: a rewind into them hides the last one, too.
        let summary = self.summaries.into_iter().rev().find(|summary| {
            let is_there = messages.binary_search_by_key(&summary.through, |message| message.index).is_ok();
            (is_there || summary.through < from) && !hidden.holds(summary.through)
        });
        let removed: HashSet<(u64, Option<u32>)> =
            self.removals.iter().map(|remove| (remove.message, remove.chunk)).collect();
        let is_shown = |index| !hidden.holds(index) && !removed.contains(&(index, None));
        messages.retain(|message| !hides || is_shown(message.index));
        let removed = if hides { removed } else { HashSet::new() };
        let parted: HashSet<u64> = removed.iter().map(|(message, _)| *message).collect();
        for stored in messages.iter_mut().filter(|stored| parted.contains(&stored.index)) {
            *stored = stored.select(|at| !removed.contains(&(stored.index, Some(stored.chunk_index(at)))));
        }
        for stored in messages.iter_mut().filter(|stored| stored.state == MessageState::Interrupted) {
            stored.message.finish_reason.get_or_insert(FinishReason::Interrupted);
        }
        let headless = messages.iter().find(|stored| headless.contains(&stored.index));
        if let Some(stored) = headless.filter(|_| damage.is_empty()) {
            damage.push(Error::Corrupt {
                conversation: None,
                seq: Some(stored.first_seq),
                detail: format!("message {} has no beginning", stored.index),
            });
        }
        Grouped { messages, summary, damage, reaches_back }
    }
}
