//! Followers of a response: its events from the log, those that are stored and those that come.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue};
use bytes::Bytes;
use serde_json::Value;
use tokio::sync::mpsc::{Sender, channel};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::about::ResponseId;
use super::encoder::{Encoder, Event};
use super::reach::Home;
use crate::error::Error;
use crate::history::Cursor;
use crate::server::app::{App, Reply, reply};
use crate::server::exchanges::Exchanges;
use crate::server::ledger::{InPieces, Room};
use crate::server::native::Pieces;
use crate::server::refusal::Refusal;
use crate::server::room::Stream;
use crate::store::Tail;

/// What a client does not read waits here, and the log is not read meanwhile.
const PIECES: usize = 1;

/// A byte of an answer that is followed: as a chunk, and in its item.
const HELD: usize = 3;

/// What comes next of a response.
pub(super) enum Next {
    Events(Vec<Event>),
    /// Nothing, for so long that a connection may be taken for dead.
    Nothing,
    End,
}

/// A response that is read as it comes.
pub(super) struct Following {
    app: Arc<App>,
    /// Absent while it reads.
    tail: Option<Tail>,
    encoder: Encoder,
    over: watch::Receiver<bool>,
    /// The number of the last event that its reader knows.
    known: Option<u64>,
    waiting: Option<Waiting>,
    stream: Option<Stream>,
    /// The answer as far as it was read is held until its end.
    room: Room,
}

impl Following {
    /// From the entry at this seq, with which the response begins.
    pub(super) fn open(
        app: &Arc<App>,
        owner: &str,
        home: &Home,
        first_seq: u64,
        encoder: Encoder,
        known: Option<u64>,
    ) -> Result<Self, Refusal> {
        // What it reads is bounded, and read again and again: what adds up is in the encoder.
        let store = if home.is_kept { &app.store } else { &home.store };
        let tail = store.tail(&home.name, Cursor::from(first_seq.saturating_sub(1)))?;
        let over = app.over.subscribe();
        let room = app.ledger.room(owner);
        Ok(Self { app: Arc::clone(app), tail: Some(tail), encoder, over, known, waiting: None, stream: None, room })
    }

    /// With what ends when nobody follows any more.
    pub(super) fn with(mut self, waiting: Option<Waiting>) -> Self {
        self.waiting = waiting;
        self
    }

    /// With a place among the streams of the server.
    pub(super) fn holding(mut self, stream: Stream) -> Self {
        self.stream = Some(stream);
        self
    }

    /// The next events, once there are some.
    pub(super) async fn next(&mut self) -> Result<Next, Refusal> {
        loop {
            if self.encoder.status.is_end() {
                return Ok(Next::End);
            }
            let lost = || Refusal::internal("the response cannot be read on");
            let mut tail = self.tail.take().ok_or_else(lost)?;
            let read = self.app.pool.run_for_follower(move || {
                let entries = tail.read();
                Ok((tail, entries))
            });
            let (tail, entries) = read.await?;
            let tail = self.tail.insert(tail);
            let entries = entries?;
            let is_news = !entries.is_empty();
            let known = self.known;
            let is_new = |event: &Event| known.is_none_or(|known| event.number > known);
            let events: Vec<Event> =
                entries.into_iter().flat_map(|entry| self.encoder.take(entry)).filter(is_new).collect();
            self.room.wait(self.encoder.taken().saturating_mul(HELD)).await?;
            if !events.is_empty() {
                return Ok(Next::Events(events));
            }
            if is_news {
                continue;
            }
            let quiet = Instant::now() + self.app.config.limits.keep_alive().max(Duration::from_millis(10));
            tokio::select! {
                biased;
                _ = self.over.wait_for(|is_over| *is_over) => return Ok(Next::End),
                news = poll_fn(|context| tail.poll_news(context)) => match news {
                    Ok(()) => {}
                    Err(Error::Closed) => return Ok(Next::End),
                    Err(error) => return Err(error.into()),
                },
                () = sleep_until(quiet) => return Ok(Next::Nothing),
            }
        }
    }

    /// The whole response, once it has ended.
    pub(super) async fn whole(mut self) -> Result<Value, Refusal> {
        while !matches!(self.next().await?, Next::End) {}
        match self.encoder.status.is_end() {
            true => Ok(self.encoder.object()),
            false => Err(Refusal::busy("the server ends; GET the response from the next one")),
        }
    }

    /// The response as far as it was read.
    pub(super) fn object(&self) -> Value {
        self.encoder.object()
    }

    /// Whether it has ended, and is of no use to go on from.
    pub(super) const fn has_failed(&self) -> bool {
        self.encoder.status.has_failed()
    }

    /// Its events as they come.
    pub(super) fn stream(self, room: Arc<Room>) -> Reply {
        let (sender, receiver) = channel(PIECES);
        tokio::spawn(self.send(sender, room));
        let mut reply = reply(200, "text/event-stream", InPieces::of(axum::body::Body::new(Pieces::of(receiver))));
        for (name, value) in [("cache-control", "no-store"), ("x-accel-buffering", "no")] {
            reply.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        reply
    }

    async fn send(mut self, sender: Sender<Bytes>, room: Arc<Room>) {
        loop {
            let next = tokio::select! {
                biased;
                () = sender.closed() => return,
                next = self.next() => next,
            };
            let text: Bytes = match next {
                Ok(Next::Events(events)) => room.hold(lines(&events).into()),
                Ok(Next::Nothing) => Bytes::from_static(b": alive\n\n"),
                Ok(Next::End) => return,
                Err(refusal) => {
                    let event = error_event(self.encoder.number(), &refusal);
                    let _ = sender.send(lines(&[event]).into()).await;
                    return;
                }
            };
            if sender.send(text).await.is_err() {
                return;
            }
        }
    }
}

fn lines(events: &[Event]) -> String {
    use std::fmt::Write as _;
    events.iter().fold(String::new(), |mut text, event| {
        let _ = write!(text, "event: {}\ndata: {}\n\n", event.kind, event.data);
        text
    })
}

/// The event of an error that is none of the response.
fn error_event(number: u64, refusal: &Refusal) -> Event {
    let mut error = serde_json::to_value(refusal.body()).unwrap_or_default();
    let error = error.get_mut("error").map(Value::take).unwrap_or_default();
    let data = serde_json::json!({ "type": "error", "sequence_number": number, "error": error });
    Event { number, kind: "error", data }
}

/// A conversation in memory, which goes when nobody writes, reads or keeps it any more.
#[derive(Debug)]
pub(super) struct Unkept {
    home: Home,
    exchanges: Arc<Exchanges>,
    owner: String,
    /// What it takes.
    _room: Arc<Room>,
}

impl Unkept {
    pub(super) fn new(app: &App, owner: &str, home: &Home, room: &Arc<Room>) -> Arc<Self> {
        let exchanges = Arc::clone(&app.exchanges);
        Arc::new(Self { home: home.clone(), exchanges, owner: owner.to_owned(), _room: Arc::clone(room) })
    }

    pub(super) fn is(&self, id: ResponseId) -> bool {
        self.home.name.id() == id.conversation
    }
}

impl Drop for Unkept {
    fn drop(&mut self) {
        // It is in memory: that takes no time.
        let _ = self.home.store.delete(&self.home.name);
    }
}

/// Who waits for an answer that is not stored: it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Waiting(pub(super) Arc<Unkept>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.exchanges.stop(&self.0.owner, self.0.home.name.id());
    }
}
