//! Openings that accept a loss, and are cut off.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::super::{Embedded, Opening};
use super::damage::{open, problems, store};
use super::engines::all;
use crate::embedded::engine::{Batch, Directory, Engine, Memory, Order, Visit};
use crate::error::{Error, Result};
use crate::model::{Name, Timestamp};
use crate::record::{self, Lost, key};

/// An engine that takes so many writes, and no more.
#[derive(Debug)]
struct Cut {
    engine: Arc<dyn Engine>,
    left: AtomicUsize,
}

impl Engine for Cut {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.engine.get(key)
    }

    fn scan(&self, range: Range<&[u8]>, order: Order, visit: Visit<'_>) -> Result<()> {
        self.engine.scan(range, order, visit)
    }

    fn write(&self, batch: Batch) -> Result<()> {
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 {
            return Err(Error::io("write")(std::io::Error::other("the power is cut")));
        }
        self.left.store(left - 1, Ordering::Relaxed);
        self.engine.write(batch)
    }

    fn sync(&self) -> Result<()> {
        self.engine.sync()
    }

    fn damage(&self) -> Option<&str> {
        self.engine.damage()
    }

    fn directory(&self) -> Option<&Directory> {
        self.engine.directory()
    }
}

/// A store that was restored from the backup of one that had lost something.
fn with_a_loss() -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let engine = store();
    let lost_key = key::meta(key::LOST);
    let lost = Lost { acknowledged: 0, unknown: Some("something is lost".to_owned()) };
    let lost = record::seal(&lost_key, &lost).unwrap();
    let last = key::record(Name::from("a").id(), 3);
    assert!(engine.get(&last).unwrap().is_some());
    engine.write(Batch { ops: vec![(lost_key, Some(lost)), (last, None)] }).unwrap();
    all(&*engine)
}

/// Opens a store and accepts its loss, in so many writes; whether that was enough.
fn accept(engine: Arc<dyn Engine>, writes: usize) -> bool {
    let engine = Arc::new(Cut { engine, left: AtomicUsize::new(writes) });
    let opening = Opening { accept_loss: true, ..Opening::default() };
    Embedded::open(engine, Arc::new(Timestamp::now), Duration::from_secs(3600), opening).is_ok()
}

#[test]
fn a_loss_is_known_until_what_is_left_of_it_is_repaired() {
    let pairs = with_a_loss();
    for writes in 0.. {
        let memory = Arc::new(Memory::default());
        memory.write(Batch { ops: pairs.clone() }).unwrap();
        let is_accepted = accept(Arc::clone(&memory) as _, writes);
        let log = open(&memory);
        let is_blocked = log.core().commit.lock().life.blocked().is_some();
        if is_accepted || !is_blocked {
            assert_eq!(problems(&log), [""; 0], "after {writes} writes");
        }
        if is_accepted {
            assert!(!is_blocked && writes > 2, "after {writes} writes");
            break;
        }
    }
}

/// A store that is blocked for its loss is backed up with that.
#[test]
fn a_backup_knows_what_its_store_had_lost() {
    let memory = Arc::new(Memory::default());
    memory.write(Batch { ops: with_a_loss() }).unwrap();
    let is_blocked = |log: &Embedded| log.core().commit.lock().life.blocked().is_some();
    let log = open(&memory);
    assert!(is_blocked(&log));
    let dir = tempfile::tempdir().unwrap();
    crate::log::Log::backup(&log, &dir.path().join("backup"), &mut |_, _| ()).unwrap();
    let restored = Arc::new(Memory::default());
    let engine: Arc<dyn Engine> = Arc::clone(&restored) as _;
    super::super::restore(&dir.path().join("backup"), &engine, &mut |_, _| ()).unwrap();
    assert!(is_blocked(&open(&restored)));
}

/// What a store's directory has beside the engine's data is of another store, or of a later moment.
#[cfg(feature = "sled")]
#[test]
fn data_that_are_not_those_that_were_there_are_told() {
    use crate::log::{AppendOptions, Changes, Log};
    use crate::model::Message;

    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    let copy = |from: &str, to: &str| std::fs::copy(place(from), place(to)).map(drop).unwrap();
    let opened = |name: &str| {
        let engine = crate::embedded::engine::open(&format!("sled:{}", place(name).display())).unwrap();
        Embedded::open(engine, Arc::new(Timestamp::now), Duration::from_secs(3600), Opening::default()).unwrap()
    };
    let append = |name: &str| {
        let log = opened(name);
        log.append(&Name::from("chat"), &[Message::user("hello")], &Changes::new(), &AppendOptions::new()).unwrap();
        log.core().commit.lock().last_commit().number
    };
    let why = |name: &str| {
        let log = opened(name);
        let state = log.core().commit.lock();
        state.life.blocked().map_or_else(String::new, |blocked| format!("{blocked:?}"))
    };
    append("other");
    append("store");
    for (file, name) in [("watermark", "earlier"), ("CONVERSATION-STORE", "marker")] {
        copy(&format!("store/{file}"), name);
    }
    let earlier = std::fs::read(place("earlier")).unwrap();
    // The marker of another store, and then its watermark where nothing says that there was a store.
    copy("other/CONVERSATION-STORE", "store/CONVERSATION-STORE");
    assert!(why("store").contains("names the store"));
    std::fs::remove_file(place("store/CONVERSATION-STORE")).unwrap();
    copy("other/watermark", "store/watermark");
    assert!(why("store").contains("`watermark`"));
    copy("marker", "store/CONVERSATION-STORE");
    std::fs::write(place("store/watermark"), earlier).unwrap();
    assert_eq!(why("store"), "");
    // One commit later.
    std::fs::create_dir(place("back")).unwrap();
    for file in std::fs::read_dir(place("store")).unwrap().map(std::result::Result::unwrap) {
        if file.file_type().unwrap().is_file() {
            std::fs::copy(file.path(), place("back").join(file.file_name())).unwrap();
        }
    }
    let last = append("store");
    copy("store/watermark", "back/watermark");
    assert_eq!(why("back"), format!("WentBack {{ from: {}, to: {last} }}", last - 1));
}

/// The journal of a store is damaged, and the number of the last commit beside it is an early one, as after a power cut.
#[cfg(feature = "sled")]
#[test]
fn damage_of_the_journal_is_known_until_what_is_left_is_repaired() {
    use crate::log::{AppendOptions, Changes, Log};
    use crate::model::Message;

    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    let url = |name: &str| format!("sled:{}", place(name).display());
    let copied = |from: &str, to: &str| {
        std::fs::create_dir(place(to)).unwrap();
        for file in std::fs::read_dir(place(from)).unwrap().map(std::result::Result::unwrap) {
            if file.file_type().unwrap().is_file() {
                std::fs::copy(file.path(), place(to).join(file.file_name())).unwrap();
            }
        }
    };
    let opened = |name: &str| {
        let engine = crate::embedded::engine::open(&url(name)).unwrap();
        Embedded::open(engine, Arc::new(Timestamp::now), Duration::from_secs(3600), Opening::default()).unwrap()
    };
    let log = opened("store");
    for number in 0..20 {
        let line = Message::user(format!("line {number}"));
        log.append(&Name::from("chat"), &[line], &Changes::new(), &AppendOptions::new()).unwrap();
        if number == 2 {
            std::fs::copy(place("store").join("watermark"), place("early")).unwrap();
        }
    }
    copied("store", "killed");
    drop(log);
    std::fs::copy(place("early"), place("killed").join("watermark")).unwrap();
    let mut journal = std::fs::read(place("killed").join("journal")).unwrap();
    let records: Vec<usize> = (0..journal.len()).step_by(512).filter(|at| journal[*at..at + 32] != [0; 32]).collect();
    journal[records[records.len() - 8] + 40] ^= 1;
    std::fs::write(place("killed").join("journal"), journal).unwrap();
    for writes in 0.. {
        let name = format!("after {writes}");
        copied("killed", &name);
        let is_accepted = accept(crate::embedded::engine::open(&url(&name)).unwrap(), writes);
        let log = opened(&name);
        let is_blocked = log.core().commit.lock().life.blocked().is_some();
        // The first is the one with which the journal's damage is gone, the second repairs.
        assert!(is_blocked || writes > 1, "after {writes} writes");
        if !is_blocked {
            assert_eq!(problems(&log), [""; 0], "after {writes} writes");
        }
        if is_accepted {
            assert!(!is_blocked && writes > 2, "after {writes} writes");
            break;
        }
    }
}
