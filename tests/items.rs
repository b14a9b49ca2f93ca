//! Messages are found by a provider's item id, whatever happens to the conversation.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use conversation_store::model::{Chunk, Message, Metadata, Role};
use conversation_store::provider::Event;
use conversation_store::{Error, Item, Store};

fn said(text: &str, item: &str) -> Message {
    Message::assistant([Chunk { id: Some(item.to_owned()), ..Chunk::text(text) }])
}

fn named(mut message: Message, id: &str) -> Message {
    message.metadata.id = Some(id.to_owned());
    message
}

/// Seq, message and chunk.
type Place = (u64, u64, Option<u32>);

fn find(store: &Store, name: &str, item: &str) -> Option<Place> {
    place(store.find_item(name, item).unwrap())
}

fn place(item: Option<Item>) -> Option<Place> {
    item.map(|item| (item.seq, item.message_index, item.chunk_index))
}

/// Messages 0 to 3; `item` stands in 1 and 3.
fn store() -> Store {
    let store = Store::open("memory:").unwrap();
    let messages = [
        named(Message::user("hello"), "msg_0"),
        named(said("one", "item"), "msg_1"),
        named(Message::new(Role::User, []), "msg_2"),
        said("three", "item"),
    ];
    store.append("chat", &messages).unwrap();
    store
}

#[test]
fn messages_and_chunks_are_found() {
    let store = store();
    assert_eq!(find(&store, "chat", "msg_0"), Some((1, 0, None)));
    assert_eq!(find(&store, "chat", "msg_1"), Some((2, 1, None)));
    assert_eq!(find(&store, "chat", "msg_2"), Some((3, 2, None)));
    assert_eq!(find(&store, "chat", "item"), Some((2, 1, Some(0))));
    assert_eq!(find(&store, "chat", "nothing"), None);
    assert!(matches!(store.find_item("nobody", "item"), Err(Error::NotFound { .. })));
}

#[test]
fn streamed_messages_are_found() {
    let store = store();
    let metadata = Metadata { id: Some("msg_4".to_owned()), ..Metadata::default() };
    let mut writer = store.begin("chat", Role::Assistant, metadata).unwrap();
    writer.push(0, Chunk::text("so ")).unwrap();
    store.sync().unwrap();
    writer.push(0, Chunk { id: Some("late".to_owned()), ..Chunk::text("far") }).unwrap();
    writer.finish(None, None).unwrap();
    assert_eq!(find(&store, "chat", "msg_4"), Some((5, 4, None)));
    assert_eq!(find(&store, "chat", "late"), Some((7, 4, Some(0))));
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
}

/// The id that a provider gives an answer is stored with the answer's end.
#[test]
fn an_id_that_came_with_the_answer_is_found() {
    let store = store();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    let said = Metadata { id: Some("resp_1".to_owned()), ..Metadata::default() };
    let delta = Event::Delta { chunk_index: 0, chunk: Chunk::text("so far") };
    writer.ingest([Event::Begin(said), delta, Event::Finish { reason: None, usage: None }]).unwrap();
    let end = store.describe("chat").unwrap().last_seq;
    assert_eq!(find(&store, "chat", "resp_1"), Some((end, 4, None)));
}

#[test]
fn rewinds_hide_and_forks_share() {
    let store = store();
    store.fork_to("chat", Some(2), "early").unwrap();
    store.fork_to("early", None, "earlier").unwrap();
    store.rewind("chat", 1).unwrap();
    assert_eq!((find(&store, "chat", "item"), find(&store, "chat", "msg_0")), (None, Some((1, 0, None))));
    store.append("chat", &[said("again", "item")]).unwrap();
    assert_eq!(find(&store, "chat", "item"), Some((6, 4, Some(0))));
    for fork in ["early", "earlier"] {
        assert_eq!(find(&store, fork, "item"), Some((2, 1, Some(0))));
        assert_eq!(find(&store, fork, "msg_2"), None);
    }
    let found = store.find_item_everywhere("item").unwrap();
    let mut keys: Vec<_> = found.iter().map(|item| item.key.clone().unwrap()).collect();
    keys.sort();
    assert_eq!(keys, ["chat", "earlier", "early"]);
    store.delete("chat").unwrap();
    assert_eq!(find(&store, "early", "item"), Some((2, 1, Some(0))));
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
    store.delete("early").unwrap();
    store.delete("earlier").unwrap();
    store.append("chat", &[Message::user("anew")]).unwrap();
    assert_eq!((find(&store, "chat", "item"), store.find_item_everywhere("item").unwrap()), (None, vec![]));
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
}

#[test]
fn a_redacted_message_is_found_and_so_is_a_restored_one() {
    let store = store();
    store.redact("chat", 1, None).unwrap();
    assert_eq!(find(&store, "chat", "item"), Some((2, 1, Some(0))));
    let dir = tempfile::tempdir().unwrap();
    let (file, url) = (dir.path().join("backup"), format!("sled:{}", dir.path().join("db").display()));
    store.backup(&file, |_, _| ()).unwrap();
    Store::restore(&file, &url, |_, _| ()).unwrap();
    let restored = Store::open(&url).unwrap();
    assert_eq!(find(&restored, "chat", "item"), Some((2, 1, Some(0))));
    assert_eq!(restored.verify(|_, _| ()).unwrap().problems, []);
}
