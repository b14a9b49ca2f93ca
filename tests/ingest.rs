//! Recorded answers to chunks, into the store, and back into a prompt: whole, in pieces, and cut off anywhere.
//!
//! Each folder of `tests/fixtures/providers/<wire>/` is a case: `request.json`, the `response.json` or the `stream.txt` to
//! it, or both, and `expected.jsonl`: the message that they are, as a line of a transcript. A file `target` names another
//! target than the wire itself.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::path::Path;

use common::prompts;
use conversation_store::model::{Body, Chunk, FinishReason, Message, Metadata, Role};
use conversation_store::provider::{Decoder, Event, Level, PromptOptions, Target, check, decode, parse, repair};
use conversation_store::{Conversation, Error, MessageState, Store, StoreOptions, StoredMessage};
use serde_json::Value;

struct Case {
    name: String,
    target: Target,
    request: String,
    response: Option<Vec<u8>>,
    stream: Option<Vec<u8>>,
    expected: Message,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for wire in folders(Path::new("tests/fixtures/providers")) {
        let name = wire.file_name().unwrap().to_str().unwrap().replace('_', "-");
        for folder in folders(&wire) {
            let read = |file: &str| fs::read(folder.join(file)).ok();
            let text = |file: &str| read(file).map(|bytes| String::from_utf8(bytes).unwrap());
            cases.push(Case {
                name: folder.display().to_string(),
                target: text("target").map_or(name.clone(), |target| target.trim().to_owned()).parse().unwrap(),
                request: text("request.json").unwrap(),
                response: read("response.json"),
                stream: read("stream.txt"),
                expected: Message::from_json(text("expected.jsonl").unwrap().trim_end()).unwrap(),
            });
        }
    }
    assert!(cases.len() >= 21);
    cases
}

fn folders(path: &Path) -> Vec<std::path::PathBuf> {
    let mut folders: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders
}

impl Case {
    fn bodies(&self) -> impl Iterator<Item = &[u8]> {
        let bodies = [&self.response, &self.stream].into_iter().flatten();
        bodies.map(Vec::as_slice)
    }

    /// The request's messages, and this one behind them.
    fn with(&self, answer: StoredMessage) -> Vec<StoredMessage> {
        let mut messages: Vec<StoredMessage> = parse(self.target, &self.request)
            .unwrap()
            .messages
            .into_iter()
            .enumerate()
            .map(|(index, message)| stored(index as u64, MessageState::Complete, message))
            .collect();
        messages.push(StoredMessage { index: messages.len() as u64, ..answer });
        messages
    }
}

fn stored(index: u64, state: MessageState, message: Message) -> StoredMessage {
    let chunk_indexes = (0..).take(message.chunks.len()).collect();
    StoredMessage { index, state, first_seq: index + 1, last_seq: index + 1, chunk_indexes, message }
}

fn events(target: Target, pieces: &[&[u8]]) -> Vec<Event> {
    let mut decoder = Decoder::new(target);
    let mut events: Vec<Event> = pieces.iter().flat_map(|piece| decoder.push(piece).unwrap()).collect();
    events.extend(decoder.finish());
    events
}

/// The message with its JSON in one form: a whole answer is indented, a stream is not.
fn value(message: &Message) -> Value {
    serde_json::from_str(&message.to_json()).unwrap()
}

#[test]
fn answers_are_what_is_expected() {
    for case in cases() {
        for body in case.bodies() {
            let message = decode(case.target, body).unwrap();
            assert_eq!(value(&message), value(&case.expected), "{}", case.name);
            assert_eq!(Message::from_json(&message.to_json()).unwrap(), message, "{}", case.name);
        }
    }
}

#[test]
fn requests_are_in_order() {
    for case in cases() {
        let findings = check(case.target, &case.request).unwrap();
        assert!(findings.iter().all(|finding| finding.level != Level::Hard), "{}: {findings:#?}", case.name);
        let repaired = repair(case.target, case.target, &case.request, &PromptOptions::new()).unwrap();
        prompts::assert_accepted(case.target, &repaired);
        assert_eq!(parse(case.target, &case.request).unwrap().notes, [], "{}", case.name);
    }
}

/// Wherever the bytes are split, the events are the same.
#[test]
fn bytes_may_be_split_anywhere() {
    for case in cases() {
        for body in case.bodies() {
            let whole = events(case.target, &[body]);
            for at in 0..=body.len() {
                let (before, after) = body.split_at(at);
                assert_eq!(events(case.target, &[before, after]), whole, "{} at {at}", case.name);
            }
            let bytes: Vec<&[u8]> = body.chunks(1).collect();
            assert_eq!(events(case.target, &bytes), whole, "{}", case.name);
        }
    }
}

/// Wherever the bytes end, what came is a message that can be rendered; with and without the decoder's own end.
#[test]
fn bytes_may_end_anywhere() {
    let targets = prompts::targets();
    for case in cases() {
        for body in case.bodies() {
            let mut last = Vec::new();
            for at in 0..body.len() {
                let mut decoder = Decoder::new(case.target);
                let mut dropped = Merged::default();
                dropped.take(decoder.push(&body[..at]).unwrap());
                let mut ended = dropped.clone();
                ended.take(decoder.finish());
                let both = vec![dropped, ended];
                if last == both {
                    continue;
                }
                for answer in &both {
                    let log = case.with(answer.clone().stored());
                    for target in &targets {
                        let prompt = prompts::prompt(*target, &log, &PromptOptions::new()).unwrap();
                        prompts::assert_accepted(*target, &prompt);
                        prompts::assert_conserved(*target, &log, &prompt);
                    }
                }
                last = both;
            }
        }
    }
}

/// What a writer makes of events.
#[derive(Clone, Debug, Default, PartialEq)]
struct Merged {
    events: Vec<Event>,
    finished: bool,
}

impl Merged {
    fn take(&mut self, events: Vec<Event>) {
        self.finished |= events.iter().any(|event| matches!(event, Event::Finish { .. }));
        self.events.extend(events);
    }

    /// Through a store, as a server would write it.
    fn stored(self) -> StoredMessage {
        let store = Store::open("memory:").unwrap();
        let mut writer = store.begin("c", Role::Assistant, Metadata::default()).unwrap();
        let ended = writer.ingest(self.events).unwrap().is_some();
        assert_eq!(ended, self.finished);
        drop(writer);
        store.sync().unwrap();
        let mut messages = store.load_raw("c").unwrap();
        let state = if ended { MessageState::Complete } else { MessageState::Interrupted };
        assert_eq!(messages[0].state, state);
        messages[0].message.metadata.created_at = None;
        messages.remove(0)
    }
}

#[test]
fn a_stream_is_stored_while_it_comes() {
    for case in cases() {
        let Some(stream) = &case.stream else { continue };
        let store = StoreOptions::new().open("memory:").unwrap();
        let mut decoder = Decoder::new(case.target);
        let mut writer = store.begin("c", Role::Assistant, Metadata::default()).unwrap();
        let mut receipt = None;
        for bytes in stream.chunks(17) {
            receipt = writer.ingest(decoder.push(bytes).unwrap()).unwrap();
        }
        assert!(receipt.is_none());
        let receipt = writer.ingest(decoder.finish()).unwrap().unwrap();
        assert!(receipt.durable);
        assert!(matches!(writer.push(0, Chunk::text("more")), Err(Error::MessageClosed { .. })));
        drop(writer);
        let loaded = store.load_raw("c").unwrap().remove(0);
        let mut message = loaded.message;
        message.metadata = case.expected.metadata.clone();
        assert_eq!(value(&message), value(&case.expected), "{}", case.name);
        assert_eq!(loaded.state, MessageState::Complete);
    }
}

/// The provider gets back what it said.
#[test]
fn answers_go_back_to_the_provider() {
    for case in cases() {
        let log = case.with(stored(0, MessageState::Complete, case.expected.clone()));
        let prompt = prompts::prompt(case.target, &log, &PromptOptions::new()).unwrap();
        prompts::assert_accepted(case.target, &prompt);
        prompts::assert_conserved(case.target, &log, &prompt);
        let again = Conversation::new(log).into_messages();
        assert_eq!(
            prompts::prompt(case.target, &again, &PromptOptions::new()).unwrap().request.get(),
            prompt.request.get()
        );
    }
}

const CHAT: Target = Target::OPENAI_CHAT;

fn answer(body: &str) -> Message {
    decode(CHAT, body.as_bytes()).unwrap()
}

#[test]
fn what_is_no_answer_is_an_error_chunk() {
    let table = [
        (
            "<html><h1>502 Bad Gateway</h1>\n</html>",
            "the answer holds what is no JSON: <html><h1>502 Bad Gateway</h1>\n</html>",
        ),
        ("upstream connect error", "the answer holds what is no JSON: upstream connect error"),
        (r#"{"detail":"Not Found"}"#, "Not Found"),
        (r#"{"object":"error","message":"too long","code":400}"#, "too long"),
        ("event: error\ndata: {\"message\":\"boom\"}\n\n", "boom"),
        (
            "data: {\"choices\":}\n\n",
            "the answer holds what is no JSON: expected value at line 1 column 12: {\"choices\":}",
        ),
        ("data: oops\n\n", "the answer holds what is no JSON: oops"),
    ];
    for (body, wanted) in table {
        let message = answer(body);
        assert_eq!(message.finish_reason, Some(FinishReason::Error), "{body}");
        assert_eq!(message.chunks.len(), 1, "{body}");
        assert!(matches!(&message.chunks[0].body, Body::Error { message, .. } if message == wanted), "{message:?}");
    }
}

#[test]
fn nothing_is_interrupted_and_comments_are_nothing() {
    for body in
        ["", " \r\n", "\u{feff}", ": ping\n\n", "da", "{\"choices\":[{\"message\":{\"content\":\"a", "[", "data: {\"ch"]
    {
        let message = answer(body);
        assert_eq!((message.chunks.len(), message.finish_reason), (0, Some(FinishReason::Interrupted)), "{body}");
    }
    assert_eq!(answer("data: [DONE]\n\n").finish_reason, None);
}

#[test]
fn lines_of_json_and_arrays_are_streams_too() {
    let one = r#"{"choices":[{"delta":{"content":"a"}}]}"#;
    let two = r#"{"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}]}"#;
    for body in [
        format!("{one}\n{two}"),
        format!("[{one},\r\n{two}]"),
        format!("\n{one}{two}\n"),
        format!("data:{one}\ndata:{two}"),
    ] {
        let message = answer(&body);
        assert_eq!(
            (message.chunks, message.finish_reason),
            (vec![Chunk::text("ab")], Some(FinishReason::Stop)),
            "{body}"
        );
    }
}

#[test]
fn half_characters_do_not_end_a_stream() {
    let message = answer(
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\\ud83d\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\n",
    );
    assert_eq!(message.chunks, [Chunk::text("a\u{fffd}b")]);
    let message = decode(CHAT, b"data: {\"choices\":[{\"delta\":{\"content\":\"a\xff\"}}]}\n\n").unwrap();
    assert_eq!(message.chunks, [Chunk::text("a\u{fffd}")]);
}

#[test]
fn usage_stays_as_it_is_written() {
    let message = answer(r#"{"choices":[],"usage":{"total_tokens": 1.50e1 ,"a":[]}}"#);
    assert_eq!(message.usage.unwrap().as_str(), r#"{"total_tokens": 1.50e1 ,"a":[]}"#);
}

#[test]
fn what_is_not_known_is_kept() {
    let message =
        answer(r#"{"choices":[{"message":{"content":"a","mood":{"b":1},"empty":[]}}],"weather":"fine","content":1}"#);
    assert_eq!(message.metadata.extra.get("weather").unwrap().as_str(), "\"fine\"");
    let opaque: Vec<String> = message
        .chunks
        .iter()
        .filter(|chunk| matches!(chunk.body, Body::Opaque { .. }))
        .map(|chunk| format!("{:?}", chunk.body))
        .collect();
    assert_eq!(opaque, [r#"Opaque { provider: "openai", kind: "mood", json: {"b":1} }"#]);
    let message = answer(r#"{"type":"surprise","a":1}"#);
    assert!(matches!(&message.chunks[0].body, Body::Opaque { kind, .. } if kind == "surprise"));
}

#[test]
fn more_than_is_kept_is_a_typed_error() {
    let mut decoder = Decoder::new(CHAT);
    decoder.push(b"data: {\"choices\":[{\"delta\":{\"content\":\"").unwrap();
    let megabyte = vec![b'a'; 1024 * 1024];
    let refused = (0..70).find_map(|_| decoder.push(&megabyte).err()).unwrap();
    assert!(matches!(refused, Error::LimitExceeded { .. }), "{refused}");
    assert!(decoder.push(b"\"}}]}\n\n").is_err());
    assert!(matches!(decoder.finish().last(), Some(Event::Finish { reason: Some(FinishReason::Interrupted), .. })));
}

/// Whatever the bytes: no panic, one beginning, one end, and deltas that a writer takes.
#[test]
fn any_bytes_are_taken() {
    use proptest::prelude::*;
    const PIECES: &[&str] = &[
        "data: ",
        "data:",
        "event: error",
        "\n",
        "\r\n",
        "\r",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\ud83d",
        "\\",
        "null",
        "0",
        "\"choices\":",
        "\"delta\":",
        "\"message\":",
        "\"index\":",
        "\"content\":",
        "\"tool_calls\":",
        "\"function\":",
        "\"id\":",
        "\"name\":",
        "\"arguments\":",
        "\"error\":",
        "\"usage\":",
        "\"audio\":",
        "[DONE]",
        "\"x\"",
        "{}",
        "[]",
        "\u{feff}",
        "é",
        "{\"choices\":[{\"delta\":",
        "{\"tool_calls\":[{\"function\":{\"name\":\"f\"}}]}",
        "{\"content\":\"a\"}",
        "}]}\n\n",
        "{\"audio\":{\"data\":\"Q\"}}",
        "{\"function_call\":{\"arguments\":1}}",
        "{\"tool_calls\":[1,{},{\"id\":\"a\",\"custom\":{}}]}",
        "{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image_url\",\"image_url\":\"b\"},null,1]}",
    ];
    const EVENTS: &[&str] = &[
        "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"f\"}}\n\n",
        "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"call_id\":\"d\",\"name\":\"g\"}}\n\n",
        "data: {\"type\":\"response.function_call_arguments.delta\",\"output_index\":0,\"delta\":\"{}\"}\n\n",
        "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"content_index\":0,\"delta\":\"é\"}\n\n",
        "data: {\"type\":\"response.refusal.delta\",\"output_index\":0,\"content_index\":0,\"delta\":\"no\"}\n\n",
        "data: {\"type\":\"response.reasoning_summary_text.delta\",\"output_index\":0,\"summary_index\":1,\"delta\":\"hm\"}\n\n",
        "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"function_call\",\"call_id\":\"e\",\"name\":\"h\",\"arguments\":\"{}\",\"namespace\":\"n\"}}\n\n",
        "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"id\":\"msg_1\",\"type\":\"message\",\"phase\":\"commentary\",\"content\":[{\"type\":\"output_text\",\"text\":\"éa\",\"annotations\":[{}]},{\"type\":\"refusal\",\"refusal\":\"n\"}]}}\n\n",
        "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"reasoning\",\"summary\":[{\"text\":\"hm\"}],\"encrypted_content\":\"e\"}}\n\n",
        "data: {\"type\":\"response.completed\",\"output_index\":0,\"response\":{\"status\":\"completed\",\"output\":[{\"type\":\"web_search_call\"},1,{\"role\":\"user\",\"content\":null}]}}\n\n",
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}\n\n",
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\",\"thought\":true},{\"text\":\"\",\"thoughtSignature\":\"c2ln\"}]}}]}\n\n",
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"f\"}},{\"functionCall\":1},{},null]},\"finishReason\":\"STOP\"}]}\n\n",
        "data: {\"promptFeedback\":{\"blockReason\":\"OTHER\"},\"usageMetadata\":{}}\n\n",
    ];
    let piece = prop_oneof![
        3 => proptest::sample::select(EVENTS).prop_map(|event| event.as_bytes().to_vec()),
        9 => proptest::sample::select(PIECES).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..4),
    ];
    let bytes = proptest::collection::vec(piece, 0..40);
    let mut runner = proptest::test_runner::TestRunner::new(common::config(common::cases("CONVO_HOSTILE_CASES", 500)));
    runner
        .run(&bytes, |pieces| {
            let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            for target in prompts::targets() {
                let events = events(target, &pieces);
                assert!(
                    matches!(events.first(), Some(Event::Begin(_)))
                        && matches!(events.last(), Some(Event::Finish { .. }))
                );
                assert_eq!(events.iter().filter(|event| !matches!(event, Event::Delta { .. })).count(), 2);
                let whole = pieces.concat();
                assert_eq!(events, self::events(target, &[&whole]));
                let merged = Merged { events, finished: true };
                let message = merged.stored().message;
                assert_eq!(Message::from_json(&message.to_json()).unwrap().to_json(), message.to_json());
            }
            Ok(())
        })
        .unwrap();
}
