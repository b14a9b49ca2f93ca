//! A disk that is slow, or fails, when a test wants it.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::embedded::engine::{Batch, Directory, Engine, Memory, Order, Visit};
use crate::error::{Error, Result};

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
