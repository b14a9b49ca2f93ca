//! Openings that accept a loss, and are cut off.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::super::{Embedded, Opening};
use super::forgetful::all;
use super::lost::{open, problems, store};
use crate::embedded::engine::{Batch, Directory, Engine, Memory, Order, Visit};
use crate::error::{Error, Result};
use crate::model::{Name, Timestamp};
use crate::record::{self, Lost, key};

/// An engine that takes so many writes, and no more.
#[derive(Debug)]
struct Cut {
    memory: Arc<Memory>,
    left: AtomicUsize,
}

impl Engine for Cut {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.memory.get(key)
    }

    fn scan(&self, range: Range<&[u8]>, order: Order, visit: Visit<'_>) -> Result<()> {
        self.memory.scan(range, order, visit)
    }

    fn write(&self, batch: Batch) -> Result<()> {
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 {
            return Err(Error::io("write")(std::io::Error::other("the power is cut")));
        }
        self.left.store(left - 1, Ordering::Relaxed);
        self.memory.write(batch)
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn directory(&self) -> Option<&Directory> {
        None
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

#[test]
fn a_loss_is_known_until_what_is_left_of_it_is_repaired() {
    let pairs = with_a_loss();
    for writes in 0.. {
        let memory = Arc::new(Memory::default());
        memory.write(Batch { ops: pairs.clone() }).unwrap();
        let engine = Arc::new(Cut { memory: Arc::clone(&memory), left: AtomicUsize::new(writes) });
        let opening = Opening { accept_loss: true, ..Opening::default() };
        let opened =
            Embedded::open(Arc::clone(&engine) as _, Arc::new(Timestamp::now), Duration::from_secs(3600), opening);
        let is_accepted = opened.is_ok();
        drop(opened);
        let log = open(&memory);
        let is_blocked = log.core().lock().blocked.is_some();
        if is_accepted || !is_blocked {
            assert_eq!(problems(&log), [""; 0], "after {writes} writes");
        }
        if is_accepted {
            assert!(!is_blocked && writes > 2, "after {writes} writes");
            break;
        }
    }
}
