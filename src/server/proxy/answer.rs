//! The body of an answer on its way: each piece goes to the client as it comes, and to the recording.
//!
//! The client's connection asks for the pieces itself, so that one that reads slowly slows its upstream down, and nothing piles up
//! between them. When it goes, the rest is read by a task, if that is wanted.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::runtime::Handle;
use tokio::time::{Instant, Sleep, sleep, timeout};

use super::exchange::{Ended, Passed};
use super::record::Recording;
use crate::server::app::App;
use crate::server::config::OnDisconnect;
use crate::server::room::Stream;
use crate::server::upstream::Upstream;

/// A call whose answer is on its way.
#[derive(Debug)]
pub(super) struct Passing {
    pub(super) app: Arc<App>,
    pub(super) upstream: Arc<Upstream>,
    /// Whose call it is.
    pub(super) owner: String,
    /// Absent if it is not recorded.
    pub(super) recording: Option<Arc<Recording>>,
    pub(super) line: Line,
    /// Its place among the streams of the server.
    pub(super) stream: Stream,
}

/// What the log says of a call.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) id: uuid::Uuid,
    pub(super) key: String,
    pub(super) wire: Option<&'static str>,
    pub(super) begun: std::time::Instant,
    pub(super) status: Option<u16>,
    pub(super) first: Option<Duration>,
    pub(super) bytes: u64,
}

impl Passing {
    fn took(&mut self, piece: &Bytes) {
        self.line.bytes += piece.len() as u64;
        if let Some(recording) = &self.recording {
            recording.pass(Passed::Piece(piece.clone()));
        }
    }

    pub(super) fn end(self, ended: Ended) {
        if let Some(recording) = &self.recording {
            recording.pass(Passed::End(ended));
        }
        let Line { id, key, wire, begun, status, first, bytes } = self.line;
        let ended = match ended {
            Ended::Whole => "whole",
            Ended::UpstreamCut => "upstream_cut",
            Ended::ClientGone => "client_gone",
            Ended::Stopped => "stopped",
        };
        let milliseconds = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
        let upstream = &*self.upstream.set.name;
        self.app.metrics.passed(upstream, ended, bytes);
        tracing::info!(
            exchange = %id, key, upstream, wire, status, bytes, ended, first_ms = first.map(milliseconds),
            milliseconds = milliseconds(begun.elapsed()), "exchange"
        );
        drop(self.stream);
    }

    /// Returns when the answer must end early, though its upstream goes on.
    pub(super) fn stopped(&self) -> Pin<Box<dyn Future<Output = ()> + Send + Sync>> {
        let recording = self.recording.clone();
        Box::pin(async move {
            match recording {
                Some(recording) => recording.stopped().await,
                None => std::future::pending().await,
            }
        })
    }

    /// Reads the rest of an answer that nobody waits for.
    async fn drain(mut self, mut from: Incoming) {
        let set = &self.upstream.set;
        let (mut left, patience, mut end) = (set.drain_bytes, set.idle(), Instant::now() + set.drain());
        let mut is_ending = false;
        let (stopped, mut closing) = (self.stopped(), self.app.closing.subscribe());
        let mut stopped = stopped;
        let ended = loop {
            let frame = tokio::select! {
                biased;
                () = &mut stopped => break Ended::Stopped,
                frame = timeout(patience, from.frame()) => frame,
                _ = closing.wait_for(|is_closing| *is_closing), if !is_ending => {
                    // The server waits for it as long as for others.
                    is_ending = true;
                    end = end.min(Instant::now() + Duration::from_secs(self.app.config.server.shutdown_seconds));
                    continue;
                }
                () = tokio::time::sleep_until(end) => break if is_ending { Ended::Stopped } else { Ended::ClientGone },
            };
            match frame {
                Ok(None) => break Ended::Whole,
                Ok(Some(Ok(frame))) => {
                    let Ok(piece) = frame.into_data() else { continue };
                    let Some(rest) = left.checked_sub(piece.len() as u64) else { break Ended::ClientGone };
                    left = rest;
                    self.took(&piece);
                }
                Ok(Some(Err(_))) | Err(_) => break Ended::UpstreamCut,
            }
        };
        self.end(ended);
    }
}

/// The body that the client gets.
pub(super) struct Answer {
    /// `None` at the end.
    on_its_way: Option<(Incoming, Passing)>,
    stopped: Pin<Box<dyn Future<Output = ()> + Send + Sync>>,
    patience: Duration,
    late: Pin<Box<Sleep>>,
    is_waiting: bool,
    /// The upstream has cut it: the connection is cut once it has sent what it was given.
    is_cut: bool,
}

impl Answer {
    pub(super) fn of(from: Incoming, passing: Passing) -> Body {
        let (stopped, patience) = (passing.stopped(), passing.upstream.set.idle());
        let on_its_way = Some((from, passing));
        let mut answer =
            Self { on_its_way, stopped, patience, late: Box::pin(sleep(patience)), is_waiting: false, is_cut: false };
        answer.ended_if_so();
        Body::new(answer)
    }

    fn end(&mut self, ended: Ended) {
        if let Some((_, passing)) = self.on_its_way.take() {
            passing.end(ended);
        }
    }

    /// A body of a known length is at its end with its last piece: nobody asks for what comes after it.
    fn ended_if_so(&mut self) {
        if self.on_its_way.as_ref().is_some_and(|(from, _)| http_body::Body::is_end_stream(from)) {
            self.end(Ended::Whole);
        }
    }

    /// What ends the answer though its upstream has not.
    fn early(&mut self, context: &mut Context<'_>) -> Option<Ended> {
        if self.stopped.as_mut().poll(context).is_ready() {
            return Some(Ended::Stopped);
        }
        if !self.is_waiting {
            self.is_waiting = true;
            let until = Instant::now() + self.patience;
            self.late.as_mut().reset(until);
        }
        self.late.as_mut().poll(context).is_ready().then_some(Ended::UpstreamCut)
    }
}

impl http_body::Body for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let cut = |error| Poll::Ready(Some(Err(axum::Error::new(std::io::Error::from(error)))));
        if self.is_cut {
            self.is_cut = false;
            return cut(std::io::ErrorKind::UnexpectedEof);
        }
        let Some((from, passing)) = &mut self.on_its_way else { return Poll::Ready(None) };
        match Pin::new(from).poll_frame(context) {
            Poll::Pending => match self.early(context) {
                None => Poll::Pending,
                Some(ended) => {
                    self.end(ended);
                    cut(std::io::ErrorKind::TimedOut)
                }
            },
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(piece) = frame.data_ref() {
                    passing.took(piece);
                }
                self.is_waiting = false;
                self.ended_if_so();
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(None) => {
                self.end(Ended::Whole);
                Poll::Ready(None)
            }
            Poll::Ready(Some(Err(_))) => {
                self.end(Ended::UpstreamCut);
                // A connection drops what it has not sent when its body fails.
                self.is_cut = true;
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.on_its_way.is_none() && !self.is_cut
    }

    fn size_hint(&self) -> SizeHint {
        match &self.on_its_way {
            Some((from, _)) => from.size_hint(),
            None if self.is_cut => SizeHint::default(),
            None => SizeHint::with_exact(0),
        }
    }
}

impl Drop for Answer {
    /// The client has gone.
    fn drop(&mut self) {
        let Some((from, passing)) = self.on_its_way.take() else { return };
        if let Some(recording) = &passing.recording {
            recording.pass(Passed::Left);
        }
        let wanted = passing.recording.is_some() && passing.upstream.set.on_disconnect == OnDisconnect::Drain;
        match Handle::try_current() {
            Ok(runtime) if wanted => drop(runtime.spawn(passing.drain(from))),
            _ => passing.end(Ended::ClientGone),
        }
    }
}
