//! Messages are found by a provider's item id, whatever happens to the conversation.

use crate::place::Place;
use conversation_store::model::{Chunk, Message, Metadata, Role};
use conversation_store::provider::Event;
use conversation_store::{Error, Item, Store};

crate::tests![
    messages_and_chunks_are_found,
    streamed_messages_are_found,
    an_id_that_came_with_the_answer_is_found,
    rewinds_hide_and_forks_share,
    a_redacted_message_is_found_and_so_is_a_restored_one,
];

fn said(text: &str, item: &str) -> Message {
    Message::assistant([Chunk { id: Some(item.to_owned()), ..Chunk::text(text) }])
}

fn named(mut message: Message, id: &str) -> Message {
    message.metadata.id = Some(id.to_owned());
    message
}

/// Seq, message and chunk.
type Spot = (u64, u64, Option<u32>);

fn find(store: &Store, name: &str, item: &str) -> Option<Spot> {
    place(store.find_item(name, item).unwrap())
}

fn place(item: Option<Item>) -> Option<Spot> {
    item.map(|item| (item.seq, item.message_index, item.chunk_index))
}

/// Messages 0 to 3; `item` stands in 1 and 3.
fn store(place: &Place) -> Store {
    let store = place.store();
    let messages = [
        named(Message::user("hello"), "msg_0"),
        named(said("one", "item"), "msg_1"),
        named(Message::new(Role::User, []), "msg_2"),
        said("three", "item"),
    ];
    store.append("chat", &messages).unwrap();
    store
}

fn messages_and_chunks_are_found(place: &Place) {
    let store = store(place);
    assert_eq!(find(&store, "chat", "msg_0"), Some((1, 0, None)));
    assert_eq!(find(&store, "chat", "msg_1"), Some((2, 1, None)));
    assert_eq!(find(&store, "chat", "msg_2"), Some((3, 2, None)));
    assert_eq!(find(&store, "chat", "item"), Some((2, 1, Some(0))));
    assert_eq!(find(&store, "chat", "nothing"), None);
    assert!(matches!(store.find_item("nobody", "item"), Err(Error::NotFound { .. })));
}

fn streamed_messages_are_found(place: &Place) {
    let store = store(place);
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
fn an_id_that_came_with_the_answer_is_found(place: &Place) {
    let store = store(place);
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    let said = Metadata { id: Some("resp_1".to_owned()), ..Metadata::default() };
    let delta = Event::Delta { chunk_index: 0, chunk: Chunk::text("so far") };
    writer.ingest([Event::Begin(said), delta, Event::Finish { reason: None, usage: None }]).unwrap();
    let end = store.describe("chat").unwrap().last_seq;
    assert_eq!(find(&store, "chat", "resp_1"), Some((end, 4, None)));
}

fn rewinds_hide_and_forks_share(place: &Place) {
    let store = store(place);
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

fn a_redacted_message_is_found_and_so_is_a_restored_one(place: &Place) {
    let store = store(place);
    store.redact("chat", 1, None).unwrap();
    assert_eq!(find(&store, "chat", "item"), Some((2, 1, Some(0))));
    let file = place.file();
    store.backup(&file, |_, _| ()).unwrap();
    if !place.survives() {
        return;
    }
    let url = place.vacant();
    Store::restore(&file, &url, |_, _| ()).unwrap();
    let restored = Store::open(&url).unwrap();
    assert_eq!(find(&restored, "chat", "item"), Some((2, 1, Some(0))));
    assert_eq!(restored.verify(|_, _| ()).unwrap().problems, []);
}
