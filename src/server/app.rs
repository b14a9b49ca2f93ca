//! What all requests share, and what one request is.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use axum::body::Body;
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use bytes::Bytes;
use serde::Serialize;
use tokio::sync::watch;

use super::begun::BegunResponses;
use super::config::Config;
use super::exchanges::Exchanges;
#[cfg(feature = "search")]
use super::finder::Finder;
use super::keys::{Keys, Scope, SessionId, Sessions};
use super::ledger::{Ledger, Room, metered};
use super::metrics::Metrics;
use super::query::Query;
use super::refusal::Refusal;
use super::room::{Pool, Streams, Stripes};
use super::upstream::Upstreams;
use super::writers::Writers;
use crate::model::Name;
use crate::store::Store;

/// The most bytes of an idempotency key.
const KEY_BYTES: usize = 1_000;

/// What all requests share.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) store: Store,
    pub(crate) config: Config,
    /// Absent if no keys are needed.
    pub(crate) keys: Option<Keys>,
    pub(crate) pool: Pool,
    pub(crate) metrics: Arc<Metrics>,
    /// The bytes that requests hold.
    pub(crate) ledger: Arc<Ledger>,
    /// Followers, ingests, and messages that clients of the log are writing.
    pub(crate) streams: Arc<Streams>,
    /// Appends of items that look at what is stored before they add to it.
    pub(crate) appending: Stripes,
    /// Messages that clients of the log are writing.
    pub(crate) writers: Writers,
    /// Servers of models.
    pub(crate) upstreams: Upstreams,
    /// Calls of models that are recorded now.
    pub(crate) exchanges: Arc<Exchanges>,
    /// Responses of models at upstreams.
    pub(crate) responses: BegunResponses,
    /// Who is logged in at the pages.
    pub(crate) sessions: Sessions,
    /// What is searched.
    #[cfg(feature = "search")]
    pub(crate) finder: Finder,
    /// Whether the server is ending: it is not ready any more.
    pub(crate) draining: AtomicBool,
    /// True once open streams must end.
    pub(crate) closing: watch::Sender<bool>,
    /// True once answers that this server asks for must end, too: they have as long as requests.
    pub(crate) over: watch::Sender<bool>,
    /// The OpenAPI document, made when somebody first asks for it.
    pub(crate) document: LazyLock<Bytes>,
}

impl App {
    pub(crate) fn new(
        store: Store,
        config: Config,
        keys: Option<Keys>,
        upstreams: Upstreams,
        responses: BegunResponses,
        document: fn() -> Bytes,
    ) -> Self {
        let metrics = Arc::new(Metrics::new());
        Self {
            store,
            keys,
            pool: Pool::new(config.limits.store_threads, Arc::clone(&metrics)),
            ledger: Arc::new(Ledger::new(
                config.limits.held_bytes,
                config.limits.body_bytes,
                metrics.held_bytes.clone(),
            )),
            metrics,
            streams: Arc::new(Streams::new(config.limits.streams, config.limits.streams_per_key)),
            appending: Stripes::default(),
            writers: Writers::default(),
            upstreams,
            exchanges: Arc::default(),
            responses,
            sessions: Sessions::new(config.pages.session()),
            #[cfg(feature = "search")]
            finder: Finder::new(config.pages.search_index.clone(), config.pages.language()),
            draining: AtomicBool::new(false),
            closing: watch::Sender::new(false),
            over: watch::Sender::new(false),
            config,
            document: LazyLock::new(document),
        }
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }
}

/// The caller.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// The key's name in logs; `none` if no keys are needed.
    pub(crate) key: String,
    pub(crate) owner: String,
    pub(crate) scopes: Vec<Scope>,
    /// The digest of the key's secret, if a key is needed.
    pub(crate) digest: Option<String>,
    /// The session, at the pages.
    pub(crate) session: Option<SessionId>,
    /// Whether items come as a provider accepts them, unless the request says otherwise.
    pub(crate) repaired: bool,
    /// The owner, if it is not the key's: the request names another owner, or something that another owner has. All
    /// copies know it.
    pub(crate) acts_for: Arc<OnceLock<String>>,
}

/// Who asks, once that is known: a part of each request.
#[derive(Clone, Debug, Default)]
pub(crate) struct AskedBy(Arc<OnceLock<Caller>>);

impl AskedBy {
    pub(crate) fn note(request: &Extensions, caller: &Caller) {
        if let Some(Self(asked)) = request.get() {
            let _ = asked.set(caller.clone());
        }
    }

    pub(crate) fn caller(&self) -> Option<&Caller> {
        self.0.get()
    }
}

/// A request, without its body.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) app: Arc<App>,
    pub(crate) caller: Caller,
    /// The parts of the path that its route names, decoded.
    pub(crate) path: Vec<(String, String)>,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    /// What it reads, and its answer.
    pub(crate) room: Arc<Room>,
    pub(crate) store: Store,
}

impl Call {
    pub(crate) fn new(
        app: &Arc<App>,
        caller: Caller,
        path: Vec<(String, String)>,
        query: Query,
        headers: HeaderMap,
    ) -> Self {
        let room = Arc::new(app.ledger.room(&caller.owner));
        let store = metered(&app.store, &room);
        Self { app: Arc::clone(app), caller, path, query, headers, room, store }
    }

    /// The store, whose reads count as what this request holds.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// A part of the path. The routes name all parts that their handlers use.
    pub(crate) fn part(&self, name: &str) -> &str {
        self.path.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// A part of the path that is a number.
    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str) -> Result<T, Refusal> {
        let text = self.part(name);
        text.parse().map_err(|_| Refusal::value(name, &format!("{text:?} is not a number")))
    }

    /// A conversation of the caller's.
    pub(crate) fn own(&self, name: impl Into<Name>) -> Name {
        name.into().with_owner(&*self.caller.owner)
    }

    /// The same request for the conversations of this owner.
    pub(crate) fn of(&self, owner: String) -> Self {
        if owner != self.caller.owner {
            self.caller.acts_for.get_or_init(|| owner.clone());
        }
        Self { caller: Caller { owner, ..self.caller.clone() }, ..self.clone() }
    }

    /// A header's value, if it is text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The key that makes a repeated append harmless.
    pub(crate) fn idempotency_key(&self) -> Result<Option<&str>, Refusal> {
        let Some(value) = self.headers.get("idempotency-key") else { return Ok(None) };
        match value.to_str() {
            Ok(key) if key.len() > KEY_BYTES => {
                let message = format!("Invalid 'Idempotency-Key': string too long. Expected at most {KEY_BYTES}.");
                Err(Refusal::invalid("Idempotency-Key", "string_above_max_length", message))
            }
            Ok(key) if !key.is_empty() => Ok(Some(key)),
            _ => Err(Refusal::value("Idempotency-Key", "expected text")),
        }
    }
}

/// The answer.
pub(crate) type Reply = Response<Body>;

/// The result of a request.
pub(crate) type Outcome = Result<Reply, Refusal>;

/// What a route does.
#[derive(Clone, Copy)]
pub(crate) enum Handler {
    /// A call of the store, on a thread of its own, with the whole body.
    Store(fn(&Call, &[u8]) -> Outcome),
    /// Streams, in either direction.
    Stream(fn(Call, Body) -> Streaming),
}

/// The answer of a stream's route.
pub(crate) type Streaming = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// An answer of this type.
pub(crate) fn reply(status: u16, content_type: &'static str, body: impl Into<Body>) -> Reply {
    let mut reply = Response::new(body.into());
    *reply.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    reply.headers_mut().insert(HeaderName::from_static("content-type"), HeaderValue::from_static(content_type));
    reply
}

/// 200, with JSON.
pub(crate) fn ok(value: &impl Serialize) -> Outcome {
    let text = serde_json::to_vec(value);
    let mut text = text.map_err(|error| Refusal::internal(format!("cannot write the answer: {error}")))?;
    // It may be held for long.
    text.shrink_to_fit();
    Ok(reply(200, "application/json", text))
}

impl Refusal {
    /// Turns it into the HTTP response.
    pub(crate) fn reply(&self) -> Reply {
        let body = serde_json::to_vec(&self.body()).unwrap_or_default();
        let mut reply = reply(self.status, "application/json", body);
        let headers = reply.headers_mut();
        if let Some(seconds) = self.retry_after {
            headers.insert(HeaderName::from_static("retry-after"), HeaderValue::from(seconds));
        } else if matches!(self.status, 408 | 409 | 429 | 500..) && !self.may_be_repeated() {
            headers.insert(HeaderName::from_static("x-should-retry"), HeaderValue::from_static("false"));
        }
        if self.status == 401 {
            headers.insert(HeaderName::from_static("www-authenticate"), HeaderValue::from_static("Bearer"));
        }
        reply
    }
}
