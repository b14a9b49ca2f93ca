//! The background thread's clock: when there is something to queue and to commit.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use crate::embedded::sync::{self, Condvar, Mutex, MutexGuard};

/// Wakes the background thread one window after something was buffered.
#[derive(Debug, Default)]
pub(crate) struct Ticker {
    signal: Mutex<Signal>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Signal {
    /// When the first write was buffered that no tick has seen yet.
    since: Option<Instant>,
    hurry: bool,
    /// A thread waits for ticks, or will.
    runs: bool,
}

impl Ticker {
    /// Something was buffered: a tick is due one window from now, if none is due before.
    pub(crate) fn wake(&self) {
        let mut signal = self.lock();
        if signal.since.is_none() {
            signal.since = Some(sync::now());
            self.changed.notify_all();
        }
    }

    /// A tick is due now. False: no tick comes, because the store is being opened or closed.
    pub(super) fn hurry(&self) -> bool {
        let mut signal = self.lock();
        signal.hurry = true;
        self.changed.notify_all();
        signal.runs
    }

    /// Ticks come from now on.
    pub(crate) fn start(&self) {
        self.lock().runs = true;
    }

    /// No more ticks come.
    pub(crate) fn stop(&self) {
        self.lock().runs = false;
        self.changed.notify_all();
    }

    /// Blocks until a tick is due. False: the ticker was stopped.
    pub(crate) fn wait(&self, window: Duration) -> bool {
        let mut signal = self.lock();
        loop {
            let left = signal.since.map(|since| window.saturating_sub(sync::now() - since));
            if !signal.runs {
                return false;
            }
            if signal.hurry || left == Some(Duration::ZERO) {
                (signal.since, signal.hurry) = (None, false);
                return true;
            }
            signal = match left {
                Some(left) => self.changed.wait_timeout(signal, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.changed.wait(signal).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, Signal> {
        self.signal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
