//! What the store promises, one promise a test.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use conversation_store::model::{
    Body, Chunk, ConversationId, FinishReason, Json, Message, Metadata, Name, Role, Timestamp,
};
use conversation_store::{
    AppendOptions, Durability, EntryKind, Error, ExpectedHead, Limits, ListCursor, ListQuery, MessageState, Receipt,
    Store, StoreOptions, StoredMessage,
};

fn memory() -> Store {
    Store::open("memory:").unwrap()
}

fn user(text: &str) -> Message {
    Message::user(text)
}

/// Two messages of two chunks, then one of one: seqs 1 to 5.
fn five_seqs() -> Store {
    let store = memory();
    let two = |a: &str, b: &str| Message::assistant([Chunk::text(a), Chunk::text(b)]);
    store.append("chat", &[two("a", "b"), two("c", "d")]).unwrap();
    store.append("chat", &[user("e")]).unwrap();
    store
}

fn texts(messages: &[StoredMessage]) -> Vec<String> {
    let chunks = messages.iter().flat_map(|stored| &stored.message.chunks);
    chunks
        .map(|chunk| match &chunk.body {
            Body::Text { text, .. } => text.clone(),
            other => panic!("{other:?} is no text"),
        })
        .collect()
}

fn load(store: &Store, name: &str) -> Vec<String> {
    texts(&store.load_raw(name).unwrap())
}

fn states(store: &Store, name: &str) -> Vec<MessageState> {
    store.load_raw(name).unwrap().iter().map(|stored| stored.state).collect()
}

// Idempotency.

fn with_key(key: &str) -> AppendOptions {
    AppendOptions::new().with_idempotency_key(key)
}

#[test]
fn an_append_is_repeated_without_effect() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sled:{}", dir.path().display());
    let store = Store::open(&url).unwrap();
    let first = store.append_with("chat", &[user("a"), user("b")], &with_key("k")).unwrap();
    store.append("chat", &[user("c")]).unwrap();
    // Whatever is expected, and with times that the store gave: a repetition is a repetition.
    let options = with_key("k").with_expected(ExpectedHead::NewConversation);
    let mut again = first;
    again.duplicate = true;
    assert_eq!(store.append_with("chat", &[user("a"), user("b")], &options).unwrap(), again);
    store.close().unwrap();
    drop(store);
    let store = Store::open(&url).unwrap();
    assert_eq!(store.append_with("chat", &[user("a"), user("b")], &options).unwrap(), again);
    assert_eq!(load(&store, "chat"), ["a", "b", "c"]);
}

#[test]
fn a_key_is_refused_for_other_content() {
    let store = memory();
    store.append_with("chat", &[user("a")], &with_key("k")).unwrap();
    let marked = Message { finish_reason: Some(FinishReason::Stop), ..user("a") };
    for other in [user("b"), Message::system("a"), marked] {
        let result = store.append_with("chat", &[other], &with_key("k"));
        assert!(matches!(result, Err(Error::KeyReused { ref key, .. }) if key == "k"), "{result:?}");
    }
    assert_eq!(load(&store, "chat"), ["a"]);
}

#[test]
fn a_key_belongs_to_its_conversation() {
    let store = memory();
    store.append_with("chat", &[user("a")], &with_key("k")).unwrap();
    assert!(!store.append_with("other", &[user("b")], &with_key("k")).unwrap().duplicate);
    // A fork does not inherit it; with the conversation it is gone.
    store.fork_to("chat", None, "fork").unwrap();
    assert!(!store.append_with("fork", &[user("b")], &with_key("k")).unwrap().duplicate);
    store.delete("fork").unwrap();
    store.delete("chat").unwrap();
    assert!(!store.append_with("chat", &[user("c")], &with_key("k")).unwrap().duplicate);
}

// What is expected.

#[test]
fn an_append_is_taken_as_expected_or_not_at_all() {
    let store = memory();
    let append = |expected| {
        let result = store.append_with("chat", &[user("a")], &AppendOptions::new().with_expected(expected));
        match result {
            Ok(receipt) => Ok(receipt.last_seq),
            Err(Error::StaleHead { actual, .. } | Error::NameTaken { actual, .. }) => Err(actual),
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(append(ExpectedHead::At(1)), Err(0));
    assert_eq!(append(ExpectedHead::At(0)), Ok(1));
    assert_eq!(append(ExpectedHead::At(0)), Err(1));
    assert_eq!(append(ExpectedHead::NewConversation), Err(1));
    assert_eq!(append(ExpectedHead::At(1)), Ok(2));
    assert_eq!(append(ExpectedHead::At(1)), Err(2));
    assert_eq!(append(ExpectedHead::Any), Ok(3));
    store.delete("chat").unwrap();
    assert_eq!(append(ExpectedHead::NewConversation), Ok(1));
}

#[test]
fn what_is_expected_is_compared_with_what_is_queued() {
    let store = StoreOptions::new().with_window(Duration::from_secs(3600)).open("memory:").unwrap();
    let buffered = AppendOptions::new().with_durability(Durability::Buffered);
    let append = |expected| store.append_with("chat", &[user("a")], &buffered.clone().with_expected(expected));
    assert_eq!(append(ExpectedHead::NewConversation).unwrap().last_seq, 1);
    assert!(matches!(append(ExpectedHead::NewConversation), Err(Error::NameTaken { actual: 1, .. })));
    assert_eq!(append(ExpectedHead::At(1)).unwrap().message_indexes, [1]);
    // Nothing of it is durable, so nothing of it is seen.
    assert!(matches!(store.load("chat"), Err(Error::NotFound { .. })));
    store.sync().unwrap();
    assert_eq!(load(&store, "chat"), ["a", "a"]);
}

#[test]
fn what_is_buffered_becomes_durable_by_itself() {
    let store = StoreOptions::new().with_window(Duration::from_millis(5)).open("memory:").unwrap();
    let buffered = AppendOptions::new().with_durability(Durability::Buffered);
    assert!(!store.append_with("chat", &[user("a")], &buffered).unwrap().durable);
    let until = Instant::now() + Duration::from_secs(20);
    while store.load("chat").is_err() {
        assert!(Instant::now() < until, "it never becomes visible");
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(load(&store, "chat"), ["a"]);
}

// Forks.

#[test]
fn a_fork_is_a_prefix_at_every_seq() {
    let store = five_seqs();
    let said = ["a", "b", "c", "d", "e"];
    for at_seq in 1..=5 {
        let fork = store.fork("chat", Some(at_seq)).unwrap();
        let count = usize::try_from(at_seq).unwrap();
        assert_eq!(texts(&store.load_raw(fork).unwrap()), said[..count]);
        let entries = store.entries(fork, .., usize::MAX).unwrap();
        assert_eq!(entries, store.entries("chat", ..=at_seq, usize::MAX).unwrap());
        // It goes on behind the fork point, with a message index of its own.
        let receipt = store.append(fork, &[user("own")]).unwrap();
        assert_eq!(receipt.first_seq, at_seq + 1);
        assert_eq!(receipt.message_indexes, [at_seq.div_ceil(2)]);
        assert_eq!(forked_from(&store, fork), Some((Name::from("chat").id(), at_seq)));
    }
    assert!(matches!(store.fork("chat", Some(6)), Err(Error::NotFound { .. })));
    assert_eq!(load(&store, "chat"), said);
}

#[test]
fn a_fork_in_the_middle_of_a_message_interrupts_it() {
    use MessageState::{Complete, Interrupted};
    let store = five_seqs();
    for (at_seq, expected) in [(1, &[Interrupted][..]), (2, &[Complete]), (3, &[Complete, Interrupted])] {
        let name = format!("fork {at_seq}");
        store.fork_to("chat", Some(at_seq), &name).unwrap();
        assert_eq!(states(&store, &name), expected);
        store.append(&name, &[user("own")]).unwrap();
        assert_eq!(states(&store, &name), [expected, &[Complete]].concat());
    }
    assert_eq!(store.load_raw("fork 1").unwrap()[0].message.finish_reason, Some(FinishReason::Interrupted));
    // A message that is being written is interrupted in the fork, and goes on in the parent.
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("f")).unwrap();
    store.sync().unwrap();
    store.fork_to("chat", None, "fork").unwrap();
    writer.push(0, Chunk::text("g")).unwrap();
    writer.finish(None, None).unwrap();
    assert_eq!(load(&store, "fork").last().unwrap(), "f");
    assert_eq!(states(&store, "fork").last(), Some(&Interrupted));
    assert_eq!(load(&store, "chat").last().unwrap(), "fg");
}

#[test]
fn a_fork_without_entries_is_forked_from_its_grandparent() {
    let store = five_seqs();
    store.fork_to("chat", Some(4), "fork").unwrap();
    store.fork_to("fork", None, "second").unwrap();
    store.fork_to("second", Some(2), "third").unwrap();
    let root = Name::from("chat").id();
    assert_eq!(forked_from(&store, "second"), Some((root, 4)));
    assert_eq!(forked_from(&store, "third"), Some((root, 2)));
    assert_eq!(load(&store, "third"), ["a", "b"]);
    // One that has own entries is forked from.
    store.append("fork", &[user("own")]).unwrap();
    store.fork_to("fork", None, "fourth").unwrap();
    assert_eq!(forked_from(&store, "fourth"), Some((Name::from("fork").id(), 5)));
    assert_eq!(load(&store, "fourth"), ["a", "b", "c", "d", "own"]);
    assert_eq!(load(&store, "second"), ["a", "b", "c", "d"]);
}

#[test]
fn a_fork_needs_a_free_name() {
    let store = five_seqs();
    store.append("other", &[user("a")]).unwrap();
    for child in ["other", "chat"] {
        assert!(matches!(store.fork_to("chat", None, child), Err(Error::NameTaken { .. })));
    }
    assert!(matches!(store.fork_to("nobody", None, "child"), Err(Error::NotFound { .. })));
}

// Rewinds.

#[test]
fn a_rewind_hides_and_keeps() {
    let store = five_seqs();
    store.rewind("chat", 1).unwrap();
    assert_eq!(load(&store, "chat"), ["a", "b"]);
    assert_eq!(store.append("chat", &[user("f")]).unwrap().message_indexes, [3]);
    assert_eq!(load(&store, "chat"), ["a", "b", "f"]);
    // The log shows all of it.
    assert_eq!(store.entries("chat", .., usize::MAX).unwrap().len(), 7);
    // What is hidden cannot be rewound to, what is visible can; what never was, cannot.
    for to in [1, 2, 4] {
        assert!(matches!(store.rewind("chat", to), Err(Error::NotFound { .. })));
    }
    store.rewind("chat", 3).unwrap();
    store.append("chat", &[user("g")]).unwrap();
    store.rewind("chat", 0).unwrap();
    assert_eq!(load(&store, "chat"), [""; 0]);
    assert_eq!(store.append("chat", &[user("h")]).unwrap().message_indexes, [5]);
    assert_eq!(load(&store, "chat"), ["h"]);
}

#[test]
fn a_parents_rewind_does_not_touch_its_fork() {
    let store = five_seqs();
    store.rewind("chat", 2).unwrap();
    store.fork_to("chat", Some(5), "before").unwrap();
    store.fork_to("chat", None, "behind").unwrap();
    store.rewind("chat", 0).unwrap();
    assert_eq!(load(&store, "before"), ["a", "b", "c", "d", "e"]);
    assert_eq!(load(&store, "behind"), ["a", "b", "c", "d"]);
    assert_eq!(load(&store, "chat"), [""; 0]);
    // Nor does the fork's own touch the parent.
    store.rewind("before", 1).unwrap();
    store.rewind("behind", 0).unwrap();
    assert_eq!(load(&store, "before"), ["a", "b"]);
    assert!(store.rewind("behind", 0).is_err());
}

#[test]
fn a_message_that_is_rewound_is_closed_to_its_writer() {
    let store = memory();
    store.append("chat", &[user("a")]).unwrap();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    let mut other = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("b")).unwrap();
    other.push(0, Chunk::text("c")).unwrap();
    store.rewind("chat", 2).unwrap();
    writer.push(0, Chunk::text("d")).unwrap();
    let closed = other.push(0, Chunk::text("d"));
    assert!(matches!(closed, Err(Error::MessageClosed { message_index: 2, .. })), "{closed:?}");
    assert!(matches!(other.finish(None, None), Err(Error::MessageClosed { .. })));
    writer.finish(None, None).unwrap();
    assert_eq!(load(&store, "chat"), ["a", "bd"]);
}

// Deletion.

#[test]
fn a_deleted_name_begins_anew() {
    let store = five_seqs();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    store.delete("chat").unwrap();
    assert!(matches!(writer.push(0, Chunk::text("a")), Err(Error::MessageClosed { .. })));
    assert!(matches!(store.load("chat"), Err(Error::NotFound { .. })));
    assert!(matches!(store.delete("chat"), Err(Error::NotFound { .. })));
    assert_eq!(store.list(&ListQuery::new()).unwrap().items, []);
    let receipt = store.append("chat", &[user("a")]).unwrap();
    assert_eq!((receipt.first_seq, receipt.message_indexes), (1, vec![0]));
    assert_eq!(load(&store, "chat"), ["a"]);
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
}

#[test]
fn a_chunk_behind_a_fork_point_is_not_the_forks_to_redact() {
    let store = five_seqs();
    store.fork_to("chat", Some(3), "fork").unwrap();
    let result = store.redact("fork", 1, Some(1));
    assert!(matches!(result, Err(Error::NotFound { .. })), "{result:?}");
    assert_eq!(load(&store, "chat"), ["a", "b", "c", "d", "e"]);
    store.redact("fork", 1, Some(0)).unwrap();
    assert_eq!(load(&store, "chat"), ["a", "b", "[redacted]", "d", "e"]);
}

// Streams.

#[test]
fn a_thousand_deltas_give_one_chunk() {
    let store = StoreOptions::new().with_window(Duration::from_millis(1)).open("memory:").unwrap();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    let mut said = String::new();
    for piece in 0..1_000 {
        let piece = format!("{piece} ");
        said.push_str(&piece);
        writer.push(0, Chunk::text(piece)).unwrap();
    }
    let usage = Json::new(r#"{"total":1.0}"#).unwrap();
    writer.finish(Some(FinishReason::Length), Some(usage.clone())).unwrap();
    let messages = store.load_raw("chat").unwrap();
    assert_eq!(messages.len(), 1);
    let Message { chunks, finish_reason, usage: counts, .. } = &messages[0].message;
    assert_eq!((chunks, finish_reason, counts), (&vec![Chunk::text(said)], &Some(FinishReason::Length), &Some(usage)));
    // Far fewer entries than deltas: one a window.
    assert!(store.describe("chat").unwrap().last_seq < 500);
}

#[test]
fn a_live_stream_has_the_same_seqs_on_replay() {
    let store = StoreOptions::new().with_window(Duration::from_millis(1)).open("memory:").unwrap();
    store.append("chat", &[user("a")]).unwrap();
    let mut tail = store.tail("chat", 0).unwrap();
    let writing = thread::spawn({
        let store = store.clone();
        move || {
            let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
            for piece in 0..200 {
                writer.push(piece % 2, Chunk::text("x")).unwrap();
                if piece % 20 == 0 {
                    thread::sleep(Duration::from_millis(1));
                }
            }
            writer.finish(None, None).unwrap();
        }
    });
    let mut live = Vec::new();
    while !matches!(live.last().map(|entry: &conversation_store::Entry| &entry.kind), Some(EntryKind::Finish { .. })) {
        let entries = tail.next(Duration::from_secs(20)).unwrap();
        assert!(!entries.is_empty(), "the stream ends without its end");
        live.extend(entries);
    }
    writing.join().unwrap();
    assert_eq!(live, store.entries_since("chat", 0, usize::MAX).unwrap());
    assert!(live.iter().map(|entry| entry.seq).eq(1..=live.len() as u64));
    assert_eq!(live[5..], store.entries_since("chat", 5, usize::MAX).unwrap());
    assert_eq!(live[live.len() - 3..], store.newest_entries("chat", 3).unwrap());
    assert!(matches!(store.entries_since("chat", 10_000, usize::MAX), Err(Error::CursorOutOfRange { .. })));
}

/// The end of an answer says of its id and model what the beginning could not; of all else the caller's word counts. What
/// is redacted goes from both.
#[test]
fn what_the_provider_says_is_stored_with_the_end() {
    use conversation_store::model::Json;
    use conversation_store::provider::Event;
    let store = memory();
    let said = |text: &str| Some(text.to_owned());
    let known = Metadata { model: said("gpt-5"), provider: said("azure"), turn_id: said("t"), ..Metadata::default() };
    let mut writer = store.begin("chat", Role::Assistant, known.clone()).unwrap();
    let mut told = Metadata { model: said("gpt-5-2025-08-07"), provider: said("openai"), ..Metadata::default() };
    told.id = said("chatcmpl-1");
    told.extra.push("tier", Json::new("1").unwrap());
    writer.ingest([Event::Begin(told)]).unwrap();
    assert_eq!(store.load_raw("chat").unwrap()[0].message.metadata.model, known.model);
    writer.push(0, Chunk::text("a")).unwrap();
    writer.finish(None, None).unwrap();
    let stored = store.load_raw("chat").unwrap().remove(0).message.metadata;
    assert_eq!((stored.model, stored.id), (said("gpt-5-2025-08-07"), said("chatcmpl-1")));
    assert_eq!((stored.provider, stored.turn_id), (said("azure"), said("t")));
    assert_eq!(stored.extra.get("tier").map(Json::as_str), Some("1"));
    store.redact("chat", 0, None).unwrap();
    let redacted = store.load_raw("chat").unwrap().remove(0).message;
    assert!(redacted.metadata.extra.is_empty() && redacted.chunks == [Chunk::text("[redacted]")]);
    assert_eq!(redacted.metadata.id, said("chatcmpl-1"));
}

#[test]
fn a_message_is_streaming_complete_or_interrupted() {
    use MessageState::{Complete, Interrupted, Streaming};
    let store = memory();
    let begin = || store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    let (finished, dropped, streaming) = (begin(), begin(), begin());
    assert_eq!(states(&store, "chat"), [Streaming; 3]);
    finished.finish(None, None).unwrap();
    drop(dropped);
    assert_eq!(states(&store, "chat"), [Complete, Interrupted, Streaming]);
    drop(streaming);
    assert_eq!(states(&store, "chat"), [Complete, Interrupted, Interrupted]);
}

#[test]
fn an_earlier_opening_leaves_its_messages_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sled:{}", dir.path().display());
    let store = Store::open(&url).unwrap();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("as far as it came")).unwrap();
    store.close().unwrap();
    assert!(matches!(writer.push(0, Chunk::text("!")), Err(Error::Closed)));
    assert!(matches!(writer.finish(None, None), Err(Error::Closed)));
    drop(store);
    let store = Store::open(&url).unwrap();
    assert_eq!(load(&store, "chat"), ["as far as it came"]);
    assert_eq!(states(&store, "chat"), [MessageState::Interrupted]);
    assert_eq!(store.append("chat", &[user("a")]).unwrap().message_indexes, [1]);
}

#[test]
fn a_delta_that_does_not_fit_changes_nothing() {
    let store = memory();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("a")).unwrap();
    writer.push(1, Chunk::tool_call("call_1", "tool", "{")).unwrap();
    writer.push(2, Chunk::image("https://example.org/a.png")).unwrap();
    let misfits = [
        (0, Chunk::thinking("b")),
        (1, Chunk::tool_call("call_2", "", "}")),
        (1, Chunk::tool_call("", "other", "}")),
        (2, Chunk::image("https://example.org/b.png")),
    ];
    for (chunk, misfit) in misfits {
        assert!(matches!(writer.push(chunk, misfit), Err(Error::InvalidInput(_))));
    }
    writer.push(1, Chunk::tool_call("call_1", "tool", "}")).unwrap();
    writer.finish(None, None).unwrap();
    let image = Chunk::image("https://example.org/a.png");
    let expected = [Chunk::text("a"), Chunk::tool_call("call_1", "tool", "{}"), image];
    assert_eq!(store.load_raw("chat").unwrap()[0].message.chunks, expected);
}

// Tail.

#[test]
fn a_tail_is_stopped_from_another_thread() {
    let store = memory();
    store.append("chat", &[user("a")]).unwrap();
    let mut tail = store.tail("chat", 1).unwrap();
    let stop = tail.stop_handle();
    let stopping = thread::spawn(move || {
        thread::sleep(Duration::from_millis(30));
        stop.stop();
    });
    let begun = Instant::now();
    assert_eq!(tail.next(Duration::from_secs(60)).unwrap(), []);
    assert!(begun.elapsed() < Duration::from_secs(30));
    stopping.join().unwrap();
    assert_eq!(tail.next(Duration::from_secs(60)).unwrap(), []);
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(tail.cursor().seq(), 1);
}

#[test]
fn a_tail_wakes_for_its_conversation_and_for_its_end() {
    let store = memory();
    store.append("chat", &[user("a")]).unwrap();
    let mut tail = store.tail("chat", 1).unwrap();
    let writing = thread::spawn({
        let store = store.clone();
        move || {
            store.append("other", &[user("b")]).unwrap();
            store.append("chat", &[user("c"), user("d")]).unwrap();
        }
    });
    let entries = tail.next(Duration::from_secs(60)).unwrap();
    assert_eq!(entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [2, 3]);
    writing.join().unwrap();
    store.delete("chat").unwrap();
    assert!(matches!(tail.next(Duration::from_secs(60)), Err(Error::NotFound { .. })));
}

// The list.

#[test]
fn the_list_is_by_activity_and_in_pages() {
    const MINUTE: i64 = 60_000_000;
    let clock = Arc::new(AtomicI64::new(1_000 * MINUTE));
    let time = Arc::clone(&clock);
    let clock_of_store = move || Timestamp::from_micros(time.load(Ordering::Relaxed));
    let store = StoreOptions::new().with_clock(clock_of_store).open("memory:").unwrap();
    let at = |minute: i64, name: &str| {
        clock.store(minute * MINUTE, Ordering::Relaxed);
        store.append(name, &[user(name)]).unwrap();
    };
    for (minute, name) in [(1_000, "a"), (1_001, "b"), (1_002, "c"), (1_002, "d"), (1_003, "e"), (1_004, "b")] {
        at(minute, name);
    }
    // The clock goes back: activity does not.
    at(900, "e");
    let keys = |query: &ListQuery| -> Vec<String> {
        store.list(query).unwrap().items.into_iter().map(|item| item.key.unwrap()).collect()
    };
    let mut same_minute = ["c", "d"];
    same_minute.sort_by_key(|name| std::cmp::Reverse(Name::from(*name).id()));
    let expected = ["b", "e", same_minute[0], same_minute[1], "a"];
    assert_eq!(keys(&ListQuery::new()), expected);
    // Page by page, with the cursor as text.
    for limit in 1..=5 {
        let (mut found, mut query, mut pages) = (Vec::new(), ListQuery::new().with_limit(limit), 0);
        loop {
            let page = store.list(&query).unwrap();
            assert!(page.items.len() <= limit);
            found.extend(page.items.into_iter().map(|item| item.key.unwrap()));
            pages += 1;
            let Some(next) = page.next else { break };
            query = query.with_after(next.to_string().parse::<ListCursor>().unwrap());
        }
        assert_eq!((found.as_slice(), pages), (expected.map(str::to_owned).as_slice(), 5_usize.div_ceil(limit)));
    }
    assert!("yesterday".parse::<ListCursor>().is_err());
    let item = store.describe("e").unwrap();
    assert_eq!(item.last_activity, Timestamp::from_micros(1_003 * MINUTE));
    assert_eq!((item.created_at, item.last_seq, item.messages), (item.last_activity, 2, 2));
    assert_eq!(keys(&ListQuery::new().with_title("C")), ["c"]);
    store.delete("b").unwrap();
    assert_eq!(keys(&ListQuery::new()), expected[1..]);
}

#[test]
fn a_title_is_the_first_user_text_or_the_callers() {
    let store = memory();
    let title = |name: &str| store.describe(name).unwrap().title;
    store.append("chat", &[Message::system("Be kind."), user("  What is\nthis?  ")]).unwrap();
    assert_eq!(title("chat").as_deref(), Some("What is"));
    store.set_title("chat", Some("mine")).unwrap();
    store.append("chat", &[user("more")]).unwrap();
    assert_eq!(title("chat").as_deref(), Some("mine"));
    store.set_title("chat", None).unwrap();
    assert_eq!(title("chat").as_deref(), Some("What is"));
    store.rewind("chat", 1).unwrap();
    assert_eq!(title("chat"), None);
    store.append("chat", &[user(&"é".repeat(200))]).unwrap();
    assert_eq!(title("chat"), Some(format!("{}…", "é".repeat(80))));
}

// Limits and large values.

#[test]
fn limits_are_typed_errors() {
    let store = memory();
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

#[test]
fn five_megabytes_and_every_plane_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sled:{}", dir.path().display());
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

#[test]
fn an_id_names_as_its_key_does() {
    let store = memory();
    let id = store.append("chat", &[user("a")]).unwrap().conversation;
    assert_eq!(store.load_raw(id).unwrap(), store.load_raw("chat").unwrap());
    assert_eq!(store.load_raw(id.to_string()).unwrap(), store.load_raw("chat").unwrap());
    let id = ConversationId::new();
    store.append(id, &[user("b")]).unwrap();
    assert_eq!((store.describe(id).unwrap().id, store.describe(id).unwrap().key), (id, None));
}

#[test]
fn times_are_the_callers_else_the_stores() {
    let moment = |micros| Some(Timestamp::from_micros(micros));
    let store = StoreOptions::new().with_clock(|| Timestamp::from_micros(7)).open("memory:").unwrap();
    let theirs = Message { metadata: Metadata { created_at: moment(-5), ..Metadata::default() }, ..user("a") };
    store.append("chat", &[theirs, user("b")]).unwrap();
    let messages = store.load_raw("chat").unwrap();
    let times: Vec<_> = messages.iter().map(|stored| stored.message.metadata.created_at).collect();
    assert_eq!(times, [moment(-5), moment(7)]);
}

/// The conversation that one was forked from, and at which seq.
fn forked_from(store: &Store, name: impl Into<Name>) -> Option<(ConversationId, u64)> {
    store.describe(name).unwrap().parent.map(|fork| (fork.conversation, fork.at_seq))
}
