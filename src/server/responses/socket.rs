//! Responses by WebSocket: a request is a message, and so is each event. What is not stored lives as long as the connection.
//!
//! Sources: the Open Responses specification, WebSocket mode; RFC 6455.

use std::collections::VecDeque;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, StatusCode};
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::sleep;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::about::ResponseId;
use super::calls::{self, Started};
use super::following::{Following, Next, Unkept};
use super::reach::Reach;
use crate::server::app::{Call, Outcome, Reply};
use crate::server::auth::is_still;
use crate::server::body;
use crate::server::ledger::Room;
use crate::server::refusal::Refusal;
use crate::server::room::Stream;

/// How many responses that are not stored a connection may have.
const MOST: usize = 256;
/// How many requests of a connection wait: more are not read.
const MOST_WAITING: usize = 16;
/// A byte of a message that arrives: what holds it grows by doubling.
const ARRIVING: usize = 2;

type Received = Result<Message, tokio_tungstenite::tungstenite::Error>;
type Socket = WebSocketStream<Counted<TokioIo<Upgraded>>>;

/// Opens a connection: the answer to the request that asks for it.
pub(crate) fn open(call: Call, upgrade: OnUpgrade) -> Outcome {
    let says =
        |name: &str, word: &str| call.header(name).is_some_and(|value| value.to_ascii_lowercase().contains(word));
    if !says("upgrade", "websocket") {
        return Err(Refusal::new(
            405,
            "method_not_allowed",
            "Not allowed: GET, but to open a WebSocket; POST asks for a response.",
        ));
    }
    let key = call.header("sec-websocket-key");
    let key = key.filter(|_| says("connection", "upgrade") && says("sec-websocket-version", "13"));
    let key = key.ok_or_else(|| {
        let message = "A WebSocket is opened with a key, and with version 13.";
        Refusal::new(426, "websocket_required", message)
    })?;
    let stream = call.app.streams.begin(&call.caller.key)?;
    let accepted = derive_accept_key(key.as_bytes());
    let mut reply = Reply::new(axum::body::Body::empty());
    *reply.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    for (name, value) in [("connection", "upgrade"), ("upgrade", "websocket"), ("sec-websocket-accept", &*accepted)] {
        if let Ok(value) = HeaderValue::from_str(value) {
            reply.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
    tokio::spawn(async move {
        let Ok(upgraded) = upgrade.await else { return };
        let most = call.app.config.limits.body_bytes;
        let config = WebSocketConfig::default().max_message_size(Some(most)).max_frame_size(Some(most));
        let room = Arc::new(call.app.ledger.room(&call.caller.owner));
        let counted = Counted { from: TokioIo::new(upgraded), room: Arc::clone(&room), bytes: Arc::default() };
        let bytes = Arc::clone(&counted.bytes);
        let socket = WebSocketStream::from_raw_socket(counted, Role::Server, Some(config)).await;
        let reach = calls::reach(&call);
        Session { call, reach, unkept: Vec::new(), waiting: VecDeque::new(), room, bytes, _stream: stream }
            .run(socket)
            .await;
    });
    Ok(reply)
}

/// The bytes of a connection, which count until the message that they are of was taken.
struct Counted<T> {
    from: T,
    room: Arc<Room>,
    bytes: Arc<AtomicUsize>,
}

impl<T: AsyncRead + Unpin> AsyncRead for Counted<T> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.from).poll_read(context, into))?;
        let read = into.filled().len() - before;
        let all = self.bytes.fetch_add(read, Ordering::AcqRel) + read;
        let room = self.room.reach(all * ARRIVING);
        Poll::Ready(room.map_err(|error| io::Error::new(io::ErrorKind::OutOfMemory, error)))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Counted<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.from).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.from).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.from).poll_shutdown(context)
    }
}

/// A connection of a client.
struct Session {
    call: Call,
    reach: Reach,
    unkept: Vec<Arc<Unkept>>,
    /// Requests that came while one was answered.
    waiting: VecDeque<Utf8Bytes>,
    /// What arrives.
    room: Arc<Room>,
    bytes: Arc<AtomicUsize>,
    _stream: Stream,
}

impl Session {
    /// Answers requests, one after another, until the client has gone or the server ends.
    async fn run(mut self, mut socket: Socket) {
        let app = Arc::clone(&self.call.app);
        let mut closing = app.closing.subscribe();
        loop {
            if let Some(text) = self.waiting.pop_front() {
                if self.answer(&mut socket, text.as_bytes()).await.is_err() {
                    return;
                }
                self.call.room.keep(0);
                self.taken(text.len());
                continue;
            }
            let received = tokio::select! {
                biased;
                _ = closing.wait_for(|is_closing| *is_closing) => return,
                received = socket.next() => Some(received),
                () = sleep(app.config.limits.keep_alive().max(Duration::from_millis(10))) => None,
            };
            let Some(received) = received else {
                // Who is not there any more is noticed.
                if socket.send(Message::Ping(bytes::Bytes::new())).await.is_err() {
                    return;
                }
                continue;
            };
            if self.receive(&mut socket, received).await.is_err() {
                return;
            }
        }
    }

    /// Takes a message. Fails if the client has gone.
    async fn receive(&mut self, socket: &mut Socket, received: Option<Received>) -> Result<(), ()> {
        let length = match received {
            Some(Ok(Message::Text(text))) => {
                self.waiting.push_back(text);
                return Ok(());
            }
            Some(Ok(Message::Binary(bytes))) => {
                let refusal = Refusal::new(400, "invalid_message", "a request is a text message");
                said(socket, &error(&refusal)).await?;
                bytes.len()
            }
            Some(Ok(Message::Ping(bytes) | Message::Pong(bytes))) => bytes.len(),
            Some(Ok(Message::Frame(_))) => return Ok(()),
            Some(Ok(Message::Close(_)) | Err(_)) | None => return Err(()),
        };
        self.taken(length);
        Ok(())
    }

    /// A message of so many bytes is held no longer. What has come of the next one still is.
    fn taken(&self, length: usize) {
        let head = match length {
            0..126 => 6,
            126..65_536 => 8,
            _ => 14,
        };
        let less = |bytes: usize| Some(bytes.saturating_sub(length + head));
        let before = self.bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, less).unwrap_or_default();
        self.room.keep(before.saturating_sub(length + head) * ARRIVING);
    }

    /// Answers a request. Fails if the client has gone.
    async fn answer(&mut self, socket: &mut Socket, text: &[u8]) -> Result<(), ()> {
        let previous = previous(text);
        let answered = match self.begin(text).await {
            Ok(started) => self.follow(socket, started).await?,
            Err(refusal) => Err(refusal),
        };
        let Err(refusal) = answered else { return Ok(()) };
        // What cannot be gone on from once is not gone on from again: the client begins again.
        if let Some(id) = previous {
            self.unkept.retain(|unkept| !unkept.is(id));
        }
        said(socket, &error(&refusal)).await
    }

    async fn begin(&mut self, text: &[u8]) -> Result<Started, Refusal> {
        if !is_still(&self.call.app, &self.call.caller) {
            return Err(Refusal::new(401, "invalid_api_key", "This key was revoked, or has expired."));
        }
        // Schemas keep the order of their fields: the text is taken as it came.
        let fields: Map<String, Value> = body::required(text)?;
        match fields.get("type").and_then(Value::as_str) {
            Some("response.create") => {}
            kind => {
                let message = format!("expected `response.create`, and not {:?}", kind.unwrap_or_default());
                return Err(Refusal::invalid("type", "invalid_value", message));
            }
        }
        let held = body::Held::of(&self.call.app, &self.call.caller.owner, text.to_vec()).await?;
        let started = calls::start(&self.call, &self.reach, Arc::new(held)).await?;
        if self.unkept.len() == MOST {
            self.unkept.remove(0);
        }
        Ok(started)
    }

    /// What comes next of a response. Meanwhile pings are answered, and requests wait.
    async fn next(&mut self, socket: &mut Socket, following: &mut Following) -> Result<Result<Next, Refusal>, ()> {
        let mut next = pin!(following.next());
        loop {
            let received = tokio::select! {
                biased;
                next = &mut next => return Ok(next),
                received = socket.next(), if self.waiting.len() < MOST_WAITING => received,
            };
            self.receive(socket, received).await?;
        }
    }

    /// Sends the events of a response. An inner error is the response's own.
    async fn follow(&mut self, socket: &mut Socket, started: Started) -> Result<Result<(), Refusal>, ()> {
        let Started { mut following, unkept, .. } = started;
        let ended = loop {
            match self.next(socket, &mut following).await? {
                Ok(Next::Events(events)) => {
                    for event in events {
                        said(socket, &event.data).await?;
                    }
                }
                Ok(Next::Nothing) => socket.send(Message::Ping(bytes::Bytes::new())).await.map_err(|_| ())?,
                Ok(Next::End) => break Ok(()),
                Err(refusal) => break Err(refusal),
            }
        };
        if !following.has_failed() {
            self.unkept.extend(unkept);
        }
        Ok(ended)
    }
}

fn previous(text: &[u8]) -> Option<ResponseId> {
    let fields: Value = serde_json::from_slice(text).ok()?;
    ResponseId::named(fields.get("previous_response_id")?.as_str()?)
}

async fn said(socket: &mut Socket, data: &Value) -> Result<(), ()> {
    socket.send(Message::Text(data.to_string().into())).await.map_err(|_| ())
}

fn error(refusal: &Refusal) -> Value {
    let mut body = serde_json::to_value(refusal.body()).unwrap_or_default();
    let mut error = body.get_mut("error").map(Value::take).unwrap_or_default();
    if let Some(code) = error.get_mut("code").filter(|code| code.is_null()) {
        *code = "invalid_request_error".into();
    }
    json!({ "type": "error", "status": refusal.status, "error": error })
}
