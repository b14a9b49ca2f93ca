//! The proxy: what clients send to a provider passes through here as it is, and is recorded beside the traffic.
//!
//! - `path` (where a request is meant to go), `wires` (which calls are calls of a model), `headers` (which go on), `keys` (whose
//!   they are), `refused` (an error in the form of the wire).
//! - `repaired`: a request whose history was refused, or would be.
//! - `exchange`: what passes of one call, as the side that passes it on hands it to the side that records it.
//! - `record`: what is stored of it, and where.
//! - `tee` (a request's body on its way), `answer` (an answer's).
//!
//! This file has a call from its head to the head of its answer. A call is a task of its own: it does not end because its client
//! has gone.

mod answer;
mod exchange;
mod headers;
mod keys;
mod path;
mod record;
mod refused;
mod repaired;
mod tee;
mod wires;

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Uri};
use bytes::Bytes;
use hyper::body::Incoming;
use tokio::sync::oneshot;
use tokio::time::sleep;
use uuid::Uuid;

use super::app::{App, Caller, Outcome, Reply};
use super::config::{OnDisconnect, Record, Repair};
use super::keys::Scope;
use super::metrics::Reason;
use super::refusal::Refusal;
use super::room::Rates;
use super::upstream::Upstream;
use crate::provider::Target;
use answer::{Answer, Line, Passing};
use exchange::{Asked, Captured, Ended, Passed, Secrets};
use record::{Recording, record};
use repaired::Repaired;
use tee::{Keeping, Tee};

pub(crate) use record::{Exchange, exchange};

/// The paths of the proxy, as routes.
pub(crate) const ROUTES: [&str; 3] = ["/proxy/{upstream}", "/proxy/{upstream}/", "/proxy/{upstream}/{*path}"];
/// The exchange, for `GET /api/v1/exchanges/{exchange}`.
const EXCHANGE: &str = "x-convo-exchange";
/// Whether it is recorded, as far as that is known before its end.
const RECORDED: &str = "x-convo-recorded";
/// What `/v1` serves itself is never an upstream's.
const OWN: &str = "/v1/conversations";

/// Whether a path that this server does not serve is one of the default upstream.
pub(crate) fn is_of_default(app: &App, path: &str) -> bool {
    let is_own = path.strip_prefix(OWN).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    path.starts_with("/v1/") && !is_own && app.upstreams.default().is_some()
}

/// Why a call of a model finds nothing here: programs take this store for a provider.
pub(crate) fn no_upstream(method: &axum::http::Method, path: &str) -> Option<Refusal> {
    let is_call = path.starts_with("/v1/") && (wires::called(method, path).is_some() || path == "/v1/models");
    is_call.then(|| {
        let message = format!(
            "This is a store of conversations, and no model answers at {path} yet. Name an upstream in the settings, \
             `[[upstream]] name = \"openai\"` with `default = true`."
        );
        Refusal::new(404, "no_upstream", message)
    })
}

/// A call on its way to an upstream.
struct Call {
    app: Arc<App>,
    upstream: Arc<Upstream>,
    caller: Caller,
    /// The wire, if a model is called and that is recorded.
    recorded: Option<Target>,
    /// The wire, if a model is called and its history may be repaired.
    repaired: Option<Target>,
    asked: Parts,
    /// The client's headers, without keys.
    said: HeaderMap,
    path: String,
    body: Body,
    line: Line,
}

/// Passes a request on: the answer, and the caller's key for the log.
pub(crate) async fn pass(app: &Arc<App>, rates: &Rates, request: Request) -> (Reply, Option<String>) {
    let (asked, body) = request.into_parts();
    let method = asked.method.clone();
    let full = asked.uri.path().to_owned();
    let (name, path) = path::parts(&full).map_or((None, &*full), |(name, path)| (Some(name), path));
    let wire = wires::of_errors(&method, path);
    let mut key = None;
    let passed = begin(app, rates, name, path, asked, body, &mut key).await;
    (passed.unwrap_or_else(|refusal| refused::refused(wire, &refusal)), key)
}

async fn begin(
    app: &Arc<App>,
    rates: &Rates,
    name: Option<&str>,
    path: &str,
    mut asked: Parts,
    body: Body,
    key: &mut Option<String>,
) -> Outcome {
    let begun = Instant::now();
    let refused = |reason: &'static str| _ = app.metrics.refused.get_or_create(&Reason { reason }).inc();
    headers::check(&asked.headers).inspect_err(|_| refused("framing"))?;
    let known = keys::caller(app, &mut asked.headers, asked.uri.query());
    let (caller, place) = known.inspect_err(|_| refused("key"))?;
    *key = Some(caller.key.clone());
    if !caller.scopes.contains(&Scope::Append) {
        refused("scope");
        return Err(Refusal::missing_scope(Scope::Append));
    }
    if let Err(seconds) = rates.take(&caller.key, app.config.limits.requests_per_second, begun) {
        refused("rate");
        let message = "this key has exceeded its requests per second";
        return Err(Refusal { retry_after: Some(seconds), ..Refusal::new(429, "rate_limit_exceeded", message) });
    }
    path::check(&asked.uri, path)?;
    let found = name.map_or_else(|| app.upstreams.default(), |name| app.upstreams.find(name));
    let upstream = found.cloned().ok_or_else(|| {
        let message =
            format!("There is no upstream {:?}: `[[upstream]]` in the settings names those that there are.", name);
        Refusal::new(404, "unknown_upstream", message)
    })?;
    let uri = upstream.uri(path, asked.uri.query())?;
    let called = wires::called(&asked.method, path);
    let said = headers::harmless(&asked.headers);
    keys::complete(&mut asked.headers, asked.uri.query(), &upstream, place, wires::of_errors(&asked.method, path));
    headers::onward(&mut asked.headers);
    let id = Uuid::now_v7();
    let line = Line {
        id,
        key: caller.key.clone(),
        wire: called.map(|target| target.wire().name),
        begun,
        status: None,
        first: None,
        bytes: 0,
    };
    let is_recorded = called.is_some() && upstream.set.record != Record::No;
    // A dialect is one of its wire: an upstream may have several wires.
    let spoken = called.map(|target| {
        let spoken = upstream.target.filter(|spoken| spoken.wire().name == target.wire().name);
        spoken.unwrap_or(target)
    });
    let recorded = spoken.filter(|_| is_recorded);
    let repaired = spoken.filter(|_| upstream.set.repair != Repair::Never);
    let stream = app.streams.begin(&caller.key).inspect_err(|_| refused("streams"))?;
    let query = asked.uri.query().map(headers::harmless_query);
    asked.uri = uri;
    let reason = match (called, is_recorded) {
        (_, true) => "started",
        (Some(_), false) => "no; reason=off",
        (None, false) => "no; reason=no-call",
    };
    let call = Call {
        app: Arc::clone(app),
        upstream,
        caller,
        recorded,
        repaired,
        asked,
        said,
        path: path.to_owned(),
        body,
        line,
    };
    let (answered, answer) = oneshot::channel();
    tokio::spawn(call.run(query, stream, answered));
    let mut reply = answer.await.unwrap_or_else(|_| Err(Refusal::internal("the server failed at this request")))?;
    if let Ok(id) = HeaderValue::from_str(&id.to_string()) {
        reply.headers_mut().insert(HeaderName::from_static(EXCHANGE), id);
    }
    reply.headers_mut().entry(HeaderName::from_static(RECORDED)).or_insert(HeaderValue::from_static(reason));
    Ok(reply)
}

/// How the wait for the head of an answer ended.
enum Waited {
    Answered(Result<Response<Incoming>, Refusal>),
    Early(Ended),
}

/// The body of a request, once it has passed.
async fn captured(whole: &mut Option<oneshot::Receiver<Captured>>) -> Captured {
    match whole.take() {
        Some(whole) => whole.await.unwrap_or(Captured::Cut),
        None => std::future::pending().await,
    }
}

impl Call {
    /// Sends the request, and hands the head of its answer over.
    async fn run(self, query: Option<String>, stream: super::room::Stream, mut answered: oneshot::Sender<Outcome>) {
        let Self { app, upstream, caller, recorded, repaired, mut asked, said, path, body, line } = self;
        let limits = &app.config.limits;
        let (keeping, mut whole) = match recorded.or(repaired) {
            None => (None, None),
            Some(_) => {
                let room = Arc::new(app.ledger.room(&caller.owner));
                let (keeping, whole) = Keeping::new(room, limits.body_bytes);
                (Some(keeping), Some(whole))
            }
        };
        let mut body = Tee::of(body, keeping, limits.idle());
        let about = recorded.map(|target| Asked {
            id: line.id,
            caller,
            upstream: upstream.set.name.clone(),
            target,
            path,
            query,
            headers: said,
            body: Captured::Cut,
            secrets: Secrets::new(headers::secrets(&asked.headers, asked.uri.query())),
        });
        let begin = |body: Captured| about.map(|about| Arc::new(record(&app, Asked { body, ..about })));
        let mut passing =
            Passing { app: Arc::clone(&app), upstream: Arc::clone(&upstream), recording: None, line, stream };
        let mut begin = Some(begin);
        let mut start = |body: Captured| begin.take().and_then(|begin| begin(body));
        let is_required = recorded.is_some() && upstream.set.record == Record::Required;
        // What is larger passes as it is: it cannot be held.
        let ahead = repaired.filter(|_| upstream.set.repair == Repair::Always && fits(&body, limits.body_bytes));
        let (mut said_bytes, mut report) = (None, None);
        if is_required || ahead.is_some() {
            match kept(body, &mut whole, &mut start, is_required).await {
                Ok((bytes, recording)) => {
                    passing.recording = recording;
                    let mended = match ahead {
                        Some(target) => Repaired::of(&app, target, bytes.clone()).await,
                        None => None,
                    };
                    body = match mended {
                        Some(Repaired { body, report: lines }) => {
                            asked.headers = Repaired::headers(&asked.headers);
                            report = Some(lines);
                            body.into()
                        }
                        None => bytes.clone().into(),
                    };
                    said_bytes = Some(bytes);
                }
                Err(refusal) => {
                    passing.end(Ended::ClientGone);
                    let _ = answered.send(Err(refusal));
                    return;
                }
            }
        }
        // A repaired request is sent once.
        let again = repaired.filter(|_| upstream.set.repair == Repair::Refused);
        let once_more =
            again.map(|target| (target, asked.method.clone(), asked.uri.clone(), Repaired::headers(&asked.headers)));
        let waited = {
            let request = request(asked.method, asked.uri, asked.headers, body);
            let mut sent = std::pin::pin!(upstream.send(request));
            let drains = recorded.is_some() && upstream.set.on_disconnect == OnDisconnect::Drain;
            let mut gone = std::pin::pin!(async {
                answered.closed().await;
                if drains {
                    sleep(upstream.set.drain()).await;
                }
            });
            let waits = whole.is_some();
            let first = tokio::select! {
                biased;
                body = captured(&mut whole), if waits => Err(body),
                head = &mut sent => Ok(Waited::Answered(head)),
                () = &mut gone => Ok(Waited::Early(Ended::ClientGone)),
            };
            match first {
                Ok(waited) => {
                    if waits {
                        passing.recording = start(Captured::Cut);
                    }
                    waited
                }
                Err(body) => {
                    if let (Captured::Whole(bytes), Some(_)) = (&body, again) {
                        said_bytes = Some(bytes.clone());
                    }
                    passing.recording = start(body);
                    let mut stopped = passing.stopped();
                    tokio::select! {
                        biased;
                        head = &mut sent => Waited::Answered(head),
                        () = &mut stopped => Waited::Early(Ended::Stopped),
                        () = &mut gone => Waited::Early(Ended::ClientGone),
                    }
                }
            }
        };
        let waited = match (waited, once_more, said_bytes) {
            (Waited::Answered(Ok(answer)), Some((target, method, uri, headers)), Some(bytes))
                if answer.status() == StatusCode::BAD_REQUEST && report.is_none() =>
            {
                match Repaired::of(&app, target, bytes).await {
                    None => Waited::Answered(Ok(answer)),
                    Some(Repaired { body, report: lines }) => {
                        drop(answer);
                        report = Some(lines);
                        Waited::Answered(upstream.send(request(method, uri, headers, body.into())).await)
                    }
                }
            }
            (waited, ..) => waited,
        };
        let outcome = match waited {
            Waited::Answered(Ok(answer)) => {
                let lines = report.as_ref().map(Vec::len);
                if let (Some(recording), Some(report)) = (&passing.recording, report) {
                    recording.pass(Passed::Repaired(report.iter().map(ToString::to_string).collect()));
                }
                let mut reply = head(answer, passing);
                if let Some(lines) = lines {
                    Repaired::state(reply.headers_mut(), lines);
                }
                Ok(reply)
            }
            Waited::Answered(Err(refusal)) => {
                passing.end(Ended::UpstreamCut);
                Err(refusal)
            }
            Waited::Early(ended) => {
                passing.end(ended);
                Err(Refusal::new(502, "stopped", "the call was stopped before its answer began"))
            }
        };
        // Nobody takes it if the client has gone: what is dropped then is read to its end.
        let _ = answered.send(outcome);
    }
}

fn request(method: Method, uri: Uri, headers: HeaderMap, body: Body) -> Request {
    let mut request = Request::new(body);
    (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (method, uri, headers);
    request
}

/// Whether a body is known to have no more than so many bytes.
fn fits(body: &Body, most: usize) -> bool {
    http_body::Body::size_hint(body).upper().is_some_and(|length| length <= most as u64)
}

/// The whole body of a request; with `waits`, once what is recorded of it is durable.
async fn kept(
    mut body: Body,
    whole: &mut Option<oneshot::Receiver<Captured>>,
    start: &mut impl FnMut(Captured) -> Option<Arc<Recording>>,
    waits: bool,
) -> Result<(Bytes, Option<Arc<Recording>>), Refusal> {
    use http_body_util::BodyExt as _;
    while let Some(frame) = body.frame().await {
        frame.map_err(|_| Refusal::new(400, "broken_body", "the body ended early"))?;
    }
    let bytes = match captured(whole).await {
        Captured::Whole(bytes) => bytes,
        Captured::Cut => return Err(Refusal::new(400, "broken_body", "the body ended early")),
        Captured::TooLarge if !waits => {
            return Err(Refusal::busy("there is no room for the request that is to be repaired"));
        }
        Captured::TooLarge => {
            let message = "the body is too large to be recorded, which this upstream requires (limits.body_bytes)";
            return Err(Refusal::new(413, "body_too_large", message));
        }
    };
    let recording = start(Captured::Whole(bytes.clone()));
    if waits && let Some(recording) = &recording {
        recording.kept().await?;
    }
    Ok((bytes, recording))
}

/// The answer as the client gets it.
fn head(answer: Response<Incoming>, mut passing: Passing) -> Reply {
    let (parts, from) = answer.into_parts();
    let waited = passing.line.begun.elapsed();
    passing.line.status = Some(parts.status.as_u16());
    passing.line.first = Some(waited);
    if let Some(recording) = &passing.recording {
        let headers = headers::harmless(&parts.headers);
        recording.pass(Passed::Head { status: parts.status, headers, waited });
    }
    let mut reply = Reply::new(Answer::of(from, passing));
    *reply.status_mut() = parts.status;
    *reply.headers_mut() = parts.headers;
    headers::back(reply.headers_mut());
    reply
}
