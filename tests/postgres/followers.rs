//! Followers of what other processes write.

use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use conversation_store::model::{Chunk, Message, Metadata, Role};
use conversation_store::{EntryKind, Error, Store};

use crate::process::{Process, say, wait};

/// Writes messages, whole and streamed, with pauses.
pub(crate) fn talk(arguments: &[&str]) {
    let store = Store::open(arguments[0]).unwrap();
    say("ready");
    wait();
    for round in 0..10 {
        store.append("chat", &[Message::user(format!("question {round}"))]).unwrap();
        let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
        for word in 0..5 {
            writer.push(0, Chunk::text(format!("{word} "))).unwrap();
            thread::sleep(Duration::from_millis(7));
        }
        writer.finish(None, None).unwrap();
    }
    say("done");
}

#[test]
fn what_another_process_writes_is_followed_entry_by_entry() {
    let Some(server) = crate::running() else { return };
    let url = server.url();
    let store = Store::open(&url).unwrap();
    store.append("chat", &[Message::user("first")]).unwrap();
    let mut process = Process::start("talk", &[&url]);
    assert_eq!(process.next().as_deref(), Some("ready"));
    let mut tails: Vec<_> = (0..8).map(|_| store.tail("chat", 0).unwrap()).collect();
    process.go();
    let followed = thread::scope(|scope| {
        let following = tails.iter_mut().map(|tail| {
            scope.spawn(|| {
                let mut entries = Vec::new();
                let is_end = |kind: &EntryKind| matches!(kind, EntryKind::Finish { .. });
                while entries.iter().filter(|entry: &&conversation_store::Entry| is_end(&entry.kind)).count() < 10 {
                    let news = tail.next(Duration::from_secs(30)).unwrap();
                    assert!(!news.is_empty(), "the end does not come");
                    entries.extend(news);
                }
                entries
            })
        });
        let following: Vec<_> = following.collect();
        following.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(process.rest(), ["done"]);
    let all = store.entries("chat", .., usize::MAX).unwrap();
    assert!(followed.iter().all(|entries| *entries == all));
}

/// A deletion in another process ends those who follow, also after somebody made another one of that name.
#[test]
fn a_conversation_that_another_process_deletes_ends_its_followers() {
    let Some(server) = crate::running() else { return };
    let url = server.url();
    let (here, there) = (Store::open(&url).unwrap(), Store::open(&url).unwrap());
    for is_made_again in [false, true] {
        here.append("chat", &[Message::user("first")]).unwrap();
        let mut tail = here.tail("chat", 1).unwrap();
        let following = thread::spawn(move || tail.next(Duration::from_secs(30)));
        thread::sleep(Duration::from_millis(100));
        there.delete("chat").unwrap();
        if is_made_again {
            there.append("chat", &[Message::user("again"), Message::user("again")]).unwrap();
        }
        let ended = following.join().unwrap();
        assert!(matches!(ended, Err(Error::NotFound { .. })), "{ended:?}");
    }
}

/// Wakes the thread that polls.
fn poll(tail: &mut conversation_store::Tail) -> Option<usize> {
    struct Unpark(thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(std::sync::Arc::new(Unpark(thread::current())));
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        match tail.poll_next(&mut Context::from_waker(&waker)) {
            Poll::Ready(news) => return news.map(|news| news.unwrap().len()),
            Poll::Pending => thread::park_timeout(until.saturating_duration_since(Instant::now())),
        }
        assert!(Instant::now() < until, "nobody wakes it");
    }
}

/// What is written here wakes those who follow here without a look at the database: as it cannot be looked at.
#[test]
fn what_the_same_process_writes_wakes_at_once() {
    let Some(server) = crate::running() else { return };
    let url = server.url();
    let store = Store::open(&url).unwrap();
    store.append("chat", &[Message::user("first")]).unwrap();
    let mut tail = store.tail("chat", 0).unwrap();
    assert_eq!(poll(&mut tail), Some(1));
    let mut waits = Vec::new();
    for _ in 0..20 {
        let (begun, store) = (Instant::now(), store.clone());
        let writing = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            store.append("chat", &[Message::user("next")]).unwrap();
        });
        assert_eq!(poll(&mut tail), Some(1));
        writing.join().unwrap();
        waits.push(begun.elapsed());
    }
    // Others' writes reach it too, and its end.
    let there = Store::open(&url).unwrap();
    there.append("chat", &[Message::user("from there")]).unwrap();
    assert_eq!(poll(&mut tail), Some(1));
    store.close().unwrap();
    assert_eq!(poll(&mut tail), None);
    println!("waits: {waits:?}");
}
