//! What `verify` finds: a row for everything that may not fit together.

use super::lost::{change_head, open, problems, store, take};
use crate::embedded::engine::{Batch, Engine, Memory};
use crate::embedded::recovery;
use crate::model::{Message, Name};
use crate::record::{self, key};

/// Flips a bit in the values of a kind that belong to a conversation.
fn garble(engine: &dyn Engine, kind: u8, name: &str) {
    let garbled = take(engine, kind, name).into_iter().map(|(key, value)| {
        let mut value = value.unwrap();
        *value.last_mut().unwrap() ^= 1;
        (key, Some(value))
    });
    engine.write(Batch { ops: garbled.collect() }).unwrap();
}

#[test]
fn verify_tells_what_does_not_fit_together() {
    type Damage = fn(&Memory);
    let table: &[(Damage, &str, &str)] = &[
        (|engine| drop(take(engine, key::HEAD, "a")), "a", "it has records, but no head"),
        (|engine| drop(take(engine, key::INDEX, "a")), "a", "an index of conversations does not list it"),
        (
            |engine| drop(take(engine, key::FORK, "a")),
            "fork",
            "the conversation that it was forked from does not know of it",
        ),
        (|engine| garble(engine, key::RECORD, "b"), "b", "a record: the checksum does not match"),
        (
            |engine| drop(take(engine, key::RECORD, "b")),
            "b",
            "it has a head, and nothing that proves it: it is left as it is; `delete` removes it",
        ),
        (
            |engine| change_head(engine, "a", |head| head.next_message_index += 1),
            "a",
            "the head's message index is not that of the last record",
        ),
        (
            |engine| change_head(engine, "a", |head| head.key = Some("z".to_owned())),
            "a",
            "what it is differs between head and first record",
        ),
        (
            |engine| change_head(engine, "a", |head| head.last_activity += 120_000_000),
            "a",
            "its place in an index of conversations is wrong",
        ),
        (|engine| change_head(engine, "a", |head| head.next_seq = 3), "a", "the head ends before the last record"),
        (
            |engine| garble(engine, key::RECEIPT, "a"),
            "a",
            "an idempotency record is damaged, or is not of the entries that it names",
        ),
        (
            |engine| {
                take(engine, key::HEAD, "b");
                take(engine, key::RECORD, "b");
            },
            "b",
            "it has idempotency records, but no head",
        ),
        (
            |engine| {
                take(engine, key::HEAD, "b");
                take(engine, key::RECORD, "b");
            },
            "b",
            "it is in an index of conversations, but has no head",
        ),
    ];
    for (damage, name, detail) in table {
        let engine = store();
        damage(&engine);
        let log = open(&engine);
        let found = recovery::verify(log.core(), &mut |_, _| ()).unwrap().problems;
        let id = Some(Name::from(*name).id());
        assert!(
            found.iter().any(|problem| problem.conversation == id && problem.detail == *detail),
            "{detail}: {found:?}"
        );
    }
}

#[test]
fn a_key_of_the_listing_that_is_none_is_told() {
    let engine = store();
    engine.write(Batch { ops: vec![(vec![key::INDEX, 1], Some(Vec::new()))] }).unwrap();
    assert_eq!(problems(&open(&engine)), ["store: a key of an index of conversations cannot be read"]);
}

#[test]
fn a_record_under_another_index_is_told() {
    let engine = store();
    let id = Name::from("a").id();
    // What would be there if the index had begun again with the second append.
    let body = record::Body::messages(&[Message::user("three")], 5).unwrap();
    let header =
        record::Header { time: 1, base: 0, next_message_index: 3, commit: 1, cut: false, deleted: false, origin: None };
    let (key, value) = record::seal_record(id, 3, &header, body).unwrap();
    engine.write(Batch { ops: vec![(key, Some(value))] }).unwrap();
    let found = recovery::verify(open(&engine).core(), &mut |_, _| ()).unwrap().problems;
    let detail = "the indexes of its messages do not follow those before it";
    assert!(found.iter().any(|problem| problem.seq == Some(3) && problem.detail == detail), "{found:?}");
}
