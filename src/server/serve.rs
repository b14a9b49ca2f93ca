//! What happens to every request: who calls, may they, is there room; then its route; then a line in the log.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, RawPathParams, Request};
use axum::http::header::ALLOW;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::{MethodFilter, any, on};
use axum::{RequestExt as _, body::HttpBody as _};
use http_body_util::BodyExt as _;
use tokio::sync::Semaphore;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use super::app::{App, AskedBy, Call, Caller, Handler, Outcome, Reply};
use super::auth::{caller, nobody, visitor};
use super::keys::{Scope, random};
use super::ledger::InPieces;
use super::metrics::{Answered, Reason};
use super::pages::{self, Asked};
use super::query::Query;
use super::refusal::Refusal;
use super::room::Rates;
use super::route::{Route, Verb};
use super::{auth, body, health, keys, proxy, responses};

/// Whom routes face: that decides how a caller is known, and what an error looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Face {
    /// Programs with a key.
    Api,
    /// People who are logged in.
    Pages,
    /// People who may not be logged in yet.
    Door,
}

impl Face {
    fn caller(self, app: &App, headers: &HeaderMap) -> Result<Caller, Refusal> {
        match self {
            Self::Api => caller(app, headers),
            Self::Pages => visitor(app, headers),
            Self::Door => Ok(visitor(app, headers).unwrap_or_else(|_| nobody(Vec::new()))),
        }
    }
}

/// Requests in progress of those without a key.
const STRANGERS: usize = 64;

/// Room for requests, and their rates.
#[derive(Debug)]
struct Gate {
    app: Arc<App>,
    requests: Arc<Semaphore>,
    /// For those without a key.
    strangers: Arc<Semaphore>,
    rates: Rates,
}

/// All routes of the APIs, and the layers around them.
pub(crate) fn router(app: &Arc<App>, tables: &[(Face, &'static [Route])]) -> Router {
    let requests = Arc::new(Semaphore::new(app.config.limits.requests.min(Semaphore::MAX_PERMITS)));
    let strangers = Arc::new(Semaphore::new(STRANGERS));
    let gate = Arc::new(Gate { app: Arc::clone(app), requests, strangers, rates: Rates::default() });
    let mut router = Router::new();
    let served = tables.iter().filter(|(face, _)| *face == Face::Api || app.config.pages.enabled);
    for (face, route) in served.flat_map(|(face, routes)| routes.iter().map(|route| (*face, route))) {
        let gate = Arc::clone(&gate);
        let filter = match route.verb {
            Verb::Get => MethodFilter::GET,
            Verb::Post => MethodFilter::POST,
            Verb::Put => MethodFilter::PUT,
            Verb::Delete => MethodFilter::DELETE,
        };
        let handle = move |request: Request| {
            let gate = Arc::clone(&gate);
            async move { dispatch(&gate, face, route, request).await }
        };
        router = router.route(route.path, on(filter, handle));
    }
    for path in proxy::ROUTES {
        let gate = Arc::clone(&gate);
        router = router.route(
            path,
            any(move |request: Request| async move { proxy::pass(&gate.app, &gate.rates, request).await }),
        );
    }
    let sockets = Arc::clone(&gate);
    let handle = move |request: Request| {
        let gate = Arc::clone(&sockets);
        async move {
            let mut reply = socket(&gate, request).unwrap_or_else(|refusal| refusal.reply());
            if reply.status() == StatusCode::METHOD_NOT_ALLOWED {
                reply.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
            }
            reply
        }
    };
    router = router.route(responses::SOCKET, on(MethodFilter::GET, handle));
    let router = health::routes(router, app, false);
    let (unknown, wrong) = (gate, Arc::clone(app));
    let unknown = move |request: Request| {
        let gate = Arc::clone(&unknown);
        async move {
            let (method, path) = (request.method(), request.uri().path());
            if proxy::is_of_default(&gate.app, path) {
                return proxy::pass(&gate.app, &gate.rates, request).await;
            }
            let invalid = || Refusal::not_found(format!("Invalid URL ({method} {path})"));
            let refusal = proxy::no_upstream(method, path).unwrap_or_else(invalid);
            elsewhere(&gate.app, &request, refusal)
        }
    };
    let wrong = move |request: Request| {
        let message = format!("Not allowed: {} {}", request.method(), request.uri().path());
        let reply = elsewhere(&wrong, &request, Refusal::new(405, "method_not_allowed", message));
        async move { reply }
    };
    around(router.fallback(unknown).method_not_allowed_fallback(wrong), app)
}

/// Opens a connection for responses.
fn socket(gate: &Gate, mut request: Request) -> Outcome {
    let app = &gate.app;
    let refused = |reason: &'static str| _ = app.metrics.refused.get_or_create(&Reason { reason }).inc();
    let caller = Face::Api.caller(app, request.headers()).inspect_err(|_| refused("key"))?;
    if !caller.scopes.contains(&Scope::Append) {
        refused("scope");
        return Err(Refusal::missing_scope(Scope::Append));
    }
    let upgrade = hyper::upgrade::on(&mut request);
    AskedBy::note(request.extensions(), &caller);
    let call = Call::new(app, caller, Vec::new(), Query::new(""), std::mem::take(request.headers_mut()));
    responses::socket::open(call, upgrade).inspect_err(|_| refused("websocket"))
}

/// The answer where there is no route: to people a page.
fn elsewhere(app: &Arc<App>, request: &Request, refusal: Refusal) -> Reply {
    let asked = Asked::of(request);
    if app.config.pages.enabled && asked.expects_page() {
        return pages::refused(app, &asked, visitor(app, request.headers()).ok().as_ref(), &refusal);
    }
    caller(app, request.headers()).map(|_| refusal).unwrap_or_else(|refusal| refusal).reply()
}

/// Request ids, logs, metrics, and what browsers may do.
pub(crate) fn around(router: Router, app: &Arc<App>) -> Router {
    let (guarded, logged) = (Arc::clone(app), Arc::clone(app));
    let router = router.layer(from_fn(move |request: Request, next: Next| {
        let app = Arc::clone(&guarded);
        async move {
            let mut reply = match auth::is_welcome(&app, request.method(), request.headers()) {
                Ok(()) => next.run(request).await,
                Err(refusal) => {
                    app.metrics.refused.get_or_create(&Reason { reason: "origin" }).inc();
                    elsewhere(&app, &request, refusal)
                }
            };
            for (name, value) in NOT_EMBEDDED {
                reply.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            reply
        }
    }));
    let router = router.layer(from_fn(move |request, next| {
        let app = Arc::clone(&logged);
        async move { log(&app, request, next).await }
    }));
    let origins = &app.config.server.cors_origins;
    if origins.is_empty() {
        return router;
    }
    let origins: Vec<HeaderValue> = origins.iter().filter_map(|origin| origin.parse().ok()).collect();
    let layer = CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::DELETE])
        // SDKs send headers of their own. A page of these origins has no cookie here: what it may do is in its key.
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([REQUEST_ID, "retry-after", "x-should-retry"].map(HeaderName::from_static));
    router.layer(layer)
}

/// With each answer: it is what its type says, and no page of another site can load it as its own part.
const NOT_EMBEDDED: [(&str, &str); 2] =
    [("x-content-type-options", "nosniff"), ("cross-origin-resource-policy", "same-origin")];
/// The methods that metrics distinguish.
const COUNTED: [Method; 6] = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS];
const REQUEST_ID: &str = "x-request-id";
/// The name of the lines about requests on behalf of an owner.
const AUDIT: &str = "conversation_store::audit";
/// The longest request id of a client that is adopted.
const ID_BYTES: usize = 128;

/// The status of a request whose client left before the answer's head, in the log and the metrics. HTTP has none.
const LEFT: u16 = 499;

/// What is logged of a request at its end. Neither content nor paths are logged, because paths contain ids.
struct Line {
    app: Arc<App>,
    begun: Instant,
    id: String,
    method: Method,
    route: String,
    trace: Option<String>,
    by: AskedBy,
    /// Its status, and the bytes of its body if they are known. Without an answer the client has left.
    answer: Option<(u16, Option<u64>)>,
}

impl Drop for Line {
    fn drop(&mut self) {
        let Self { app, begun, id, method, route, trace, by, answer } = self;
        let (status, bytes) = answer.unwrap_or((LEFT, None));
        let seconds = begun.elapsed().as_secs_f64();
        app.metrics.in_flight.dec();
        app.metrics.seconds.observe(seconds);
        // A client may invent methods: each would be a row for ever.
        let counted = if COUNTED.contains(method) { method.as_str() } else { "OTHER" };
        app.metrics.answered.get_or_create(&Answered { route: format!("{counted} {route}"), status }).inc();
        let caller = by.caller();
        let key = caller.map_or("none", |caller| &caller.key);
        if let Some(owner) = caller.and_then(|caller| caller.acts_for.get()) {
            // Who acted for whom: of all lines this one alone names an owner.
            tracing::info!(target: AUDIT, request_id = id, key, owner, %method, route, status, "on behalf");
        }
        let milliseconds = (seconds * 1e6).round() / 1e3;
        tracing::info!(request_id = id, key, %method, route, status, bytes, milliseconds, traceparent = trace, "request");
    }
}

/// Gives a request its id, and logs it once it is answered, or its client has left.
async fn log(app: &Arc<App>, mut request: Request, next: Next) -> Response {
    let trace = request.headers().get("traceparent").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let mut line = Line {
        app: Arc::clone(app),
        begun: Instant::now(),
        id: request_id(request.headers()),
        method: request.method().clone(),
        route: request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned(),
        trace,
        by: AskedBy::default(),
        answer: None,
    };
    request.extensions_mut().insert(line.by.clone());
    app.metrics.in_flight.inc();
    let mut reply = next.run(request).await;
    line.answer = Some((reply.status().as_u16(), reply.body().size_hint().exact()));
    if let Ok(value) = HeaderValue::from_str(&line.id) {
        // An upstream has its own.
        reply.headers_mut().entry(REQUEST_ID).or_insert(value);
    }
    reply
}

/// The client's id, if it is short and harmless; otherwise a new one.
fn request_id(headers: &HeaderMap) -> String {
    let is_safe = |id: &&str| {
        let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        !id.is_empty() && id.len() <= ID_BYTES && id.bytes().all(is_safe)
    };
    let given = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok()).filter(is_safe);
    // Without randomness ids are useless; the request is not.
    given.map_or_else(|| format!("req_{}", keys::hex(&random::<12>().unwrap_or_default())), str::to_owned)
}

async fn dispatch(gate: &Arc<Gate>, face: Face, route: &'static Route, request: Request) -> Reply {
    let asked = (face != Face::Api).then(|| Asked::of(&request));
    let refused = |caller: Option<&Caller>, refusal: Refusal| match &asked {
        None => refusal.reply(),
        Some(asked) => pages::refused(&gate.app, asked, caller, &refusal),
    };
    let caller = match face.caller(&gate.app, request.headers()) {
        Ok(caller) => caller,
        Err(refusal) => {
            gate.app.metrics.refused.get_or_create(&Reason { reason: "key" }).inc();
            return refused(None, refusal);
        }
    };
    AskedBy::note(request.extensions(), &caller);
    let answered = answer(gate, face, route, caller.clone(), request).await;
    let mut reply = answered.unwrap_or_else(|refusal| refused(Some(&caller), refusal));
    if asked.is_some() {
        pages::protect(&mut reply);
    }
    reply
}

async fn answer(gate: &Arc<Gate>, face: Face, route: &'static Route, caller: Caller, mut request: Request) -> Outcome {
    let app = &gate.app;
    let refused = |reason: &'static str| app.metrics.refused.get_or_create(&Reason { reason }).inc();
    if face != Face::Door && !caller.scopes.contains(&route.scope) {
        refused("scope");
        return Err(Refusal::missing_scope(route.scope));
    }
    let is_welcome = match (face, route.verb) {
        (Face::Api, _) => Ok(()),
        (_, Verb::Get) => pages::not_embedded(request.headers()),
        (_, _) => pages::same_origin(request.headers()),
    };
    is_welcome.inspect_err(|_| _ = refused("origin"))?;
    let per_second = if face == Face::Door { 0 } else { app.config.limits.requests_per_second };
    if let Err(seconds) = gate.rates.take(&caller.key, per_second, Instant::now()) {
        refused("rate");
        let message = "this key has exceeded its requests per second";
        return Err(Refusal { retry_after: Some(seconds), ..Refusal::new(429, "rate_limit_exceeded", message) });
    }
    let path = request.extract_parts::<RawPathParams>().await;
    let path = path.map_err(|error| Refusal::new(400, "invalid_path", error.to_string()))?;
    let path = path.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let (Parts { uri, headers, .. }, body) = request.into_parts();
    let query = Query::new(uri.query().unwrap_or_default());
    let call = Call::new(app, caller, path, query, headers);
    match route.handler {
        Handler::Stream(handler) => handler(call, body).await,
        Handler::Store(handler) => {
            // Those without a key take no room from those who have one.
            let is_stranger = face == Face::Door && call.caller.session.is_none();
            let (room, bounds) = match is_stranger {
                true => (&gate.strangers, body::Bounds::of_strangers(app)),
                false => (&gate.requests, body::Bounds::of(app)),
            };
            let promised = call.header("content-length").and_then(|length| length.parse().ok());
            let held = Arc::new(body::read(app, &call.caller.owner, body, promised, bounds).await?);
            // The body is there: who sends slowly takes nothing from others.
            let room = Arc::clone(room).try_acquire_owned();
            let Ok(room) = room else {
                refused("requests");
                return Err(Refusal::busy("the server is at its limit of requests in progress; try again"));
            };
            let room = Arc::new(room);
            let reply = loop {
                let (asked, held, room) = (call.clone(), Arc::clone(&held), Arc::clone(&room));
                let outcome = app
                    .pool
                    .run(move || {
                        let outcome = handler(&asked, &held.bytes);
                        drop((held, room));
                        outcome
                    })
                    .await;
                match (outcome, call.room.take_wanted()) {
                    // What only reads is tried again, once there is room for it.
                    (Err(_), Some(wanted)) if route.scope == Scope::Read => {
                        // It may want more than the part after which it was refused.
                        let most = app.ledger.share() / 2;
                        call.room.wait(wanted.max(wanted.saturating_mul(2).min(most))).await?;
                    }
                    (outcome, _) => break outcome?,
                }
            };
            counted(&call, reply).await
        }
    }
}

/// An answer whose bytes count until the client has them.
async fn counted(call: &Call, reply: Reply) -> Outcome {
    let (parts, body) = reply.into_parts();
    let bytes = body.collect().await.map_err(|error| Refusal::internal(format!("cannot send the answer: {error}")))?;
    Ok(Reply::from_parts(parts, InPieces::of(call.room.hold(bytes.to_bytes()).into())))
}
