//! For any sequence of operations the log gives back what a plain model gives.

mod control;
mod messages;
mod op;
mod seen;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tempfile::TempDir;

use super::super::{Embedded, Opening};
use super::engines::Forgetful;
use super::model::{Conversation, Line, What, Writer};
use crate::embedded::engine::{self, Engine};
use crate::embedded::state::Writer as Handle;
use crate::model::{Message, Name, Role, Timestamp};
use op::Op;

/// How many conversations there are.
const NAMES: usize = 5;
const START: i64 = 1_700_000_000_000_000;
const SECOND: i64 = 1_000_000;

/// The engine below the log.
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
    log: Option<Embedded>,
    clock: Arc<AtomicI64>,
    conversations: Vec<Option<Conversation>>,
    /// What was deleted while forks read it, and what it was itself forked from.
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
        self.log =
            Some(Embedded::open(self.place.engine(), clock, Duration::from_secs(3600), Opening::default()).unwrap());
    }

    fn log(&self) -> &Embedded {
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
            Op::Summarize { at, through } => self.summarize(at, through),
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

    /// A call that needs a conversation to be still makes what is queued for it durable.
    fn settle(&mut self, at: usize) {
        let queued = |conversation: &Conversation| conversation.published != Some(conversation.lines.len());
        if self.conversations[at].as_ref().is_some_and(queued) {
            self.publish();
        }
    }

    /// Adds lines after what is queued; returns their seqs.
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
    let ops = prop::collection::vec((op::op(), 0..40_i64), 1..30);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new(config).run(&ops, |ops| run(place(), ops)).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_message_that_is_written_elsewhere_is_not_redacted_through_a_fork() {
    let append = Op::Append {
        at: 1,
        messages: vec![Message::new(Role::System, [])],
        buffered: true,
        expected: op::Expect::Any,
        key: None,
    };
    let ops = [
        Op::Begin { at: 1, role: Role::Assistant },
        Op::Fork { at: 1, seq: None, child: 0 },
        append,
        Op::Redact { at: 0, message: 1, chunk: None },
        Op::Push { writer: 0, chunk: 0, text: String::new() },
    ];
    run(Place::Memory(Arc::default()), ops.map(|op| (op, 0)).into()).unwrap();
}

#[test]
fn a_delta_that_is_refused_takes_no_place() {
    let push = |writer| Op::Push { writer, chunk: 0, text: String::new() };
    let begin = || Op::Begin { at: 0, role: Role::Assistant };
    let ops = [begin(), push(0), Op::Sync, Op::PushOther { writer: 0, chunk: 0 }, begin(), push(0), push(1)];
    run(Place::Memory(Arc::default()), ops.map(|op| (op, 0)).into()).unwrap();
}

#[test]
fn what_was_appended_is_loaded_from_memory() {
    check(cases("CONVO_CASES", 10_000), || Place::Memory(Arc::default()));
}

#[test]
fn what_was_appended_is_loaded_from_sled() {
    check(cases("CONVO_CASES_SLED", 200), || Place::Sled(tempfile::tempdir().unwrap()));
}
