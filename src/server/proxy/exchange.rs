//! What passes of one call of a model: what the side that passes bytes on hands to the side that records them.
//!
//! Keys of both sides are taken out before. What a call is made with is known as long as it lasts, so that it is not stored if the
//! upstream repeats it.

use std::fmt;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use uuid::Uuid;

use super::headers;
use crate::model::{Body, Json};
use crate::provider::Target;
use crate::server::app::Caller;
use crate::server::config::WithoutSession;

/// A call of a model, when its request is there.
#[derive(Debug)]
pub(crate) struct Asked {
    /// The exchange, as `x-convo-exchange` names it.
    pub(crate) id: Uuid,
    /// When its head was there.
    pub(crate) begun: Instant,
    /// The response whose answer it gets, of an earlier call.
    pub(crate) fetched: Option<String>,
    pub(crate) caller: Caller,
    /// The upstream's name in the settings.
    pub(crate) upstream: String,
    pub(crate) target: Target,
    pub(crate) without_session: WithoutSession,
    /// The path at the upstream, as the client sent it.
    pub(crate) path: String,
    /// The query, without parameters that are keys.
    pub(crate) query: Option<String>,
    /// The client's headers, without keys and without those of the connection.
    pub(crate) headers: HeaderMap,
    pub(crate) body: Captured,
    /// The client's own keys of the upstream, but those that change within a conversation.
    pub(crate) account: Secrets,
    /// The keys that the call is made with.
    pub(crate) secrets: Secrets,
}

/// Keys that are never stored, nor shown to anybody else.
pub(crate) struct Secrets(Vec<String>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secrets")
    }
}

/// What is shorter is a word that texts may have.
const SECRET_BYTES: usize = 8;

impl Secrets {
    /// Those of a request.
    pub(crate) fn of(request: &HeaderMap, query: Option<&str>) -> Self {
        Self::all(headers::secrets(request, query).filter(|secret| secret.len() >= SECRET_BYTES))
    }

    pub(super) fn all(secrets: impl Iterator<Item = String>) -> Self {
        let mut secrets: Vec<_> = secrets.collect();
        // One may be a part of another.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(secrets)
    }

    /// For a digest.
    pub(super) fn bytes(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(String::as_bytes)
    }

    /// Takes the keys out of a text.
    pub(crate) fn take_out(&self, text: &mut String) {
        for secret in &self.0 {
            if text.contains(secret.as_str()) {
                *text = text.replace(secret.as_str(), "[a key]");
            }
        }
    }

    /// Takes the keys out of what an upstream says that is not the model's: errors, and what this crate has no chunk for.
    pub(crate) fn take_out_of(&self, body: &mut Body) {
        match body {
            Body::Error { message, .. } => self.take_out(message),
            Body::Opaque { kind, json, .. } if self.0.iter().any(|secret| json.as_str().contains(secret.as_str())) => {
                let mut text = json.as_str().to_owned();
                self.take_out(&mut text);
                match Json::new(text) {
                    Ok(clean) => *json = clean,
                    // The key was no part of a string.
                    Err(_) => *body = Body::Unknown { kind: std::mem::take(kind) },
                }
            }
            _ => {}
        }
    }
}

/// The body of a request.
#[derive(Debug)]
pub(crate) enum Captured {
    /// As it came; its bytes count among those that requests hold until nothing has them any more.
    Whole(Bytes),
    /// It passed, and is larger than a body that is recorded, or there was no room for it.
    TooLarge,
    /// It ended early, or the answer came before its end.
    Cut,
}

/// What passes of the answer, in this order: a head, pieces, an end. Without a head, the upstream gave no answer.
#[derive(Debug)]
pub(crate) enum Passed {
    Head {
        status: StatusCode,
        headers: HeaderMap,
        /// From the request's head to the answer's.
        waited: Duration,
    },
    /// In place of a head: why there is no answer.
    Failed(String),
    Piece(Bytes),
    /// Its request was repaired before it was sent, or sent again: the report.
    Repaired(Vec<String>),
    /// The client has gone: what comes from now on it does not get.
    Left,
    End(Ended),
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// As HTTP ends one.
    Whole,
    /// The upstream cut it, was silent for too long, or could not be reached.
    UpstreamCut,
    /// The client was gone, and the rest was not waited for.
    ClientGone,
    /// Somebody stopped it, or the server ended.
    Stopped,
}
