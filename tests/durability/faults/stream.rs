//! Writers: what one does must not stop the store, and what happens to it is seen.

use std::time::Duration;

use conversation_store::model::{Chunk, Message, Metadata, Role};
use conversation_store::{AppendOptions, Durability, Error, Limits, StoreOptions};

use crate::faults::{text_of, user, within};

// 1

#[test]
fn a_queue_that_is_full_does_not_stop_the_thread_that_empties_it() {
    within("begin, 40 MiB, push, finish", || {
        let store = StoreOptions::new().with_window(Duration::from_millis(200)).open("memory:").unwrap();
        let buffered = AppendOptions::new().with_durability(Durability::Buffered);
        user(&store, "other", "hello").unwrap();
        let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
        store.append_with("other", &[Message::user("x".repeat(40 << 20))], &buffered).unwrap();
        writer.push(0, Chunk::text("hello")).unwrap();
        std::thread::sleep(Duration::from_millis(600));
        writer.finish(None, None).unwrap();
        store.close().unwrap();
    });
}

// 34

#[test]
fn a_delta_that_is_too_large_leaves_its_chunk_as_it_is() {
    let store = StoreOptions::new().open("memory:").unwrap();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("one, ")).unwrap();
    let refused = writer.push(0, Chunk::text("x".repeat(Limits::CHUNK_BYTES)));
    assert!(matches!(refused, Err(Error::LimitExceeded { .. })), "{refused:?}");
    writer.push(0, Chunk::text("two")).unwrap();
    writer.finish(None, None).unwrap();
    assert_eq!(text_of(&store.load("chat").unwrap().messages()[0].message), "one, two");
}
