//! What work costs as a store grows: tables of our own engines, each made by a process of its own.

use std::hint::black_box;
use std::process::Command;
use std::time::{Duration, Instant};

use conversation_store::model::{ConversationId, Message, Timestamp};
use conversation_store::provider::{PromptOptions, Target, render};
use conversation_store::{AppendOptions, Changes, Durability, ListQuery, Retention, Store, next_step};

use super::Bench;
use crate::engines::ENGINES;
use crate::options::Options;
use crate::place::memory;
use crate::report::{commas, row, show};
use crate::rounds::{Measured, time_each};
use crate::texts::{Texts, chunks, conversation};

const CHUNK_BYTES: usize = 500;
/// How long a figure is measured that is not a median of single steps.
const LEAST: Duration = Duration::from_millis(50);
/// Single steps of which the median is taken.
const STEPS: usize = 101;

/// A table: what grows, and what is done at each size.
struct Table {
    name: &'static str,
    what: &'static str,
    smallest: usize,
    largest: (usize, usize),
    columns: &'static [Column],
}

type Column = (&'static str, fn(&Subject<'_>) -> f64);

const TABLES: &[Table] = &[
    Table {
        name: "chunks",
        what: "chunks in one conversation",
        smallest: 10,
        largest: (1_000_000, 10_000),
        columns: &[
            ("append, µs", append),
            ("load, ns/chunk", load),
            ("last 10, µs", tail),
            ("fork, µs", fork),
            ("rewind, µs", rewind),
        ],
    },
    Table {
        name: "messages",
        what: "messages in an agent's conversation",
        smallest: 100,
        largest: (1_000_000, 10_000),
        columns: &[
            ("append, µs", append),
            ("refresh and next step, µs", refresh),
            ("load the newest 100 and next step, µs", load_newest),
            ("prompt of a kept conversation's last 50, µs", prompt),
            ("load, ns/chunk", load),
        ],
    },
    Table {
        name: "conversations",
        what: "conversations",
        smallest: 1,
        largest: (1_000_000, 1_000),
        columns: &[
            ("append, µs", append),
            ("append to a new one, µs", append_new),
            ("load, ns/chunk", load),
            ("last 10, µs", tail),
            ("list 50, µs", list),
        ],
    },
    Table {
        name: "small",
        what: "conversations of one short message",
        smallest: 10_000,
        largest: (10_000_000, 10_000),
        columns: &[
            ("append, µs", append),
            ("append to a new one, µs", append_new),
            ("list 50, µs", list),
            ("list 50 with a tag, µs", list_tagged),
            ("find by item id, µs", find),
            ("look for idle ones, µs", idle),
        ],
    },
];

/// The item id of each message of the small conversations, and the tag of one in a hundred of them.
const ITEM: &str = "msg_1";
const TAG: &str = "some";
const TAGGED: usize = 100;

/// A store of some size.
struct Subject<'a> {
    store: &'a Store,
    /// Conversations of which none was used just before the other, if there are many.
    some: Vec<ConversationId>,
    turn: &'a [Message],
}

pub(super) fn run(bench: &Bench) -> Vec<Measured> {
    for engine in bench.engines(|engine| engine.ours && engine.keeps) {
        for table in TABLES {
            let path = bench.path("growth", &engine);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let mut command = Command::new(std::env::current_exe().unwrap());
            command.args(["--grow", table.name, "--engine", engine.name, "--dir"]).arg(&path);
            if bench.options.quick {
                command.arg("--quick");
            }
            assert!(command.status().unwrap().success());
            bench.remove("growth");
        }
    }
    Vec::new()
}

/// What the other process does: it lets a store grow tenfold from row to row.
pub(crate) fn print_table(options: &Options, name: &str) {
    let engine = ENGINES.iter().find(|engine| options.engines.iter().any(|name| name == engine.name)).unwrap();
    let Table { what, smallest, largest, columns, .. } = TABLES.iter().find(|table| table.name == name).unwrap();
    let path = options.dir.as_deref().unwrap();
    let url = format!("{}:{}", engine.name, path.display());
    let mut store = Store::open(&url).unwrap();
    let mut texts = Texts::new();
    let (turn, batch) = (texts.chat(3, CHUNK_BYTES), texts.chat(10, CHUNK_BYTES));
    let mut short = Message::user("hello there");
    short.metadata.id = Some(ITEM.to_owned());
    let short = [short];
    let (messages, unit) = match name {
        "chunks" => (&batch[..], chunks(&batch)),
        "messages" => (&batch[..], batch.len()),
        "small" => (&short[..], 1),
        _ => (&turn[..], 1),
    };
    let in_one = ["chunks", "messages"].contains(&name);
    let turn = if name == "small" { &short[..] } else { &turn[..] };
    println!("\n{}, {what}:\n", engine.title);
    let names = columns.iter().map(|(name, _)| (*name).to_owned());
    row([(*what).to_owned()].into_iter().chain(names).chain(["open, ms", "memory, MiB"].map(str::to_owned)));
    println!("|{}", "---:|".repeat(columns.len() + 3));
    let buffered = AppendOptions::new().with_durability(Durability::Buffered);
    let (mut size, mut done) = (*smallest, 0);
    while size <= if options.quick { largest.1 } else { largest.0 } {
        eprintln!("growth: {}, {size} {what}", engine.name);
        while done < size / unit {
            let id = conversation(if in_one { 0 } else { done });
            if name == "small" && done % TAGGED == 0 {
                let tagged = Changes::new().with_tag(TAG);
                store.append_changing(id, messages, &tagged, &buffered).unwrap();
            } else {
                store.append_with(id, messages, &buffered).unwrap();
            }
            done += 1;
        }
        store.close().unwrap();
        drop(store);
        let begun = Instant::now();
        store = Store::open(&url).unwrap();
        black_box(store.list(&ListQuery::new()).unwrap());
        let opened = begun.elapsed().as_secs_f64() * 1e3;
        let count = if in_one { 1 } else { size };
        let some = (0..STEPS).map(|at| conversation(at.wrapping_mul(7_919) % count)).collect();
        let subject = Subject { store: &store, some, turn };
        let cells = columns.iter().map(|(_, measure)| show(measure(&subject)));
        let memory = memory("VmRSS").map(show).unwrap_or_default();
        row([commas(size as f64)].into_iter().chain(cells).chain([show(opened), memory]));
        size *= 10;
    }
    store.close().unwrap();
}

/// The median of single, durable steps, in microseconds.
fn median_micros<T>(mut step: impl FnMut(usize) -> T) -> f64 {
    let mut times: Vec<_> = (0..STEPS)
        .map(|at| {
            let start = Instant::now();
            black_box(step(at));
            start.elapsed()
        })
        .collect();
    times.sort();
    times[STEPS / 2].as_secs_f64() * 1e6
}

fn append(subject: &Subject<'_>) -> f64 {
    median_micros(|at| subject.store.append(subject.some[at], subject.turn).unwrap())
}

fn append_new(subject: &Subject<'_>) -> f64 {
    median_micros(|_| subject.store.append(ConversationId::new(), subject.turn).unwrap())
}

fn load(subject: &Subject<'_>) -> f64 {
    let mut at = 0;
    let each = time_each(LEAST, || {
        at += 1;
        let loaded = black_box(subject.store.load(subject.some[at % STEPS]).unwrap());
        loaded.messages().iter().map(|stored| stored.message.chunks.len()).sum()
    });
    each.as_secs_f64() * 1e9
}

fn tail(subject: &Subject<'_>) -> f64 {
    let mut at = 0;
    let each = time_each(LEAST, || {
        at += 1;
        black_box(subject.store.newest_entries(subject.some[at % STEPS], 10).unwrap());
        1
    });
    each.as_secs_f64() * 1e6
}

/// What a turn of an agent's loop reads that keeps its conversation: what was appended since, and what to do.
fn refresh(subject: &Subject<'_>) -> f64 {
    let mut kept = subject.store.load(subject.some[0]).unwrap();
    let mut times: Vec<_> = (0..STEPS)
        .map(|_| {
            subject.store.append(subject.some[0], subject.turn).unwrap();
            let start = Instant::now();
            subject.store.refresh(&mut kept).unwrap();
            black_box(next_step(&kept));
            start.elapsed()
        })
        .collect();
    times.sort();
    times[STEPS / 2].as_secs_f64() * 1e6
}

/// The same for one that keeps nothing.
fn load_newest(subject: &Subject<'_>) -> f64 {
    median_micros(|at| next_step(&subject.store.load_newest(subject.some[at], 100).unwrap()))
}

fn prompt(subject: &Subject<'_>) -> f64 {
    let kept = subject.store.load(subject.some[0]).unwrap();
    let options = PromptOptions::new().with_last_messages(50);
    median_micros(|_| render(Target::OPENAI_CHAT, &kept, &options).unwrap())
}

fn list(subject: &Subject<'_>) -> f64 {
    let query = ListQuery::new();
    let each = time_each(LEAST, || {
        black_box(subject.store.list(&query).unwrap());
        1
    });
    each.as_secs_f64() * 1e6
}

fn list_tagged(subject: &Subject<'_>) -> f64 {
    let query = ListQuery::new().with_tag(TAG);
    median_micros(|_| subject.store.list(&query).unwrap())
}

fn find(subject: &Subject<'_>) -> f64 {
    median_micros(|at| subject.store.find_item(subject.some[at], ITEM).unwrap().unwrap())
}

/// What retention looks for, where nothing is old enough.
fn idle(subject: &Subject<'_>) -> f64 {
    let old = Retention::new(Timestamp::from_micros(0));
    median_micros(|_| assert_eq!(subject.store.idle(&old, |_| ()).unwrap(), 0))
}

fn fork(subject: &Subject<'_>) -> f64 {
    median_micros(|_| subject.store.fork(subject.some[0], None).unwrap())
}

/// Hides the newest message, each time in a fork of its own.
fn rewind(subject: &Subject<'_>) -> f64 {
    let newest = subject.store.describe(subject.some[0]).unwrap().messages - 1;
    let forks: Vec<_> = (0..STEPS).map(|_| subject.store.fork(subject.some[0], None).unwrap()).collect();
    median_micros(|at| subject.store.rewind(forks[at], newest).unwrap())
}
