//! Reading and following: what is read of a conversation while its bucket moves goes on in the other cluster, where it was.

use std::ops::{ControlFlow, RangeInclusive};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use super::Sharded;
use super::places::Asked;
use super::route::{Found, Patience, may_be_wrong};
use crate::error::Result;
use crate::log::{Log, Order, Reading, View, Visit, Wait};

/// What is still to be read, and whether a part of it is missing where it is read.
struct Left {
    start: u64,
    end: u64,
    order: Order,
}

impl Left {
    const fn is_empty(&self) -> bool {
        self.start > self.end
    }

    /// Takes the seqs of a record. False: some before it were not read.
    fn take(&mut self, first: u64, last: u64) -> bool {
        let follows = match self.order {
            Order::Ascending => first <= self.start,
            Order::Descending => last >= self.end,
        };
        if follows {
            match self.order {
                Order::Ascending => self.start = last.saturating_add(1),
                Order::Descending => self.end = first.saturating_sub(1),
            }
        }
        follows
    }
}

impl Sharded {
    /// Shows the records that hold the seqs of a range of a view. What is missing may be so because the bucket has left: then
    /// the rest is read where it is now.
    pub(super) fn read(&self, view: &View, seqs: RangeInclusive<u64>, order: Order, visit: Visit<'_>) -> Result<()> {
        let mut patience = self.patience();
        let mut left = Left { start: *seqs.start(), end: (*seqs.end()).min(view.last_seq()), order };
        loop {
            let asked = self.places.asked(view.id);
            let (mut has_left, mut has_ended, mut failed) = (false, false, Ok(()));
            self.log(asked.place.cluster)?.read(view, left.start..=left.end, order, &mut |reading| {
                let is_next = match &reading {
                    Reading::Record { record, last, .. } => {
                        let through = (record.first_seq + record.len().max(1) - 1).min(*last);
                        left.take(record.first_seq, through)
                    }
                    Reading::Damaged(_) => false,
                    Reading::Stray(_) => true,
                };
                if !is_next {
                    match self.left(view, asked, &mut patience) {
                        Ok(left) => has_left = left,
                        Err(error) => failed = Err(error),
                    }
                    if has_left || failed.is_err() {
                        return ControlFlow::Break(());
                    }
                    if let Reading::Record { record, last, .. } = &reading {
                        // What is missing before it is damage, and was reported.
                        let through = (record.first_seq + record.len().max(1) - 1).min(*last);
                        match order {
                            Order::Ascending => left.start = through.saturating_add(1),
                            Order::Descending => left.end = record.first_seq.saturating_sub(1),
                        }
                    }
                }
                let flow = visit(reading);
                has_ended = flow.is_break();
                flow
            })?;
            failed?;
            if !has_left && (has_ended || left.is_empty() || !self.left(view, asked, &mut patience)?) {
                return Ok(());
            }
        }
    }

    /// The seqs of entries that may bear a provider's item id, in order: so many of the last.
    pub(super) fn item_seqs(&self, view: &View, item: &str, most: usize) -> Result<Vec<u64>> {
        let mut patience = self.patience();
        loop {
            let asked = self.places.asked(view.id);
            let seqs = self.log(asked.place.cluster)?.item_seqs(view, item, most)?;
            // One statement gives those of one log: they are all there, or none is.
            let is_whole = !seqs.is_empty() && view.head.parent.is_none();
            if is_whole || !self.left(view, asked, &mut patience)? {
                return Ok(seqs);
            }
        }
    }

    /// Whether the conversation of a view was not all the time where it was read; after a moment, if its bucket is on its way.
    fn left(&self, view: &View, asked: Asked, patience: &mut Patience) -> Result<bool> {
        match self.find(view.id)? {
            Found::At { place: now, .. } => Ok(!self.places.has_stayed(asked, now)),
            Found::Moving(bucket) => patience.again(bucket).map(|()| true),
        }
    }
}

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
            let asked = self.places.asked(id);
            let log = match self.log(asked.place.cluster) {
                Ok(log) => log,
                Err(error) => return Poll::Ready(Err(error)),
            };
            match log.poll_for(wait, follower, waker) {
                Poll::Ready(Err(error)) if may_be_wrong(&error) => match self.find(id) {
                    Err(failed) => return Poll::Ready(Err(failed)),
                    Ok(Found::At { place: now, .. })
                        if looked.is_some_and(|before| self.places.has_stayed(before, now)) =>
                    {
                        return Poll::Ready(Err(error));
                    }
                    // What is known there may be from before the bucket left, and came back.
                    Ok(Found::At { place: now, .. }) if now == asked.place => {
                        looked = Some(self.places.asked(id));
                        if let Err(failed) = log.followed.look(id) {
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
