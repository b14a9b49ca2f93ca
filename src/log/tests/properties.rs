//! For any sequence of operations the log gives back what a plain model says.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tempfile::TempDir;

use super::super::{AppendOptions, Durability, ExpectedHead, ListQuery, Log, Opening, Writer as Handle};
use super::forgetful::Forgetful;
use super::model::{self, Conversation, Kept, Line, What, Writer, grow, hidden, next_message};
use crate::engine::{self, Engine};
use crate::error::Error;
use crate::model::{Chunk, FinishReason, Message, Metadata, Name, Role, Timestamp};

/// How many conversations there are.
const NAMES: usize = 5;
const START: i64 = 1_700_000_000_000_000;
const SECOND: i64 = 1_000_000;
/// The item ids of providers.
const ITEMS: [&str; 3] = ["item 0", "item 1", ""];

#[derive(Clone, Debug)]
enum Op {
    Append {
        at: usize,
        messages: Vec<Message>,
        buffered: bool,
        expected: Expect,
        key: Option<u8>,
    },
    Begin {
        at: usize,
        role: Role,
    },
    Push {
        writer: usize,
        chunk: u32,
        text: String,
    },
    PushOther {
        writer: usize,
        chunk: u32,
    },
    Finish {
        writer: usize,
    },
    Abandon {
        writer: usize,
    },
    /// Messages and seqs are counted from the end: 0 is behind it.
    Rewind {
        at: usize,
        to: u64,
    },
    Compact {
        at: usize,
        through: u64,
    },
    Fork {
        at: usize,
        seq: Option<usize>,
        child: usize,
    },
    Title {
        at: usize,
    },
    /// Adds or removes a tag.
    Tag {
        at: usize,
        tag: u8,
        remove: bool,
    },
    Delete {
        at: usize,
    },
    Redact {
        at: usize,
        message: u64,
        chunk: Option<u32>,
    },
    Sync,
    Reopen,
    PowerCut,
}

#[derive(Clone, Copy, Debug)]
enum Expect {
    Any,
    New,
    Actual,
    Wrong,
}

fn messages() -> impl Strategy<Value = Vec<Message>> {
    let text = prop_oneof![20 => "[a-zé\u{0}\u{1f600}]{0,6}", 1 => Just("x".repeat(70_000))];
    let item = prop::option::weighted(0.2, prop::sample::select(ITEMS.to_vec()));
    let chunk = (0..4, text, item.clone()).prop_map(|(kind, text, item)| {
        let chunk = match kind {
            0 => Chunk::thinking(text),
            1 => Chunk::tool_call("call", "tool", text),
            2 => Chunk::tool_result("call", text),
            _ => Chunk::text(text),
        };
        Chunk { id: item.map(str::to_owned), ..chunk }
    });
    let role = prop::sample::select(Role::ALL.to_vec());
    let model = prop::option::weighted(0.2, Just("m-1".to_owned()));
    let created_at = prop::option::weighted(0.2, Just(1_000_000_i64));
    let message = (role, prop::collection::vec(chunk, 0..4), model, created_at, item).prop_map(
        |(role, chunks, model, created_at, item)| {
            let mut message = model::message(role, chunks, model, created_at);
            message.metadata.id = item.map(str::to_owned);
            message
        },
    );
    prop::collection::vec(message, 1..4)
}

fn op() -> impl Strategy<Value = Op> {
    // Most of it happens to two conversations, so that much happens to each.
    let at = prop_oneof![4 => Just(0), 2 => Just(1), 2 => 0..NAMES];
    let writer = 0..4_usize;
    let chunk = 0..3_u32;
    let role = prop::sample::select(vec![Role::Assistant, Role::Tool, Role::User]);
    let expected = prop_oneof![
        6 => Just(Expect::Any),
        1 => Just(Expect::New),
        2 => Just(Expect::Actual),
        1 => Just(Expect::Wrong),
    ];
    let key = prop::option::weighted(0.3, 0..3_u8);
    prop_oneof![
        8 => (at.clone(), messages(), any::<bool>(), expected, key)
            .prop_map(|(at, messages, buffered, expected, key)| Op::Append { at, messages, buffered, expected, key }),
        4 => (at.clone(), role).prop_map(|(at, role)| Op::Begin { at, role }),
        8 => (writer.clone(), chunk.clone(), "[a-z]{0,5}").prop_map(|(writer, chunk, text)| Op::Push { writer, chunk, text }),
        1 => (writer.clone(), chunk).prop_map(|(writer, chunk)| Op::PushOther { writer, chunk }),
        2 => writer.clone().prop_map(|writer| Op::Finish { writer }),
        2 => writer.prop_map(|writer| Op::Abandon { writer }),
        3 => (at.clone(), 0..6_u64).prop_map(|(at, to)| Op::Rewind { at, to }),
        2 => (at.clone(), 0..8_u64).prop_map(|(at, through)| Op::Compact { at, through }),
        3 => (at.clone(), prop::option::of(0..8_usize), 0..NAMES).prop_map(|(at, seq, child)| Op::Fork { at, seq, child }),
        1 => at.clone().prop_map(|at| Op::Title { at }),
        2 => (at.clone(), 0..3_u8, any::<bool>()).prop_map(|(at, tag, remove)| Op::Tag { at, tag, remove }),
        1 => at.clone().prop_map(|at| Op::Delete { at }),
        2 => (at, 0..6_u64, prop::option::of(0..3_u32))
            .prop_map(|(at, message, chunk)| Op::Redact { at, message, chunk }),
        2 => Just(Op::Sync),
        1 => Just(Op::Reopen),
        1 => Just(Op::PowerCut),
    ]
}

/// What the log stands on.
enum Place {
    Memory(Arc<Forgetful>),
    Sled(TempDir),
}

impl Place {
    fn engine(&self) -> Arc<dyn Engine> {
        match self {
            Self::Memory(engine) => Arc::clone(engine) as Arc<dyn Engine>,
            Self::Sled(dir) => engine::open(&format!("sled:{}?cache_mb=1", dir.path().display())).unwrap(),
        }
    }
}

/// The log and its model, side by side.
struct World {
    place: Place,
    log: Option<Log>,
    clock: Arc<AtomicI64>,
    conversations: Vec<Option<Conversation>>,
    /// What was deleted while forks read it, and what it was forked from itself.
    reserved: BTreeMap<usize, Option<(usize, usize)>>,
    writers: Vec<(Arc<Handle>, Writer)>,
    /// How many records there are.
    records: usize,
    /// Writers with deltas that no line holds yet, in the order of their first one.
    buffering: Vec<usize>,
}

fn name(at: usize) -> Name {
    Name::from(format!("conversation {at}"))
}

/// The delta of a chunk: which kind it is, its index says.
fn delta(chunk: u32, text: String) -> Chunk {
    match chunk {
        0 => Chunk::text(text),
        1 => Chunk::thinking(text),
        _ => Chunk::tool_call("call", "tool", text),
    }
}

impl World {
    fn new(place: Place) -> Self {
        let mut world = Self {
            place,
            log: None,
            clock: Arc::new(AtomicI64::new(START)),
            conversations: vec![None; NAMES],
            reserved: BTreeMap::new(),
            writers: Vec::new(),
            records: 0,
            buffering: Vec::new(),
        };
        world.open();
        world
    }

    fn open(&mut self) {
        let clock = Arc::clone(&self.clock);
        let clock = Arc::new(move || Timestamp::from_micros(clock.load(Ordering::Relaxed)));
        // Nothing happens by time here: what is buffered waits for a durable write or a sync.
        self.log = Some(Log::open(self.place.engine(), clock, Duration::from_secs(3600), Opening::default()).unwrap());
    }

    fn log(&self) -> &Log {
        self.log.as_ref().unwrap()
    }

    fn now(&self) -> i64 {
        self.clock.load(Ordering::Relaxed)
    }

    fn run(&mut self, op: Op) -> Result<(), TestCaseError> {
        match op {
            Op::Append { at, messages, buffered, expected, key } => self.append(at, &messages, buffered, expected, key),
            Op::Begin { at, role } => self.begin(at, role),
            Op::Push { writer, chunk, text } => self.push(writer, chunk, &text),
            Op::PushOther { writer, chunk } => self.push_other(writer, chunk),
            Op::Finish { writer } => self.finish(writer),
            Op::Abandon { writer } => self.abandon(writer),
            Op::Rewind { at, to } => self.rewind(at, to),
            Op::Compact { at, through } => self.compact(at, through),
            Op::Fork { at, seq, child } => self.fork(at, seq, child),
            Op::Title { at } => self.title(at),
            Op::Tag { at, tag, remove } => self.tag(at, tag, remove),
            Op::Delete { at } => self.delete(at),
            Op::Redact { at, message, chunk } => self.redact(at, message, chunk),
            Op::Sync => {
                self.log().flush().unwrap();
                self.flush_buffers();
                self.publish();
                self.check_all()
            }
            Op::Reopen => self.reopen(),
            Op::PowerCut => self.power_cut(),
        }
    }

    /// Everything that is queued is durable now.
    fn publish(&mut self) {
        for conversation in self.conversations.iter_mut().flatten() {
            conversation.published = Some(conversation.lines.len());
            conversation.published_activity = conversation.activity;
        }
    }

    /// A call that needs a conversation to stand still makes what is queued for it durable.
    fn settle(&mut self, at: usize) {
        let queued = |conversation: &Conversation| conversation.published != Some(conversation.lines.len());
        if self.conversations[at].as_ref().is_some_and(queued) {
            self.publish();
        }
    }

    /// Adds lines behind what is queued; gives their seqs.
    fn add(&mut self, at: usize, lines: Vec<(Option<u64>, What)>) -> (u64, u64) {
        let time = self.now();
        let conversation = self.conversations[at].get_or_insert_with(|| Conversation::new(time));
        conversation.activity = conversation.activity.max(time);
        let first = conversation.lines.len() as u64 + 1;
        self.records += 1;
        let record = self.records;
        conversation.lines.extend(lines.into_iter().map(|(message, what)| Line { record, message, time, what }));
        (first, conversation.lines.len() as u64)
    }

    fn flush_buffers(&mut self) {
        for writer in std::mem::take(&mut self.buffering) {
            self.flush_writer(writer);
        }
    }

    fn flush_writer(&mut self, writer: usize) {
        let Writer { conversation, message, closed, pending, .. } = &mut self.writers[writer].1;
        let pending = std::mem::take(pending);
        if !*closed && !pending.is_empty() {
            let (at, message) = (*conversation, *message);
            let lines = pending.into_iter().map(|(chunk, delta)| (Some(message), What::Fragment(chunk, delta)));
            self.add(at, lines.collect());
        }
    }

    fn append(
        &mut self,
        at: usize,
        messages: &[Message],
        buffered: bool,
        expected: Expect,
        key: Option<u8>,
    ) -> Result<(), TestCaseError> {
        let known = self.conversations[at].as_ref();
        let last = known.map_or(0, |conversation| conversation.lines.len() as u64);
        let (expected, fits) = match expected {
            Expect::Any => (ExpectedHead::Any, true),
            Expect::New => (ExpectedHead::NewConversation, known.is_none()),
            Expect::Actual => (ExpectedHead::At(last), true),
            Expect::Wrong => (ExpectedHead::At(last + 1), false),
        };
        let durability = if buffered { Durability::Buffered } else { Durability::Durable };
        let mut options = AppendOptions::new().with_expected(expected).with_durability(durability);
        if let Some(key) = key {
            options = options.with_idempotency_key(format!("key {key}"));
        }
        let result = self.log().core().append(&name(at), messages, &options);
        let kept = key.and_then(|key| known?.keys.get(&key)).cloned();
        match kept {
            Some(kept) if kept.content.as_deref().is_none_or(|content| content == messages) => {
                let receipt = result.unwrap();
                let published = known.and_then(|conversation| conversation.published).unwrap_or(0) as u64;
                prop_assert!(receipt.duplicate);
                prop_assert_eq!((receipt.first_seq, receipt.last_seq), (kept.first_seq, kept.last_seq));
                prop_assert_eq!(&receipt.message_indexes, &kept.message_indexes);
                prop_assert_eq!(receipt.durable, !buffered || published >= kept.last_seq);
                if !buffered && published < kept.last_seq {
                    self.publish();
                }
            }
            Some(_) => prop_assert!(matches!(result, Err(Error::KeyReused { .. })), "{result:?}"),
            None if known.is_none() && self.reserved.contains_key(&at) => {
                prop_assert!(matches!(result, Err(Error::Conflict { actual: 0, .. })), "{result:?}");
            }
            None if !fits => {
                let Err(Error::Conflict { actual, .. }) = result else { panic!("a conflict is expected: {result:?}") };
                prop_assert_eq!(actual, last);
            }
            None => {
                let receipt = result.unwrap();
                let base = self.conversations[at].as_ref().map_or(0, Conversation::next_message);
                let mut lines = Vec::new();
                for (index, message) in (base..).zip(messages) {
                    if message.chunks.is_empty() {
                        lines.push((Some(index), What::Empty(message.clone())));
                    }
                    for chunk in 0..message.chunks.len() {
                        lines.push((Some(index), What::Whole { message: message.clone(), chunk }));
                    }
                }
                let (first_seq, last_seq) = self.add(at, lines);
                let message_indexes: Vec<u64> = (base..base + messages.len() as u64).collect();
                prop_assert_eq!((receipt.first_seq, receipt.last_seq), (first_seq, last_seq));
                prop_assert_eq!(&receipt.message_indexes, &message_indexes);
                prop_assert_eq!((receipt.durable, receipt.duplicate), (!buffered, false));
                if let (Some(key), Some(conversation)) = (key, &mut self.conversations[at]) {
                    let content = Some(messages.to_vec());
                    conversation.keys.insert(key, Kept { content, first_seq, last_seq, message_indexes });
                }
                if !buffered {
                    self.publish();
                }
            }
        }
        self.check(at)
    }

    fn begin(&mut self, at: usize, role: Role) -> Result<(), TestCaseError> {
        let result = self.log().core().begin(&name(at), role, Metadata::default());
        if self.conversations[at].is_none() && self.reserved.contains_key(&at) {
            prop_assert!(matches!(result, Err(Error::Conflict { actual: 0, .. })), "{result:?}");
            return Ok(());
        }
        let (handle, receipt) = result.unwrap();
        let message = self.conversations[at].as_ref().map_or(0, Conversation::next_message);
        let (first_seq, last_seq) = self.add(at, vec![(Some(message), What::Begin(role))]);
        self.publish();
        prop_assert_eq!((receipt.first_seq, receipt.last_seq), (first_seq, last_seq));
        prop_assert_eq!(receipt.message_indexes, [message]);
        let writer = Writer { conversation: at, message, closed: false, pending: Vec::new(), begun: BTreeSet::new() };
        self.writers.push((handle, writer));
        self.check(at)
    }

    /// The writer that a number means: one of the newest.
    fn writer(&self, number: usize) -> Option<usize> {
        self.writers.len().checked_sub(number + 1)
    }

    fn push(&mut self, writer: usize, chunk: u32, text: &str) -> Result<(), TestCaseError> {
        let Some(writer) = self.writer(writer) else { return Ok(()) };
        let delta = delta(chunk, text.to_owned());
        let result = self.log().core().push(&self.writers[writer].0, chunk, delta.clone());
        let known = &mut self.writers[writer].1;
        if known.closed {
            prop_assert!(matches!(result, Err(Error::MessageClosed { .. })), "{result:?}");
            return Ok(());
        }
        prop_assert!(result.is_ok(), "{result:?}");
        if known.pending.is_empty() {
            self.buffering.push(writer);
        }
        grow(&mut known.pending, chunk, delta);
        known.begun.insert(chunk);
        let at = known.conversation;
        self.check(at)
    }

    /// A delta that does not fit its chunk.
    fn push_other(&mut self, writer: usize, chunk: u32) -> Result<(), TestCaseError> {
        let Some(writer) = self.writer(writer) else { return Ok(()) };
        let (handle, known) = &self.writers[writer];
        if known.begun.contains(&chunk) && !known.closed {
            let result = self.log().core().push(handle, chunk, Chunk::image("https://example.org/a.png"));
            prop_assert!(matches!(result, Err(Error::InvalidInput(_))), "{result:?}");
        }
        Ok(())
    }

    fn finish(&mut self, writer: usize) -> Result<(), TestCaseError> {
        let Some(writer) = self.writer(writer) else { return Ok(()) };
        let handle = Arc::clone(&self.writers[writer].0);
        let result = self.log().core().finish(&handle, Some(FinishReason::Stop), None, Metadata::default());
        self.log().core().abandon(&handle);
        let Writer { conversation: at, message, closed, .. } = self.writers[writer].1;
        if closed {
            prop_assert!(matches!(result, Err(Error::MessageClosed { .. })), "{result:?}");
            return Ok(());
        }
        self.flush_writer(writer);
        let (_, last_seq) = self.add(at, vec![(Some(message), What::Finish(FinishReason::Stop))]);
        self.publish();
        prop_assert_eq!(result.unwrap().last_seq, last_seq);
        self.writers[writer].1.closed = true;
        self.check(at)
    }

    fn abandon(&mut self, writer: usize) -> Result<(), TestCaseError> {
        let Some(writer) = self.writer(writer) else { return Ok(()) };
        self.log().core().abandon(&self.writers[writer].0);
        self.flush_writer(writer);
        self.writers[writer].1.closed = true;
        let at = self.writers[writer].1.conversation;
        self.check(at)
    }

    /// The index of a message that is counted from the end.
    fn counted_back(&self, at: usize, message: u64) -> u64 {
        self.conversations[at].as_ref().map_or(0, Conversation::next_message).wrapping_sub(message)
    }

    fn rewind(&mut self, at: usize, to: u64) -> Result<(), TestCaseError> {
        let to = self.counted_back(at, to);
        let result = self.log().core().rewind(&name(at), to);
        self.settle(at);
        let visible = |conversation: &Conversation| {
            to < conversation.next_message() && !hidden(&conversation.lines).contains(&to)
        };
        if !self.conversations[at].as_ref().is_some_and(visible) {
            prop_assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
            return self.check(at);
        }
        let end = self.conversations[at].as_ref().map_or(0, Conversation::next_message);
        let (first_seq, last_seq) = self.add(at, vec![(None, What::Rewind { to, end })]);
        self.publish();
        let receipt = result.unwrap();
        prop_assert_eq!((receipt.first_seq, receipt.last_seq), (first_seq, last_seq));
        for (_, writer) in &mut self.writers {
            writer.closed |= writer.conversation == at && writer.message >= to;
        }
        self.check(at)
    }

    fn compact(&mut self, at: usize, through: u64) -> Result<(), TestCaseError> {
        let through = self.counted_back(at, through);
        let summary = format!("summary {}", self.records);
        let result = self.log().core().compact(&name(at), through, &summary);
        self.settle(at);
        let visible = |conversation: &Conversation| {
            through < conversation.next_message() && !hidden(&conversation.lines).contains(&through)
        };
        if !self.conversations[at].as_ref().is_some_and(visible) {
            prop_assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
            return self.check(at);
        }
        let mut live = self.writers.iter().map(|(_, writer)| writer);
        if live.any(|writer| writer.conversation == at && writer.message <= through && !writer.closed) {
            prop_assert!(matches!(result, Err(Error::InvalidInput(_))), "{result:?}");
            return self.check(at);
        }
        let (first_seq, last_seq) = self.add(at, vec![(None, What::Compaction { through, summary })]);
        self.publish();
        let receipt = result.unwrap();
        prop_assert_eq!((receipt.first_seq, receipt.last_seq), (first_seq, last_seq));
        self.check(at)
    }

    fn fork(&mut self, at: usize, seq: Option<usize>, child: usize) -> Result<(), TestCaseError> {
        let end = self.conversations[at].as_ref().map_or(0, |conversation| conversation.lines.len() + 1);
        let seq = seq.map(|seq| end.saturating_sub(seq));
        let at_seq = seq.map(|seq| seq as u64);
        let result = self.log().core().fork(&name(at), at_seq, &name(child));
        self.settle(at);
        let Some(parent) = &self.conversations[at] else {
            prop_assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
            return Ok(());
        };
        let last = seq.unwrap_or(parent.lines.len());
        if last == 0 || last > parent.lines.len() {
            prop_assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
            return Ok(());
        }
        if let Some(existing) = &self.conversations[child] {
            let Err(Error::Conflict { actual, .. }) = result else { panic!("a conflict is expected: {result:?}") };
            prop_assert_eq!(actual, existing.lines.len() as u64);
            return Ok(());
        }
        if self.reserved.contains_key(&child) {
            prop_assert!(matches!(result, Err(Error::Conflict { actual: 0, .. })), "{result:?}");
            return Ok(());
        }
        prop_assert!(result.is_ok(), "{result:?}");
        let lines = parent.lines[..last].to_vec();
        let mut fork = Conversation { lines, tags: parent.tags.clone(), ..Conversation::new(self.now()) };
        fork.parent = Some((self.owner(at, last), last));
        self.conversations[child] = Some(fork);
        self.publish();
        self.check(at)?;
        self.check(child)
    }

    /// Whose own lines the conversation's lines up to here end with.
    fn owner(&self, at: usize, last: usize) -> usize {
        let parent = match &self.conversations[at] {
            Some(conversation) => conversation.parent,
            None => self.reserved.get(&at).copied().flatten(),
        };
        match parent {
            Some((parent, shared)) if last <= shared => self.owner(parent, last),
            _ => at,
        }
    }

    fn title(&mut self, at: usize) -> Result<(), TestCaseError> {
        let result = self.log().core().set_title(&name(at), Some("a title"));
        self.settle(at);
        if self.conversations[at].is_none() {
            prop_assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
            return Ok(());
        }
        let (_, last_seq) = self.add(at, vec![(None, What::Title)]);
        self.publish();
        prop_assert_eq!(result.unwrap().last_seq, last_seq);
        prop_assert_eq!(self.log().core().describe(name(at).id()).unwrap().unwrap().title.unwrap(), "a title");
        self.check(at)
    }

    fn tag(&mut self, at: usize, tag: u8, remove: bool) -> Result<(), TestCaseError> {
        let tag = format!("tag {tag}");
        let (gone, new) = if remove { (vec![tag.as_str()], vec![]) } else { (vec![], vec![tag.as_str()]) };
        let result = self.log().core().change_tags(&name(at), &gone, &new);
        self.settle(at);
        let Some(known) = &mut self.conversations[at] else {
            prop_assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
            return Ok(());
        };
        let had = known.tags.contains(&tag);
        known.tags.retain(|known| !remove || *known != tag);
        if !remove && !had {
            known.tags.push(tag);
        }
        prop_assert_eq!(result.unwrap(), known.tags.clone());
        if had == remove {
            self.add(at, vec![(None, What::Tags)]);
            self.publish();
        }
        self.check(at)
    }

    fn delete(&mut self, at: usize) -> Result<(), TestCaseError> {
        let result = self.log().core().delete(&name(at));
        self.settle(at);
        if self.conversations[at].is_none() {
            prop_assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
            return Ok(());
        }
        prop_assert!(result.is_ok(), "{result:?}");
        self.publish();
        let deleted = self.conversations[at].take();
        self.reserved.insert(at, deleted.and_then(|deleted| deleted.parent));
        self.free_what_no_fork_reads();
        for (_, writer) in &mut self.writers {
            writer.closed |= writer.conversation == at;
        }
        self.check(at)
    }

    /// A name is free again with the last fork that reads what it named.
    fn free_what_no_fork_reads(&mut self) {
        loop {
            let live = self.conversations.iter().flatten().filter_map(|conversation| conversation.parent);
            let read: BTreeSet<usize> =
                live.chain(self.reserved.values().copied().flatten()).map(|(of, _)| of).collect();
            let before = self.reserved.len();
            self.reserved.retain(|at, _| read.contains(at));
            if self.reserved.len() == before {
                return;
            }
        }
    }

    fn redact(&mut self, at: usize, message: u64, chunk: Option<u32>) -> Result<(), TestCaseError> {
        let message = self.counted_back(at, message);
        let result = self.log().core().redact(&name(at), message, chunk);
        self.settle(at);
        let mut live = self.writers.iter().map(|(_, writer)| writer);
        if live.any(|writer| writer.conversation == at && writer.message == message && !writer.closed) {
            prop_assert!(matches!(result, Err(Error::InvalidInput(_))), "{result:?}");
            return self.check(at);
        }
        let lines = self.conversations[at].as_ref().map_or(&[][..], |conversation| &conversation.lines);
        let found: BTreeSet<usize> =
            lines.iter().filter(|line| line.is_of(message, chunk)).map(|line| line.record).collect();
        let Some(last) = lines.iter().rposition(|line| found.contains(&line.record)) else {
            prop_assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
            return self.check(at);
        };
        // The appends are known by their keys alone now, to the conversation that they were made to.
        let owner = self.owner(at, last + 1);
        if let Some(owner) = &mut self.conversations[owner] {
            let lines = &owner.lines;
            let seqs = |kept: &Kept| kept.first_seq as usize - 1..kept.last_seq as usize;
            for kept in owner.keys.values_mut() {
                if lines[seqs(kept)].iter().any(|line| found.contains(&line.record)) {
                    kept.content = None;
                }
            }
        }
        // All that share the records are affected.
        for conversation in self.conversations.iter_mut().flatten() {
            let mut seen = BTreeSet::new();
            for line in &mut conversation.lines {
                if found.contains(&line.record) && line.is_of(message, chunk) {
                    line.forget(&mut seen);
                }
            }
        }
        let quoting =
            self.conversations[at].as_ref().map_or_else(Vec::new, |conversation| conversation.quoting(message));
        let (_, last_seq) = self.add(at, vec![(None, What::Redact { message, chunk })]);
        self.publish();
        let redaction = result.unwrap();
        prop_assert_eq!((redaction.seq, redaction.summaries), (last_seq, quoting));
        self.check(at)
    }

    fn reopen(&mut self) -> Result<(), TestCaseError> {
        self.log().close().unwrap();
        self.flush_buffers();
        self.publish();
        self.restart(None)
    }

    fn power_cut(&mut self) -> Result<(), TestCaseError> {
        let Place::Memory(engine) = &self.place else { return self.reopen() };
        let left = engine.cut();
        self.buffering.clear();
        for conversation in &mut self.conversations {
            let Some(known) = conversation else { continue };
            let Some(published) = known.published else {
                *conversation = None;
                continue;
            };
            known.lines.truncate(published);
            known.activity = known.published_activity;
            known.keys.retain(|_, kept| kept.last_seq <= published as u64);
        }
        self.restart(Some(left))
    }

    fn restart(&mut self, left: Option<Arc<Forgetful>>) -> Result<(), TestCaseError> {
        if let Some(log) = self.log.take() {
            let handles = self.writers.drain(..).map(|(handle, _)| handle);
            handles.for_each(|handle| log.core().abandon(&handle));
        }
        if let Some(left) = left {
            self.place = Place::Memory(left);
        }
        self.open();
        self.check_all()
    }

    /// Whether readers see what the model says.
    fn check(&self, at: usize) -> Result<(), TestCaseError> {
        let core = self.log().core();
        let (name, id) = (name(at), name(at).id());
        let Some(known) = self.conversations[at].as_ref().filter(|known| known.published.is_some()) else {
            let missing = matches!(core.load(id, &name), Err(Error::NotFound { .. }));
            prop_assert!(missing);
            return Ok(());
        };
        let live = self.writers.iter().filter(|(_, writer)| writer.conversation == at && !writer.closed);
        let live: BTreeSet<u64> = live.map(|(_, writer)| writer.message).collect();
        let grouped = core.load(id, &name).unwrap();
        prop_assert!(grouped.damage.is_empty(), "{:?}", grouped.damage);
        prop_assert_eq!(grouped.compaction, known.compaction());
        prop_assert_eq!(grouped.messages, known.messages(&live));
        let item = core.describe(id).unwrap().unwrap();
        let lines = known.visible();
        prop_assert_eq!((item.last_seq, item.messages), (lines.len() as u64, next_message(lines)));
        prop_assert_eq!(&item.tags, &known.tags);
        for item in ITEMS {
            let found = core.find_item(&name, item).unwrap();
            let place = found.as_ref().map(|item| (item.seq, item.message_index, item.chunk_index));
            prop_assert_eq!(place, known.find(item));
        }
        prop_assert_eq!(item.created_at.as_micros(), known.created);
        prop_assert_eq!(item.last_activity.as_micros(), known.published_activity);
        let parent = known.parent.map(|(parent, last)| (self::name(parent).id(), last as u64));
        prop_assert_eq!(item.parent, parent);
        Ok(())
    }

    fn check_all(&self) -> Result<(), TestCaseError> {
        let core = self.log().core();
        let mut listed = Vec::new();
        for (at, known) in self.conversations.iter().enumerate() {
            self.check(at)?;
            let Some(known) = known.as_ref().filter(|known| known.published.is_some()) else { continue };
            let minute = Timestamp::from_micros(known.published_activity).minute();
            listed.push((minute, name(at).id()));
            let entries =
                core.entries(name(at).id(), &"", 1..=u64::MAX - 1, engine::Order::Ascending, usize::MAX).unwrap();
            prop_assert_eq!(entries.len(), known.visible().len());
            for ((seq, entry), line) in (1..).zip(&entries).zip(known.visible()) {
                let (kind, chunk_index) = match &line.what {
                    What::Whole { chunk, .. } => ("chunk", Some(u32::try_from(*chunk).unwrap())),
                    What::Fragment(chunk, _) => ("chunk", Some(*chunk)),
                    What::Redact { chunk, .. } => ("redact", *chunk),
                    What::Begin(_) | What::Empty(_) => ("begin", None),
                    What::Finish(_) => ("finish", None),
                    What::Rewind { .. } => ("rewind", None),
                    What::Title | What::Tags => ("meta", None),
                    What::Compaction { .. } => ("compaction", None),
                };
                let message = match line.what {
                    What::Rewind { to, .. } => Some(to),
                    What::Redact { message, .. } => Some(message),
                    What::Compaction { through, .. } => Some(through),
                    _ => line.message,
                };
                prop_assert_eq!((entry.seq, entry.kind.name(), entry.chunk_index), (seq, kind, chunk_index));
                prop_assert_eq!(entry.message_index, message);
            }
        }
        listed.sort_unstable();
        listed.reverse();
        let page = core.list(&ListQuery::new()).unwrap();
        prop_assert_eq!(
            page.items.into_iter().map(|item| item.id).collect::<Vec<_>>(),
            listed.iter().map(|(_, id)| *id).collect::<Vec<_>>()
        );
        prop_assert!(page.next.is_none());
        Ok(())
    }

    /// Whether what can be derived again is as it is stored. Makes what is queued durable.
    fn verify(&mut self) -> Result<(), TestCaseError> {
        self.log().flush().unwrap();
        self.flush_buffers();
        self.publish();
        prop_assert_eq!(self.log().core().verify(&mut |_, _| ()).unwrap().problems, []);
        self.check_all()
    }
}

fn run(place: Place, ops: Vec<(Op, i64)>) -> Result<(), TestCaseError> {
    let mut world = World::new(place);
    for (number, (op, back)) in (1..).zip(ops) {
        // The clock of a real machine goes back at times.
        world.clock.store(START + (number * 20 - back) * SECOND, Ordering::Relaxed);
        world.run(op)?;
    }
    world.verify()?;
    world.reopen()
}

fn cases(variable: &str, default: u32) -> u32 {
    std::env::var(variable).map_or(default, |cases| cases.parse().unwrap())
}

fn check(cases: u32, place: impl Fn() -> Place) {
    let ops = prop::collection::vec((op(), 0..40_i64), 1..30);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new(config).run(&ops, |ops| run(place(), ops)).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn what_was_appended_is_loaded_from_memory() {
    check(cases("CONVO_CASES", 10_000), || Place::Memory(Arc::default()));
}

#[test]
fn what_was_appended_is_loaded_from_sled() {
    check(cases("CONVO_CASES_SLED", 200), || Place::Sled(tempfile::tempdir().unwrap()));
}
