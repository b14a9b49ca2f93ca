//! Appends into batches, and records back out: heads, group commit, the listing index.
//!
//! Data flows one way. `appending` and `families` resolve a write against the queued head and queue it; `commit` writes
//! and syncs batches and publishes their heads; `catalogue` shows what is published. `state` is what they share, under one
//! lock; `stored` reads the engine for all of them; `recovery` sees to the store as a whole; `log` makes a log of it.

mod appending;
mod catalogue;
mod commit;
mod core;
pub(crate) mod engine;
mod families;
mod log;
mod recovery;
mod state;
mod stored;
mod sync;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crate::embedded::engine::Engine;
use crate::error::{Error, Result};
use crate::log::{Clock, Opening};

pub(crate) use self::core::Core;
use self::sync::{JoinHandle, Mutex};
pub(crate) use recovery::restore;

/// The log of all conversations, on an engine.
pub(crate) struct Embedded {
    core: Arc<Core>,
    background: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.fmt(f)
    }
}

impl Embedded {
    /// Opens the log on an engine. `window` is how long a buffered write may wait.
    pub(crate) fn open(engine: Arc<dyn Engine>, clock: Clock, window: Duration, opening: Opening) -> Result<Self> {
        let core = Arc::new(recovery::open(engine, clock, opening)?);
        core.commit.start();
        let background = sync::spawn("conversation-store", {
            let core = Arc::clone(&core);
            move || {
                while core.commit.wait_for_tick(window) {
                    core.appender.tick();
                }
            }
        });
        let background = background.map_err(Error::io("start the store's background thread"))?;
        Ok(Self { core, background: Mutex::new(Some(background)) })
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    fn engine(&self) -> &dyn Engine {
        &*self.core.engine
    }

    /// Returns once all that was accepted before is durable.
    pub(crate) fn flush(&self) -> Result<()> {
        self.core.appender.flush()
    }

    /// Accepts no more writes, makes every accepted write durable, and wakes all who wait. A second call waits for the
    /// first, and does nothing.
    pub(crate) fn close(&self) -> Result<()> {
        let mut background = self.background.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(thread) = background.take() else { return self.core.commit.lock().life.check_sound() };
        self.core.commit.begin_close();
        // The thread's function does not panic; if it did, there is nothing left to do for it.
        let _ = thread.join();
        let result = self
            .core
            .appender
            .drain()
            .and_then(|()| self.core.engine.directory().map_or(Ok(()), |directory| directory.watermark().sync()));
        self.core.commit.end_close();
        result
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        let _ = self.close();
    }
}
