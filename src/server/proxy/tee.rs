//! The body of a request on its way: each piece goes on at once, and is kept beside that, as far as it is recorded and there is
//! room.

use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep, timeout};

use super::exchange::Captured;
use crate::server::ledger::Room;

/// A byte that is kept: what holds them grows by doubling.
const KEPT: usize = 2;

/// What is kept of a body.
struct Kept {
    room: Arc<Room>,
    most: usize,
    /// `None` once there is no room for more.
    bytes: Option<Vec<u8>>,
}

impl Kept {
    fn keep(&mut self, piece: &[u8]) {
        let Some(bytes) = &mut self.bytes else { return };
        let length = bytes.len() + piece.len();
        if length > self.most || self.room.reach(length * KEPT).is_err() {
            self.bytes = None;
            self.room.keep(0);
        } else {
            bytes.extend_from_slice(piece);
        }
    }

    fn captured(self) -> Captured {
        match self.bytes {
            None => Captured::TooLarge,
            Some(bytes) => Captured::Whole(self.room.hold(bytes.into())),
        }
    }
}

/// What is kept of a body, and where it goes.
pub(super) struct Keeping {
    kept: Kept,
    read: oneshot::Sender<Read>,
}

/// What became of a body.
pub(super) enum Read {
    /// All of it passed, or it ended early.
    Captured(Captured),
    /// Nobody wants the rest any more.
    Left(Rest),
}

impl Keeping {
    /// At most so many bytes.
    pub(super) fn new(room: Arc<Room>, most: usize) -> (Self, oneshot::Receiver<Read>) {
        let (read, receiver) = oneshot::channel();
        (Self { kept: Kept { room, most, bytes: Some(Vec::new()) }, read }, receiver)
    }

    fn end(self, is_whole: bool) {
        let captured = if is_whole { self.kept.captured() } else { Captured::Cut };
        // Nobody waits if the answer came before.
        let _ = self.read.send(Read::Captured(captured));
    }
}

/// The rest of a body that goes nowhere.
pub(super) struct Rest {
    from: Body,
    kept: Kept,
    patience: Duration,
}

impl Rest {
    /// Reads it, as far as there is room.
    pub(super) async fn read(mut self) -> Captured {
        // After the last piece of a known length nothing comes.
        while self.kept.bytes.is_some() && !http_body::Body::is_end_stream(&self.from) {
            match timeout(self.patience, self.from.frame()).await {
                Ok(None) => break,
                Ok(Some(Ok(frame))) => self.kept.keep(frame.data_ref().map_or(&[][..], |piece| piece)),
                Ok(Some(Err(_))) | Err(_) => return Captured::Cut,
            }
        }
        self.kept.captured()
    }
}

/// A body on its way.
pub(super) struct Tee {
    from: Body,
    keeping: Option<Keeping>,
    /// Ends a body whose next piece does not come.
    patience: Duration,
    late: Pin<Box<Sleep>>,
    is_waiting: bool,
    /// Whether it ended early.
    is_broken: Arc<AtomicBool>,
}

impl Tee {
    pub(super) fn of(from: Body, keeping: Option<Keeping>, patience: Duration, is_broken: Arc<AtomicBool>) -> Body {
        let mut tee = Self { from, keeping, patience, late: Box::pin(sleep(patience)), is_waiting: false, is_broken };
        tee.ended_if_so();
        Body::new(tee)
    }

    fn end(&mut self, is_whole: bool) {
        self.is_broken.fetch_or(!is_whole, Ordering::Release);
        if let Some(keeping) = self.keeping.take() {
            keeping.end(is_whole);
        }
    }

    /// A body of a known length is at its end with its last piece: nobody asks for what comes after it.
    fn ended_if_so(&mut self) {
        if http_body::Body::is_end_stream(&self.from) {
            self.end(true);
        }
    }
}

impl Drop for Tee {
    /// The upstream wants no more of it.
    fn drop(&mut self) {
        if let Some(Keeping { kept, read }) = self.keeping.take() {
            let from = std::mem::take(&mut self.from);
            let _ = read.send(Read::Left(Rest { from, kept, patience: self.patience }));
        }
    }
}

impl http_body::Body for Tee {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.from).poll_frame(context) else {
            if !self.is_waiting {
                self.is_waiting = true;
                let until = Instant::now() + self.patience;
                self.late.as_mut().reset(until);
            }
            ready!(self.late.as_mut().poll(context));
            self.end(false);
            return Poll::Ready(Some(Err(axum::Error::new(std::io::Error::from(std::io::ErrorKind::TimedOut)))));
        };
        self.is_waiting = false;
        match &frame {
            Some(Ok(frame)) => {
                if let (Some(piece), Some(keeping)) = (frame.data_ref(), &mut self.keeping) {
                    keeping.kept.keep(piece);
                }
                self.ended_if_so();
            }
            Some(Err(_)) => self.end(false),
            None => self.end(true),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.from.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.from.size_hint()
    }
}
