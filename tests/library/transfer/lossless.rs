//! Out of a store and in again.

use std::collections::HashMap;

use conversation_store::Store;
use conversation_store::model::{Body, Chunk, Message, Name, Output, Role};
use conversation_store::transfer::{FORMATS, ImportOptions, export};
use proptest::prelude::*;

use super::{Run, assert_works, conversations, into, run};
use crate::common::{config, hostile};

/// A log in a store, under a name.
fn stored(log: &[conversation_store::StoredMessage]) -> Store {
    let store = Store::open("memory:").unwrap();
    let messages: Vec<Message> = log.iter().map(|stored| stored.message.clone()).collect();
    store.append("chat", &messages).unwrap();
    store
}

fn exported(store: &Store, format: &str) -> Vec<u8> {
    let mut text = Vec::new();
    let names: Vec<Name> = conversations(store)
        .into_iter()
        .map(|id| store.describe(id).unwrap())
        .map(|item| match item.key {
            Some(key) => Name::from(key),
            None => Name::from(item.id),
        })
        .collect();
    export(store, names, format, &mut text, &mut |_| ()).unwrap();
    text
}

/// Imports a text as one of this format.
fn named(store: &Store, text: &[u8], format: &str) -> Run {
    let dir = crate::common::tempdir().unwrap();
    let path = dir.path().join("x.json");
    std::fs::write(&path, text).unwrap();
    run(Some(store), &path, &ImportOptions::new().with_format(format))
}

fn said(store: &Store, name: &str) -> Vec<Message> {
    store.load_raw(name).unwrap().into_iter().map(|stored| stored.message).collect()
}

/// Every field that a message and a chunk can have.
#[test]
fn a_transcript_keeps_every_field() {
    let line = r#"{"role":"assistant","chunks":[{"type":"thinking","text":"t","signature":"s","id":"i","mood":{"of":1}}],
        "finish_reason":"length","model":"m","provider":"p","created_at":"2026-01-02T03:04:05.000006Z","turn_id":"a",
        "step_id":"b","usage":{"input_tokens":1},"id":"x","kind_of_tomorrow":[1.0,null]}"#;
    let line = line.replace('\n', "");
    let message = conversation_store::model::Line::from_json(&line).unwrap().message;
    let store = Store::open("memory:").unwrap();
    store.append("chat", std::slice::from_ref(&message)).unwrap();
    let text = exported(&store, "transcript");
    let other = Store::open("memory:").unwrap();
    into(&other, "all.jsonl", &text).summary.unwrap();
    assert_eq!(said(&other, "chat"), [message]);
}

/// What the formats of other programs have a place for: roles, words, calls and results, in order.
#[test]
fn what_other_formats_have_a_place_for_comes_back() {
    let store = Store::open("memory:").unwrap();
    let log = [
        Message::system("Be brief."),
        Message::user("Time?"),
        Message::assistant([
            Chunk::thinking("Hm."),
            Chunk::text("Let me look."),
            Chunk::tool_call("c1", "clock", "{\"at\":1}"),
        ]),
        Message::tool("c1", "noon"),
        Message::assistant([Chunk::text("Noon.")]),
    ];
    store.append("chat", &log).unwrap();
    // ShareGPT has no ids of calls, and one entry for the words of an answer and one for its call.
    let words = |messages: &[Message], has_ids: bool| {
        let word = |chunk: &Chunk, role: &Role| match &chunk.body {
            Body::Text { text, .. } => Some(format!("{role}: {text}")),
            Body::ToolCall { id, name, arguments, .. } => {
                Some(format!("{} {name} {arguments}", if has_ids { id } else { "" }))
            }
            Body::ToolResult { tool_call_id, output, .. } => {
                let text = match output {
                    Output::Text(text) => text.clone(),
                    Output::Parts(parts) => parts.iter().map(|part| format!("{:?}", part.body)).collect(),
                };
                let text = if text.contains("noon") { "noon" } else { &text };
                Some(format!("{}: {text}", if has_ids { tool_call_id } else { "" }))
            }
            _ => None,
        };
        let of = |message: &Message| {
            message.chunks.iter().filter_map(|chunk| word(chunk, &message.role)).collect::<Vec<_>>()
        };
        messages.iter().flat_map(of).collect::<Vec<_>>()
    };
    for format in FORMATS.iter().filter(|format| format.is_written() && format.is_read()) {
        let has_ids = format.name != "sharegpt";
        let mut text = Vec::new();
        let summary = export(&store, ["chat".into()], format.name, &mut text, &mut |_| ()).unwrap();
        let other = Store::open("memory:").unwrap();
        into(&other, &format!("x.{}", format.extension().unwrap()), &text).summary.unwrap();
        let back = said(&other, &store_key(&other));
        // A program that goes on with a session has instructions of its own.
        let is_session = ["claude-code", "codex"].contains(&format.name);
        let mut wanted = words(&log, has_ids);
        wanted.retain(|word| !is_session || !word.starts_with("system: "));
        assert_eq!(words(&back, has_ids), wanted, "{}", format.name);
        let thinks = back.iter().flat_map(|message| &message.chunks).any(|chunk| chunk.body.kind() == "thinking");
        assert!(thinks || !summary.left_out.is_empty(), "{}: thinking is left out without a word", format.name);
    }
}

/// ShareGPT's results have no ids: each comes back to its own call, in whatever order they came, and where one is missing.
#[test]
fn results_of_sharegpt_stay_with_their_calls() {
    let store = Store::open("memory:").unwrap();
    let call = |id: &str| Chunk::tool_call(id, format!("tool_{id}"), "{}");
    let log = [
        Message::user("Go"),
        Message::assistant([call("a"), call("b"), call("c")]),
        Message::tool("c", "3"),
        Message::tool("a", "1"),
        Message::user("And?"),
        Message::assistant([call("d")]),
        Message::tool("d", "4"),
        Message::assistant([call("e")]),
    ];
    store.append("chat", &log).unwrap();
    let other = Store::open("memory:").unwrap();
    into(&other, "x.json", exported(&store, "sharegpt")).summary.unwrap();
    let (mut names, mut results) = (HashMap::new(), Vec::new());
    for chunk in said(&other, &store_key(&other)).into_iter().flat_map(|message| message.chunks) {
        match chunk.body {
            Body::ToolCall { id, name, .. } => _ = names.insert(id, name),
            Body::ToolResult { tool_call_id, output: Output::Text(text), .. } => {
                results.push((names.remove(&tool_call_id).unwrap(), text));
            }
            _ => {}
        }
    }
    let wanted = [("tool_a", "1"), ("tool_b", ""), ("tool_c", "3"), ("tool_d", "4")];
    assert_eq!(results, wanted.map(|(name, text)| (name.to_owned(), text.to_owned())));
    assert_eq!(names.into_values().collect::<Vec<_>>(), ["tool_e"]);
}

/// A proof goes out where the provider's package of the SDK looks for it, and comes back.
#[test]
fn ai_sdk_keeps_the_proof_of_thinking() {
    for (provider, comes_back) in
        [("anthropic", true), ("google", true), ("openai", true), ("bedrock", true), ("mistral", false)]
    {
        let store = Store::open("memory:").unwrap();
        let proof = Some("c2ln".to_owned());
        let signed = Body::Thinking { text: "Hm.".to_owned(), signature: proof.clone(), redacted: None };
        let mut answer = Message::assistant([signed.into(), Chunk::text("So.")]);
        answer.metadata.provider = Some(provider.to_owned());
        store.append("chat", &[Message::user("Hi"), answer]).unwrap();
        let mut text = Vec::new();
        let summary = export(&store, ["chat".into()], "ai-sdk", &mut text, &mut |_| ()).unwrap();
        assert_eq!(summary.left_out.contains_key("signature"), !comes_back, "{provider}");
        let other = Store::open("memory:").unwrap();
        into(&other, "x.json", &text).summary.unwrap();
        let back = said(&other, &store_key(&other));
        let Body::Thinking { signature, .. } = &back[1].chunks[0].body else { panic!("{back:?}") };
        assert_eq!(*signature, proof.filter(|_| comes_back), "{provider}");
    }
}

/// The only conversation's key.
fn store_key(store: &Store) -> String {
    let [id] = conversations(store)[..] else { panic!("one conversation") };
    store.describe(id).unwrap().key.unwrap()
}

proptest! {
    #![proptest_config(config(40))]

    #[test]
    fn a_transcript_gives_the_same_messages(log in hostile::log(8)) {
        prop_assume!(!log.is_empty());
        let store = stored(&log);
        let text = exported(&store, "transcript");
        let other = Store::open("memory:").unwrap();
        into(&other, "all.jsonl", &text).summary.unwrap();
        prop_assert_eq!(said(&other, "chat"), said(&store, "chat"));
        prop_assert_eq!(exported(&other, "transcript"), text);
    }

    /// What was written in any format that is also read is read again, and renders for every target.
    #[test]
    fn what_is_written_is_read(log in hostile::log(5)) {
        prop_assume!(!log.is_empty());
        let store = stored(&log);
        for format in FORMATS.iter().filter(|format| format.is_written()) {
            let text = exported(&store, format.name);
            if !format.is_read() || text.len() < 8 {
                continue;
            }
            let other = Store::open("memory:").unwrap();
            let mut run = into(&other, &format!("x.{}", format.extension().unwrap()), &text);
            // Items of kinds that nobody knows are a list of anything, unless the format is named.
            if format.name == "openai-items" && run.summary.is_err() {
                run = named(&other, &text, format.name);
            }
            match run.summary {
                Ok(summary) => assert_eq!(summary.failed, 0, "{}: {:?}", format.name, run.conversations),
                Err(error) => panic!("{}: {error}\n{}", format.name, String::from_utf8_lossy(&text)),
            }
            assert_works(&other);
        }
    }
}
