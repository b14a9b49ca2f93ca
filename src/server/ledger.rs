//! The bytes that requests make the server hold, counted against one bound: bodies and what is made of them, what is read of the
//! store, answers until they are sent, what followers have not read, what an ingested answer waits for.
//!
//! Bytes are taken before they are held. A request whose bytes do not fit waits for a while, and is then refused. Bytes are
//! given back when nothing holds them any more, also if a client has gone.
//!
//! A log around the log, for one request: what is read of the store counts as what the request holds, before anything is made of
//! it.

use std::collections::HashMap;
use std::fmt;
use std::ops::{ControlFlow, RangeInclusive};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::refusal::Refusal;
use crate::error::{Error, Result};
use crate::log::{Around, Log, Order, Reading, View, Visit, locked};
use crate::store::Store;

/// How long a request waits for others to give bytes back.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most bytes that a connection is given at one time.
const PIECE: usize = 64 * 1024;

/// All bytes, and those of each owner.
#[derive(Debug)]
pub(crate) struct Ledger {
    most: usize,
    /// What one owner may hold: others always find the rest.
    share: usize,
    held: Mutex<Held>,
    freed: Notify,
    gauge: Gauge,
}

#[derive(Debug, Default)]
struct Held {
    all: usize,
    of: HashMap<String, usize>,
}

impl Ledger {
    /// One body of the largest size is taken, however the bounds are set.
    pub(crate) fn new(most: usize, body: usize, gauge: Gauge) -> Self {
        let share = (most / 4 * 3).max(body).min(most);
        Self { most, share, held: Mutex::default(), freed: Notify::new(), gauge }
    }

    /// What one owner may hold.
    pub(crate) const fn share(&self) -> usize {
        self.share
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        locked(&self.held)
    }

    /// Room of an owner, which holds nothing yet.
    pub(crate) fn room(self: &Arc<Self>, owner: &str) -> Room {
        Room { ledger: Arc::clone(self), owner: owner.to_owned(), bytes: Mutex::new(0), wanted: Mutex::new(0) }
    }

    /// Counts what an owner has more, or less, if it fits, or has to.
    fn change(&self, owner: &str, from: usize, to: usize, must_fit: bool) -> bool {
        let mut held = self.held();
        let of = held.of.get(owner).copied().unwrap_or(0);
        let (all, of) = ((held.all + to).saturating_sub(from), (of + to).saturating_sub(from));
        if must_fit && to > from && (all > self.most || of > self.share) {
            return false;
        }
        held.all = all;
        if of == 0 {
            held.of.remove(owner);
        } else if let Some(known) = held.of.get_mut(owner) {
            *known = of;
        } else {
            held.of.insert(owner.to_owned(), of);
        }
        self.gauge.set(i64::try_from(all).unwrap_or(i64::MAX));
        drop(held);
        if to < from {
            self.freed.notify_waiters();
        }
        true
    }
}

/// What one request, or a part of one, holds.
#[derive(Debug)]
pub(crate) struct Room {
    ledger: Arc<Ledger>,
    owner: String,
    bytes: Mutex<usize>,
    /// What did not fit the last time.
    wanted: Mutex<usize>,
}

impl Room {
    /// Holds at least so many bytes.
    ///
    /// `Busy` if they do not fit now, and `LimitExceeded` if they never do.
    pub(crate) fn reach(&self, wanted: usize) -> Result<(), Error> {
        let mut bytes = locked(&self.bytes);
        if wanted <= *bytes {
            return Ok(());
        }
        if wanted > self.ledger.share {
            let limit = format!("{} bytes: three quarters of limits.held_bytes", self.ledger.share);
            return Err(Error::LimitExceeded {
                what: "what one request makes the server hold",
                actual: format!("{wanted} bytes"),
                limit,
            });
        }
        if !self.ledger.change(&self.owner, *bytes, wanted, true) {
            *locked(&self.wanted) = wanted;
            return Err(Error::Busy("the server is at its limit of bytes in memory (limits.held_bytes)".to_owned()));
        }
        *bytes = wanted;
        Ok(())
    }

    /// As [`Room::reach`], after waiting for others to give bytes back, if that is needed.
    pub(crate) async fn wait(&self, wanted: usize) -> Result<(), Refusal> {
        let end = Instant::now() + PATIENCE;
        loop {
            // Asked for before the look, so that nothing is missed between.
            let freed = self.ledger.freed.notified();
            match self.reach(wanted) {
                Err(Error::Busy(_)) if timeout_at(end, freed).await.is_ok() => {}
                reached => return Ok(reached?),
            }
        }
    }

    /// What did not fit the last time, if something did not.
    pub(crate) fn take_wanted(&self) -> Option<usize> {
        Some(std::mem::take(&mut *locked(&self.wanted))).filter(|wanted| *wanted > 0)
    }

    /// Holds so many bytes from now on, whether they fit or not: they are there already.
    pub(crate) fn keep(&self, left: usize) {
        let mut bytes = locked(&self.bytes);
        self.ledger.change(&self.owner, *bytes, left, false);
        *bytes = left;
    }

    /// Bytes that count until nothing has them any more, in place of what was held until now.
    pub(crate) fn hold(&self, bytes: Bytes) -> Bytes {
        let room = self.ledger.room(&self.owner);
        self.keep(0);
        room.keep(bytes.len());
        Bytes::from_owner(Counted { bytes, _room: room })
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.keep(0);
    }
}

struct Counted {
    bytes: Bytes,
    _room: Room,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// An answer that a connection gets in small pieces: it may copy what it is given, and that is not counted.
pub(crate) struct InPieces {
    from: Body,
    current: Bytes,
}

impl InPieces {
    pub(crate) fn of(from: Body) -> Body {
        Body::new(Self { from, current: Bytes::new() })
    }
}

impl http_body::Body for InPieces {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.current.is_empty() {
            match ready!(Pin::new(&mut self.from).poll_frame(context)) {
                Some(Ok(frame)) if frame.is_data() => self.current = frame.into_data().unwrap_or_default(),
                other => return Poll::Ready(other),
            }
        }
        let length = self.current.len().min(PIECE);
        Poll::Ready(Some(Ok(Frame::data(self.current.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.current.is_empty() && self.from.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (from, current) = (self.from.size_hint(), self.current.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(from.lower() + current);
        if let Some(upper) = from.upper() {
            hint.set_upper(upper + current);
        }
        hint
    }
}

/// A byte of a record is held as the record, as a message, and in the answer, which grows by doubling.
const HELD: usize = 4;
/// What a byte takes in addition that JSON or HTML writes as an escape: one of a control character is six bytes long.
const ESCAPED: usize = 4;
const CONTROL: usize = 12;
/// Bytes that are counted at one time; fewer are not.
const STEP: usize = 64 * 1024;

struct Metered {
    log: Arc<dyn Log>,
    room: Arc<Room>,
}

impl fmt::Debug for Metered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.log.fmt(f)
    }
}

/// The store, for a request that holds what it reads.
pub(crate) fn metered(store: &Store, room: &Arc<Room>) -> Store {
    store.clone().around(|log| Metered { log, room: Arc::clone(room) })
}

/// What is held for the content of a record.
fn weight(content: &[u8]) -> usize {
    let (mut escaped, mut control) = (0, 0);
    // So many have counts that are bytes themselves: the compiler counts many at one time then.
    for part in content.chunks(usize::from(u8::MAX)) {
        let (mut escaped_here, mut control_here) = (0_u8, 0_u8);
        for byte in part {
            let is_escaped = matches!(byte, b'\n' | b'\t' | b'\r' | b'"' | b'\\' | b'<' | b'>' | b'&' | b'\'');
            escaped_here += u8::from(is_escaped);
            control_here += u8::from(*byte < 0x20 && !is_escaped);
        }
        escaped += usize::from(escaped_here);
        control += usize::from(control_here);
    }
    HELD * content.len() + ESCAPED * escaped + CONTROL * control
}

impl Around for Metered {
    fn log(&self) -> &dyn Log {
        &*self.log
    }

    /// A request reads several times, and drops most of what it read before: the largest of its reads counts.
    fn read(&self, view: &View, seqs: RangeInclusive<u64>, order: Order, visit: Visit<'_>) -> Result<()> {
        let (mut held, mut counted, mut fits) = (0_usize, 0, Ok(()));
        self.log.read(view, seqs, order, &mut |reading| {
            if let Reading::Record { record, .. } = &reading {
                held = held.saturating_add(weight(record.content()));
                if held - counted >= STEP {
                    counted = held;
                    fits = self.room.reach(held);
                }
            }
            if fits.is_ok() { visit(reading) } else { ControlFlow::Break(()) }
        })?;
        fits
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[test]
    fn no_owner_takes_all_and_all_take_no_more_than_the_bound() {
        let ledger = Arc::new(Ledger::new(100, 10, Gauge::default()));
        let (ada, again, grace) = (ledger.room("ada"), ledger.room("ada"), ledger.room("grace"));
        let is_busy = |reached: Result<(), Error>| matches!(reached, Err(Error::Busy(_)));
        assert!(matches!(ada.reach(76), Err(Error::LimitExceeded { .. })));
        ada.reach(75).unwrap();
        assert!(is_busy(again.reach(1)), "an owner has its share");
        assert!(is_busy(grace.reach(26)), "all have the bound");
        grace.reach(25).unwrap();
        let answer = ada.hold(Bytes::from_static(&[0; 40]));
        assert!(is_busy(again.reach(36)), "what is held counts in the place of what was read");
        again.reach(35).unwrap();
        drop((answer, again, ada));
        grace.reach(75).unwrap();
        drop(grace);
        let held = ledger.held();
        assert_eq!((held.all, held.of.len()), (0, 0));
    }

    #[test]
    fn a_connection_is_given_an_answer_in_pieces() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let bytes: Vec<u8> = (0..3 * PIECE + 1).map(|at| at as u8).collect();
        let (mut body, mut lengths, mut came) = (InPieces::of(Body::from(bytes.clone())), Vec::new(), Vec::new());
        while let Some(frame) = runtime.block_on(body.frame()) {
            let piece = frame.unwrap().into_data().unwrap();
            lengths.push(piece.len());
            came.extend_from_slice(&piece);
        }
        assert_eq!((lengths, came), (vec![PIECE, PIECE, PIECE, 1], bytes));
    }

    /// The record, the message, and the answer, which grows by doubling: whatever a text is of.
    #[test]
    fn a_text_weighs_what_its_answer_takes() {
        for byte in 0..0x80 {
            let text = String::from_utf8(vec![byte; 1_000]).unwrap();
            let answer = serde_json::to_string(&text).unwrap().len() - 2;
            assert!(weight(text.as_bytes()) >= 2 * text.len() + 2 * answer, "{byte:#x}");
        }
    }
}
