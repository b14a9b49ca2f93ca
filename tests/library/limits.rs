//! The largest things that the store takes, on each engine: one atomic append, and back.

use conversation_store::model::{Body, Chunk, Json, Message, Metadata, Native, Output, Part, Role};
use conversation_store::{Error, Limits, Store};

fn text(of: &Message) -> &str {
    match &of.chunks[0].body {
        Body::Text { text, .. } => text,
        _ => "",
    }
}

/// More than what an append of two texts holds beside them.
const BESIDE: usize = 100;

fn is_over<T: std::fmt::Debug>(result: Result<T, Error>) {
    assert!(matches!(result, Err(Error::LimitExceeded { .. })), "{result:?}");
}

/// JSON of so many bytes.
fn json(bytes: usize) -> Json {
    Json::new(format!("\"{}\"", "x".repeat(bytes - 2))).unwrap()
}

/// All that may be large in a message and is not the text of a chunk.
fn with_each(bytes: usize) -> Vec<Message> {
    let metadata: [fn(&mut Metadata, usize); 5] = [
        |metadata, bytes| metadata.extra.push("x", json(bytes)),
        |metadata, bytes| metadata.extra.push("x".repeat(bytes), json(2)),
        |metadata, bytes| metadata.native = Some(Native { wire: String::new(), json: json(bytes) }),
        |metadata, bytes| metadata.native = Some(Native { wire: "x".repeat(bytes), json: json(2) }),
        |metadata, bytes| metadata.turn_id = Some("x".repeat(bytes)),
    ];
    let chunk: [fn(&mut Chunk, usize); 4] = [
        |chunk, bytes| chunk.extra.push("x", json(bytes)),
        |chunk, bytes| chunk.extra.push("\0".repeat(bytes.div_ceil(6)), json(2)),
        |chunk, bytes| chunk.native = Some(Native { wire: "x".repeat(bytes), json: json(2) }),
        |chunk, bytes| chunk.id = Some("x".repeat(bytes)),
    ];
    let message = || Message::assistant([Chunk::text("a")]);
    let mut all = Vec::new();
    all.extend(metadata.map(|change| {
        let mut message = message();
        change(&mut message.metadata, bytes);
        message
    }));
    all.extend(chunk.map(|change| {
        let mut message = message();
        change(&mut message.chunks[0], bytes);
        message
    }));
    all.push(Message { usage: Some(json(bytes)), ..message() });
    all
}

/// Limits hold for what is stored, not for texts alone; what is refused leaves nothing.
#[test]
fn what_stands_beside_the_texts_counts() {
    let store = Store::open("memory:").unwrap();
    store.append("chat", &[Message::user("before")]).unwrap();
    for message in with_each(Limits::CHUNK_BYTES + 1) {
        is_over(store.append("chat", std::slice::from_ref(&message)));
        if message.chunks[0] == Chunk::text("a") && message.usage.is_none() {
            is_over(store.begin("chat", Role::Assistant, message.metadata.clone()));
        } else if message.usage.is_none() {
            let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
            is_over(writer.push(0, message.chunks[0].clone()));
            writer.finish(None, None).unwrap();
        } else {
            let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
            writer.push(0, Chunk::text("kept")).unwrap();
            is_over(writer.finish(None, message.usage));
        }
    }
    is_over(store.fork_to("chat", None, "x".repeat(Limits::NAME_BYTES + 1)));
    store.load_strict("chat").unwrap();
}

/// A list of parts takes more memory than bytes: so many that a reader would not take them are refused.
#[test]
fn the_parts_of_a_result_are_counted() {
    let store = Store::open("memory:").unwrap();
    let with = |count: usize| {
        let output =
            Output::Parts(vec![Part::from(conversation_store::model::PartBody::Text { text: String::new() }); count]);
        let body = Body::ToolResult { tool_call_id: "1".to_owned(), name: None, output, is_error: None };
        Message::new(Role::Tool, [body.into()])
    };
    is_over(store.append("chat", &[with(5_000_000)]));
    is_over(store.append("chat", &[with(Limits::RESULT_PARTS + 1)]));
    let message = with(Limits::RESULT_PARTS);
    store.append("chat", std::slice::from_ref(&message)).unwrap();
    assert_eq!(store.load_raw("chat").unwrap()[0].message.chunks, message.chunks);
}

/// A message whose parts are all as large as they may be together is read again.
#[test]
fn what_is_accepted_beside_the_texts_comes_back() {
    for message in with_each(Limits::CHUNK_BYTES - 1000) {
        let store = Store::open("memory:").unwrap();
        let mut message = message;
        // Half of the append is what is known of the message, half is its chunk.
        if message.chunks[0] == Chunk::text("a") {
            message.chunks = vec![Chunk::text("x".repeat(Limits::CHUNK_BYTES - 1000))];
        }
        store.append("chat", std::slice::from_ref(&message)).unwrap();
        let loaded = store.load_strict("chat").unwrap();
        assert!(loaded.messages()[0].message.chunks == message.chunks);
        let known = &loaded.messages()[0].message.metadata;
        assert!(known.extra == message.metadata.extra && known.native == message.metadata.native);
    }
}

fn the_largest_append_comes_back(engine: &str) {
    let dir = crate::common::tempdir().unwrap();
    let url = format!("{engine}:{}", dir.path().join("db").display());
    let large = |letter: &str| Message::assistant([Chunk::text(letter.repeat(Limits::CHUNK_BYTES))]);
    let store = Store::open(&url).unwrap();
    store.append("chat", &[Message::user("before")]).unwrap();
    // What stands beside the texts counts too.
    is_over(store.append("chat", &[large("a"), large("b")]));
    let mut second = large("b");
    second.chunks = vec![Chunk::text("b".repeat(Limits::CHUNK_BYTES - BESIDE))];
    let receipt = store.append("chat", &[large("a"), second]).unwrap();
    assert_eq!((receipt.first_seq, receipt.last_seq), (2, 3));
    store.append("chat", &[Message::user("after")]).unwrap();
    drop(store);
    let store = Store::open(&url).unwrap();
    let messages = store.load_raw("chat").unwrap();
    assert_eq!(
        messages.iter().map(|stored| text(&stored.message).len()).collect::<Vec<_>>(),
        [6, Limits::CHUNK_BYTES, Limits::CHUNK_BYTES - BESIDE, 5]
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
