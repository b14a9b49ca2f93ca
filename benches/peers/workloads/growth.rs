//! What work costs as a store grows: tables of our own engines.

use std::hint::black_box;
use std::time::{Duration, Instant};

use conversation_store::model::{ConversationId, Message};
use conversation_store::{AppendOptions, Durability, ListQuery, Store};

use super::Bench;
use crate::engines::Engine;
use crate::place::memory;
use crate::report::{row, show};
use crate::rounds::{Measured, time_each};
use crate::texts::{Texts, chunks, conversation};

const CHUNK_BYTES: usize = 500;
const LEAST: Duration = Duration::from_millis(50);

/// What is done at each size, and in which unit it is shown.
type Step = (&'static str, fn(&Subject<'_>) -> f64);

/// A store of some size.
struct Subject<'a> {
    store: &'a Store,
    /// How many conversations there are.
    conversations: usize,
    turn: &'a [Message],
}

const IN_ONE: &[Step] = &[
    ("append, µs", append),
    ("load, ns/chunk", load),
    ("last 10, µs", tail),
    ("fork, µs", fork),
    ("rewind, µs", rewind),
];
const IN_MANY: &[Step] = &[
    ("append, µs", append),
    ("append to a new one, µs", append_new),
    ("load, ns/chunk", load),
    ("last 10, µs", tail),
    ("list 50, µs", list),
];

pub(super) fn run(bench: &Bench) -> Vec<Measured> {
    for engine in bench.engines(|engine| engine.ours && engine.keeps) {
        table(bench, &engine, "chunks in one conversation", bench.size(1_000_000, 10_000), 10, IN_ONE, |_| 0);
        table(bench, &engine, "conversations", bench.size(1_000_000, 1_000), 1, IN_MANY, |at| at);
    }
    Vec::new()
}

/// Lets a store grow tenfold from row to row; `place` is the conversation of an append.
fn table(
    bench: &Bench,
    engine: &Engine,
    what: &str,
    largest: usize,
    smallest: usize,
    steps: &[Step],
    place: fn(usize) -> usize,
) {
    let path = bench.path("growth", engine);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let store = Store::open(&format!("{}:{}", engine.name, path.display())).unwrap();
    let mut texts = Texts::new();
    let (turn, batch) = (texts.chat(3, CHUNK_BYTES), texts.chat(10, CHUNK_BYTES));
    let in_one = place(1) == 0;
    let (messages, unit) = if in_one { (&batch, chunks(&batch)) } else { (&turn, 1) };
    println!("\n{}, {what}:\n", engine.title);
    let columns = steps.iter().map(|(name, _)| (*name).to_owned());
    row([what.to_owned()].into_iter().chain(columns).chain(["memory, MiB".to_owned()]));
    println!("|{}", "---:|".repeat(steps.len() + 2));
    let (mut size, mut done) = (smallest, 0);
    while size <= largest {
        eprintln!("growth: {}, {size} {what}", engine.name);
        let options = AppendOptions::new().with_durability(Durability::Buffered);
        while done < size / unit {
            store.append_with(conversation(place(done)), messages, &options).unwrap();
            done += 1;
        }
        store.sync().unwrap();
        let conversations = if in_one { 1 } else { size };
        let subject = Subject { store: &store, conversations, turn: &turn };
        let cells = steps.iter().map(|(_, measure)| show(measure(&subject)));
        let memory = memory("VmRSS").map(show).unwrap_or_default();
        row([size.to_string()].into_iter().chain(cells).chain([memory]));
        size *= 10;
    }
    store.close().unwrap();
    drop(store);
    bench.remove("growth");
}

/// A conversation that was not used just before, if there are many.
fn some(subject: &Subject<'_>, at: usize) -> ConversationId {
    conversation(at.wrapping_mul(7_919) % subject.conversations)
}

/// The median of single, durable steps, in microseconds.
fn median_micros<T>(mut step: impl FnMut(usize) -> T) -> f64 {
    let mut times: Vec<_> = (0..101)
        .map(|at| {
            let start = Instant::now();
            black_box(step(at));
            start.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e6
}

fn append(subject: &Subject<'_>) -> f64 {
    median_micros(|at| subject.store.append(some(subject, at), subject.turn).unwrap())
}

fn append_new(subject: &Subject<'_>) -> f64 {
    median_micros(|_| subject.store.append(ConversationId::new(), subject.turn).unwrap())
}

fn load(subject: &Subject<'_>) -> f64 {
    let mut at = 0;
    let each = time_each(LEAST, || {
        at += 1;
        let loaded = black_box(subject.store.load(some(subject, at)).unwrap());
        loaded.messages().iter().map(|stored| stored.message.chunks.len()).sum()
    });
    each.as_secs_f64() * 1e9
}

fn tail(subject: &Subject<'_>) -> f64 {
    let mut at = 0;
    let each = time_each(LEAST, || {
        at += 1;
        black_box(subject.store.newest_entries(some(subject, at), 10).unwrap());
        1
    });
    each.as_secs_f64() * 1e6
}

fn list(subject: &Subject<'_>) -> f64 {
    let query = ListQuery::new();
    let each = time_each(LEAST, || {
        black_box(subject.store.list(&query).unwrap());
        1
    });
    each.as_secs_f64() * 1e6
}

fn fork(subject: &Subject<'_>) -> f64 {
    median_micros(|_| subject.store.fork(conversation(0), None).unwrap())
}

/// Hides the newest message, each time in a fork of its own.
fn rewind(subject: &Subject<'_>) -> f64 {
    let newest = subject.store.describe(conversation(0)).unwrap().messages - 1;
    let forks: Vec<_> = (0..101).map(|_| subject.store.fork(conversation(0), None).unwrap()).collect();
    median_micros(|at| subject.store.rewind(forks[at], newest).unwrap())
}
