//! This program's leases on the messages that it writes.

use std::sync::Mutex;
use std::time::Duration;

use crate::log::locked;

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
    /// One for each message that is being begun.
    beginning: Vec<Holder>,
    /// Kept while messages are written under them, and for no new ones.
    retired: Vec<Holder>,
}

/// A message that is being begun: the lease of its holder is kept until it is written, or given up.
pub(super) struct Beginning<'a> {
    lease: &'a Lease,
    pub(super) holder: Holder,
}

impl Drop for Beginning<'_> {
    fn drop(&mut self) {
        let mut holders = locked(&self.lease.holders);
        if let Some(at) = holders.beginning.iter().position(|holder| *holder == self.holder) {
            holders.beginning.swap_remove(at);
        }
    }
}

impl Lease {
    pub(super) fn new(length: Duration) -> Self {
        Self { holders: Mutex::default(), length }
    }

    /// The holder for a new message, if there is one.
    pub(super) fn current(&self) -> Option<Beginning<'_>> {
        let mut holders = locked(&self.holders);
        let holder = holders.current?;
        holders.beginning.push(holder);
        Some(Beginning { lease: self, holder })
    }

    /// Takes a holder for new messages, unless there is one by now.
    pub(super) fn take(&self, holder: Holder) -> Beginning<'_> {
        let mut holders = locked(&self.holders);
        let holder = *holders.current.get_or_insert(holder);
        holders.beginning.push(holder);
        Beginning { lease: self, holder }
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
        let Holders { beginning, retired, current } = &mut *holders;
        retired.retain(|holder| beginning.contains(holder) || is_held(*holder));
        retired.iter().copied().chain(*current).collect()
    }

    /// All holders; there are none any more.
    pub(super) fn end(&self) -> Vec<Holder> {
        let Holders { current, retired, .. } = std::mem::take(&mut *locked(&self.holders));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A message may be begun under a holder that is retired meanwhile: it is a living program's.
    #[test]
    fn a_lease_is_kept_while_a_message_begins_under_it() {
        let lease = Lease::new(Duration::from_secs(1));
        let (first, second) = (lease.take([1; 16]), lease.current().unwrap());
        lease.retire(first.holder);
        drop(first);
        assert!(lease.current().is_none());
        assert_eq!(lease.kept(|_| false), [[1; 16]]);
        drop(second);
        assert_eq!(lease.kept(|_| true), [[1; 16]], "by now it is written");
        assert_eq!(lease.kept(|_| false), [] as [Holder; 0]);
    }
}
