//! One name for two conversations, one after the other; one key for two appends.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

use conversation_store::model::Message;
use conversation_store::{AppendOptions, Durability, Error, Store};

use crate::common::program::number;
use crate::faults::{PATIENCE, Place, is_reported, said, say, texts, texts_of, user};

/// How long two threads race.
const RACE: Duration = Duration::from_secs(2);

// 5

/// Deletes and imports a conversation again and again, while it is loaded. Each import has texts of its own.
fn loads_while_imported_anew(store: &Store, appends: usize) -> (u64, Vec<String>) {
    let import = |round: u64| {
        for number in 0..appends {
            let message = Message::user(format!("{round} {number}"));
            let options = AppendOptions::new().with_durability(Durability::Buffered);
            store.append_with("chat", &[message], &options).unwrap();
        }
    };
    import(0);
    store.sync().unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1.. {
                if stop.load(Ordering::Acquire) {
                    return;
                }
                store.delete("chat").unwrap();
                import(round);
                store.sync().unwrap();
            }
        });
        let (mut loads, mut wrong) = (0, Vec::new());
        let begun = Instant::now();
        while begun.elapsed() < RACE {
            let loaded = match store.load("chat") {
                Ok(loaded) => loaded,
                Err(Error::NotFound { .. }) => continue,
                Err(error) => {
                    wrong.push(error.to_string());
                    continue;
                }
            };
            loads += 1;
            let texts = texts_of(&loaded);
            let round = |text: &String| text.split(' ').next().map(str::to_owned);
            let is_whole = texts.windows(2).all(|pair| round(&pair[0]) == round(&pair[1]));
            if !is_whole || is_reported(&loaded) {
                wrong.push(format!("{:?} to {:?}, {:?}", texts.first(), texts.last(), loaded.report()));
            }
        }
        stop.store(true, Ordering::Release);
        (loads, wrong)
    })
}

#[test]
fn a_load_shows_one_conversation_though_its_name_is_used_anew_on_memory() {
    let (loads, wrong) = loads_while_imported_anew(&Store::open("memory:").unwrap(), 600);
    assert!(wrong.is_empty(), "{} of {loads} loads, such as {}", wrong.len(), wrong[0]);
}

#[test]
fn a_load_shows_one_conversation_though_its_name_is_used_anew_on_sled() {
    let place = Place::new();
    let (loads, wrong) = loads_while_imported_anew(&place.open(), 300);
    assert!(wrong.is_empty(), "{} of {loads} loads, such as {}", wrong.len(), wrong[0]);
}

#[test]
fn loading_a_fork_while_it_is_deleted_finds_it_or_does_not() {
    let store = Store::open("memory:").unwrap();
    let (mut loads, mut wrong) = (0, Vec::new());
    let begun = Instant::now();
    while begun.elapsed() < RACE {
        say(&store, "parent", 1..=20);
        store.fork_to("parent", None, "fork").unwrap();
        store.delete("parent").unwrap();
        let barrier = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                barrier.wait();
                store.delete("fork").unwrap();
            });
            barrier.wait();
            loop {
                loads += 1;
                match store.load("fork") {
                    Ok(loaded) if texts_of(&loaded) == said("parent", 1..=20) => {}
                    Ok(loaded) => wrong.push(format!("{:?}", loaded.report())),
                    Err(Error::NotFound { .. }) => break,
                    Err(error) => wrong.push(error.to_string()),
                }
            }
        });
    }
    assert!(wrong.is_empty(), "{} of {loads} loads, such as {}", wrong.len(), wrong[0]);
}

#[test]
fn a_tail_ends_with_the_conversation_that_it_follows() {
    let store = Store::open("memory:").unwrap();
    say(&store, "chat", 1..=50);
    let mut tail = store.tail("chat", 50).unwrap();
    store.delete("chat").unwrap();
    for number in 1..=60 {
        user(&store, "chat", &format!("second {number}")).unwrap();
    }
    let next = tail.next(Duration::from_millis(200));
    let seqs = next.as_ref().map(|entries| (entries.len(), entries.first().map(|entry| entry.seq)));
    assert!(matches!(next, Err(Error::NotFound { .. })), "entries and the first seq: {seqs:?}");
}

#[test]
fn a_tail_that_waits_learns_that_its_conversation_was_made_anew() {
    let store = Store::open("memory:").unwrap();
    let mut silent = 0;
    const ROUNDS: usize = 50;
    for round in 0..ROUNDS {
        let name = format!("chat {round}");
        say(&store, &name, 1..=3);
        let mut tail = store.tail(&name, 3).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(move || tail.next(Duration::from_millis(300)));
            std::thread::sleep(Duration::from_millis(2));
            store.delete(&name).unwrap();
            user(&store, &name, "second").unwrap();
            silent += usize::from(waiting.join().unwrap().is_ok());
        });
    }
    assert_eq!(silent, 0, "of {ROUNDS} tails");
}

// 8

#[test]
fn a_name_is_free_once_its_last_fork_is_deleted() {
    const PAIRS: usize = 300;
    let name = |kind: &str, at: usize| format!("{kind} {at}");
    let place = Place::with(|store| {
        for at in 0..PAIRS {
            user(store, &name("parent", at), "hello").unwrap();
            store.fork_to(name("parent", at), None, name("fork", at)).unwrap();
            store.delete(name("parent", at)).unwrap();
        }
    });
    let store = place.open();
    let mut refused = 0;
    for at in 0..PAIRS {
        let barrier = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                barrier.wait();
                store.delete(name("fork", at)).unwrap();
            });
            scope.spawn(|| {
                barrier.wait();
                std::thread::sleep(Duration::from_micros((at as u64 * 7) % 400));
                let _ = store.load(name("parent", at));
            });
        });
        refused += usize::from(user(&store, &name("parent", at), "again").is_err());
    }
    assert_eq!(refused, 0, "of {PAIRS} names");
}

// 22

/// Lets threads go at the same moment: a barrier that sleeps lets them go one after the other.
struct Gate {
    threads: u64,
    arrived: AtomicU64,
}

impl Gate {
    fn pass(&self, round: u64) {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        while self.arrived.load(Ordering::Acquire) < self.threads * (round + 1) {
            std::thread::yield_now();
        }
    }
}

/// How many of the keys were accepted more than once.
fn doubled(store: &Store, threads: usize, keys: u64, same: bool) -> u64 {
    user(store, "chat", "hello").unwrap();
    let gate = Gate { threads: threads as u64, arrived: AtomicU64::new(0) };
    let accepted = Mutex::new(vec![Vec::new(); keys as usize]);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (gate, accepted) = (&gate, &accepted);
            scope.spawn(move || {
                for key in 0..keys {
                    let text = if same { format!("{key}") } else { format!("{key} of {thread}") };
                    let options = AppendOptions::new().with_idempotency_key(format!("key {key}"));
                    gate.pass(key);
                    match store.append_with("chat", &[Message::user(text)], &options) {
                        Ok(receipt) if !receipt.duplicate => accepted.lock().unwrap()[key as usize].push(receipt),
                        Ok(_) => assert!(same, "other content was taken for a repetition"),
                        Err(Error::KeyReused { .. }) => assert!(!same, "the same content was refused"),
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    let accepted = accepted.into_inner().unwrap();
    assert!(accepted.iter().all(|receipts| !receipts.is_empty()), "a key was accepted from nobody");
    let stored = store.load("chat").unwrap().messages().len() as u64;
    let doubled = accepted.iter().filter(|receipts| receipts.len() > 1).count() as u64;
    assert_eq!(stored, 1 + accepted.iter().map(|receipts| receipts.len() as u64).sum::<u64>());
    doubled
}

fn no_key_is_accepted_twice(engine: &str) {
    let keys = number("CONVO_FAULT_KEYS", 300);
    let mut shown = Vec::new();
    for (threads, same) in [(2, true), (16, true), (2, false), (16, false)] {
        let dir = tempfile::tempdir().unwrap();
        let url = match engine {
            "memory" => "memory:".to_owned(),
            engine => format!("{engine}:{}?sync=never", dir.path().join("db").display()),
        };
        shown.push((threads, same, doubled(&Store::open(&url).unwrap(), threads, keys, same)));
    }
    let is_clean = shown.iter().all(|(_, _, doubled)| *doubled == 0);
    assert!(is_clean, "{engine}: threads, same content, how many of {keys} keys were accepted twice: {shown:?}");
}

#[test]
fn no_key_is_accepted_twice_on_memory() {
    no_key_is_accepted_twice("memory");
}

#[test]
fn no_key_is_accepted_twice_on_sled() {
    no_key_is_accepted_twice("sled");
}

#[cfg(feature = "fjall")]
#[test]
fn no_key_is_accepted_twice_on_fjall() {
    no_key_is_accepted_twice("fjall");
}

/// The conversation does not exist yet when the threads come.
#[test]
fn no_key_makes_a_conversation_twice() {
    let store = Store::open("memory:").unwrap();
    let options = AppendOptions::new().with_idempotency_key("first");
    let begun = Instant::now();
    let mut doubled = 0;
    const CONVERSATIONS: usize = 300;
    for at in 0..CONVERSATIONS {
        let barrier = Barrier::new(4);
        let name = format!("chat {at}");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    barrier.wait();
                    store.append_with(&name, &[Message::user("hello")], &options).unwrap();
                });
            }
        });
        doubled += usize::from(texts(&store, &name).len() > 1);
    }
    assert!(begun.elapsed() < PATIENCE);
    assert_eq!(doubled, 0, "of {CONVERSATIONS}");
}
