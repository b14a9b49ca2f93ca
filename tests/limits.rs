//! The largest things that the store takes, on each engine: one atomic append, and back.
#![cfg(feature = "sled")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use conversation_store::model::{Body, Chunk, Message};
use conversation_store::{Limits, Store};

fn text(of: &Message) -> &str {
    match &of.chunks[0].body {
        Body::Text { text, .. } => text,
        _ => "",
    }
}

fn the_largest_append_comes_back(engine: &str) {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("{engine}:{}", dir.path().join("db").display());
    let large = |letter: &str| Message::assistant([Chunk::text(letter.repeat(Limits::CHUNK_BYTES))]);
    let store = Store::open(&url).unwrap();
    store.append("chat", &[Message::user("before")]).unwrap();
    let receipt = store.append("chat", &[large("a"), large("b")]).unwrap();
    assert_eq!((receipt.first_seq, receipt.last_seq), (2, 3));
    store.append("chat", &[Message::user("after")]).unwrap();
    drop(store);
    let store = Store::open(&url).unwrap();
    let messages = store.load_raw("chat").unwrap();
    assert_eq!(
        messages.iter().map(|stored| text(&stored.message).len()).collect::<Vec<_>>(),
        [6, Limits::CHUNK_BYTES, Limits::CHUNK_BYTES, 5]
    );
    assert!(text(&messages[2].message).bytes().all(|byte| byte == b'b'));
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
    let file = dir.path().join("backup");
    store.backup(&file, |_, _| ()).unwrap();
    let backup = Store::open(&format!("backup:{}", file.display())).unwrap();
    assert_eq!(backup.load_raw("chat").unwrap(), messages);
}

#[test]
fn the_largest_append_comes_back_from_sled() {
    the_largest_append_comes_back("sled");
}

#[cfg(feature = "fjall")]
#[test]
fn the_largest_append_comes_back_from_fjall() {
    the_largest_append_comes_back("fjall");
}
