//! Responses by WebSocket: a request is a message, and so is each event. What is not stored lives as long as the connection.
//!
//! Source: the Open Responses specification, WebSocket mode.

use std::sync::Arc;

use axum::extract::ws::{Message, WebSocket};
use serde_json::{Map, Value, json};

use super::calls::{self, Started};
use super::following::{Next, Unkept};
use super::id::ResponseId;
use super::place::Reach;
use crate::server::app::Call;
use crate::server::auth::is_still;
use crate::server::body;
use crate::server::refusal::Refusal;

/// How many responses that are not stored a connection may have.
const MOST: usize = 256;

/// A connection of a client.
pub(crate) struct Session {
    call: Call,
    reach: Reach,
    unkept: Vec<Unkept>,
}

impl Session {
    pub(crate) fn new(call: Call) -> Self {
        let reach = calls::reach(&call);
        Self { call, reach, unkept: Vec::new() }
    }

    /// Answers requests, one after another, until the client has gone or the server ends.
    pub(crate) async fn run(mut self, mut socket: WebSocket) {
        let app = Arc::clone(&self.call.app);
        let mut closing = app.closing.subscribe();
        loop {
            let received = tokio::select! {
                biased;
                _ = closing.wait_for(|is_closing| *is_closing) => return,
                received = socket.recv() => received,
            };
            let text = match received {
                Some(Ok(Message::Text(text))) => text,
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                Some(Ok(Message::Binary(_))) => {
                    let refusal = Refusal::new(400, "invalid_message", "a request is a text message");
                    if said(&mut socket, &error(&refusal)).await.is_err() {
                        return;
                    }
                    continue;
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
            };
            if self.answer(&mut socket, text.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    /// Answers a request. Fails if the client has gone.
    async fn answer(&mut self, socket: &mut WebSocket, text: &[u8]) -> Result<(), ()> {
        let previous = previous(text);
        let answered = match self.begin(text).await {
            Ok(started) => self.follow(socket, started).await?,
            Err(refusal) => Err(refusal),
        };
        let Err(refusal) = answered else { return Ok(()) };
        // What cannot be gone on from once is not gone on from again: the client begins anew.
        if let Some(id) = previous {
            self.unkept.retain(|unkept| !unkept.is(id));
        }
        said(socket, &error(&refusal)).await
    }

    async fn begin(&mut self, text: &[u8]) -> Result<Started, Refusal> {
        if !is_still(&self.call.app, &self.call.caller) {
            return Err(Refusal::new(401, "invalid_api_key", "This key was revoked, or has expired."));
        }
        let mut fields: Map<String, Value> = body::required(text)?;
        match fields.remove("type").as_ref().and_then(Value::as_str) {
            Some("response.create") => {}
            kind => {
                let message = format!("expected `response.create`, and not {:?}", kind.unwrap_or_default());
                return Err(Refusal::invalid("type", "invalid_value", message));
            }
        }
        let bytes = serde_json::to_vec(&fields).map_err(|error| Refusal::internal(error.to_string()))?;
        let held = body::Held::of(&self.call.app, &self.call.caller.owner, bytes).await?;
        let started = calls::start(&self.call, &self.reach, Arc::new(held)).await?;
        if self.unkept.len() == MOST {
            self.unkept.remove(0);
        }
        Ok(started)
    }

    /// Sends the events of a response. An inner error is the response's own.
    async fn follow(&mut self, socket: &mut WebSocket, started: Started) -> Result<Result<(), Refusal>, ()> {
        let Started { mut following, unkept, .. } = started;
        let ended = loop {
            match following.next().await {
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

async fn said(socket: &mut WebSocket, data: &Value) -> Result<(), ()> {
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
