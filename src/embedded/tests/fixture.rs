//! A store that version 1 of the format wrote. It must be read unchanged for as long as that version exists.
//!
//! `CONVO_WRITE_FIXTURE=1 cargo test fixture` wrote it. Version 1 is final: it is never written again.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use super::super::{Embedded, Opening};
use super::engines::{Forgetful, all};
use crate::embedded::engine::{Batch, Engine, Order};
use crate::embedded::recovery;
use crate::log::{AppendOptions, Changes, ForkAt, ListQuery};
use crate::model::{Chunk, FinishReason, Message, Metadata, Name, Role, Timestamp};
use crate::record::index_keys;
use crate::record::{self, Tombstone, key};

const START: i64 = 1_767_323_045_000_000;
const MINUTE: i64 = 60_000_000;
/// From this length on, a run of one byte is written as `hh*count`.
const RUN: usize = 32;

fn path() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "fixtures", "format", "v1", "store.txt"].iter().collect()
}

/// A minute passes with every look at the clock.
fn open(engine: &Arc<Forgetful>) -> Embedded {
    let clock = AtomicI64::new(START);
    let clock = Arc::new(move || Timestamp::from_micros(clock.fetch_add(MINUTE, Ordering::Relaxed)));
    Embedded::open(Arc::clone(engine) as Arc<dyn Engine>, clock, Duration::from_secs(3600), Opening::default()).unwrap()
}

fn said() -> Vec<Message> {
    let text = include_str!("../../../tests/fixtures/incident.jsonl");
    let mut messages: Vec<_> = text.lines().map(|line| Message::from_json(line).unwrap()).collect();
    let unknown = r#"{"role":"assistant","chunks":[{"type":"x_widget","deep":{"er":1.50},"id":"i"},{"type":"text","text":"\ud83d é","x":null},{"type":"opaque","provider":"p","kind":"k","json":{"b":1,"a":2}}],"usage":{"total":1.0},"x":[1]}"#;
    messages.push(Message::from_json(unknown).unwrap());
    messages.push(Message::new(Role::Assistant, []));
    messages
}

fn write(engine: &Arc<Forgetful>) {
    let (long, fork) = (Name::from("long"), Name::from("fork"));
    let log = open(engine);
    let core = log.core();
    for message in said() {
        core.appender.append(&long, &[message], &Changes::new(), &AppendOptions::new()).unwrap();
    }
    let options = AppendOptions::new().with_idempotency_key("request-1");
    core.appender
        .append(&long, &[Message::user("x".repeat(70_000)), Message::user("short")], &Changes::new(), &options)
        .unwrap();
    // Two streams side by side: one is finished, one is dropped.
    let finished = super::begin(&log, &long).unwrap();
    let dropped = super::begin(&log, &long).unwrap();
    for piece in ["one ", "two ", "three"] {
        core.appender.push(&finished, 0, Chunk::text(piece)).unwrap();
        core.appender.push(&dropped, 0, Chunk::thinking(piece)).unwrap();
        core.appender.push(&finished, 1, Chunk::tool_call("call_1", "tool", "1")).unwrap();
        log.flush().unwrap();
    }
    let said = Metadata { id: Some("msg_1".to_owned()), model: Some("m-2".to_owned()), ..Metadata::default() };
    core.appender.finish(&finished, Some(FinishReason::ToolCalls), None, said).unwrap();
    core.appender.abandon(&dropped);
    core.appender.append(&long, &[Message::user("hidden")], &Changes::new(), &AppendOptions::new()).unwrap();
    super::rewind(&log, &long, 15).unwrap();
    super::set_title(&log, &long, "a title").unwrap();
    super::change_tags(&log, &long, &[], &["work", "later"]).unwrap();
    super::summarize(&log, &long, 8, "a summary").unwrap();
    // In the middle of a message; a fork of a fork without entries of its own; one that goes on.
    core.families.fork(&long, ForkAt { seq: Some(3), time: None }, &fork).unwrap();
    core.families.fork(&fork, ForkAt::default(), &Name::from("fork of the fork")).unwrap();
    core.appender.append(&fork, &[Message::user("on the fork")], &Changes::new(), &AppendOptions::new()).unwrap();
    // A writer that is alive when the store is killed.
    let killed = super::begin(&log, "killed").unwrap();
    core.appender.push(&killed, 0, Chunk::text("cut o")).unwrap();
    core.appender
        .append(&Name::from("half deleted"), &[Message::user("gone")], &Changes::new(), &AppendOptions::new())
        .unwrap();
    log.flush().unwrap();
    let deleted = Name::from("half deleted").id();
    let head = core.catalogue.published_head(deleted).unwrap().unwrap();
    let mut commit = core.commit.lock().last_commit();
    commit.count(Some(&head), None);
    let mut batch = Batch::default();
    batch.remove(key::head(deleted));
    index_keys(deleted, &head).into_iter().for_each(|index| batch.remove(index));
    let tombstone = key::tombstone(deleted);
    batch.put(
        tombstone.clone(),
        record::seal(&tombstone, &Tombstone { parent: None, incarnation: head.incarnation }).unwrap(),
    );
    let commit_key = key::meta("commit");
    batch.put(commit_key.clone(), record::seal(&commit_key, &commit).unwrap());
    engine.write(batch).unwrap();
    engine.sync().unwrap();
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    for run in bytes.chunk_by(|a, b| a == b) {
        if run.len() >= RUN {
            write!(text, " {:02x}*{} ", run[0], run.len()).unwrap();
        } else {
            run.iter().for_each(|byte| write!(text, "{byte:02x}").unwrap());
        }
    }
    text.trim().to_owned()
}

fn bytes(hex: &str) -> Vec<u8> {
    let byte = |hex: &str| u8::from_str_radix(hex, 16).unwrap();
    let words = hex.split(' ').flat_map(|word| match word.split_once('*') {
        Some((hex, count)) => vec![byte(hex); count.parse().unwrap()],
        None => word.as_bytes().chunks(2).map(|pair| byte(std::str::from_utf8(pair).unwrap())).collect(),
    });
    words.collect()
}

/// The stored pairs, one a line: key, a colon, value; both in hexadecimal.
fn read() -> Arc<Forgetful> {
    let engine = Forgetful::default();
    let mut batch = Batch::default();
    for line in std::fs::read_to_string(path()).unwrap().lines() {
        let (key, value) = line.split_once(':').unwrap();
        batch.put(bytes(key), bytes(value.trim()));
    }
    engine.write(batch).unwrap();
    engine.sync().unwrap();
    Arc::new(engine)
}

#[test]
fn the_fixture_is_written() {
    if std::env::var_os("CONVO_WRITE_FIXTURE").is_none() {
        return;
    }
    let engine = Arc::default();
    write(&engine);
    let lines = all(&*engine).into_iter().map(|(key, value)| format!("{}:{}\n", hex(&key), hex(&value.unwrap())));
    std::fs::create_dir_all(path().parent().unwrap()).unwrap();
    std::fs::write(path(), lines.collect::<String>()).unwrap();
}

#[test]
fn a_store_of_version_1_is_read() {
    let log = open(&read());
    let core = log.core();
    assert_eq!(recovery::verify(core, &mut |_, _| ()).unwrap().problems, []);
    let mut shown = String::new();
    for item in core.catalogue.list(&ListQuery::new()).unwrap().items {
        let name = item.key.clone().unwrap();
        writeln!(shown, "{name}: {}", serde_json::to_string(&item).unwrap()).unwrap();
        let grouped = super::load(&log, item.id).unwrap();
        assert!(grouped.damage.is_empty(), "{:?}", grouped.damage);
        writeln!(shown, "  {:?}", grouped.summary).unwrap();
        for stored in grouped.messages {
            let (index, state) = (stored.index, stored.state.as_str());
            let seqs = (stored.first_seq, stored.last_seq);
            writeln!(shown, "  message {index} {state} {seqs:?} {}", stored.message.to_json()).unwrap();
        }
        for entry in super::entries(&log, item.id, 1..=u64::MAX - 1, Order::Ascending).unwrap() {
            writeln!(shown, "  {}", serde_json::to_string(&entry).unwrap()).unwrap();
        }
    }
    insta::assert_snapshot!("fixture_v1", shown.replace(&"x".repeat(70_000), "x*70000"));
    // A key is still known, and the interrupted deletion is finished.
    let options = AppendOptions::new().with_idempotency_key("request-1");
    let again = [Message::user("x".repeat(70_000)), Message::user("short")];
    assert!(core.appender.append(&Name::from("long"), &again, &Changes::new(), &options).unwrap().duplicate);
    let first = core
        .appender
        .append(&Name::from("half deleted"), &[Message::user("new")], &Changes::new(), &AppendOptions::new())
        .unwrap();
    assert_eq!((first.first_seq, first.message_indexes), (1, vec![0]));
}

#[test]
fn the_bytes_are_written_as_they_were() {
    // What this version writes for the same calls, except for the random id of the store.
    let engine = Arc::default();
    write(&engine);
    let written = all(&*engine).into_iter().filter(|(key, _)| *key != key::meta("store"));
    let kept = all(&*read()).into_iter().filter(|(key, _)| *key != key::meta("store"));
    assert!(written.eq(kept));
}
