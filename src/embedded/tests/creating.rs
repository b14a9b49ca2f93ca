//! A conversation that is being created while a backup comes to it: an engine may show a part of a commit.

use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::super::{Embedded, Opening, restore};
use super::lost::problems;
use crate::embedded::engine::{Batch, Directory, Engine, Memory, Order, Visit};
use crate::error::Result;
use crate::log::{AppendOptions, Log};
use crate::model::{Message, Timestamp};
use crate::record::key;

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
        log.core().appender.append(&name.into(), &[Message::user("hello")], &AppendOptions::new()).unwrap();
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
