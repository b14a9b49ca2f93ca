//! What was accepted becomes durable: within the window, whatever else happens, and before a store is closed.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::super::{Embedded, Opening};
use super::engines::Disk;
use crate::embedded::engine::{Batch, Directory, Engine, Memory, Order, Visit};
use crate::embedded::state::Writer;
use crate::error::{Error, Result};
use crate::log::{AppendOptions, Changes, Durability, ForkAt, Receipt};
use crate::model::{Chunk, FinishReason, Message, Metadata, Name, Timestamp};
use crate::record::key;

/// Longer than anything here takes, unless it never ends.
const PATIENCE: Duration = Duration::from_secs(20);
const WINDOW: Duration = Duration::from_millis(5);
const NEVER: Duration = Duration::from_secs(3600);

type Event = Box<dyn FnOnce() + Send>;
type OnSync = Box<dyn Fn() + Send + Sync>;

/// An engine with events: after a key of some kind was read so often, and when it syncs.
#[derive(Default)]
struct Eventful {
    memory: Memory,
    after_gets: Mutex<Option<(u8, u32, Event)>>,
    on_sync: Mutex<Option<Arc<OnSync>>>,
}

impl fmt::Debug for Eventful {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Eventful").finish_non_exhaustive()
    }
}

impl Engine for Eventful {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let value = self.memory.get(key);
        let event = self.after_gets.lock().unwrap().take_if(|(kind, gets, _)| {
            *gets -= u32::from(key.first() == Some(kind));
            *gets == 0
        });
        if let Some((_, _, event)) = event {
            event();
        }
        value
    }

    fn scan(&self, range: Range<&[u8]>, order: Order, visit: Visit<'_>) -> Result<()> {
        self.memory.scan(range, order, visit)
    }

    fn write(&self, batch: Batch) -> Result<()> {
        self.memory.write(batch)
    }

    fn sync(&self) -> Result<()> {
        let on_sync = self.on_sync.lock().unwrap().clone();
        if let Some(on_sync) = on_sync {
            on_sync();
        }
        Ok(())
    }

    fn directory(&self) -> Option<&Directory> {
        None
    }
}

fn open<E: Engine + 'static>(engine: &Arc<E>, window: Duration) -> Arc<Embedded> {
    let engine: Arc<dyn Engine> = Arc::<E>::clone(engine);
    Arc::new(Embedded::open(engine, Arc::new(Timestamp::now), window, Opening::default()).unwrap())
}

fn append(log: &Embedded, name: &str, text: &str, durability: Durability) -> Result<Receipt> {
    let options = AppendOptions::new().with_durability(durability);
    log.core().appender.append(&name.into(), &[Message::user(text)], &Changes::new(), &options)
}

fn begin(log: &Embedded, name: &str) -> Arc<Writer> {
    super::begin(log, name).unwrap()
}

fn push(log: &Embedded, writer: &Arc<Writer>, text: &str) {
    log.core().appender.push(writer, 0, Chunk::text(text)).unwrap();
}

/// The last seq that readers see.
fn last_seq(log: &Embedded, name: &str) -> u64 {
    log.core().catalogue.published_head(Name::from(name).id()).unwrap().map_or(0, |head| head.next_seq - 1)
}

/// The result of a call that must end.
fn ends<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> T {
    let (give, take) = mpsc::channel();
    thread::spawn(move || drop(give.send(call())));
    take.recv_timeout(PATIENCE).expect("it never ends")
}

/// Waits until something is so.
fn becomes(so: impl Fn() -> bool) -> bool {
    let until = Instant::now() + PATIENCE;
    while !so() && Instant::now() < until {
        thread::sleep(Duration::from_millis(1));
    }
    so()
}

#[test]
fn the_background_thread_does_not_wait_for_room() {
    let log = open(&Arc::new(Memory::default()), Duration::from_millis(300));
    let writer = begin(&log, "chat");
    append(&log, "other", &"x".repeat(40 * 1024 * 1024), Durability::Buffered).unwrap();
    push(&log, &writer, "delta");
    let in_thread = Arc::clone(&log);
    // When the window ends, the queue is full, and there is a delta to be queued.
    thread::sleep(Duration::from_millis(600));
    let receipt =
        ends(move || in_thread.core().appender.finish(&writer, Some(FinishReason::Stop), None, Metadata::default()));
    assert_eq!(receipt.unwrap().last_seq, 3);
}

#[test]
fn a_delta_is_durable_while_appends_never_cease() {
    let engine = Arc::new(Eventful::default());
    let log = open(&engine, WINDOW);
    let writer = begin(&log, "chat");
    let ceased = Arc::new(AtomicBool::new(false));
    let commits = Arc::new(AtomicU64::new(0));
    let on_sync: OnSync = Box::new({
        let (log, ceased, commits) = (Arc::downgrade(&log), Arc::clone(&ceased), Arc::clone(&commits));
        move || {
            commits.fetch_add(1, Ordering::Relaxed);
            if let Some(log) = log.upgrade().filter(|_| !ceased.load(Ordering::Acquire)) {
                // The queue is never empty when a commit ends.
                append(&log, "load", "more", Durability::Buffered).unwrap();
            }
        }
    });
    *engine.on_sync.lock().unwrap() = Some(Arc::new(on_sync));
    append(&log, "load", "first", Durability::Buffered).unwrap();
    assert!(becomes(|| commits.load(Ordering::Relaxed) > 10));
    push(&log, &writer, "delta");
    let is_durable = becomes(|| last_seq(&log, "chat") == 2);
    ceased.store(true, Ordering::Release);
    assert!(is_durable);
}

#[test]
fn a_conversation_that_is_frozen_holds_up_no_other() {
    let log = open(&Arc::new(Memory::default()), WINDOW);
    let (frozen, other) = (begin(&log, "frozen"), begin(&log, "other"));
    let id = Name::from("frozen").id();
    let freeze = log.core().families.freeze(id).unwrap();
    push(&log, &frozen, "delta");
    // The window ends with this delta alone.
    thread::sleep(4 * WINDOW);
    push(&log, &other, "delta");
    append(&log, "third", "text", Durability::Buffered).unwrap();
    let are_durable = becomes(|| last_seq(&log, "other") == 2 && last_seq(&log, "third") == 1);
    let stood_still = last_seq(&log, "frozen") == 1;
    drop(freeze);
    assert!(are_durable && stood_still);
    assert!(becomes(|| last_seq(&log, "frozen") == 2));
}

#[test]
fn a_writer_that_waits_for_a_frozen_conversation_holds_up_no_other() {
    let log = open(&Arc::new(Memory::default()), WINDOW);
    let (frozen, other) = (begin(&log, "frozen"), begin(&log, "other"));
    let freeze = log.core().families.freeze(Name::from("frozen").id()).unwrap();
    push(&log, &frozen, "delta");
    let finishing = thread::spawn({
        let log = Arc::clone(&log);
        move || log.core().appender.finish(&frozen, None, None, Metadata::default()).unwrap()
    });
    thread::sleep(4 * WINDOW);
    push(&log, &other, "delta");
    let is_durable = becomes(|| last_seq(&log, "other") == 2);
    let is_waiting = !finishing.is_finished();
    drop(freeze);
    assert!(is_durable && is_waiting);
    assert_eq!(finishing.join().unwrap().last_seq, 3);
}

#[test]
fn what_is_accepted_while_a_store_closes_is_durable_when_it_is_closed() {
    let disk = Arc::new(Disk::default());
    let log = open(&disk, NEVER);
    append(&log, "chat", "a", Durability::Buffered).unwrap();
    disk.hold(true);
    let closing = thread::spawn({
        let log = Arc::clone(&log);
        move || log.close()
    });
    disk.await_sync();
    let meanwhile = append(&log, "chat", "b", Durability::Buffered);
    disk.hold(false);
    closing.join().unwrap().unwrap();
    let accepted = if meanwhile.is_ok() { 2 } else { 1 };
    assert_eq!(last_seq(&log, "chat"), accepted);
}

#[test]
fn a_name_that_is_freed_while_its_slot_is_loaded_is_free() {
    let engine = Arc::new(Eventful::default());
    let log = open(&engine, NEVER);
    append(&log, "parent", "a", Durability::Durable).unwrap();
    let (parent, fork) = (Name::from("parent"), Name::from("fork"));
    log.core().families.fork(&parent, ForkAt::default(), &fork).unwrap();
    log.core().families.delete(&parent, None).unwrap();
    assert!(matches!(append(&log, "parent", "b", Durability::Durable), Err(Error::SharedByForks { .. })));
    log.core().commit.lock().evict(0);
    let event: Event = Box::new({
        let log = Arc::clone(&log);
        move || log.core().families.delete(&fork, None).unwrap()
    });
    // A missing head is also looked for among the tombstones, so the second look decides.
    *engine.after_gets.lock().unwrap() = Some((key::TOMBSTONE, 2, event));
    assert_eq!(append(&log, "parent", "b", Durability::Durable).unwrap().first_seq, 1);
}

#[test]
fn after_a_delta_that_is_too_large_others_are_taken() {
    const MIB: usize = 1024 * 1024;
    let log = open(&Arc::new(Memory::default()), NEVER);
    let writer = begin(&log, "chat");
    push(&log, &writer, &"x".repeat(40 * MIB));
    let refused = log.core().appender.push(&writer, 0, Chunk::text("x".repeat(30 * MIB)));
    assert!(matches!(refused, Err(Error::LimitExceeded { .. })));
    push(&log, &writer, &"x".repeat(24 * MIB));
    assert!(log.core().appender.push(&writer, 0, Chunk::text("x")).is_err());
}

#[test]
fn two_hundred_thousand_chunks_are_pushed_in_one_window() {
    let log = open(&Arc::new(Memory::default()), NEVER);
    let writer = begin(&log, "chat");
    for chunk_index in 0..200_000 {
        log.core().appender.push(&writer, chunk_index, Chunk::text("")).unwrap();
    }
    assert_eq!(log.core().appender.finish(&writer, None, None, Metadata::default()).unwrap().last_seq, 200_002);
}

#[test]
fn a_store_opens_that_left_more_messages_open_than_the_queue_takes() {
    let memory = Arc::new(Memory::default());
    let log = open(&memory, NEVER);
    let writers: Vec<_> = (0..20_000).map(|message| begin(&log, &format!("chat {}", message % 100))).collect();
    drop((writers, log));
    let log = ends(move || open(&memory, NEVER));
    assert_eq!(last_seq(&log, "chat 99"), 400);
}

/// More that comes begins no new window.
#[test]
fn what_is_buffered_is_durable_after_a_window_though_more_comes() {
    let window = Duration::from_millis(300);
    let log = open(&Arc::new(Memory::default()), window);
    let until = Instant::now() + PATIENCE;
    while last_seq(&log, "chat") == 0 {
        assert!(Instant::now() < until, "it is never durable");
        append(&log, "chat", "a", Durability::Buffered).unwrap();
        thread::sleep(window / 16);
    }
}

#[test]
fn a_close_ends_all_waits() {
    let log = open(&Arc::new(Memory::default()), WINDOW);
    append(&log, "chat", "a", Durability::Durable).unwrap();
    let writer = begin(&log, "frozen");
    let incarnation = log.core().catalogue.published_head(Name::from("chat").id()).unwrap().unwrap().incarnation;
    let freeze = log.core().families.freeze(Name::from("frozen").id()).unwrap();
    push(&log, &writer, "delta");
    let tail = thread::spawn({
        let log = Arc::clone(&log);
        move || super::wait_for(&log, "chat", incarnation, 1, NEVER, &AtomicBool::new(false))
    });
    let waits: Vec<_> = ["append", "finish", "freeze"]
        .map(|what| {
            let (log, writer) = (Arc::clone(&log), Arc::clone(&writer));
            thread::spawn(move || match what {
                "append" => append(&log, "frozen", "b", Durability::Buffered).map(|_| ()),
                "finish" => log.core().appender.finish(&writer, None, None, Metadata::default()).map(|_| ()),
                _ => log.core().families.freeze(Name::from("frozen").id()).map(|_| ()),
            })
        })
        .into_iter()
        .collect();
    assert!(becomes(|| log.core().commit.lock().waiters() == (3, 1)));
    let closing = thread::spawn({
        let log = Arc::clone(&log);
        move || log.close()
    });
    for wait in waits {
        assert!(matches!(ends(|| wait.join().unwrap()), Err(Error::Closed)));
    }
    // What was pushed must still be made durable.
    thread::sleep(4 * WINDOW);
    assert!(!closing.is_finished() && !tail.is_finished());
    drop(freeze);
    ends(|| closing.join().unwrap()).unwrap();
    assert!(matches!(ends(|| tail.join().unwrap()), Err(Error::Closed)));
    assert_eq!(last_seq(&log, "frozen"), 2);
    assert!(log.core().health().closed);
    assert!(matches!(append(&log, "chat", "b", Durability::Durable), Err(Error::Closed)));
    assert!(matches!(super::wait_for(&log, "chat", incarnation, 0, NEVER, &AtomicBool::new(false)), Ok(true)));
}

#[test]
fn who_follows_a_conversation_gets_nothing_of_another_one_of_its_name() {
    let log = open(&Arc::new(Memory::default()), WINDOW);
    let chat = Name::from("chat");
    let incarnation = || log.core().catalogue.published_head(chat.id()).unwrap().unwrap().incarnation;
    append(&log, "chat", "a", Durability::Durable).unwrap();
    let first = incarnation();
    log.core().families.delete(&chat, None).unwrap();
    for _ in 0..3 {
        append(&log, "chat", "b", Durability::Durable).unwrap();
    }
    assert_ne!(first, incarnation());
    let waited = super::wait_for(&log, &chat, first, 1, NEVER, &AtomicBool::new(false));
    assert!(matches!(waited, Err(Error::NotFound { .. })));
}

#[test]
fn after_a_failed_commit_nothing_is_left_of_what_was_queued() {
    let disk = Arc::new(Disk::default());
    let log = open(&disk, NEVER);
    append(&log, "chat", "a", Durability::Durable).unwrap();
    let writer = begin(&log, "chat");
    push(&log, &writer, "delta");
    disk.fails.store(true, Ordering::Release);
    let options = AppendOptions::new().with_idempotency_key("key").with_durability(Durability::Buffered);
    log.core().appender.append(&"chat".into(), &[Message::user("b")], &Changes::new(), &options).unwrap();
    assert!(append(&log, "chat", "c", Durability::Durable).is_err());
    assert!(super::begin(&log, "chat").is_err());
    let mut state = log.core().commit.lock();
    assert!(state.queue.is_idle() && state.collecting.is_empty() && state.slots.are_settled());
    let slot = state.slots.slot(Name::from("chat").id());
    assert!(slot.has_no_queued_receipts() && slot.open_messages().count() == 1);
    drop(state);
    assert!(matches!(log.close(), Err(Error::Poisoned { .. })));
}
