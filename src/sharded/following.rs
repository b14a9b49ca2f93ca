//! Followers go on where the bucket of their conversation went.

use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use super::Sharded;
use super::route::Found;
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
        let id = wait.name.id();
        loop {
            let place = self.place(id);
            let asked = match self.log(place.cluster) {
                Ok(log) => log.poll_for(wait, follower, waker),
                Err(error) => return Poll::Ready(Err(error)),
            };
            match asked {
                Poll::Ready(Err(error)) if super::route::may_be_wrong(&error) => match self.find(id) {
                    Err(failed) => return Poll::Ready(Err(failed)),
                    Ok(Found::At { place: now, .. }) if now == place => return Poll::Ready(Err(error)),
                    Ok(Found::At { .. }) => {}
                    Ok(Found::Moving(_)) => {
                        let waker = waker.clone();
                        thread::spawn(move || {
                            thread::sleep(PAUSE);
                            waker.wake();
                        });
                        return Poll::Pending;
                    }
                },
                asked => return asked,
            }
        }
    }
}
