//! Everything at once, on one store: no error, no more memory after a while than before, nothing wrong at the end.
//!
//! `CONVO_STRESS_SECONDS` says how long on each engine.
#![cfg(all(feature = "cli", feature = "sled", target_os = "linux"))]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::program::{Dice, PATIENCE, convo, number, run};
use conversation_store::model::{Chunk, FinishReason, Message, Metadata, Role};
use conversation_store::{AppendOptions, Durability, Error, ListQuery, Store, StoreOptions};

const THREADS: u64 = 64;
/// Conversations at a time: each has its turn, and is deleted after that.
const CONVERSATIONS: u64 = 200;
/// Entries of a conversation after which it is deleted.
const LONGEST: u64 = 100;
/// So many looks at the memory in a run.
const SAMPLES: u32 = 10;
/// After so many of them the caches are full, in a run that is long.
const SETTLED: u32 = 3;
const LONG: Duration = Duration::from_secs(300);
/// A window in which backups and verifications may come.
const PAUSE: Duration = Duration::from_millis(200);

/// What all threads share.
struct Stress<'a> {
    store: &'a Store,
    dir: &'a Path,
    stopped: AtomicBool,
    done: [AtomicU64; WORK.len()],
}

type Step = fn(&Stress<'_>, &str, &mut Dice) -> Result<(), Error>;

/// What is done, and how often.
const WORK: &[(&str, u64, Step)] = &[
    ("append", 30, append),
    ("append, buffered", 20, append_buffered),
    ("append, large", 1, append_large),
    ("stream", 8, stream),
    ("load", 12, load),
    ("entries", 8, entries),
    ("list", 4, list),
    ("fork", 4, fork),
    ("rewind", 4, rewind),
    ("redact", 3, redact),
    ("title", 2, title),
    ("delete", 4, delete),
];

fn append(stress: &Stress<'_>, name: &str, dice: &mut Dice) -> Result<(), Error> {
    let options = match dice.below(3) {
        0 => AppendOptions::new().with_idempotency_key(dice.below(1000).to_string()),
        _ => AppendOptions::new(),
    };
    let call = Chunk::tool_call("call", "read", "{}");
    let messages = [Message::user(text(dice)), Message::assistant([call]), Message::tool("call", text(dice))];
    match stress.store.append_with(name, &messages, &options) {
        // The key was used before.
        Err(Error::KeyReused { .. }) => Ok(()),
        done => done.map(|_| ()),
    }
}

fn append_buffered(stress: &Stress<'_>, name: &str, dice: &mut Dice) -> Result<(), Error> {
    let options = AppendOptions::new().with_durability(Durability::Buffered);
    stress.store.append_with(name, &[Message::user(text(dice))], &options).map(|_| ())
}

fn append_large(stress: &Stress<'_>, name: &str, _: &mut Dice) -> Result<(), Error> {
    stress.store.append(name, &[Message::user("large ".repeat(50_000))]).map(|_| ())
}

fn stream(stress: &Stress<'_>, name: &str, dice: &mut Dice) -> Result<(), Error> {
    let mut writer = stress.store.begin(name, Role::Assistant, Metadata::default())?;
    for _ in 0..dice.below(20) {
        writer.push(0, Chunk::text(text(dice)))?;
        thread::sleep(Duration::from_millis(dice.below(8)));
    }
    if dice.below(4) > 0 {
        writer.finish(Some(FinishReason::Stop), None)?;
    }
    Ok(())
}

fn load(stress: &Stress<'_>, name: &str, _: &mut Dice) -> Result<(), Error> {
    stress.store.load_strict(name).map(|_| ())
}

fn entries(stress: &Stress<'_>, name: &str, _: &mut Dice) -> Result<(), Error> {
    let newest = stress.store.newest_entries(name, 20)?;
    let whole = newest.windows(2).all(|pair| pair[0].seq + 1 == pair[1].seq);
    assert!(whole, "{name}: a hole");
    Ok(())
}

fn list(stress: &Stress<'_>, _: &str, _: &mut Dice) -> Result<(), Error> {
    stress.store.list(&ListQuery::new()).map(|_| ())
}

fn fork(stress: &Stress<'_>, name: &str, dice: &mut Dice) -> Result<(), Error> {
    let at_seq = 1 + dice.below(stress.store.describe(name)?.last_seq);
    stress.store.fork_to(name, Some(at_seq), conversation(dice))
}

fn rewind(stress: &Stress<'_>, name: &str, dice: &mut Dice) -> Result<(), Error> {
    let messages = stress.store.describe(name)?.messages;
    stress.store.rewind(name, messages - messages.min(1 + dice.below(5))).map(|_| ())
}

fn redact(stress: &Stress<'_>, name: &str, dice: &mut Dice) -> Result<(), Error> {
    let messages = stress.store.describe(name)?.messages;
    stress.store.redact(name, dice.below(messages.max(1)), None).map(|_| ())
}

fn title(stress: &Stress<'_>, name: &str, dice: &mut Dice) -> Result<(), Error> {
    stress.store.set_title(name, (dice.below(2) == 0).then_some("a title")).map(|_| ())
}

fn delete(stress: &Stress<'_>, name: &str, _: &mut Dice) -> Result<(), Error> {
    if stress.store.describe(name)?.last_seq < LONGEST {
        return Ok(());
    }
    stress.store.delete(name)
}

fn conversation(dice: &mut Dice) -> String {
    format!("chat {}", dice.below(CONVERSATIONS))
}

fn text(dice: &mut Dice) -> String {
    "word ".repeat(1 + dice.below(300) as usize)
}

/// Whether an error is what two threads that meet at one conversation may expect.
fn is_of_meeting(error: &Error) -> bool {
    matches!(
        error,
        Error::NotFound { .. }
            | Error::MessageClosed { .. }
            | Error::StaleHead { .. }
            | Error::NameTaken { .. }
            | Error::SharedByForks { .. }
            | Error::CursorOutOfRange { .. }
            | Error::BeingWritten { .. }
    )
}

impl Stress<'_> {
    fn work(&self, seed: u64) {
        let mut dice = Dice::quiet(seed);
        let all: u64 = WORK.iter().map(|(_, weight, _)| weight).sum();
        while !self.stopped.load(Ordering::Acquire) {
            let (mut at, mut drawn) = (0, dice.below(all));
            while drawn >= WORK[at].1 {
                drawn -= WORK[at].1;
                at += 1;
            }
            let name = conversation(&mut dice);
            match WORK[at].2(self, &name, &mut dice) {
                Err(error) if !is_of_meeting(&error) => panic!("{}: {name}: {error}", WORK[at].0),
                _ => self.done[at].fetch_add(1, Ordering::Relaxed),
            };
        }
    }

    /// Backups and verifications, in turn.
    fn watch(&self) -> u64 {
        let mut turns = 0;
        while !self.stopped.load(Ordering::Acquire) {
            let file = self.dir.join("backup");
            let _ = fs::remove_file(&file);
            self.store.backup(&file, |_, _| ()).unwrap();
            // Another process reads it: what it takes is not the store's.
            let verified =
                run(convo(&["verify", "--json", "--store", &format!("backup:{}", file.display())]), PATIENCE);
            assert_eq!(verified.exit, Some(0), "backup {turns}: {verified:?}");
            assert_eq!(self.store.verify(|_, _| ()).unwrap().problems, [], "verification {turns}");
            turns += 1;
            thread::sleep(PAUSE);
        }
        turns
    }
}

/// Megabytes that the process holds.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

fn all_at_once(engine: &str) {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("{engine}:{}", dir.path().join("db").display());
    let store = StoreOptions::new().open(&url).unwrap();
    let stress = Stress { store: &store, dir: dir.path(), stopped: AtomicBool::new(false), done: Default::default() };
    let length = Duration::from_secs(number("CONVO_STRESS_SECONDS", 5));
    let begun = Instant::now();
    let mut settled = 0;
    let turns = thread::scope(|scope| {
        let stress = &stress;
        let threads: Vec<_> = (1..THREADS).map(|thread| scope.spawn(move || stress.work(thread))).collect();
        let watch = scope.spawn(|| stress.watch());
        for sample in 1..=SAMPLES {
            let has_failed = || threads.iter().any(|thread| thread.is_finished()) || watch.is_finished();
            while begun.elapsed() < length * sample / SAMPLES && !has_failed() {
                thread::sleep(Duration::from_millis(20));
            }
            let done: u64 = stress.done.iter().map(|done| done.load(Ordering::Relaxed)).sum();
            let resident = resident();
            println!("{engine}: {:4} s, {done:8} calls, {resident:4} MB", begun.elapsed().as_secs());
            if sample == SETTLED {
                settled = resident;
            }
            assert!(length < LONG || sample <= SETTLED || resident < settled * 3 / 2, "memory grows");
        }
        stress.stopped.store(true, Ordering::Release);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        watch.join().unwrap()
    });
    for ((name, ..), done) in WORK.iter().zip(&stress.done) {
        println!("{engine}: {name}: {}", done.load(Ordering::Relaxed));
    }
    println!("{engine}: {turns} backups and verifications");
    assert!(turns > 0);
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
    store.close().unwrap();
    drop(store);
    let store = Store::open(&url).unwrap();
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
}

#[test]
fn all_at_once_on_sled() {
    all_at_once("sled");
}

#[cfg(feature = "fjall")]
#[test]
fn all_at_once_on_fjall() {
    all_at_once("fjall");
}
