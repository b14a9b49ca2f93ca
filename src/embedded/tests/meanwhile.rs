//! What is rewritten, erased or created while it is read.

use std::fmt;
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::super::{Core, Embedded, Opening, restore};
use super::damage::problems;
use crate::embedded::engine::{Batch, Directory, Engine, Memory, Order, Visit};
use crate::error::Result;
use crate::log::{AppendOptions, Changes, Log};
use crate::model::{Chunk, Message, Name, Timestamp};
use crate::record::key;

/// Something that happens before the next read of a key of this kind.
type Event = (u8, Box<dyn FnOnce() + Send>);

#[derive(Default)]
struct Eventful {
    memory: Memory,
    next: Mutex<Option<Event>>,
}

impl fmt::Debug for Eventful {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Eventful").finish_non_exhaustive()
    }
}

impl Eventful {
    fn before(&self, key: &[u8]) {
        let event = self.next.lock().unwrap().take_if(|(kind, _)| key.first() == Some(kind));
        if let Some((_, event)) = event {
            event();
        }
    }
}

impl Engine for Eventful {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.before(key);
        self.memory.get(key)
    }

    fn scan(&self, range: Range<&[u8]>, order: Order, visit: Visit<'_>) -> Result<()> {
        self.before(range.start);
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

fn chat() -> Name {
    Name::from("chat")
}

fn append(core: &Core, texts: &[&str]) {
    let messages: Vec<Message> = texts.iter().map(|text| Message::user(*text)).collect();
    core.appender.append(&chat(), &messages, &Changes::new(), &AppendOptions::new()).unwrap();
}

/// A conversation with a large message and two small ones; `event` happens before the next read of a key of this kind.
fn eventful(kind: u8, event: impl FnOnce(&Core) + Send + 'static) -> (Arc<Eventful>, Arc<Embedded>) {
    let engine = Arc::new(Eventful::default());
    let as_engine: Arc<dyn Engine> = Arc::clone(&engine) as Arc<dyn Engine>;
    let clock = Arc::new(Timestamp::now);
    let log = Arc::new(Embedded::open(as_engine, clock, Duration::from_secs(3600), Opening::default()).unwrap());
    append(log.core(), &[&"large ".repeat(60_000), "small"]);
    append(log.core(), &["last"]);
    let core = Arc::clone(log.core());
    *engine.next.lock().unwrap() = Some((kind, Box::new(move || event(&core))));
    (engine, log)
}

/// What is loaded. Nothing of it is missing.
fn said(log: &Embedded) -> Vec<Vec<Chunk>> {
    let grouped = super::load(log, chat()).unwrap();
    assert!(grouped.damage.is_empty(), "{:?}", grouped.damage);
    grouped.messages.into_iter().map(|stored| stored.message.chunks).collect()
}

#[test]
fn a_conversation_that_is_deleted_and_made_anew_is_no_damage() {
    let again = |core: &Core| {
        core.families.delete(&chat(), None).unwrap();
        append(core, &["new"]);
    };
    let (engine, log) = eventful(key::RECORD, again);
    assert_eq!(said(&log), [[Chunk::text("new")]]);
    assert!(engine.next.lock().unwrap().is_none());
    let (_engine, log) = eventful(key::RECORD, again);
    let entries = super::entries(&log, chat(), 1..=9, Order::Descending).unwrap();
    assert_eq!(entries.len(), 1);
}

/// An engine in memory that applies one batch in two steps: records first. Between them it waits.
#[derive(Debug, Default)]
struct InParts {
    memory: Memory,
    /// Where the first step is reported, and what is waited for before the second one.
    pause: Mutex<Option<(Sender<()>, Receiver<()>)>>,
}

impl Engine for InParts {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.memory.get(key)
    }

    fn scan(&self, range: Range<&[u8]>, order: Order, visit: Visit<'_>) -> Result<()> {
        self.memory.scan(range, order, visit)
    }

    fn write(&self, batch: Batch) -> Result<()> {
        let has_record = batch.ops.iter().any(|(key, _)| key.first() == Some(&key::RECORD));
        let pause = if has_record { self.pause.lock().unwrap().take() } else { None };
        let Some((reached, goes_on)) = pause else { return self.memory.write(batch) };
        let (records, rest) = batch.ops.into_iter().partition(|(key, _)| key.first() == Some(&key::RECORD));
        self.memory.write(Batch { ops: records })?;
        reached.send(()).unwrap();
        goes_on.recv().unwrap();
        self.memory.write(Batch { ops: rest })
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn directory(&self) -> Option<&Directory> {
        None
    }
}

#[test]
fn a_backup_has_no_part_of_a_conversation_that_is_being_created() {
    let engine = Arc::new(InParts::default());
    let open = |engine: Arc<dyn Engine>| {
        let clock = Arc::new(|| Timestamp::from_micros(1_767_323_045_000_000));
        Embedded::open(engine, clock, Duration::from_secs(3600), Opening::default()).unwrap()
    };
    let log = open(Arc::clone(&engine) as Arc<dyn Engine>);
    let append = |name: &str| {
        log.core()
            .appender
            .append(&name.into(), &[Message::user("hello")], &Changes::new(), &AppendOptions::new())
            .unwrap();
    };
    // A backup comes to them by id.
    let mut names = ["a", "b"].map(|name| (crate::model::Name::from(name).id(), name));
    names.sort_unstable();
    names.iter().for_each(|(_, name)| append(name));
    let last = names[1].1;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("backup");
    std::thread::scope(|threads| {
        let (go_on, goes_on) = channel();
        let (reach, reached) = channel();
        let mut pause = Some((reach, goes_on));
        log.backup(&path, &mut |done, all| {
            assert_eq!(all, 2);
            if done == 1 {
                log.delete(&last.into(), None).unwrap();
                *engine.pause.lock().unwrap() = pause.take();
                threads.spawn(|| append(last));
                reached.recv().unwrap();
            }
        })
        .unwrap();
        go_on.send(()).unwrap();
    });
    assert_eq!(problems(&log), [""; 0]);
    let restored: Arc<dyn Engine> = Arc::new(Memory::default());
    restore(&path, &restored, &mut |_, _| ()).unwrap();
    assert_eq!(problems(&open(restored)), [""; 0]);
}

/// What is written while a backup is made is not in it, in whole or in part.
#[test]
fn a_backup_is_of_one_moment() {
    let open = |engine: Arc<dyn Engine>| {
        let clock = Arc::new(|| Timestamp::from_micros(1_767_323_045_000_000));
        Embedded::open(engine, clock, Duration::from_secs(3600), Opening::default()).unwrap()
    };
    let log = open(Arc::new(Memory::default()));
    let append = |log: &Embedded, name: &str, key: &str| {
        let options = AppendOptions::new().with_idempotency_key(key);
        log.core().appender.append(&name.into(), &[Message::user("hello")], &Changes::new(), &options).unwrap()
    };
    ["a", "b"].iter().for_each(|name| _ = append(&log, name, "first"));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("backup");
    log.backup(&path, &mut |done, _| {
        if done == 1 {
            ["a", "b"].iter().for_each(|name| _ = append(&log, name, "meanwhile"));
        }
    })
    .unwrap();
    let restored: Arc<dyn Engine> = Arc::new(Memory::default());
    restore(&path, &restored, &mut |_, _| ()).unwrap();
    let restored = open(restored);
    assert_eq!(problems(&restored), [""; 0]);
    for name in ["a", "b"] {
        let appended = append(&restored, name, "meanwhile");
        assert_eq!((appended.first_seq, appended.duplicate), (2, false), "{name}");
    }
}
