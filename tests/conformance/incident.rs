//! The incident: a conversation that once came back as three messages, the first a user message of eleven chunks.

use crate::place::Place;
use conversation_store::model::{Body, Line, Message, Role};
use conversation_store::{Conversation, Store};

crate::tests![line_by_line_with_the_store_opened_anew_each_time, several_at_once,];

const ROLES: [Role; 9] = [
    Role::User,
    Role::Assistant,
    Role::User,
    Role::Assistant,
    Role::User,
    Role::Assistant,
    Role::Tool,
    Role::Tool,
    Role::Assistant,
];

fn incident() -> Vec<Message> {
    let text = include_str!("../fixtures/incident.jsonl");
    text.lines().map(|line| Line::from_json(line).unwrap().message).collect()
}

fn assert_incident(conversation: &Conversation) {
    assert_eq!(conversation.report(), []);
    let messages = conversation.messages();
    assert_eq!(messages.iter().map(|stored| stored.message.role).collect::<Vec<_>>(), ROLES);
    assert_eq!(messages.iter().map(|stored| stored.index).collect::<Vec<_>>(), (0..9).collect::<Vec<_>>());
    for (stored, said) in messages.iter().zip(incident()) {
        assert_eq!(stored.message.chunks, said.chunks);
        assert_eq!(stored.message.finish_reason, said.finish_reason);
    }
    let last = &messages.last().unwrap().message;
    assert!(matches!(last.chunks.as_slice(), [chunk] if matches!(chunk.body, Body::Thinking { .. })));
}

fn line_by_line_with_the_store_opened_anew_each_time(place: &Place) {
    if !place.survives() {
        return;
    }
    let url = place.url();
    let mut seq = 0;
    for (index, message) in (0..).zip(incident()) {
        let store = Store::open(&url).unwrap();
        let receipt = store.append("incident", std::slice::from_ref(&message)).unwrap();
        assert_eq!(receipt.first_seq, seq + 1);
        assert_eq!(receipt.message_indexes, [index]);
        seq = receipt.last_seq;
        store.close().unwrap();
    }
    assert_eq!(seq, 14);
    let store = Store::open(&url).unwrap();
    assert_incident(&store.load("incident").unwrap());
    let entries = store.entries("incident", .., 100).unwrap();
    assert_eq!(entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), (1..=14).collect::<Vec<_>>());
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
}

fn several_at_once(place: &Place) {
    let messages = incident();
    for split in 1..messages.len() {
        let store = place.store();
        let (first, second) = messages.split_at(split);
        store.append("incident", first).unwrap();
        assert_eq!(store.append("incident", second).unwrap().last_seq, 14);
        assert_incident(&store.load_strict("incident").unwrap());
    }
}
