//! A streamed message belongs to the process that holds a lease, in the time of the database.

use std::thread;
use std::time::{Duration, Instant};

use conversation_store::model::{Chunk, Message, Metadata, Role};
use conversation_store::{EntryKind, Error, Interruption, MessageState, Store};

use crate::process::{Process, say, wait};

/// The shortest lease there is.
const LEASE: &str = "&lease_seconds=1";

/// Streams an answer, word by word, until it is refused. What becomes of it is printed.
pub(crate) fn stream(arguments: &[&str]) {
    let store = Store::open(arguments[0]).unwrap();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("before ")).unwrap();
    store.sync().unwrap();
    say("begun");
    wait();
    let until = Instant::now() + Duration::from_secs(20);
    while Instant::now() < until {
        match writer
            .push(0, Chunk::text("late "))
            .and_then(|()| store.sync())
            .and_then(|()| writer.push(0, Chunk::text(".")))
        {
            Ok(()) => thread::sleep(Duration::from_millis(20)),
            Err(Error::MessageClosed { .. }) => return say("refused"),
            Err(error) => return say(error),
        }
    }
    say("never refused");
}

fn state(store: &Store, message: usize) -> MessageState {
    store.load_raw("chat").unwrap()[message].state
}

fn text(store: &Store, message: usize) -> Vec<Chunk> {
    store.load_raw("chat").unwrap()[message].message.chunks.clone()
}

/// Waits until a message is interrupted, and for the entry that says so.
fn interrupted(store: &Store, message: usize) -> Duration {
    let begun = Instant::now();
    while state(store, message) != MessageState::Interrupted {
        assert!(begun.elapsed() < Duration::from_secs(30), "it is never interrupted");
        thread::sleep(Duration::from_millis(20));
    }
    let after = begun.elapsed();
    let has_entry = || {
        let entries = store.entries("chat", .., usize::MAX).unwrap();
        let cause = |kind: &EntryKind| matches!(kind, EntryKind::Interrupt { cause: Interruption::Reopened });
        entries.iter().any(|entry| entry.message_index == Some(message as u64) && cause(&entry.kind))
    };
    while !has_entry() {
        assert!(begun.elapsed() < Duration::from_secs(30), "no entry says that it was interrupted");
        thread::sleep(Duration::from_millis(20));
    }
    after
}

#[test]
fn a_killed_process_leaves_its_message_interrupted_for_all_others() {
    let Some(server) = crate::running() else { return };
    let url = server.url() + LEASE;
    let stores = [Store::open(&url).unwrap(), Store::open(&url).unwrap()];
    stores[0].append("chat", &[Message::user("question")]).unwrap();
    let mut process = Process::start("stream", &[&url]);
    assert_eq!(process.next().as_deref(), Some("begun"));
    for store in &stores {
        assert_eq!(state(store, 1), MessageState::Streaming);
        let removed = store.remove("chat", 1, None);
        assert!(matches!(removed, Err(Error::BeingWritten { .. })), "{removed:?}");
    }
    // It lives longer than its lease: it renews it.
    thread::sleep(Duration::from_millis(2500));
    assert_eq!(state(&stores[0], 1), MessageState::Streaming);
    process.signal("KILL");
    for store in &stores {
        interrupted(store, 1);
        assert_eq!(text(store, 1), [Chunk::text("before ")]);
        assert_eq!(store.unfinished().unwrap().len(), 1);
    }
    // Another one may answer now.
    let writer = stores[1].begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.finish(None, None).unwrap();
    assert_eq!(stores[0].unfinished().unwrap(), []);
    assert_eq!(stores[0].verify(|_, _| ()).unwrap().problems, []);
}

#[test]
fn a_process_that_stood_still_for_too_long_is_refused() {
    let Some(server) = crate::running() else { return };
    let url = server.url() + LEASE;
    let store = Store::open(&url).unwrap();
    store.append("chat", &[Message::user("question")]).unwrap();
    let mut process = Process::start("stream", &[&url]);
    assert_eq!(process.next().as_deref(), Some("begun"));
    process.signal("STOP");
    interrupted(&store, 1);
    store.append("chat", &[Message::user("another question")]).unwrap();
    let before = store.entries("chat", .., usize::MAX).unwrap();
    process.signal("CONT");
    process.go();
    assert_eq!(process.next().as_deref(), Some("refused"));
    process.rest();
    assert_eq!(text(&store, 1), [Chunk::text("before ")]);
    assert_eq!(store.entries("chat", .., usize::MAX).unwrap(), before);
}

/// Nobody has written yet that it was interrupted: the lease alone decides.
#[test]
fn late_fragments_are_refused_before_anybody_noticed() {
    let Some(server) = crate::running() else { return };
    let url = server.url() + LEASE;
    let store = Store::open(&url).unwrap();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("in time")).unwrap();
    store.sync().unwrap();
    let schema = url.split_once("search_path%3D").unwrap().1.split('&').next().unwrap();
    server.run(&format!("UPDATE {schema}.cs_holder SET until = clock_timestamp()")).unwrap();
    let _ = writer.push(0, Chunk::text("late"));
    store.sync().unwrap();
    assert!(matches!(writer.finish(None, None), Err(Error::MessageClosed { .. })));
    assert_eq!(text(&store, 0), [Chunk::text("in time")]);
    assert_eq!(state(&store, 0), MessageState::Interrupted);
    // The next message is begun under a new lease.
    store.begin("chat", Role::Assistant, Metadata::default()).unwrap().finish(None, None).unwrap();
    assert_eq!(state(&store, 1), MessageState::Complete);
}
