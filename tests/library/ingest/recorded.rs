//! Recorded answers to chunks, into the store, and back into a prompt: whole, in pieces, and cut off anywhere.
//!
//! Each folder of `tests/fixtures/providers/<wire>/` is a case: `request.json`, the `response.json` or the `stream.txt` to
//! it, or both, and `expected.jsonl`: the message that they are, as a line of a transcript. A file `target` names another
//! target than the wire itself.

use std::fs;
use std::path::Path;

use conversation_store::model::{Chunk, FinishReason, Json, Message, Metadata, Role};
use conversation_store::provider::{Decoder, PromptOptions, Target, check, decode, parse, repair};
use conversation_store::{Conversation, Error, MessageState, Store, StoredMessage};
use serde_json::Value;

use crate::common::prompts;
use crate::common::stored::{self, stored};
use crate::ingest::{Merged, events};

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
    folders.retain(|path| path.is_dir());
    folders.sort();
    folders
}

impl Case {
    fn bodies(&self) -> impl Iterator<Item = &[u8]> {
        let bodies = [&self.response, &self.stream].into_iter().flatten();
        bodies.map(Vec::as_slice)
    }

    /// The request's messages.
    fn asked(&self) -> Vec<StoredMessage> {
        stored::log(parse(self.target, &self.request).unwrap().messages)
    }

    /// The request's messages, and this one behind them.
    fn with(&self, answer: StoredMessage) -> Vec<StoredMessage> {
        behind(self.asked(), answer)
    }
}

/// These messages, and this one behind them.
fn behind(mut messages: Vec<StoredMessage>, mut answer: StoredMessage) -> Vec<StoredMessage> {
    answer.index = messages.len() as u64;
    messages.push(answer);
    messages
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
        assert!(findings.iter().all(|finding| !finding.level.is_refused()), "{}: {findings:#?}", case.name);
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
        let asked = case.asked();
        let mut seen: Vec<StoredMessage> = Vec::new();
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
                    let mut answer = answer.clone().stored();
                    // Nothing of its seqs is in a prompt.
                    (answer.first_seq, answer.last_seq) = (0, 0);
                    if seen.contains(&answer) {
                        continue;
                    }
                    seen.push(answer.clone());
                    let log = behind(asked.clone(), answer);
                    let conversation = Conversation::new(log.clone());
                    for target in &targets {
                        let prompt = prompts::prompt_of(*target, &conversation, &PromptOptions::new()).unwrap();
                        prompts::assert_accepted(*target, &prompt);
                        prompts::assert_conserved(*target, &log, &prompt);
                    }
                }
                last = both;
            }
        }
    }
}

#[test]
fn a_stream_is_stored_while_it_comes() {
    for case in cases() {
        let Some(stream) = &case.stream else { continue };
        let store = Store::open("memory:").unwrap();
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
        // Its time is the store's; all else is what the provider said.
        message.metadata.created_at = case.expected.metadata.created_at;
        assert_eq!(value(&message), value(&case.expected), "{}", case.name);
        let is_cut = message.finish_reason == Some(FinishReason::Interrupted);
        assert_eq!(loaded.state, if is_cut { MessageState::Interrupted } else { MessageState::Complete });
    }
}

/// What a provider verifies comes back byte for byte, and Anthropic's own blocks whole.
#[test]
fn what_is_verified_goes_back_as_it_came() {
    const VERIFIED: &[&str] =
        &["signature", "redactedContent", "encrypted_content", "encrypted_index", "thoughtSignature"];
    const WHOLE: &[&str] = &["thinking", "redacted_thinking", "server_tool_use", "web_search_tool_result"];
    fn verified(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| verified(item, found)),
            Value::Object(fields) => fields.iter().for_each(|(name, field)| match field.as_str() {
                Some(text) if VERIFIED.contains(&name.as_str()) && !text.is_empty() => found.push(field.to_string()),
                _ => verified(field, found),
            }),
            _ => {}
        }
    }
    let mut by_wire = std::collections::BTreeMap::new();
    for case in cases() {
        let Some(response) = &case.response else { continue };
        // A call of the provider's own tool that has no result yet is left out: its turn goes on with words.
        if case.expected.finish_reason == Some(FinishReason::from("pause_turn")) {
            continue;
        }
        let text = std::str::from_utf8(response).unwrap();
        let value: Value = serde_json::from_str(text).unwrap();
        let mut wanted = Vec::new();
        verified(&value, &mut wanted);
        // `Json` keeps the order of keys, and drops the indentation.
        let blocks: Option<Vec<&serde_json::value::RawValue>> = serde_json::from_str::<Raw<'_>>(text).unwrap().content;
        for block in blocks.unwrap_or_default() {
            let kind: Value = serde_json::from_str(block.get()).unwrap();
            if kind["type"].as_str().is_some_and(|kind| WHOLE.contains(&kind)) {
                wanted.push(Json::new(block.get()).unwrap().as_str().to_owned());
            }
        }
        let store = Store::open("memory:").unwrap();
        let mut writer = store.begin("c", Role::Assistant, Metadata::default()).unwrap();
        writer.ingest(events(case.target, &[response])).unwrap();
        let log = case.with(store.load_raw("c").unwrap().remove(0));
        let prompt = prompts::prompt(case.target, &log, &PromptOptions::new()).unwrap();
        for wanted in wanted {
            assert!(prompt.request.get().contains(&wanted), "{}: {wanted} in {}", case.name, prompt.request);
            *by_wire.entry(case.target.wire().name).or_insert(0) += 1;
        }
    }
    assert_eq!(
        by_wire.keys().copied().collect::<Vec<_>>(),
        ["anthropic", "bedrock-converse", "gemini", "openai-chat", "openai-responses"]
    );
}

#[derive(serde::Deserialize)]
struct Raw<'a> {
    #[serde(borrow, default)]
    content: Option<Vec<&'a serde_json::value::RawValue>>,
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
