//! This program's lease on the messages that it writes.

use std::sync::Mutex;
use std::time::Duration;

use super::lock::locked;

/// This program's lease.
pub(super) struct Lease {
    pub(super) holder: Mutex<Option<[u8; 16]>>,
    length: Duration,
}

impl Lease {
    pub(super) fn new(length: Duration) -> Self {
        Self { holder: Mutex::default(), length }
    }

    /// It has run out: the next message is begun under a new one.
    pub(super) fn forget(&self, holder: [u8; 16]) {
        let mut current = locked(&self.holder);
        if *current == Some(holder) {
            *current = None;
        }
    }

    /// Its length.
    pub(super) fn seconds(&self) -> f64 {
        self.length.as_secs_f64()
    }
}
