//! The body of a request on its way: each piece goes on at once, and is kept beside that, as far as it is recorded and there is
//! room.

use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::oneshot;
use tokio::time::{Instant, Sleep, sleep};

use super::exchange::Captured;
use crate::server::ledger::Room;

/// A byte that is kept: what holds them grows by doubling.
const KEPT: usize = 2;

/// What is kept of a body.
pub(super) struct Keeping {
    room: Arc<Room>,
    most: usize,
    /// `None` once there is no room for more.
    bytes: Option<Vec<u8>>,
    whole: oneshot::Sender<Captured>,
}

impl Keeping {
    /// At most so many bytes, and where they go at the body's end.
    pub(super) fn new(room: Arc<Room>, most: usize) -> (Self, oneshot::Receiver<Captured>) {
        let (whole, receiver) = oneshot::channel();
        (Self { room, most, bytes: Some(Vec::new()), whole }, receiver)
    }

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

    fn end(self, is_whole: bool) {
        let captured = match (is_whole, self.bytes) {
            (false, _) => Captured::Cut,
            (true, None) => Captured::TooLarge,
            (true, Some(bytes)) => Captured::Whole(self.room.hold(bytes.into())),
        };
        // Nobody waits if the answer came before.
        let _ = self.whole.send(captured);
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
}

impl Tee {
    pub(super) fn of(from: Body, keeping: Option<Keeping>, patience: Duration) -> Body {
        let mut tee = Self { from, keeping, patience, late: Box::pin(sleep(patience)), is_waiting: false };
        tee.ended_if_so();
        Body::new(tee)
    }

    /// A body of a known length is at its end with its last piece: nobody asks for what comes after it.
    fn ended_if_so(&mut self) {
        if http_body::Body::is_end_stream(&self.from)
            && let Some(keeping) = self.keeping.take()
        {
            keeping.end(true);
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
            return Poll::Ready(Some(Err(axum::Error::new(std::io::Error::from(std::io::ErrorKind::TimedOut)))));
        };
        self.is_waiting = false;
        match &frame {
            Some(Ok(frame)) => {
                if let (Some(piece), Some(keeping)) = (frame.data_ref(), &mut self.keeping) {
                    keeping.keep(piece);
                }
                self.ended_if_so();
            }
            Some(Err(_)) => {
                if let Some(keeping) = self.keeping.take() {
                    keeping.end(false);
                }
            }
            None => {
                if let Some(keeping) = self.keeping.take() {
                    keeping.end(true);
                }
            }
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
