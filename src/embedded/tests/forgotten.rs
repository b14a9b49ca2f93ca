//! What only shows below the store: which bytes are left in the engine.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::Duration;

use super::super::{Embedded, Opening};
use super::engines::all;
use crate::embedded::engine::{Batch, Directory, Engine, LARGE_BYTES, Memory, Order, Visit};
use crate::embedded::recovery;
use crate::error::Result;
use crate::log::{AppendOptions, Changes, ForkAt, Limits, Log, NewConversation};
use crate::model::{Body, Chunk, FinishReason, Json, Message, Metadata, Name, Native, Timestamp};
use crate::record::key;

fn open(engine: &Arc<Memory>) -> Embedded {
    let engine: Arc<dyn Engine> = Arc::clone(engine) as Arc<dyn Engine>;
    Embedded::open(engine, Arc::new(Timestamp::now), Duration::from_millis(1), Opening::default()).unwrap()
}

fn append(log: &Embedded, name: &str, messages: &[Message]) {
    log.core().appender.append(&name.into(), messages, &Changes::new(), &AppendOptions::new()).unwrap();
}

fn texts(log: &Embedded, name: &str) -> Vec<String> {
    let grouped = super::load(log, name).unwrap();
    assert!(grouped.damage.is_empty(), "{:?}", grouped.damage);
    let chunks = grouped.messages.into_iter().flat_map(|stored| stored.message.chunks);
    chunks
        .filter_map(|chunk| match chunk.body {
            Body::Text { text, .. } => Some(text),
            _ => None,
        })
        .collect()
}

/// How many stored values hold these bytes.
fn holds(engine: &Memory, bytes: &str) -> usize {
    let mut count = 0;
    engine
        .scan(&[]..&[u8::MAX; 40], Order::Ascending, &mut |_, value| {
            count += usize::from(value.windows(bytes.len()).any(|window| window == bytes.as_bytes()));
            ControlFlow::Continue(())
        })
        .unwrap();
    count
}

fn keys(engine: &Memory, kind: u8) -> usize {
    let mut count = 0;
    let visit = &mut |_: &[u8], _: &[u8]| {
        count += 1;
        ControlFlow::Continue(())
    };
    engine.scan(&[kind]..&[kind + 1], Order::Ascending, visit).unwrap();
    count
}

fn verified(log: &Embedded) {
    assert_eq!(recovery::verify(log.core(), &mut |_, _| ()).unwrap().problems, []);
}

#[test]
fn what_is_redacted_is_in_no_value_any_more() {
    let engine = Arc::new(Memory::default());
    let log = open(&engine);
    let options = AppendOptions::new().with_idempotency_key("once");
    let messages = [Message::user("SECRET title"), Message::user("harmless")];
    log.core().appender.append(&"a".into(), &messages, &Changes::new(), &options).unwrap();
    let mut call = Message::assistant([Chunk::tool_call("call_1", "read", "{\"p\":\"SECRET\"}")]);
    call.metadata.model = Some("m".to_owned());
    append(&log, "a", &[call, Message::tool("call_1", "SECRET result")]);
    log.core().families.fork(&"a".into(), ForkAt::default(), &"b".into()).unwrap();
    assert!(holds(&engine, "SECRET") > 0);
    for message in [0, 2, 3] {
        log.core().families.redact(&"b".into(), message, None).unwrap();
    }
    assert_eq!(texts(&log, "a"), ["[redacted]", "harmless"]);
    verified(&log);
    assert_eq!(holds(&engine, "SECRET"), 0);
    drop(log);
    let log = open(&engine);
    let receipt = log.core().appender.append(&"a".into(), &messages, &Changes::new(), &options).unwrap();
    assert!(receipt.duplicate, "the key still answers");
    assert!(log.core().families.redact(&"a".into(), 99, None).is_err());
}

#[test]
fn what_is_known_about_a_message_does_not_quote_what_was_redacted() {
    let native = |text: &str| Some(Native { wire: "anthropic".to_owned(), json: Json::new(text).unwrap() });
    for chunk in [Some(1), None] {
        let engine = Arc::new(Memory::default());
        let log = open(&engine);
        let mut message = Message::assistant([Chunk::text("kept"), Chunk::text("SECRET")]);
        message.metadata.native = native(r#"{"said":"SECRET"}"#);
        if chunk.is_none() {
            message.usage = Some(Json::new(r#"{"raw":"SECRET"}"#).unwrap());
            message.finish_reason = Some(FinishReason::Other("SECRET".to_owned()));
        }
        append(&log, "a", &[message]);
        assert!(log.core().families.redact(&"a".into(), 0, Some(9)).is_err(), "there is no such chunk");
        log.core().families.redact(&"a".into(), 0, chunk).unwrap();
        assert_eq!(holds(&engine, "SECRET"), 0, "{chunk:?}");
        verified(&log);
    }
}

#[test]
fn a_fork_inside_an_append_redacts_its_own_message_only() {
    let engine = Arc::new(Memory::default());
    let log = open(&engine);
    append(&log, "a", &[Message::user("shared"), Message::user("the parent's")]);
    log.core().families.fork(&"a".into(), ForkAt { seq: Some(1), time: None }, &"b".into()).unwrap();
    append(&log, "b", &[Message::user("the child's")]);
    log.core().families.redact(&"b".into(), 1, None).unwrap();
    assert_eq!(texts(&log, "a"), ["shared", "the parent's"]);
    assert_eq!(texts(&log, "b"), ["shared", "[redacted]"]);
    verified(&log);
}

#[test]
fn streamed_fragments_and_large_records_are_redacted_whole() {
    let engine = Arc::new(Memory::default());
    let log = open(&engine);
    let writer = super::begin(&log, "a").unwrap();
    for _ in 0..3 {
        log.core().appender.push(&writer, 0, Chunk::text("SECRET ".repeat(30_000))).unwrap();
        log.flush().unwrap();
    }
    assert!(log.core().families.redact(&"a".into(), 0, None).is_err(), "it is still being written");
    log.core().appender.finish(&writer, None, None, Metadata::default()).unwrap();
    log.core().families.redact(&"a".into(), 0, Some(0)).unwrap();
    assert_eq!(texts(&log, "a"), ["[redacted]"]);
    assert_eq!(holds(&engine, "SECRET"), 0);
    verified(&log);
}

#[test]
fn a_deleted_conversation_leaves_what_its_forks_read_and_no_more() {
    let engine = Arc::new(Memory::default());
    let log = open(&engine);
    append(&log, "a", &[Message::user("one"), Message::user("two"), Message::user("three")]);
    append(&log, "a", &[Message::user("four")]);
    log.core().families.fork(&"a".into(), ForkAt { seq: Some(2), time: None }, &"b".into()).unwrap();
    log.core().families.fork(&"b".into(), ForkAt { seq: Some(1), time: None }, &"c".into()).unwrap();
    append(&log, "b", &[Message::user("b's own")]);
    log.core().families.delete(&"a".into(), None).unwrap();
    assert!(super::load(&log, "a").is_err());
    assert_eq!((holds(&engine, "three"), holds(&engine, "four")), (0, 0));
    assert_eq!(texts(&log, "b"), ["one", "two", "b's own"]);
    assert_eq!(texts(&log, "c"), ["one"]);
    verified(&log);
    let again =
        log.core().appender.append(&"a".into(), &[Message::user("again")], &Changes::new(), &AppendOptions::new());
    assert!(matches!(again, Err(crate::Error::SharedByForks { .. })), "{again:?}");
    drop(log);

    let log = open(&engine);
    log.core().families.delete(&"b".into(), None).unwrap();
    assert_eq!(texts(&log, "c"), ["one"]);
    assert_eq!((holds(&engine, "two"), holds(&engine, "b's own")), (0, 0));
    log.core().families.delete(&"c".into(), None).unwrap();
    for kind in [key::RECORD, key::HEAD, key::INDEX, key::FORK, key::TOMBSTONE] {
        assert_eq!(keys(&engine, kind), 0, "{}", char::from(kind));
    }
    append(&log, "a", &[Message::user("again")]);
    assert_eq!(texts(&log, "a"), ["again"]);
    verified(&log);
}

/// Keys, and ids of items, are of what is gone.
#[test]
fn of_what_is_deleted_no_key_is_left_and_no_item_that_forks_do_not_read() {
    let engine = Arc::new(Memory::default());
    let log = open(&engine);
    let say = |text: &str| {
        let mut message = Message::user(text);
        message.metadata.id = Some(text.to_owned());
        let options = AppendOptions::new().with_idempotency_key(text);
        log.core().appender.append(&"a".into(), &[message], &Changes::new(), &options).unwrap();
    };
    ["one", "two", "three"].into_iter().for_each(say);
    log.core().families.fork(&"a".into(), ForkAt { seq: Some(1), time: None }, &"b".into()).unwrap();
    let receipts: Vec<_> = all(&*engine).into_iter().filter(|(key, _)| key.first() == Some(&key::RECEIPT)).collect();
    assert_eq!((receipts.len(), keys(&engine, key::ITEM)), (3, 3));
    log.core().families.delete(&"a".into(), None).unwrap();
    assert_eq!((keys(&engine, key::RECEIPT), keys(&engine, key::ITEM)), (0, 1));
    assert_eq!(texts(&log, "b"), ["one"]);
    drop(log);
    // A deletion that ended before its keys were erased.
    engine.write(Batch { ops: receipts }).unwrap();
    let log = open(&engine);
    assert_eq!(keys(&engine, key::RECEIPT), 0);
    assert_eq!(texts(&log, "b"), ["one"]);
    verified(&log);
}

#[test]
fn a_deletion_that_was_cut_off_is_finished_on_opening() {
    let engine = Arc::new(Memory::default());
    let log = open(&engine);
    append(&log, "a", &[Message::user("one")]);
    append(&log, "b", &[Message::user("stays")]);
    // What the first batch of a deletion leaves.
    let id = Name::from("a").id();
    let incarnation = log.core().catalogue.published_head(id).unwrap().unwrap().incarnation;
    drop(log);
    let mut batch = Batch::default();
    let tombstone = key::tombstone(id);
    let value = crate::record::seal(&tombstone, &crate::record::Tombstone { parent: None, incarnation }).unwrap();
    batch.put(tombstone, value);
    batch.remove(key::head(id));
    engine.write(batch).unwrap();
    let log = open(&engine);
    assert_eq!(holds(&engine, "one"), 0);
    assert_eq!(texts(&log, "b"), ["stays"]);
    assert_eq!(keys(&engine, key::TOMBSTONE), 0);
    append(&log, "a", &[Message::user("again")]);
    assert_eq!(texts(&log, "a"), ["again"]);
}

#[test]
fn a_lost_or_damaged_head_is_derived_from_the_records() {
    let engine = Arc::new(Memory::default());
    let log = open(&engine);
    append(&log, "a", &[Message::user("one"), Message::user("two")]);
    append(&log, "a", &[Message::user("three")]);
    super::rewind(&log, "a", 2).unwrap();
    append(&log, "a", &[Message::user("four")]);
    drop(log);
    let head = key::head(Name::from("a").id());
    let stored = engine.get(&head).unwrap().unwrap();
    for damage in [None, Some(vec![1, 2, 3])] {
        engine.write(Batch { ops: vec![(head.clone(), damage)] }).unwrap();
        let log = open(&engine);
        assert_eq!(texts(&log, "a"), ["one", "two", "four"]);
        let receipt = log
            .core()
            .appender
            .append(&"a".into(), &[Message::user("five")], &Changes::new(), &AppendOptions::new())
            .unwrap();
        assert_eq!((receipt.first_seq, receipt.message_indexes), (6, vec![4]));
        drop(log);
        let mut batch = Batch::default();
        batch.put(head.clone(), stored.clone());
        batch.remove(key::record(Name::from("a").id(), 6));
        engine.write(batch).unwrap();
    }
}

#[cfg(feature = "sled")]
#[test]
fn damage_that_an_opening_for_reading_noted_is_repaired_by_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let url = format!("sled:{}", dir.path().join("db").display());
    let open = |read_only| {
        let opening = Opening { read_only, ..Opening::default() };
        let engine = crate::embedded::engine::open(&url).unwrap();
        Embedded::open(engine, Arc::new(Timestamp::now), Duration::from_millis(1), opening).unwrap()
    };
    let listed = |log: &Embedded| log.core().catalogue.list(&crate::ListQuery::new()).unwrap().items.len();
    append(&open(false), "a", &[Message::user("one")]);
    let engine = crate::embedded::engine::open(&url).unwrap();
    let mut batch = Batch::default();
    engine
        .scan(&[key::INDEX]..&[key::INDEX + 1], Order::Ascending, &mut |key, _| {
            batch.remove(key.to_vec());
            ControlFlow::Continue(())
        })
        .unwrap();
    engine.write(batch).unwrap();
    drop(engine);
    let note = dir.path().join("db/damaged");
    std::fs::write(&note, "a copy").unwrap();
    let log = open(true);
    assert_eq!((listed(&log), log.core().health().set_aside), (0, Some("a copy".into())));
    drop(log);
    assert_eq!(listed(&open(false)), 1);
    assert!(!note.exists());
}

/// Checks what an engine is promised: an ordinary batch replaces and removes nothing large. An engine that has such a value in
/// pieces would keep them.
#[derive(Debug, Default)]
struct Promised(Memory);

impl Engine for Promised {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.0.get(key)
    }

    fn scan(&self, range: Range<&[u8]>, order: Order, visit: Visit<'_>) -> Result<()> {
        self.0.scan(range, order, visit)
    }

    fn write(&self, batch: Batch) -> Result<()> {
        for (key, _) in &batch.ops {
            assert!(self.0.get(key)?.is_none_or(|before| before.len() <= LARGE_BYTES), "{key:?} is large");
        }
        self.0.write(batch)
    }

    fn rewrite(&self, batch: Batch) -> Result<()> {
        self.0.write(batch)
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn directory(&self) -> Option<&Directory> {
        None
    }
}

#[test]
fn large_values_are_replaced_by_batches_that_say_so() {
    let engine = Arc::new(Promised::default());
    let log = Embedded::open(engine, Arc::new(Timestamp::now), Duration::from_millis(1), Opening::default()).unwrap();
    let large = "x".repeat(4 * LARGE_BYTES);
    for name in ["redacted", "deleted"] {
        append(&log, name, &[Message::user(&*large)]);
    }
    let families = &log.core().families;
    families.fork(&"deleted".into(), ForkAt { seq: Some(1), time: None }, &"fork".into()).unwrap();
    families.redact(&"redacted".into(), 0, None).unwrap();
    families.delete(&"deleted".into(), None).unwrap();
    families.delete(&"fork".into(), None).unwrap();
    let mut tagged = NewConversation::new();
    tagged.tags = (0..Limits::TAGS).map(|tag| format!("{tag:0>width$}", width = Limits::NAME_BYTES)).collect();
    log.create(&"tagged".into(), &tagged).unwrap();
    append(&log, "tagged", &[Message::user("hello")]);
}
