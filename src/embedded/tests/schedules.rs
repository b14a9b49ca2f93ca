//! The commit path under every order of its threads that a scheduler finds: no thread waits for ever, nothing that was
//! accepted is lost, a key is appended once, the window holds.
//!
//! `CONVO_SCHEDULES` sets how many orders each test tries: half of them at random, half with few changes of thread,
//! which find what needs one thread to be still for long.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use shuttle::rand::Rng as _;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::thread;

use super::super::{Embedded, Opening};
use crate::embedded::engine::{Batch, Directory, Engine, Memory, Order, Visit};
use crate::embedded::state::Writer;
use crate::embedded::sync::now;
use crate::embedded::sync::scheduled::{choose, explore, sleep};
use crate::error::{Error, Result};
use crate::log::{AppendOptions, Changes, Control, Durability, ForkAt, Log, Receipt};
use crate::model::{Chunk, Message, Metadata, Name, Role, Timestamp};

const WINDOW: Duration = Duration::from_millis(20);
/// What a commit takes, or no time at all: time passes only while no thread could run.
const COMMIT: Duration = Duration::from_millis(4);
const NEVER: Duration = Duration::from_secs(3600);
/// How many changes of thread the second half of the schedules has at most.
const CHANGES: usize = 4;

/// An engine in memory that takes its time, and may fail.
#[derive(Debug)]
struct Slow {
    memory: Memory,
    commits: AtomicU64,
    /// The commit that fails.
    fails: Option<u64>,
}

impl Engine for Slow {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        choose();
        let value = self.memory.get(key);
        choose();
        value
    }

    fn scan(&self, range: Range<&[u8]>, order: Order, visit: Visit<'_>) -> Result<()> {
        choose();
        let scanned = self.memory.scan(range, order, visit);
        if shuttle::rand::thread_rng().gen_bool(0.1) {
            sleep(4 * COMMIT);
        } else {
            choose();
        }
        scanned
    }

    fn write(&self, batch: Batch) -> Result<()> {
        self.memory.write(batch)
    }

    fn sync(&self) -> Result<()> {
        let commit = self.commits.fetch_add(1, Ordering::Relaxed);
        if shuttle::rand::thread_rng().gen_bool(0.5) {
            sleep(COMMIT);
        } else {
            choose();
        }
        if self.fails.is_some_and(|fails| commit >= fails) {
            return Err(Error::io("sync")(std::io::Error::other("the disk is gone")));
        }
        Ok(())
    }

    fn directory(&self) -> Option<&Directory> {
        None
    }
}

pub(super) fn open(fails: Option<u64>) -> Arc<Embedded> {
    let engine = Slow { memory: Memory::default(), commits: AtomicU64::new(0), fails };
    let clock = Arc::new(|| Timestamp::from_micros(0));
    Arc::new(Embedded::open(Arc::new(engine), clock, WINDOW, Opening::default()).unwrap())
}

pub(super) fn append(log: &Embedded, name: &str, text: &str, options: &AppendOptions) -> Result<Receipt> {
    log.core().appender.append(&name.into(), &[Message::user(text)], &Changes::new(), options)
}

pub(super) fn durable() -> AppendOptions {
    AppendOptions::new()
}

fn buffered() -> AppendOptions {
    AppendOptions::new().with_durability(Durability::Buffered)
}

fn begin(log: &Embedded, name: &str) -> Result<Arc<Writer>> {
    super::begin(log, name)
}

fn push(log: &Embedded, writer: &Arc<Writer>, text: &str) -> Result<()> {
    log.core().appender.push(writer, 0, Chunk::text(text))
}

/// The texts that readers see.
pub(super) fn texts(log: &Embedded, name: &str) -> String {
    let grouped = super::load(log, name).unwrap();
    assert!(grouped.damage.is_empty(), "{:?}", grouped.damage);
    grouped.messages.iter().map(|stored| format!("{:?}", stored.message.chunks)).collect()
}

pub(super) fn spawn<T: Send + 'static>(
    log: &Arc<Embedded>,
    run: impl FnOnce(&Arc<Embedded>) -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    let log = Arc::clone(log);
    thread::spawn(move || run(&log))
}

pub(super) fn under_every_order(run: fn()) {
    let schedules = std::env::var("CONVO_SCHEDULES").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000);
    let done = Arc::new(AtomicU64::new(0));
    for pct in [false, true] {
        let count = Arc::clone(&done);
        let counted = move || {
            count.fetch_add(1, Ordering::Relaxed);
            run();
        };
        let explored = std::panic::catch_unwind(|| match pct {
            false => explore(RandomScheduler::new_from_seed(1, schedules / 2), counted),
            true => explore(PctScheduler::new_from_seed(1, CHANGES, schedules / 2), counted),
        });
        if let Err(panic) = explored {
            println!("after {} schedules", done.load(Ordering::Relaxed));
            std::panic::resume_unwind(panic);
        }
    }
    println!("{} schedules", done.load(Ordering::Relaxed));
}

#[test]
fn what_is_accepted_before_a_close_is_durable_after_it() {
    under_every_order(|| {
        let log = open(None);
        // The second buffered append of a window waits for room.
        log.core().commit.lock().queue.set_capacity(100);
        append(&log, "followed", "first", &durable()).unwrap();
        let incarnation =
            log.core().catalogue.published_head(Name::from("followed").id()).unwrap().unwrap().incarnation;
        let accepted: Arc<Mutex<Vec<(&'static str, String)>>> = Arc::default();
        let note = |name: &'static str, text: &str| accepted.lock().unwrap().push((name, text.to_owned()));
        let appends = [("followed", durable()), ("other", buffered())].map(|(name, options)| {
            let accepted = Arc::clone(&accepted);
            spawn(&log, move |log| {
                for append_number in 0..3 {
                    let text = format!("{name} {append_number} {}", "x".repeat(60));
                    match append(log, name, &text, &options) {
                        Ok(_) => accepted.lock().unwrap().push((name, text)),
                        Err(error) => assert!(matches!(error, Error::Closed), "{error}"),
                    }
                }
            })
        });
        let stream = spawn(&log, {
            let accepted = Arc::clone(&accepted);
            move |log| {
                let Ok(writer) = begin(log, "stream") else { return };
                for delta in 0..3 {
                    match push(log, &writer, &format!("<{delta}{}>", "y".repeat(60))) {
                        Ok(()) => accepted.lock().unwrap().push(("stream", format!("<{delta}y"))),
                        Err(error) => assert!(matches!(error, Error::Closed), "{error}"),
                    }
                }
                match log.core().appender.finish(&writer, None, None, Metadata::default()) {
                    Ok(_) => {}
                    Err(error) => assert!(matches!(error, Error::Closed), "{error}"),
                }
            }
        });
        let freeze = spawn(&log, |log| match log.core().families.freeze(Name::from("stream").id()) {
            Ok(_frozen) if shuttle::rand::thread_rng().gen_bool(0.5) => sleep(3 * WINDOW),
            // Others run in the middle of a close meanwhile.
            Ok(_frozen) => (0..20).for_each(|_| choose()),
            Err(error) => assert!(matches!(error, Error::Closed), "{error}"),
        });
        let tail = spawn(&log, move |log| {
            let (mut seen, stopped) = (0, AtomicBool::new(false));
            loop {
                match super::wait_for(log, "followed", incarnation, seen, NEVER, &stopped) {
                    Ok(news) => {
                        assert!(news);
                        let head = log.core().catalogue.published_head(Name::from("followed").id()).unwrap().unwrap();
                        assert!(head.next_seq > seen + 1);
                        seen = head.next_seq - 1;
                    }
                    Err(error) => {
                        assert!(matches!(error, Error::Closed), "{error}");
                        return seen;
                    }
                }
            }
        });
        note("followed", "first");
        sleep(WINDOW / 2);
        log.close().unwrap();
        // What was accepted by now is durable by now.
        // The list is not locked meanwhile: a lock that the scheduler does not know must not be held while it chooses.
        let so_far = accepted.lock().unwrap().clone();
        for (name, text) in so_far {
            assert!(texts(&log, name).contains(&text), "{name}: {text} was accepted and is lost");
        }
        appends.into_iter().for_each(|append| append.join().unwrap());
        stream.join().unwrap();
        freeze.join().unwrap();
        let seen = tail.join().unwrap();
        for (name, text) in &*accepted.lock().unwrap() {
            assert!(texts(&log, name).contains(text), "{name}: {text} was accepted and is lost");
        }
        let head = log.core().catalogue.published_head(Name::from("followed").id()).unwrap().unwrap();
        assert_eq!(seen, head.next_seq - 1, "a tail that ended missed something");
        let state = log.core().commit.lock();
        assert!(state.queue.is_idle() && state.collecting.is_empty());
        assert_eq!((state.waiters(), state.queue.bytes()), ((0, 0), 0));
        drop(state);
    });
}

/// What is left to write belongs to a conversation that is unfrozen at any moment of the close.
#[test]
fn a_close_ends_whenever_a_conversation_is_unfrozen() {
    under_every_order(|| {
        let log = open(None);
        let writer = begin(&log, "stream").unwrap();
        push(&log, &writer, "accepted").unwrap();
        let freeze = spawn(&log, |log| match log.core().families.freeze(Name::from("stream").id()) {
            Ok(_frozen) => (0..10).for_each(|_| choose()),
            Err(error) => assert!(matches!(error, Error::Closed), "{error}"),
        });
        choose();
        log.close().unwrap();
        assert!(texts(&log, "stream").contains("accepted"));
        freeze.join().unwrap();
    });
}

/// Either the messages are hidden, or the close makes durable what was accepted for them.
#[test]
fn a_rewind_that_a_close_refuses_takes_nothing() {
    under_every_order(|| {
        let log = open(None);
        let writer = begin(&log, "stream").unwrap();
        push(&log, &writer, "accepted").unwrap();
        let rewind = spawn(&log, |log| log.control(&"stream".into(), &Control::Rewind { to: 0 }).map(|_| ()));
        choose();
        log.close().unwrap();
        match rewind.join().unwrap() {
            Ok(()) => assert_eq!(texts(&log, "stream"), ""),
            Err(Error::Closed) => assert!(texts(&log, "stream").contains("accepted")),
            Err(error) => panic!("{error}"),
        }
    });
}

/// A fork takes its title from a message that is redacted in its parent meanwhile.
#[test]
fn no_title_outlives_the_text_that_it_came_from() {
    under_every_order(|| {
        let log = open(None);
        append(&log, "parent", "secret", &durable()).unwrap();
        log.fork(&"parent".into(), ForkAt::default(), &"fork".into()).unwrap();
        log.control(&"fork".into(), &Control::Title(Some("mine"))).unwrap();
        let titled = spawn(&log, |log| log.control(&"fork".into(), &Control::Title(None)).map(|_| ()));
        log.redact(&"parent".into(), 0, None).unwrap();
        titled.join().unwrap().unwrap();
        let head = log.core().catalogue.published_head(Name::from("fork").id()).unwrap().unwrap();
        assert_ne!(head.title.as_deref(), Some("secret"));
    });
}

#[test]
fn a_full_queue_is_emptied_while_deltas_wait() {
    under_every_order(|| {
        let log = open(None);
        log.core().commit.lock().queue.set_capacity(100);
        let writer = begin(&log, "stream").unwrap();
        let appending = spawn(&log, |log| {
            for text in 0..3 {
                append(log, "other", &format!("{text} {}", "#".repeat(120)), &buffered()).unwrap();
                let bytes = log.core().commit.lock().queue.bytes();
                assert!(bytes < 500, "{bytes} bytes are queued");
            }
        });
        for _ in 0..3 {
            push(&log, &writer, &"=".repeat(40)).unwrap();
            sleep(WINDOW / 2);
        }
        log.core().appender.finish(&writer, None, None, Metadata::default()).unwrap();
        appending.join().unwrap();
        log.flush().unwrap();
        assert_eq!(texts(&log, "other").matches('#').count(), 360);
        assert_eq!(texts(&log, "stream").matches('=').count(), 120);
    });
}

#[test]
fn a_key_is_appended_once() {
    under_every_order(|| {
        let log = open(None);
        append(&log, "chat", "first", &durable()).unwrap();
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                spawn(&log, move |log| {
                    let options = if thread % 2 == 0 { durable() } else { buffered() };
                    let text = if thread == 3 { "other" } else { "once" };
                    let result = append(log, "chat", text, &options.with_idempotency_key("key"));
                    // What else is published must not hide the key.
                    append(log, "chat", "more", &durable()).unwrap();
                    (text, result)
                })
            })
            .collect();
        let results: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        let new: Vec<_> = results.iter().filter(|(_, result)| result.as_ref().is_ok_and(|it| !it.duplicate)).collect();
        let [(taken, Ok(receipt))] = new.as_slice() else { panic!("{results:?}") };
        for (text, result) in &results {
            match result {
                Ok(other) => assert_eq!((*text, other.first_seq), (*taken, receipt.first_seq)),
                Err(error) => assert!(matches!(error, Error::KeyReused { .. }) && text != taken, "{error}"),
            }
        }
    });
}

#[test]
fn of_two_begins_one_writes() {
    under_every_order(|| {
        let log = open(None);
        append(&log, "chat", "question", &durable()).unwrap();
        let options =
            |key: &str| AppendOptions::new().with_expected(crate::log::ExpectedHead::At(1)).with_idempotency_key(key);
        let threads: Vec<_> = ["a", "a", "b"]
            .map(|key| {
                let options = options(key);
                spawn(&log, move |log| {
                    let name = Name::from("chat");
                    match log.core().appender.begin(&name, Role::Assistant, Metadata::default(), &options) {
                        Ok((Some(writer), _)) => {
                            log.core().appender.finish(&writer, None, None, Metadata::default()).unwrap();
                            1
                        }
                        Ok((None, receipt)) => {
                            assert!(receipt.duplicate && receipt.first_seq == 2);
                            0
                        }
                        Err(error) => {
                            assert!(matches!(error, Error::StaleHead { .. }), "{error}");
                            0
                        }
                    }
                })
            })
            .into_iter()
            .collect();
        assert_eq!(threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u32>(), 1);
    });
}

#[test]
fn all_are_told_of_a_failure_and_what_was_durable_stays() {
    under_every_order(|| {
        // Opening takes the first.
        let log = open(Some(4));
        let threads: Vec<_> = [durable(), durable(), buffered()]
            .map(|options| {
                spawn(&log, move |log| {
                    let mut durable = Vec::new();
                    for append_number in 0..3 {
                        match append(log, "chat", &format!("{append_number}"), &options) {
                            Ok(receipt) if receipt.durable => durable.push(receipt.last_seq),
                            Ok(_) => {}
                            Err(error) => assert!(
                                matches!(error, Error::Poisoned { .. } | Error::OutcomeUnknown { .. }),
                                "{error}"
                            ),
                        }
                    }
                    durable
                })
            })
            .into_iter()
            .collect();
        let stream = spawn(&log, |log| {
            let Ok(writer) = begin(log, "stream") else { return };
            let _ = push(log, &writer, "delta");
            log.core().appender.abandon(&writer);
        });
        let durable: Vec<u64> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        stream.join().unwrap();
        let seen =
            log.core().catalogue.published_head(Name::from("chat").id()).unwrap().map_or(0, |head| head.next_seq - 1);
        assert!(durable.iter().all(|seq| *seq <= seen), "{durable:?} were acknowledged, {seen} is seen");
        let closed = log.close();
        let state = log.core().commit.lock();
        assert_eq!(closed.is_err(), state.life.poisoned().is_some());
        assert!(state.queue.is_idle() && state.collecting.is_empty());
        assert!(state.slots.are_settled());
        drop(state);
    });
}

#[test]
fn the_window_holds_under_load() {
    under_every_order(|| {
        let log = open(None);
        append(&log, "buffered", "first", &durable()).unwrap();
        let writer = begin(&log, "stream").unwrap();
        let frozen = begin(&log, "frozen").unwrap();
        push(&log, &frozen, "delta").unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let load: Vec<_> = (0..2)
            .map(|_| {
                let is_over = Arc::clone(&is_over);
                spawn(&log, move |log| {
                    while !is_over.load(Ordering::Relaxed) {
                        append(log, "load", "durable", &durable()).unwrap();
                        append(log, "load", "buffered", &buffered()).unwrap();
                    }
                })
            })
            .collect();
        let freeze = spawn(&log, |log| {
            let _frozen = log.core().families.freeze(Name::from("frozen").id()).unwrap();
            sleep(4 * WINDOW);
        });
        let incarnation =
            |name: &str| log.core().catalogue.published_head(Name::from(name).id()).unwrap().unwrap().incarnation;
        let watch = |name: &'static str, incarnation: u64, seq: u64| {
            let start = now();
            spawn(&log, move |log| {
                let stopped = AtomicBool::new(false);
                super::wait_for(log, name, incarnation, seq, NEVER, &stopped).unwrap();
                now() - start
            })
        };
        let (of_buffered, of_stream) = (incarnation("buffered"), incarnation("stream"));
        for turn in 1..=2 {
            append(&log, "buffered", "text", &buffered()).unwrap();
            let appended = watch("buffered", of_buffered, turn);
            push(&log, &writer, "delta").unwrap();
            let pushed = watch("stream", of_stream, turn);
            // The commit in progress when the window ends, and its own.
            let (appended, pushed) = (appended.join().unwrap(), pushed.join().unwrap());
            assert!(appended <= WINDOW + 2 * COMMIT && pushed <= WINDOW + 2 * COMMIT, "{appended:?} {pushed:?}");
        }
        is_over.store(true, Ordering::Relaxed);
        load.into_iter().for_each(|thread| thread.join().unwrap());
        freeze.join().unwrap();
    });
}
