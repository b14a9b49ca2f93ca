//! This program's leases on the messages that it writes.

use std::sync::Mutex;
use std::time::Duration;

use super::lock::locked;

/// Who holds a lease, as the database knows it.
pub(super) type Holder = [u8; 16];

/// This program's leases: one is for new messages.
pub(super) struct Lease {
    holders: Mutex<Holders>,
    length: Duration,
}

#[derive(Default)]
struct Holders {
    current: Option<Holder>,
    /// Kept while messages are written under them, and for no new ones.
    retired: Vec<Holder>,
}

impl Lease {
    pub(super) fn new(length: Duration) -> Self {
        Self { holders: Mutex::default(), length }
    }

    /// The holder for new messages.
    pub(super) fn current(&self) -> Option<Holder> {
        locked(&self.holders).current
    }

    /// Takes a holder for new messages, unless there is one by now.
    pub(super) fn take(&self, holder: Holder) -> Holder {
        *locked(&self.holders).current.get_or_insert(holder)
    }

    /// Begins no more messages under a holder: nobody here knows all messages that were begun under it.
    pub(super) fn retire(&self, holder: Holder) {
        let mut holders = locked(&self.holders);
        if holders.current == Some(holder) {
            holders.current = None;
            holders.retired.push(holder);
        }
    }

    /// The holders whose leases are kept. `is_held`: whether a message is written under a retired one.
    pub(super) fn kept(&self, is_held: impl Fn(Holder) -> bool) -> Vec<Holder> {
        let mut holders = locked(&self.holders);
        holders.retired.retain(|holder| is_held(*holder));
        holders.retired.iter().copied().chain(holders.current).collect()
    }

    /// All holders; there are none any more.
    pub(super) fn end(&self) -> Vec<Holder> {
        let Holders { current, retired } = std::mem::take(&mut *locked(&self.holders));
        retired.into_iter().chain(current).collect()
    }

    /// It has run out: the next message is begun under a new one.
    pub(super) fn forget(&self, holder: Holder) {
        let mut holders = locked(&self.holders);
        holders.retired.retain(|retired| *retired != holder);
        if holders.current == Some(holder) {
            holders.current = None;
        }
    }

    /// Its length.
    pub(super) fn seconds(&self) -> f64 {
        self.length.as_secs_f64()
    }
}
