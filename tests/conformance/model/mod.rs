//! For any sequence of calls the store gives back what a plain model says.

mod changes;
mod forks;
mod messages;
mod op;
mod plain;
mod seen;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use conversation_store::model::{Name, Timestamp};
use conversation_store::{Conversation as Loaded, MessageWriter, Store, StoreOptions};
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};

use crate::common::{cases, config};
use crate::place::Place;
use op::Op;
use plain::{Conversation, Line, What, Writer};

crate::tests![what_was_done_is_what_is_read];

/// How many conversations there are.
const NAMES: usize = 5;
const START: i64 = 1_700_000_000_000_000;
/// Several calls fall into one second.
const STEP: i64 = 300_000;

/// The store and its model, side by side.
struct World<'a> {
    place: &'a Place,
    url: String,
    store: Option<Store>,
    clock: Arc<AtomicI64>,
    conversations: Vec<Option<Conversation>>,
    /// What was deleted while forks read it, and what it was forked from itself.
    reserved: BTreeMap<usize, Option<(usize, usize)>>,
    writers: Vec<(MessageWriter, Writer)>,
    /// What was loaded some time ago, and of which conversation, of those that were made.
    kept: Vec<Option<(usize, Loaded)>>,
    /// The conversation that was looked at last.
    checked: Cell<Option<usize>>,
    /// How many records there are.
    records: usize,
    /// How many conversations were made.
    made: usize,
}

/// Some have an owner.
fn name(at: usize) -> Name {
    Name::from(format!("conversation {at}")).with_owner(owner(at))
}

fn owner(at: usize) -> &'static str {
    if at < 3 { "" } else { "ada" }
}

fn options(clock: &Arc<AtomicI64>) -> StoreOptions {
    let clock = Arc::clone(clock);
    // Nothing happens by time here: what is buffered waits for the sync after each call.
    StoreOptions::new()
        .with_window(Duration::from_secs(3600))
        .with_clock(move || Timestamp::from_micros(clock.load(Ordering::Relaxed)))
}

impl<'a> World<'a> {
    fn new(place: &'a Place) -> Self {
        let clock = Arc::new(AtomicI64::new(START));
        let mut world = Self {
            place,
            url: place.url_with(&options(&clock)),
            store: None,
            clock,
            conversations: vec![None; NAMES],
            reserved: BTreeMap::new(),
            writers: Vec::new(),
            kept: vec![None; NAMES],
            checked: Cell::new(None),
            records: 0,
            made: 0,
        };
        world.open();
        world
    }

    fn open(&mut self) {
        self.store = Some(options(&self.clock).open(&self.url).unwrap());
    }

    fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    fn now(&self) -> i64 {
        self.clock.load(Ordering::Relaxed)
    }

    fn run(&mut self, op: Op) -> Result<(), TestCaseError> {
        match op {
            Op::Append { at, messages, buffered, expected, key } => self.append(at, &messages, buffered, expected, key),
            Op::Begin { at, role, item, expected, key } => self.begin(at, role, item, expected, key),
            Op::Push { writer, deltas, end } => self.push(writer, deltas, end),
            Op::PushOther { writer, chunk } => self.push_other(writer, chunk),
            Op::Rewind { at, to } => self.rewind(at, to),
            Op::Remove { at, message, chunk } => self.remove(at, message, chunk),
            Op::Summarize { at, through } => self.summarize(at, through),
            Op::Fork { at, seq, child } => self.fork(at, seq, child),
            Op::Create { at, tags, metadata } => self.create(at, &tags, metadata),
            Op::Title { at, title } => self.title(at, title),
            Op::Metadata { at, metadata } => self.set_metadata(at, metadata),
            Op::Tag { at, tag, remove } => self.tag(at, tag, remove),
            Op::Delete { at } => self.delete(at),
            Op::Redact { at, message, chunk } => self.redact(at, message, chunk),
            Op::Reopen => self.reopen(),
        }
    }

    /// The last seq of a conversation; 0 if there is none.
    fn last_seq(&self, at: usize) -> u64 {
        self.conversations[at].as_ref().map_or(0, Conversation::last_seq)
    }

    /// The index of a message that is counted from the end.
    fn counted_back(&self, at: usize, message: u64) -> u64 {
        self.conversations[at].as_ref().map_or(0, Conversation::next_message).wrapping_sub(message)
    }

    /// Whether a message that this conversation may show is being written.
    fn is_written(&self, at: usize, message: impl Fn(u64) -> bool) -> bool {
        let live = self.writers.iter().map(|(_, writer)| writer).filter(|writer| !writer.closed);
        live.into_iter().any(|writer| writer.conversation == at && message(writer.message))
    }

    /// Adds entries, as one record; gives their seqs.
    fn add(&mut self, at: usize, lines: Vec<(Option<u64>, What)>) -> (u64, u64) {
        let time = self.now();
        if self.conversations[at].is_none() {
            self.made += 1;
            self.conversations[at] = Some(Conversation::new(self.made, time));
        }
        let conversation = self.conversations[at].as_mut().unwrap();
        conversation.activity = conversation.activity.max(time);
        let first = conversation.last_seq() + 1;
        self.records += 1;
        let record = self.records;
        conversation.lines.extend(lines.into_iter().map(|(message, what)| Line { record, message, time, what }));
        (first, conversation.last_seq())
    }

    fn reopen(&mut self) -> Result<(), TestCaseError> {
        if !self.place.survives() {
            return self.check_all();
        }
        self.store().close().unwrap();
        self.writers.clear();
        self.store = None;
        self.open();
        for at in 0..NAMES {
            let open = self.conversations[at].as_ref().map(|known| known.unfinished().1).unwrap_or_default();
            for message in open {
                self.add(at, vec![(Some(message), What::Interrupt(self.place.closed()))]);
            }
        }
        self.check_all()
    }
}

fn run(place: &Place, ops: Vec<(Op, i64)>) -> Result<(), TestCaseError> {
    let mut world = World::new(place);
    for (number, (op, back)) in (1..).zip(ops) {
        // The clock of a real machine goes back at times.
        world.clock.store(START + (number * 2 - back) * STEP, Ordering::Relaxed);
        world.checked.set(None);
        // What begins may be seen before it is durable: it is looked at again.
        let is_durable = !matches!(op, Op::Begin { .. });
        world.run(op)?;
        world.store().sync().unwrap();
        // Somebody looks at one conversation after another, but not twice at what the call has just looked at.
        let next = number as usize % NAMES;
        if !is_durable || world.checked.get() != Some(next) {
            world.check(next)?;
        }
    }
    world.check_all()?;
    prop_assert_eq!(world.store().verify(|_, _| ()).unwrap().problems, []);
    if place.survives() {
        world.reopen()?;
    }
    drop(world);
    place.clear();
    Ok(())
}

fn what_was_done_is_what_is_read(place: &Place) {
    let default = if place.survives() { 60 } else { 400 };
    let ops = prop::collection::vec((op::op(), 0..4_i64), 1..40);
    let runner = TestRunner::new(config(cases("CONVO_CASES", default)));
    { runner }.run(&ops, |ops| run(place, ops)).unwrap_or_else(|error| panic!("{error}"));
}
