//! Whether the log takes writes, and the times that it gives them.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};
use crate::log::Clock;
use crate::log::options::not_later;
use crate::model::Timestamp;

/// What every write passes.
pub(super) struct Gate {
    clock: Clock,
    read_only: bool,
    closed: AtomicBool,
}

impl Gate {
    pub(super) fn new(clock: Clock, read_only: bool) -> Self {
        Self { clock, read_only, closed: AtomicBool::new(false) }
    }

    pub(super) fn now(&self) -> i64 {
        (self.clock)().as_micros()
    }

    /// A time that was given, unless it is still to come; else now.
    pub(super) fn past(&self, time: Option<Timestamp>) -> i64 {
        not_later(time, self.now())
    }

    pub(super) const fn is_read_only(&self) -> bool {
        self.read_only
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Takes no more writes. Whether it took some before.
    pub(super) fn close(&self) -> bool {
        !self.closed.swap(true, Ordering::AcqRel)
    }

    /// Fails if nothing may be written.
    pub(super) fn check_writable(&self) -> Result<()> {
        match (self.is_closed(), self.read_only) {
            (true, _) => Err(Error::Closed),
            (_, true) => Err(Error::ReadOnly),
            _ => Ok(()),
        }
    }
}
