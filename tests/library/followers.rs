//! Following a conversation without a thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use conversation_store::model::{Chunk, Message, Metadata, Role};
use conversation_store::{Entry, Error, Store, Tail};

/// Counts how often it is woken.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn bell() -> (Arc<Bell>, Waker) {
    let bell = Arc::<Bell>::default();
    (Arc::clone(&bell), Waker::from(bell))
}

fn poll(tail: &mut Tail, waker: &Waker) -> Poll<Option<Result<Vec<Entry>, Error>>> {
    tail.poll_next(&mut Context::from_waker(waker))
}

fn store() -> Store {
    let store = Store::open("memory:").unwrap();
    store.append("chat", &[Message::user("one")]).unwrap();
    store
}

fn append(store: &Store, text: &str) {
    store.append("chat", &[Message::user(text)]).unwrap();
}

#[test]
fn a_follower_is_woken_once_for_each_time_that_it_asked() {
    let store = store();
    let (bell, waker) = bell();
    let mut tail = store.tail("chat", 1).unwrap();
    assert!(poll(&mut tail, &waker).is_pending());
    // Another conversation is no news.
    store.append("other", &[Message::user("x")]).unwrap();
    assert_eq!(bell.0.load(Ordering::SeqCst), 0);
    append(&store, "two");
    append(&store, "three");
    assert_eq!(bell.0.load(Ordering::SeqCst), 1);
    let Poll::Ready(Some(Ok(entries))) = poll(&mut tail, &waker) else { panic!("entries are expected") };
    assert_eq!(entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [2, 3]);
    assert!(poll(&mut tail, &waker).is_pending());
}

#[test]
fn a_follower_learns_that_a_message_was_interrupted() {
    let store = store();
    let (bell, waker) = bell();
    let mut tail = store.tail("chat", 1).unwrap();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("cut o")).unwrap();
    drop(writer);
    store.sync().unwrap();
    let Poll::Ready(Some(Ok(entries))) = poll(&mut tail, &waker) else { panic!("entries are expected") };
    let kinds: Vec<_> = entries.iter().map(|entry| entry.kind.name()).collect();
    assert_eq!(kinds, ["begin", "chunk", "interrupt"]);
    assert_eq!(bell.0.load(Ordering::SeqCst), 0, "it did not wait");
}

#[test]
fn a_tail_ends_when_it_is_stopped_and_when_the_store_is_closed() {
    let store = store();
    let ((first, to_stop), (second, to_close)) = (bell(), bell());
    let mut stopped = store.tail("chat", 1).unwrap();
    let mut closed = store.tail("chat", 0).unwrap();
    assert!(poll(&mut stopped, &to_stop).is_pending());
    stopped.stop_handle().stop();
    assert_eq!(first.0.load(Ordering::SeqCst), 1);
    assert!(matches!(poll(&mut stopped, &to_stop), Poll::Ready(None)));
    // What is there is given before the end.
    assert!(matches!(poll(&mut closed, &to_close), Poll::Ready(Some(Ok(_)))));
    assert!(poll(&mut closed, &to_close).is_pending());
    store.close().unwrap();
    assert!(second.0.load(Ordering::SeqCst) > 0);
    assert!(matches!(poll(&mut closed, &to_close), Poll::Ready(None)));
    assert!(matches!(poll(&mut closed, &to_close), Poll::Ready(None)));
}

#[test]
fn a_tail_of_a_conversation_that_was_deleted_ends_with_an_error() {
    let store = store();
    let (bell, waker) = bell();
    let mut tail = store.tail("chat", 1).unwrap();
    assert!(poll(&mut tail, &waker).is_pending());
    store.delete("chat").unwrap();
    append(&store, "of another conversation of that name");
    assert!(bell.0.load(Ordering::SeqCst) > 0);
    assert!(matches!(poll(&mut tail, &waker), Poll::Ready(Some(Err(Error::NotFound { .. })))));
    assert!(matches!(poll(&mut tail, &waker), Poll::Ready(None)));
}

#[test]
fn a_slow_follower_gets_a_bounded_part_at_a_time() {
    let store = store();
    let many: Vec<_> = (0..2_500).map(|number| Message::user(number.to_string())).collect();
    store.append("chat", &many).unwrap();
    for _ in 0..3 {
        append(&store, &"x".repeat(600_000));
    }
    let (_, waker) = bell();
    let mut tail = store.tail("chat", 0).unwrap();
    let (mut seqs, mut parts) = (Vec::new(), Vec::new());
    while let Poll::Ready(Some(Ok(entries))) = poll(&mut tail, &waker) {
        parts.push(entries.len());
        seqs.extend(entries.iter().map(|entry| entry.seq));
    }
    assert_eq!(seqs, (1..=2_504).collect::<Vec<_>>());
    // A thousand entries at most, and no more after the first MiB.
    assert_eq!(parts, [1_000, 1_000, 503, 1]);
}

#[test]
fn a_follower_that_is_gone_is_forgotten() {
    let store = store();
    let (bell, waker) = bell();
    let mut tail = store.tail("chat", 1).unwrap();
    assert!(poll(&mut tail, &waker).is_pending());
    drop(tail);
    let woken = bell.0.load(Ordering::SeqCst);
    append(&store, "two");
    assert_eq!(bell.0.load(Ordering::SeqCst), woken);
    // The log holds the waker no more: only the test's own is left.
    drop(waker);
    assert_eq!(Arc::strong_count(&bell), 1);
}
