//! A flush of sled's may wait for a write that has failed already: sled notes the error, and wakes nobody
//! (`exit_reservation` in its `pagecache/logger.rs`). A thread that flushes after that gets the error at once, and
//! wakes those who wait. This thread does so for the one that commits.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::error::{Error, Result};

/// How long a flush may wait before this thread checks it.
const PATIENCE: Duration = Duration::from_millis(250);

/// The thread. It sleeps while nothing is flushed.
#[derive(Debug)]
pub(super) struct Watch {
    flushes: Arc<Flushes>,
    /// Absent only during the drop.
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Flushes {
    begun: AtomicU64,
    ended: AtomicU64,
    sleeps: AtomicBool,
    stop: AtomicBool,
}

impl Watch {
    pub(super) fn start(config: sled::Config, db: sled::Db) -> Result<Self> {
        let flushes = Arc::new(Flushes::default());
        let watched = Arc::clone(&flushes);
        let thread = thread::Builder::new().name("conversation-store-sled".to_owned());
        let thread = thread.spawn(move || watched.watch(&config, &db)).map_err(Error::io("start a thread for sled"))?;
        Ok(Self { flushes, thread: Some(thread) })
    }

    /// Flushes, watched.
    pub(super) fn flush<T>(&self, flush: impl FnOnce() -> T) -> T {
        self.flushes.begun.fetch_add(1, Ordering::SeqCst);
        if self.flushes.sleeps.swap(false, Ordering::SeqCst) {
            self.wake();
        }
        let flushed = flush();
        self.flushes.ended.fetch_add(1, Ordering::SeqCst);
        flushed
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.flushes.stop.store(true, Ordering::SeqCst);
        self.wake();
        if let Some(thread) = self.thread.take() {
            // It catches sled's panics.
            let _ = thread.join();
        }
    }
}

impl Flushes {
    fn watch(&self, config: &sled::Config, db: &sled::Db) {
        let mut seen = 0;
        while !self.stop.load(Ordering::SeqCst) {
            let begun = self.begun.load(Ordering::SeqCst);
            let is_waiting = self.ended.load(Ordering::SeqCst) < begun;
            if is_waiting && begun == seen && config.global_error().is_err() {
                // It fails at once; that is its only purpose.
                let _ = catch_unwind(AssertUnwindSafe(|| db.flush()));
            }
            if is_waiting || begun != seen {
                seen = begun;
                thread::park_timeout(PATIENCE);
                continue;
            }
            self.sleeps.store(true, Ordering::SeqCst);
            if self.begun.load(Ordering::SeqCst) == seen {
                thread::park();
            }
            self.sleeps.store(false, Ordering::SeqCst);
        }
    }
}
