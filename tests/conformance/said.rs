//! What tests say, and what they look at.

use conversation_store::model::{Body, Chunk, Message};
use conversation_store::{AppendOptions, MessageState, Store, StoredMessage};

use crate::place::Place;

pub(crate) fn user(text: &str) -> Message {
    Message::user(text)
}

/// Two messages of two chunks, then one of one: seqs 1 to 5.
pub(crate) fn five_seqs(place: &Place) -> Store {
    let store = place.store();
    let two = |a: &str, b: &str| Message::assistant([Chunk::text(a), Chunk::text(b)]);
    store.append("chat", &[two("a", "b"), two("c", "d")]).unwrap();
    store.append("chat", &[user("e")]).unwrap();
    store
}

pub(crate) fn texts(messages: &[StoredMessage]) -> Vec<String> {
    let chunks = messages.iter().flat_map(|stored| &stored.message.chunks);
    chunks
        .map(|chunk| match &chunk.body {
            Body::Text { text, .. } => text.clone(),
            other => panic!("{other:?} is no text"),
        })
        .collect()
}

/// The texts of a conversation.
pub(crate) fn load(store: &Store, name: &str) -> Vec<String> {
    texts(&store.load_raw(name).unwrap())
}

pub(crate) fn states(store: &Store, name: &str) -> Vec<MessageState> {
    store.load_raw(name).unwrap().iter().map(|stored| stored.state).collect()
}

pub(crate) fn with_key(key: &str) -> AppendOptions {
    AppendOptions::new().with_idempotency_key(key)
}
