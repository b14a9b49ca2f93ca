//! Messages that are written while they are made, and who follows them.

use std::thread;
use std::time::{Duration, Instant};

use conversation_store::model::{Chunk, FinishReason, Json, Message, Metadata, Role};
use conversation_store::{Entry, EntryKind, Error, Interruption, MessageState, Store};

use crate::place::Place;
use crate::said::{load, states, user};

crate::tests![
    a_dropped_writer_leaves_an_entry,
    opening_says_which_messages_were_interrupted,
    a_thousand_deltas_give_one_chunk,
    a_live_stream_has_the_same_seqs_on_replay,
    what_the_provider_says_is_stored_with_the_end,
    a_message_is_streaming_complete_or_interrupted,
    a_message_whose_writer_is_gone_is_never_streaming_again,
    an_earlier_opening_leaves_its_messages_interrupted,
    a_delta_that_does_not_fit_changes_nothing,
    a_tail_is_stopped_from_another_thread,
    a_tail_wakes_for_its_conversation_and_for_its_end,
];

fn a_thousand_deltas_give_one_chunk(place: &Place) {
    let store = place.store();
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

fn a_live_stream_has_the_same_seqs_on_replay(place: &Place) {
    let store = place.quick_store();
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
    while !matches!(live.last().map(|entry: &Entry| &entry.kind), Some(EntryKind::Finish { .. })) {
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
fn what_the_provider_says_is_stored_with_the_end(place: &Place) {
    use conversation_store::provider::Event;
    let store = place.store();
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

fn a_message_is_streaming_complete_or_interrupted(place: &Place) {
    use MessageState::{Complete, Interrupted, Streaming};
    let store = place.store();
    let begin = || store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    let (finished, dropped, streaming) = (begin(), begin(), begin());
    assert_eq!(states(&store, "chat"), [Streaming; 3]);
    finished.finish(None, None).unwrap();
    drop(dropped);
    assert_eq!(states(&store, "chat"), [Complete, Interrupted, Streaming]);
    drop(streaming);
    assert_eq!(states(&store, "chat"), [Complete, Interrupted, Interrupted]);
}

/// Its end is written by somebody else, while it is read.
fn a_message_whose_writer_is_gone_is_never_streaming_again(place: &Place) {
    let store = place.store();
    for round in 0..40 {
        drop(store.begin("chat", Role::Assistant, Metadata::default()).unwrap());
        let is_written = || matches!(store.newest_entries("chat", 1).unwrap()[0].kind, EntryKind::Interrupt { .. });
        loop {
            let was_written = is_written();
            assert_eq!(states(&store, "chat"), vec![MessageState::Interrupted; round + 1]);
            if was_written {
                break;
            }
        }
    }
}

fn an_earlier_opening_leaves_its_messages_interrupted(place: &Place) {
    let url = place.url();
    let store = Store::open(&url).unwrap();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("as far as it came")).unwrap();
    store.close().unwrap();
    assert!(matches!(writer.push(0, Chunk::text("!")), Err(Error::Closed)));
    assert!(matches!(writer.finish(None, None), Err(Error::Closed)));
    drop(store);
    if !place.survives() {
        return;
    }
    let store = Store::open(&url).unwrap();
    assert_eq!(load(&store, "chat"), ["as far as it came"]);
    assert_eq!(states(&store, "chat"), [MessageState::Interrupted]);
    assert_eq!(store.append("chat", &[user("a")]).unwrap().message_indexes, [1]);
}

fn a_delta_that_does_not_fit_changes_nothing(place: &Place) {
    let store = place.store();
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

fn a_tail_is_stopped_from_another_thread(place: &Place) {
    let store = place.store();
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

fn a_tail_wakes_for_its_conversation_and_for_its_end(place: &Place) {
    let store = place.store();
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

/// The causes of the interruptions that a conversation's log names, with the messages.
fn interruptions(store: &Store, name: &str) -> Vec<(Option<u64>, Interruption)> {
    let entries = store.entries(name, .., usize::MAX).unwrap();
    let interruptions = entries.into_iter().filter_map(|entry| match entry.kind {
        EntryKind::Interrupt { cause } => Some((entry.message_index, cause)),
        _ => None,
    });
    interruptions.collect()
}

fn a_dropped_writer_leaves_an_entry(place: &Place) {
    let store = place.store();
    store.append("chat", &[user("a")]).unwrap();
    let mut tail = store.tail("chat", 1).unwrap();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("b")).unwrap();
    drop(writer);
    store.sync().unwrap();
    assert_eq!(interruptions(&store, "chat"), [(Some(1), Interruption::Dropped)]);
    assert_eq!(load(&store, "chat"), ["a", "b"]);
    // Followers see it too.
    let mut followed = Vec::new();
    while followed.len() < 3 {
        let entries = tail.next(Duration::from_secs(20)).unwrap();
        assert!(!entries.is_empty(), "the end does not come");
        followed.extend(entries.into_iter().map(|entry| entry.kind.name()));
    }
    assert_eq!(followed, ["begin", "chunk", "interrupt"]);
    // A writer that finished, and one whose message was rewound, leave none.
    store.begin("chat", Role::Assistant, Metadata::default()).unwrap().finish(None, None).unwrap();
    let rewound = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    store.rewind("chat", 3).unwrap();
    drop(rewound);
    store.sync().unwrap();
    assert_eq!(interruptions(&store, "chat").len(), 1);
}

fn opening_says_which_messages_were_interrupted(place: &Place) {
    if !place.survives() {
        return;
    }
    let url = place.url();
    let store = Store::open(&url).unwrap();
    let begin = |name: &str| store.begin(name, Role::Assistant, Metadata::default()).unwrap();
    let writers = [begin("one"), begin("two"), begin("two")];
    begin("done").finish(None, None).unwrap();
    store.close().unwrap();
    drop((writers, store));
    let store = Store::open(&url).unwrap();
    assert_eq!(interruptions(&store, "one"), [(Some(0), place.closed())]);
    let both = [(Some(0), place.closed()), (Some(1), place.closed())];
    assert_eq!(interruptions(&store, "two"), both);
    assert_eq!(interruptions(&store, "done"), []);
    // A later message follows the first of the two.
    let mut unfinished: Vec<_> = store.unfinished().unwrap();
    unfinished.sort_by_key(|found| found.message_index);
    let unfinished = unfinished.into_iter().map(|found| (found.key.unwrap(), found.message_index, found.state));
    let expected = [("one", 0), ("two", 1)].map(|(key, index)| (key.to_owned(), index, MessageState::Interrupted));
    assert_eq!(unfinished.collect::<Vec<_>>(), expected);
    // Once is enough.
    store.close().unwrap();
    drop(store);
    let store = Store::open(&url).unwrap();
    assert_eq!(interruptions(&store, "two"), both);
    store.append("two", &[user("go on")]).unwrap();
    assert_eq!(store.unfinished().unwrap().len(), 1);
}
