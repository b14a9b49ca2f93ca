//! The background thread: one commit window after something was buffered, it is committed.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Tells the background thread that there is work.
#[derive(Debug, Default)]
pub(super) struct Ticker {
    signal: Mutex<Signal>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Signal {
    work: bool,
    hurry: bool,
    stop: bool,
}

impl Ticker {
    /// There is work, for one window from now.
    pub(super) fn wake(&self) {
        let mut signal = self.signal.lock().unwrap_or_else(PoisonError::into_inner);
        if !signal.work {
            signal.work = true;
            self.changed.notify_all();
        }
    }

    /// There is work, for now.
    pub(super) fn hurry(&self) {
        let mut signal = self.signal.lock().unwrap_or_else(PoisonError::into_inner);
        signal.work = true;
        signal.hurry = true;
        self.changed.notify_all();
    }

    pub(super) fn stop(&self) {
        self.signal.lock().unwrap_or_else(PoisonError::into_inner).stop = true;
        self.changed.notify_all();
    }

    /// Blocks until there is work, and then for the window. False: stop.
    pub(super) fn wait(&self, window: Duration) -> bool {
        let mut signal = self.signal.lock().unwrap_or_else(PoisonError::into_inner);
        while !signal.work && !signal.stop {
            signal = self.changed.wait(signal).unwrap_or_else(PoisonError::into_inner);
        }
        let waited = self.changed.wait_timeout_while(signal, window, |signal| !signal.hurry && !signal.stop);
        let (mut signal, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (signal.work, signal.hurry) = (false, false);
        !signal.stop
    }
}
