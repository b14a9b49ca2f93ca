//! Limits, large and odd values, names, times.

use conversation_store::model::{Chunk, ConversationId, Json, Message, Metadata, Role, Timestamp};
use conversation_store::{Error, Limits, MessageState, Receipt, Store, StoreOptions};

use crate::place::Place;
use crate::said::{user, with_key};

crate::tests![
    limits_are_typed_errors,
    five_megabytes_and_every_plane_come_back,
    an_id_names_as_its_key_does,
    times_are_the_callers_else_the_stores,
];

fn limits_are_typed_errors(place: &Place) {
    let store = place.store();
    let limit = |result: conversation_store::Result<Receipt>| match result {
        Err(Error::LimitExceeded { what, limit, .. }) => format!("{what}: {limit}"),
        other => panic!("{other:?}"),
    };
    let large = || Chunk::text("x".repeat(Limits::CHUNK_BYTES + 1));
    assert_eq!(limit(store.append("chat", &[Message::assistant([large()])])), "a chunk: 67108864 bytes");
    let third = || Chunk::text("x".repeat(Limits::APPEND_BYTES / 3 + 1));
    assert_eq!(
        limit(store.append("chat", &[Message::assistant([third(), third(), third()])])),
        "an append: 134217728 bytes"
    );
    let many = vec![user("a"); Limits::APPEND_MESSAGES + 1];
    assert_eq!(limit(store.append("chat", &many)), "an append: 10000 messages");
    assert_eq!(limit(store.append("k".repeat(1_025), &[user("a")])), "a conversation's key: 1024 bytes");
    let key = with_key(&"k".repeat(1_025));
    assert_eq!(limit(store.append_with("chat", &[user("a")], &key)), "an idempotency key: 1024 bytes");
    assert!(matches!(store.append("chat", &[]), Err(Error::InvalidInput(_))));
    assert!(matches!(store.load("chat"), Err(Error::NotFound { .. })));
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    assert!(matches!(writer.push(0, large()), Err(Error::LimitExceeded { .. })));
    store.append("chat", &many[..Limits::APPEND_MESSAGES]).unwrap();
    assert_eq!(limit(store.set_title("chat", Some(&"t".repeat(1_025)))), "a title: 1024 bytes");
    store.append("k".repeat(1_024), &[user("a")]).unwrap();
    assert!(Json::new("[".repeat(129) + &"]".repeat(129)).is_err());
    assert!(Json::new("[".repeat(128) + &"]".repeat(128)).is_ok());
}

fn five_megabytes_and_every_plane_come_back(place: &Place) {
    let url = place.url();
    // A character of every plane, NUL, the non-characters, what looks like an escape.
    let planes: String = (0..=0x10_u32).filter_map(|plane| char::from_u32(plane * 0x1_0000 + 0xffff)).collect();
    let odd = format!("\0{planes}\u{fdd0}\r\n\u{2028}\\u0000\u{1f468}\u{200d}\u{1f469}");
    let large: String = (0..5 * 1024 * 1024).map(|at| char::from(b'a' + u8::try_from(at % 23).unwrap())).collect();
    let said = [
        user(&odd),
        Message::assistant([Chunk::tool_call(&odd, &odd, &odd), Chunk::text(&large), Chunk::thinking(&odd)]),
        Message::tool(&odd, &odd),
        Message::new(Role::Assistant, []),
    ];
    let store = Store::open(&url).unwrap();
    store.append(&odd, &said).unwrap();
    let mut writer = store.begin(&odd, Role::Assistant, Metadata::default()).unwrap();
    for part in large.as_bytes().chunks(1_000_003) {
        writer.push(0, Chunk::text(std::str::from_utf8(part).unwrap())).unwrap();
    }
    writer.finish(None, None).unwrap();
    drop(store);
    if !place.survives() {
        return;
    }
    let store = Store::open(&url).unwrap();
    let messages = store.load_raw(&odd).unwrap();
    assert_eq!(messages.len(), 5);
    for (stored, said) in messages.iter().zip(&said) {
        assert_eq!((stored.message.role, &stored.message.chunks), (said.role, &said.chunks));
        assert_eq!(stored.state, MessageState::Complete);
    }
    assert!(messages[4].message.chunks == [Chunk::text(large)]);
    assert_eq!(store.describe(&odd).unwrap().key, Some(odd));
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
}

fn an_id_names_as_its_key_does(place: &Place) {
    let store = place.store();
    let id = store.append("chat", &[user("a")]).unwrap().conversation;
    assert_eq!(store.load_raw(id).unwrap(), store.load_raw("chat").unwrap());
    assert_eq!(store.load_raw(id.to_string()).unwrap(), store.load_raw("chat").unwrap());
    let id = ConversationId::new();
    store.append(id, &[user("b")]).unwrap();
    assert_eq!((store.describe(id).unwrap().id, store.describe(id).unwrap().key), (id, None));
}

fn times_are_the_callers_else_the_stores(place: &Place) {
    let moment = |micros| Some(Timestamp::from_micros(micros));
    let store = place.store_with(&StoreOptions::new().with_clock(|| Timestamp::from_micros(7)));
    let theirs = Message { metadata: Metadata { created_at: moment(-5), ..Metadata::default() }, ..user("a") };
    store.append("chat", &[theirs, user("b")]).unwrap();
    let messages = store.load_raw("chat").unwrap();
    let times: Vec<_> = messages.iter().map(|stored| stored.message.metadata.created_at).collect();
    assert_eq!(times, [moment(-5), moment(7)]);
}
