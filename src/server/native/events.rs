//! Followers: entries as server-sent events, the stored ones and those that follow.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue};
use bytes::Bytes;
use http_body::Frame;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, sleep_until};

use super::parameters;
use crate::error::Error;
use crate::history::{Cursor, Entry};
use crate::server::app::{App, Call, Streaming, reply};
use crate::server::auth::is_still;
use crate::server::ledger::{InPieces, Room};
use crate::server::refusal::Refusal;
use crate::server::room::Stream;
use crate::store::Tail;

/// What a client does not read waits here, and the tail is not read meanwhile: a follower holds this many pieces of at
/// most 1,000 entries.
const PIECES: usize = 1;
/// Milliseconds after which a client that lost its connection returns.
const RETRY: u32 = 1_000;

pub(in crate::server) fn events(call: Call, _: Body) -> Streaming {
    Box::pin(async move {
        call.query.check(&["since"])?;
        let since: Cursor = call.query.parse("since", "cursor")?.unwrap_or_default();
        // The last id that a client saw overrides where it began. It is a seq; the cursor knows whose.
        let cursor = match call.header("last-event-id").filter(|id| !id.is_empty()) {
            Some(id) => {
                let last = id.parse::<Cursor>().map_err(|error| Refusal::value("Last-Event-ID", &error.to_string()))?;
                if last == Cursor::from(last.seq()) { since.with_seq(last.seq()) } else { last }
            }
            None => since,
        };
        let room = call.app.streams.begin(&call.caller.key)?;
        let opening = call.clone();
        let open = move || Ok(opening.store().tail(parameters::name(&opening), cursor)?);
        let tail = call.app.pool.run(open).await?;
        let (sender, receiver) = channel(PIECES);
        call.app.metrics.followers.inc();
        tokio::spawn(follow(call, tail, sender, room));
        let mut reply = reply(200, "text/event-stream", InPieces::of(Body::new(Pieces(receiver))));
        let headers = [("cache-control", "no-store"), ("x-accel-buffering", "no")];
        for (name, value) in headers {
            reply.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        Ok(reply)
    })
}

/// The pieces of an answer that is still being produced.
pub(in crate::server) struct Pieces(Receiver<Bytes>);

impl Pieces {
    pub(in crate::server) const fn of(pieces: Receiver<Bytes>) -> Self {
        Self(pieces)
    }
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// Sends entries until the client disconnects, the conversation is deleted, or the server ends.
async fn follow(call: Call, tail: Tail, sender: Sender<Bytes>, room: Stream) {
    let begin = format!("retry: {RETRY}\n: following\n\n");
    if sender.send(begin.into()).await.is_ok() {
        // Nothing is sent to a client that has gone.
        let _ = send(&call, tail, &sender).await;
    }
    // Who reads the count may take the room.
    drop(room);
    call.app.metrics.followers.dec();
}

async fn send(call: &Call, mut tail: Tail, sender: &Sender<Bytes>) -> Result<(), ()> {
    let Call { app, caller, .. } = call;
    let mut last = tail.cursor();
    let mut closing = app.closing.subscribe();
    // What is stored already comes at once.
    let mut is_news = true;
    loop {
        let mut entries = Vec::new();
        if is_news {
            loop {
                let (back, read) = read(app, tail).await?;
                tail = back;
                match (read, call.room.take_wanted()) {
                    (Ok(read), _) => {
                        entries = read;
                        break;
                    }
                    // Others hold what it needs: it waits for as long as they do.
                    (Err(Error::Busy(_)), Some(wanted)) => {
                        let is_ending = tokio::select! {
                            biased;
                            () = sender.closed() => return Err(()),
                            _ = closing.wait_for(|is_closing| *is_closing) => true,
                            // It asks again after a refusal.
                            _ = call.room.wait(wanted) => false,
                        };
                        if is_ending {
                            return close(sender, "shutdown", last).await;
                        }
                    }
                    (Err(error), _) => return close(sender, reason(&error), last).await,
                }
            }
        }
        if !is_still(app, caller) {
            return close(sender, "unauthorized", last).await;
        }
        if is_news {
            deliver(entries, &call.room, sender, &mut last).await?;
        } else {
            sender.send(Bytes::from_static(b": alive\n\n")).await.map_err(|_| ())?;
        }
        let quiet = Instant::now() + app.config.limits.keep_alive().max(Duration::from_millis(10));
        let waited = tokio::select! {
            biased;
            () = sender.closed() => return Err(()),
            _ = closing.wait_for(|is_closing| *is_closing) => Err("shutdown"),
            news = poll_fn(|context| tail.poll_news(context)) => match news {
                Ok(()) => Ok(true),
                Err(error) => Err(reason(&error)),
            },
            () = sleep_until(quiet) => Ok(false),
        };
        is_news = match waited {
            Ok(is_news) => is_news,
            Err(reason) => return close(sender, reason, last).await,
        };
    }
}

/// Reads entries, on a thread for it: the store may be slow, and other followers go on.
async fn read(app: &Arc<App>, mut tail: Tail) -> Result<(Tail, crate::Result<Vec<Entry>>), ()> {
    let read = app.pool.run_for_follower(move || {
        let entries = tail.read();
        Ok((tail, entries))
    });
    read.await.map_err(|_| ())
}

const fn reason(error: &Error) -> &'static str {
    match error {
        Error::NotFound { .. } => "deleted",
        Error::Closed => "shutdown",
        _ => "error",
    }
}

async fn deliver(entries: Vec<Entry>, room: &Room, sender: &Sender<Bytes>, last: &mut Cursor) -> Result<(), ()> {
    let mut text = Vec::new();
    // Each is dropped once it is written: the client may be slow.
    for entry in entries {
        // Writing to a vector does not fail, and an entry always has a text.
        let _ = write!(text, "id: {}\ndata: ", entry.seq);
        let _ = serde_json::to_writer(&mut text, &entry);
        text.extend_from_slice(b"\n\n");
        *last = last.with_seq(entry.seq);
    }
    text.shrink_to_fit();
    let text = room.hold(text.into());
    if text.is_empty() { Ok(()) } else { sender.send(text).await.map_err(|_| ()) }
}

/// The last event: why no more follow, and where to continue.
async fn close(sender: &Sender<Bytes>, reason: &str, last: Cursor) -> Result<(), ()> {
    let data = serde_json::json!({ "reason": reason, "last_seq": last.seq(), "cursor": last });
    sender.send(format!("event: close\ndata: {data}\n\n").into()).await.map_err(|_| ())
}
