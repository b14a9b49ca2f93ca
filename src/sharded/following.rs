//! Followers go on where the bucket of their conversation went.

use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use super::Sharded;
use super::route::{Found, may_be_wrong};
use crate::error::Result;
use crate::log::{Log, Wait};

/// When a follower looks again whose bucket is being moved.
const PAUSE: Duration = Duration::from_millis(50);

impl Sharded {
    /// Waits until a conversation's incarnation has an entry after a seq.
    pub(super) fn wait_for(&self, wait: &Wait<'_>) -> Result<bool> {
        let begun = Instant::now();
        let wait_on = |log: &dyn Log| {
            let timeout = wait.timeout.saturating_sub(begun.elapsed());
            log.wait_for(&Wait { timeout, ..*wait })
        };
        self.ask(wait.name.id(), |log| wait_on(log), |_| false)
    }

    /// As [`Sharded::wait_for`], for a follower that is woken when it should ask again.
    pub(super) fn poll_for(&self, wait: &Wait<'_>, follower: u64, waker: &Waker) -> Poll<Result<()>> {
        let (id, mut looked) = (wait.name.id(), None);
        loop {
            let asked = self.asked(id);
            let log = match self.log(asked.place.cluster) {
                Ok(log) => log,
                Err(error) => return Poll::Ready(Err(error)),
            };
            match log.poll_for(wait, follower, waker) {
                Poll::Ready(Err(error)) if may_be_wrong(&error) => match self.find(id) {
                    Err(failed) => return Poll::Ready(Err(failed)),
                    Ok(Found::At { place: now, .. }) if looked.is_some_and(|before| self.has_stayed(before, now)) => {
                        return Poll::Ready(Err(error));
                    }
                    // What is known there may be from before the bucket left, and came back.
                    Ok(Found::At { place: now, .. }) if now == asked.place => {
                        looked = Some(self.asked(id));
                        if let Err(failed) = log.look_again(id) {
                            return Poll::Ready(Err(failed));
                        }
                    }
                    // It asks there no more.
                    Ok(Found::At { .. }) => log.wake(wait.name, follower),
                    Ok(Found::Moving(_)) => {
                        let waker = waker.clone();
                        thread::spawn(move || {
                            thread::sleep(PAUSE);
                            waker.wake();
                        });
                        return Poll::Pending;
                    }
                },
                polled => return polled,
            }
        }
    }
}
