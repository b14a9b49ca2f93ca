//! A record that is rewritten while it is read.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::super::{AppendOptions, Log, Opening};
use super::forgetful::all;
use crate::engine::{Batch, Directory, Engine, Memory, Order, Visit};
use crate::error::Result;
use crate::model::{Chunk, Message, Name, Timestamp};
use crate::record::key;

/// Writes something just before a part of a record is read.
#[derive(Debug, Default)]
struct Meddling {
    memory: Memory,
    before_a_part: Mutex<Option<Batch>>,
    is_done: AtomicBool,
}

impl Engine for Meddling {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        if key.first() == Some(&key::PART)
            && let Some(batch) = self.before_a_part.lock().unwrap().take()
        {
            self.memory.write(batch)?;
            self.is_done.store(true, Ordering::Release);
        }
        self.memory.get(key)
    }

    fn scan(&self, range: Range<&[u8]>, order: Order, visit: Visit<'_>) -> Result<()> {
        self.memory.scan(range, order, visit)
    }

    fn write(&self, batch: Batch) -> Result<()> {
        self.memory.write(batch)
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn directory(&self) -> Option<&Directory> {
        None
    }
}

fn open(engine: Arc<dyn Engine>) -> Log {
    Log::open(engine, Arc::new(Timestamp::now), Duration::from_secs(3600), Opening::default()).unwrap()
}

#[test]
fn a_redaction_between_two_parts_is_no_damage() {
    let chat = Name::from("chat");
    let engine = Arc::new(Meddling::default());
    let log = open(Arc::clone(&engine) as Arc<dyn Engine>);
    let messages = [Message::user("large ".repeat(60_000)), Message::user("small")];
    log.core().append(&chat, &messages, &AppendOptions::new()).unwrap();
    // What the redaction writes, without its entry and head.
    let before = all(&*engine);
    let other = Arc::new(Memory::default());
    other.write(Batch { ops: before.clone() }).unwrap();
    open(Arc::clone(&other) as Arc<dyn Engine>).core().redact(&chat, 0, None).unwrap();
    let after = all(&*other);
    let of_record = |key: &[u8]| *key == key::record(chat.id(), 1) || key.first() == Some(&key::PART);
    let gone = before.iter().filter(|(key, _)| !after.iter().any(|(other, _)| other == key));
    let mut ops: Vec<_> = gone.map(|(key, _)| (key.clone(), None)).collect();
    ops.extend(after.into_iter().filter(|(key, _)| of_record(key)));
    *engine.before_a_part.lock().unwrap() = Some(Batch { ops });
    let grouped = log.core().load(chat.id(), &"chat").unwrap();
    assert!(engine.is_done.load(Ordering::Acquire));
    assert!(grouped.damage.is_empty(), "{:?}", grouped.damage);
    let said: Vec<_> = grouped.messages.into_iter().map(|stored| stored.message.chunks).collect();
    assert_eq!(said, ["[redacted]", "small"].map(|text| vec![Chunk::text(text)]));
}
