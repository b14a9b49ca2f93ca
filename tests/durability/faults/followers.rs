//! Who follows a conversation learns of all that happens to it.

use std::time::{Duration, Instant};

use conversation_store::model::{Chunk, Message, Metadata, Role};
use conversation_store::{Health, MessageState, Store, StoreOptions};

use crate::common::program::copy;
use crate::faults::{PATIENCE, Place, say, url, user};

/// Long enough for what comes at once.
const SOON: Duration = Duration::from_secs(2);

// 10

#[test]
fn closing_a_store_ends_its_tails() {
    let store = Store::open("memory:").unwrap();
    say(&store, "chat", 1..=2);
    let mut tail = store.tail("chat", 2).unwrap();
    let waiting = std::thread::spawn(move || {
        let result = tail.next(PATIENCE);
        (Instant::now(), result)
    });
    std::thread::sleep(Duration::from_millis(100));
    store.close().unwrap();
    let closed = Instant::now();
    let (woken, result) = waiting.join().unwrap();
    assert!(woken - closed < PATIENCE / 2, "it sat its time out and got {result:?}");
}

#[test]
fn health_tells_that_a_store_was_closed() {
    let store = Store::open("memory:").unwrap();
    store.close().unwrap();
    assert!(user(&store, "chat", "hello").is_err());
    assert_ne!(store.health(), Health::default());
}

#[test]
fn opening_for_reading_makes_nothing() {
    let place = Place::new();
    let opened = StoreOptions::new().with_read_only(true).open(&place.url()).map(|_| "a store");
    assert!(!place.path().exists(), "it made a directory and gave {opened:?}");
    assert!(opened.is_err());
}

// 12

#[test]
fn a_follower_learns_that_a_writer_was_dropped() {
    let store = Store::open("memory:").unwrap();
    say(&store, "chat", 1..=1);
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("half")).unwrap();
    store.sync().unwrap();
    let mut tail = store.tail("chat", 0).unwrap();
    let before = tail.next(SOON).unwrap();
    drop(writer);
    store.sync().unwrap();
    assert_eq!(store.load("chat").unwrap().messages()[1].state, MessageState::Interrupted);
    let news = tail.next(SOON).unwrap();
    assert!(!news.is_empty(), "nothing came after {} entries", before.len());
}

#[test]
fn a_follower_learns_that_a_writer_ended_with_its_process() {
    let place = Place::new();
    let store = place.open();
    say(&store, "chat", 1..=1);
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("half")).unwrap();
    store.sync().unwrap();
    let cursor = store.describe("chat").unwrap().last_seq;
    // What is on the disk when the process is killed.
    let killed = place.file("killed");
    copy(&place.path(), &killed);
    let store = Store::open(&url(&killed)).unwrap();
    assert_eq!(store.load("chat").unwrap().messages()[1].state, MessageState::Interrupted);
    let mut tail = store.tail("chat", cursor).unwrap();
    let news = tail.next(SOON).unwrap();
    assert!(!news.is_empty(), "nothing came after seq {cursor}");
}

#[test]
fn a_follower_of_a_message_that_is_closed_by_a_deletion_gets_an_error() {
    let store = Store::open("memory:").unwrap();
    store.append("chat", &[Message::user("hello")]).unwrap();
    let mut tail = store.tail("chat", 1).unwrap();
    let other = store.clone();
    let waiting = std::thread::spawn(move || tail.next(PATIENCE));
    std::thread::sleep(Duration::from_millis(50));
    other.delete("chat").unwrap();
    assert!(waiting.join().unwrap().is_err());
}
