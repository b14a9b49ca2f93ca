//! Engines for tests: one that keeps after a power cut what was synced, and a disk that is slow, or fails, when a test
//! wants it.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::embedded::engine::{Batch, Directory, Engine, Memory, Order, Visit};
use crate::error::{Error, Result};

type Op = (Vec<u8>, Option<Vec<u8>>);

#[derive(Debug, Default)]
pub(super) struct Forgetful {
    now: Memory,
    synced: Memory,
    unsynced: Mutex<Vec<Op>>,
}

impl Forgetful {
    /// What is left of it after a power cut.
    pub(super) fn cut(&self) -> Arc<Self> {
        Self::of(&self.synced)
    }

    /// An engine that holds what another one holds, all of it synced.
    pub(super) fn of(engine: &dyn Engine) -> Arc<Self> {
        let left = Self::default();
        for pairs in [&left.now, &left.synced] {
            pairs.write(Batch { ops: all(engine) }).unwrap();
        }
        Arc::new(left)
    }
}

/// All pairs of an engine, in order.
pub(super) fn all(engine: &dyn Engine) -> Vec<Op> {
    let mut pairs = Vec::new();
    let visit = &mut |key: &[u8], value: &[u8]| {
        pairs.push((key.to_vec(), Some(value.to_vec())));
        ControlFlow::Continue(())
    };
    engine.scan(&[]..&[u8::MAX; 64], Order::Ascending, visit).unwrap();
    pairs
}

impl Engine for Forgetful {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.now.get(key)
    }

    fn scan(&self, range: Range<&[u8]>, order: Order, visit: Visit<'_>) -> Result<()> {
        self.now.scan(range, order, visit)
    }

    fn write(&self, batch: Batch) -> Result<()> {
        self.unsynced.lock().unwrap().extend(batch.ops.iter().cloned());
        self.now.write(batch)
    }

    fn sync(&self) -> Result<()> {
        let ops = std::mem::take(&mut *self.unsynced.lock().unwrap());
        self.synced.write(Batch { ops })
    }

    fn directory(&self) -> Option<&Directory> {
        None
    }
}

/// A disk whose syncs wait for permission, and fail when the test says so.
#[derive(Debug, Default)]
pub(super) struct Disk {
    memory: Memory,
    held: Mutex<bool>,
    released: Condvar,
    pub(super) fails: AtomicBool,
    waits: AtomicBool,
}

impl Disk {
    pub(super) fn hold(&self, held: bool) {
        *self.held.lock().unwrap() = held;
        self.released.notify_all();
    }

    /// Returns once somebody waits for a sync.
    pub(super) fn await_sync(&self) {
        let until = Instant::now() + Duration::from_secs(20);
        while !self.waits.load(Ordering::Acquire) {
            if Instant::now() > until {
                self.hold(false);
                panic!("nobody syncs");
            }
            std::thread::yield_now();
        }
    }
}

impl Engine for Disk {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.memory.get(key)
    }

    fn scan(&self, range: Range<&[u8]>, order: Order, visit: Visit<'_>) -> Result<()> {
        self.memory.scan(range, order, visit)
    }

    fn write(&self, batch: Batch) -> Result<()> {
        self.memory.write(batch)
    }

    fn sync(&self) -> Result<()> {
        let mut held = self.held.lock().unwrap();
        while *held {
            self.waits.store(true, Ordering::Release);
            held = self.released.wait(held).unwrap();
        }
        self.waits.store(false, Ordering::Release);
        if self.fails.load(Ordering::Acquire) {
            return Err(Error::io("sync")(std::io::Error::other("the disk is gone")));
        }
        Ok(())
    }

    fn directory(&self) -> Option<&Directory> {
        None
    }
}
