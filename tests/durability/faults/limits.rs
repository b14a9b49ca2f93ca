//! What is acknowledged can be read again: limits count all that is stored.

use conversation_store::model::{Chunk, Json, Message, Metadata, Native, Role, Timestamp};
use conversation_store::{Error, Store};

/// More than a reader decodes.
const BYTES: usize = 300 << 20;

fn json(bytes: usize) -> Json {
    Json::new(format!("\"{}\"", "x".repeat(bytes))).unwrap()
}

/// Whether a message is refused, or can be read again.
fn assert_refused_or_read(what: &str, message: Message) {
    let store = Store::open("memory:").unwrap();
    match store.append("chat", &[message]) {
        Err(Error::LimitExceeded { .. }) => {}
        Err(error) => panic!("{what}: {error}"),
        Ok(_) => {
            let read = store.load_strict("chat").map(|_| ());
            panic!("{what}: {BYTES} bytes are acknowledged; reading gives {read:?}")
        }
    }
}

// 7

#[test]
fn unknown_fields_of_a_message_count() {
    let mut message = Message::user("hello");
    message.metadata.extra.push("much", json(BYTES));
    assert_refused_or_read("extra", message);
}

#[test]
fn the_native_form_of_a_message_counts() {
    let mut message = Message::user("hello");
    message.metadata.native = Some(Native { wire: "openai-chat".to_owned(), json: json(BYTES) });
    assert_refused_or_read("native", message);
}

#[test]
fn the_usage_of_a_message_counts() {
    assert_refused_or_read("usage", Message { usage: Some(json(BYTES)), ..Message::user("hello") });
}

#[test]
fn the_ids_of_a_message_count() {
    let metadata = Metadata { turn_id: Some("x".repeat(BYTES)), ..Metadata::default() };
    assert_refused_or_read("turn_id", Message { metadata, ..Message::user("hello") });
}

#[test]
fn what_ends_a_streamed_message_counts() {
    let store = Store::open("memory:").unwrap();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("hello")).unwrap();
    match writer.finish(None, Some(json(BYTES))) {
        Err(Error::LimitExceeded { .. }) => {}
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("{BYTES} bytes are acknowledged; reading gives {:?}", store.load_strict("chat").map(|_| ())),
    }
}

#[test]
fn many_small_messages_with_large_metadata_count_together() {
    let mut message = Message::user("hello");
    message.metadata.extra.push("much", json(30 << 20));
    let store = Store::open("memory:").unwrap();
    let appended = store.append("chat", &vec![message; 10]);
    assert!(matches!(appended, Err(Error::LimitExceeded { .. })), "{appended:?}");
}

// 34

#[test]
fn the_last_moment_can_be_written_and_read() {
    for micros in [i64::MIN, -1, 0, i64::MAX / 2, i64::MAX] {
        let moment = Timestamp::from_micros(micros);
        assert_eq!(moment.to_string().parse::<Timestamp>().unwrap(), moment, "{micros} is shown as {moment}");
        let store = Store::open("memory:").unwrap();
        let metadata = Metadata { created_at: Some(moment), ..Metadata::default() };
        store.append("chat", &[Message { metadata, ..Message::user("hello") }]).unwrap();
        let read = store.load("chat").unwrap().messages()[0].message.metadata.created_at;
        assert_eq!(read, Some(moment));
    }
}

#[test]
fn a_clock_at_the_end_of_time_does_no_harm() {
    for micros in [i64::MIN, i64::MAX] {
        let moment = Timestamp::from_micros(micros);
        let store = conversation_store::StoreOptions::new().with_clock(move || moment).open("memory:").unwrap();
        store.append("chat", &[Message::user("hello")]).unwrap();
        let item = store.describe("chat").unwrap();
        assert_eq!((item.created_at, item.last_activity), (moment, moment));
        assert_eq!(item.created_at.to_string().parse::<Timestamp>().unwrap(), moment);
        assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
    }
}
