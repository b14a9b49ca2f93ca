//! What readers see, and what happens to a store, when the disk is slow, fails, or is damaged.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::super::{Embedded, Opening};
use super::engines::Disk;
use crate::embedded::engine::{Batch, Engine, Memory, Order};
use crate::embedded::recovery;
use crate::embedded::state::Pending;
use crate::error::{Error, Result};
use crate::log::{AppendOptions, Changes, Durability, ForkAt};
use crate::model::{Chunk, Message, Metadata, Name, Timestamp};
use crate::record::index_keys;
use crate::record::{self, Tombstone, key};

fn open(engine: Arc<dyn Engine>) -> Embedded {
    Embedded::open(engine, Arc::new(Timestamp::now), Duration::from_secs(3600), Opening::default()).unwrap()
}

fn chat() -> Name {
    Name::from("chat")
}

fn append(log: &Embedded, text: &str, durability: Durability) -> Result<crate::Receipt> {
    log.core().appender.append(
        &chat(),
        &[Message::user(text)],
        &Changes::new(),
        &AppendOptions::new().with_durability(durability),
    )
}

/// The messages that readers see.
fn seen(log: &Embedded) -> usize {
    super::load(log, chat()).map_or(0, |grouped| grouped.messages.len())
}

#[test]
fn what_is_not_durable_is_not_seen() {
    let disk = Arc::new(Disk::default());
    let log = open(Arc::clone(&disk) as Arc<dyn Engine>);
    append(&log, "a", Durability::Durable).unwrap();
    let buffered = append(&log, "b", Durability::Buffered).unwrap();
    assert_eq!((buffered.first_seq, buffered.message_indexes, buffered.durable), (2, vec![1], false));
    disk.hold(true);
    std::thread::scope(|scope| {
        let durable = scope.spawn(|| append(&log, "c", Durability::Durable).unwrap());
        disk.await_sync();
        // The engine has it already; readers do not.
        let (is_stored, seen) = (disk.get(&key::record(chat().id(), 3)).unwrap().is_some(), seen(&log));
        let (last_seq, returned) = (super::describe(&log, chat()).last_seq, durable.is_finished());
        disk.hold(false);
        assert_eq!((is_stored, seen, last_seq, returned), (true, 1, 1, false));
        assert_eq!(durable.join().unwrap().message_indexes, [2]);
    });
    assert_eq!(seen(&log), 3);
}

/// What was accepted before it is in the fork, and is not erased past.
#[test]
fn a_change_to_a_whole_conversation_waits_for_what_is_queued() {
    let log = open(Arc::new(Memory::default()));
    append(&log, "a", Durability::Durable).unwrap();
    append(&log, "b", Durability::Buffered).unwrap();
    log.core().families.fork(&chat(), ForkAt::default(), &"fork".into()).unwrap();
    assert_eq!(super::load(&log, "fork").unwrap().messages.len(), 2);
    append(&log, "c", Durability::Buffered).unwrap();
    log.core().families.redact(&chat(), 2, None).unwrap();
    assert_eq!(seen(&log), 3);
}

#[test]
fn a_failed_sync_is_the_end_of_writing_and_not_of_reading() {
    let disk = Arc::new(Disk::default());
    let log = open(Arc::clone(&disk) as Arc<dyn Engine>);
    append(&log, "a", Durability::Durable).unwrap();
    let writer = super::begin(&log, chat()).unwrap();
    disk.fails.store(true, Ordering::Release);
    assert!(matches!(append(&log, "b", Durability::Durable), Err(Error::OutcomeUnknown { .. })));
    // It does not recover by itself: what was written meanwhile is not known.
    disk.fails.store(false, Ordering::Release);
    assert!(matches!(append(&log, "c", Durability::Durable), Err(Error::Poisoned { .. })));
    assert!(matches!(append(&log, "c", Durability::Buffered), Err(Error::Poisoned { .. })));
    assert!(matches!(
        log.core().appender.finish(&writer, None, None, Metadata::default()),
        Err(Error::Poisoned { .. })
    ));
    assert!(matches!(super::rewind(&log, chat(), 0), Err(Error::Poisoned { .. })));
    assert!(matches!(log.core().families.delete(&chat(), None), Err(Error::Poisoned { .. })));
    assert!(matches!(log.flush(), Err(Error::Poisoned { .. })));
    assert_eq!(seen(&log), 2);
    assert!(matches!(log.close(), Err(Error::Poisoned { .. })));
    let error = append(&log, "d", Durability::Durable).unwrap_err().to_string();
    assert_eq!(error, "the store takes no more writes: sync: the disk is gone; open it again");
}

#[test]
fn a_closed_store_says_so() {
    let log = open(Arc::new(Memory::default()));
    append(&log, "a", Durability::Buffered).unwrap();
    log.close().unwrap();
    log.close().unwrap();
    assert_eq!(seen(&log), 1);
    let error = append(&log, "b", Durability::Durable).unwrap_err().to_string();
    assert_eq!(error, "the store was closed");
}

#[test]
fn all_who_wait_for_a_failed_sync_are_told() {
    let disk = Arc::new(Disk::default());
    let log = open(Arc::clone(&disk) as Arc<dyn Engine>);
    append(&log, "a", Durability::Durable).unwrap();
    disk.hold(true);
    disk.fails.store(true, Ordering::Release);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| append(&log, "b", Durability::Durable))).collect();
        disk.await_sync();
        disk.hold(false);
        for thread in threads {
            // Those whose commit was not begun know that nothing of theirs was written.
            let result = thread.join().unwrap();
            assert!(matches!(result, Err(Error::OutcomeUnknown { .. } | Error::Poisoned { .. })), "{result:?}");
        }
    });
    assert_eq!(seen(&log), 1);
}

/// Neither who led nor who waited knows whether it was written. Who came later knows that nothing of theirs was.
#[test]
fn the_outcome_of_a_batch_whose_sync_failed_is_unknown_to_all_of_it() {
    let disk = Arc::new(Disk::default());
    let log = open(Arc::clone(&disk) as Arc<dyn Engine>);
    let commit = &log.core().commit;
    let write = |at: u8| {
        let pending = Pending { ops: vec![(vec![at], Some(Vec::new()))], ..Pending::default() };
        commit.enqueue(commit.lock(), pending)
    };
    let (leader, waiter) = (write(1), write(2));
    disk.hold(true);
    disk.fails.store(true, Ordering::Release);
    let outcomes = std::thread::scope(|scope| {
        let leading = scope.spawn(|| commit.wait(&leader));
        disk.await_sync();
        let later = write(3);
        disk.hold(false);
        [leading.join().unwrap(), commit.wait(&waiter), commit.wait(&later)]
    });
    let is_right = matches!(
        outcomes,
        [Err(Error::OutcomeUnknown { .. }), Err(Error::OutcomeUnknown { .. }), Err(Error::Poisoned { .. })]
    );
    assert!(is_right, "{outcomes:?}");
}

#[test]
fn buffered_appends_wait_where_too_much_is_queued_and_are_told_when_that_fails() {
    const APPENDS: usize = 80;
    let message = "x".repeat(1024 * 1024);
    for fails in [false, true] {
        let disk = Arc::new(Disk::default());
        let log = open(Arc::clone(&disk) as Arc<dyn Engine>);
        append(&log, "first", Durability::Durable).unwrap();
        disk.hold(true);
        std::thread::scope(|scope| {
            let appending = scope.spawn(|| {
                let results = (0..APPENDS).map(|_| append(&log, &message, Durability::Buffered).map(|_| ()));
                results.collect::<Result<Vec<()>>>()
            });
            // The queue is full, and a thread tries to make room.
            disk.await_sync();
            let until = Instant::now() + Duration::from_secs(20);
            let bytes = loop {
                let before = log.core().commit.lock().queue.bytes();
                std::thread::sleep(Duration::from_millis(30));
                let bytes = log.core().commit.lock().queue.bytes();
                if bytes == before || Instant::now() > until {
                    break bytes;
                }
            };
            let is_waiting = !appending.is_finished();
            disk.fails.store(fails, Ordering::Release);
            disk.hold(false);
            let result = appending.join().unwrap();
            assert!(is_waiting && bytes < 34 * message.len(), "{bytes} bytes are queued");
            assert_eq!(matches!(result, Err(Error::Poisoned { .. })), fails, "{result:?}");
        });
        let sync = log.flush();
        assert_eq!((sync.is_err(), seen(&log)), (fails, if fails { 1 } else { 1 + APPENDS }));
    }
}

/// A store of three appends, of two messages each.
fn three_records() -> (Arc<Memory>, Embedded) {
    let memory = Arc::new(Memory::default());
    let log = open(Arc::clone(&memory) as Arc<dyn Engine>);
    for append in 0..3 {
        let texts = ["a", "b"].map(|text| Message::user(format!("{text}{append}")));
        log.core().appender.append(&chat(), &texts, &Changes::new(), &AppendOptions::new()).unwrap();
    }
    (memory, log)
}

#[test]
fn a_damaged_record_does_not_hide_the_others() {
    for first_seq in [1, 3, 5] {
        for lost in [false, true] {
            let (memory, log) = three_records();
            let key = key::record(chat().id(), first_seq);
            let mut value = memory.get(&key).unwrap().unwrap();
            *value.last_mut().unwrap() ^= 1;
            memory.write(Batch { ops: vec![(key, Some(value).filter(|_| !lost))] }).unwrap();
            let grouped = super::load(&log, chat()).unwrap();
            let indexes: Vec<u64> = grouped.messages.iter().map(|stored| stored.index).collect();
            assert_eq!(
                indexes,
                (0..6).filter(|index| !(first_seq - 1..first_seq + 1).contains(index)).collect::<Vec<_>>()
            );
            let [Error::Corrupt { conversation, seq, .. }] = grouped.damage.as_slice() else {
                panic!("{:?}", grouped.damage)
            };
            assert_eq!((conversation.as_ref().map(Name::id), *seq), (Some(chat().id()), Some(first_seq)));
            let problems = recovery::verify(log.core(), &mut |_, _| ()).unwrap().problems;
            assert!(problems.iter().any(|problem| problem.seq == Some(first_seq)), "{problems:?}");
            assert!(matches!(super::entries(&log, chat(), 1..=6, Order::Ascending), Err(Error::Corrupt { .. })));
        }
    }
}

#[test]
fn a_deletion_that_was_cut_off_is_finished() {
    let memory = Arc::new(Memory::default());
    let log = open(Arc::clone(&memory) as Arc<dyn Engine>);
    let key_of = AppendOptions::new().with_idempotency_key("request");
    log.core().appender.append(&chat(), &[Message::user("x".repeat(200_000))], &Changes::new(), &key_of).unwrap();
    // More keys than go in one batch.
    for text in 0..300 {
        append(&log, &text.to_string(), Durability::Buffered).unwrap();
    }
    append(&log, "last", Durability::Durable).unwrap();
    log.core()
        .appender
        .append(&Name::from("other"), &[Message::user("stays")], &Changes::new(), &AppendOptions::new())
        .unwrap();
    let head = log.core().catalogue.published_head(chat().id()).unwrap().unwrap();
    let mut commit = log.core().commit.lock().last_commit();
    commit.count(Some(&head), None);
    drop(log);
    // What the first batch of a deletion writes: the head goes, the tombstone comes.
    let tombstone = key::tombstone(chat().id());
    let mut batch = Batch::default();
    batch.put(
        tombstone.clone(),
        record::seal(&tombstone, &Tombstone { parent: None, incarnation: head.incarnation }).unwrap(),
    );
    batch.remove(key::head(chat().id()));
    index_keys(chat().id(), &head).into_iter().for_each(|index| batch.remove(index));
    let commit_key = key::meta("commit");
    batch.put(commit_key.clone(), record::seal(&commit_key, &commit).unwrap());
    memory.write(batch).unwrap();

    let log = open(Arc::clone(&memory) as Arc<dyn Engine>);
    let left = super::engines::all(&*memory);
    let is_of_chat = |key: &[u8]| key::parse_id(key) == Some(chat().id());
    assert!(left.iter().all(|(key, _)| !is_of_chat(key)), "something of it is left");
    assert_eq!(recovery::verify(log.core(), &mut |_, _| ()).unwrap().problems, []);
    let receipt = log.core().appender.append(&chat(), &[Message::user("new")], &Changes::new(), &key_of).unwrap();
    assert_eq!((receipt.first_seq, receipt.message_indexes, receipt.duplicate), (1, vec![0], false));
    assert_eq!(super::load(&log, "other").unwrap().messages.len(), 1);
}

#[test]
fn fragments_that_alternate_come_out_whole() {
    let log = open(Arc::new(Memory::default()));
    let begin = || super::begin(&log, chat()).unwrap();
    let writers = [begin(), begin()];
    for piece in ["a", "b", "c"] {
        for (at, writer) in writers.iter().enumerate() {
            log.core().appender.push(writer, 0, Chunk::text(format!("{piece}{at} "))).unwrap();
            log.core().appender.push(writer, 1, Chunk::thinking(piece)).unwrap();
            log.flush().unwrap();
        }
    }
    writers
        .iter()
        .for_each(|writer| drop(log.core().appender.finish(writer, None, None, Metadata::default()).unwrap()));
    let messages = super::load(&log, chat()).unwrap().messages;
    let chunks: Vec<_> = messages.into_iter().map(|stored| stored.message.chunks).collect();
    let said = |text: &str| vec![Chunk::text(text), Chunk::thinking("abc")];
    assert_eq!(chunks, [said("a0 b0 c0 "), said("a1 b1 c1 ")]);
}
