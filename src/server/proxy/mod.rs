//! The proxy: what clients send to a provider passes through here as it is, and is recorded beside the traffic.
//!
//! - `wires` (where a request is meant to go, and which calls are calls of a model), `headers` (which go on), `keys` (whose
//!   they are), `refused` (an error in the form of the wire).
//! - `exchange`: what passes of one call, as the side that passes it on hands it to the side that records it.
//! - `record`: what is stored of it, and where.
//! - `sending`: a call from its request to the head of its answer, step by step; and a request whose history was refused, or
//!   would be, repaired.
//! - `tee` (a request's body on its way), `answer` (an answer's).
//!
//! This file decides who may call what. Each call then runs as a task of its own, so it does not end when its client
//! goes.

mod answer;
mod exchange;
mod headers;
mod keys;
mod record;
mod refused;
mod sending;
mod tee;
mod wires;

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue};
use uuid::Uuid;

use super::app::{App, AskedBy, Outcome, Reply};
use super::config::{Record, Repair};
use super::keys::Scope;
use super::metrics::Reason;
use super::refusal::Refusal;
use super::room::Rates;
use crate::provider::Target;
use answer::{Line, Passing};
use exchange::{Asked, Captured};
use sending::Sending;

pub(crate) use exchange::Secrets;
pub(crate) use keys::credential;
pub use record::erasing;
pub(crate) use record::{Exchange, book, exchange, is_end, owner_key, request, whose_book};

/// The paths of the proxy, as routes.
pub(crate) const ROUTES: [&str; 3] = ["/proxy/{upstream}", "/proxy/{upstream}/", "/proxy/{upstream}/{*path}"];
/// The exchange, for `GET /api/v1/exchanges/{exchange}`.
const EXCHANGE: &str = "x-convo-exchange";
/// Whether it is recorded, as far as that is known before its end.
const RECORDED: &str = "x-convo-recorded";
/// What `/v1` serves itself is never an upstream's.
const OWN: [&str; 2] = ["/v1/conversations", "/v1/responses"];

/// Whether a path that this server does not serve is one of the default upstream.
pub(crate) fn is_of_default(app: &App, path: &str) -> bool {
    let is_below = |own: &str| path.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    path.starts_with("/v1/") && !OWN.iter().any(|own| is_below(own)) && app.upstreams.default().is_some()
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

/// Passes a request on to an upstream.
pub(crate) async fn pass(app: &Arc<App>, rates: &Rates, request: Request) -> Reply {
    let (asked, body) = request.into_parts();
    let method = asked.method.clone();
    let full = asked.uri.path().to_owned();
    let (name, path) = wires::parts(&full).map_or((None, &*full), |(name, path)| (Some(name), path));
    let wire = wires::of_errors(&method, path);
    let mut exchange = None;
    let passed = begin(app, rates, name, path, asked, body, &mut exchange).await;
    let mut reply = passed.unwrap_or_else(|refusal| refused::refused(wire, &refusal));
    if let Some((exchange, recorded)) = exchange {
        if let Ok(id) = HeaderValue::from_str(&exchange.to_string()) {
            reply.headers_mut().insert(HeaderName::from_static(EXCHANGE), id);
        }
        reply.headers_mut().insert(HeaderName::from_static(RECORDED), HeaderValue::from_static(recorded));
    }
    reply
}

/// `exchange`: what is known of the call, however it ends: its exchange, and whether it is recorded.
async fn begin(
    app: &Arc<App>,
    rates: &Rates,
    name: Option<&str>,
    path: &str,
    mut asked: Parts,
    body: Body,
    exchange: &mut Option<(Uuid, &'static str)>,
) -> Outcome {
    let begun = Instant::now();
    let refused = |reason: &'static str| _ = app.metrics.refused.get_or_create(&Reason { reason }).inc();
    headers::check(&asked.headers).inspect_err(|_| refused("framing"))?;
    let caller = keys::caller(app, &mut asked.headers, path, asked.uri.query());
    let (caller, place) = caller.inspect_err(|_| refused("key"))?;
    AskedBy::note(&asked.extensions, &caller);
    if !caller.scopes.contains(&Scope::Append) {
        refused("scope");
        return Err(Refusal::missing_scope(Scope::Append));
    }
    if let Err(seconds) = rates.take(&caller.key, app.config.limits.requests_per_second, begun) {
        refused("rate");
        let message = "this key has exceeded its requests per second";
        return Err(Refusal { retry_after: Some(seconds), ..Refusal::new(429, "rate_limit_exceeded", message) });
    }
    wires::check(&asked.method, &asked.uri, path)?;
    let found = name.map_or_else(|| app.upstreams.default(), |name| app.upstreams.find(name));
    let upstream = found.cloned().ok_or_else(|| {
        let name = name.unwrap_or_default();
        let message =
            format!("There is no upstream {name:?}: `[[upstream]]` in the settings names those that there are.");
        Refusal::new(404, "unknown_upstream", message)
    })?;
    let uri = upstream.uri(path, asked.uri.query())?;
    let called = wires::called(&asked.method, path);
    let said = headers::harmless(&asked.headers);
    let account = keys::lasting(&asked.headers, asked.uri.query());
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
    let wants_records = upstream.set.record != Record::No;
    let is_recorded = called.is_some() && wants_records;
    let fetched = wires::fetched(&asked.method, path).filter(|_| wants_records);
    let reason = match (called, is_recorded) {
        (_, true) => "started",
        (Some(_), false) => "no; reason=off",
        (None, false) => "no; reason=no-call",
    };
    // A dialect is one of its wire: an upstream may have several wires.
    let spoken = called.or(fetched.map(|_| Target::OPENAI_RESPONSES)).map(|target| {
        let spoken = upstream.target.filter(|spoken| spoken.wire().name == target.wire().name);
        spoken.unwrap_or(target)
    });
    let repaired = spoken.filter(|_| called.is_some() && upstream.set.repair != Repair::Never);
    let connection = app.upstreams.begin().inspect_err(|_| refused("streams"))?;
    let stream = app.streams.begin(&caller.key).inspect_err(|_| refused("streams"))?.with(connection);
    let owner = caller.owner.clone();
    let recorded = spoken.filter(|_| is_recorded || fetched.is_some()).map(|target| Asked {
        id,
        begun: line.begun,
        fetched: fetched.map(str::to_owned),
        caller,
        upstream: upstream.set.name.clone(),
        target,
        without_session: upstream.set.without_session,
        path: path.to_owned(),
        query: asked.uri.query().map(headers::harmless_query),
        headers: said,
        body: Captured::Cut,
        account,
        secrets: Secrets::of(&asked.headers, asked.uri.query()),
    });
    asked.uri = uri;
    let passing = Passing { app: Arc::clone(app), upstream, owner, recording: None, line, stream };
    let (sending, answer) = Sending::new(Request::from_parts(asked, body), recorded, repaired, passing);
    tokio::spawn(sending.run());
    *exchange = Some((id, reason));
    answer.await.unwrap_or_else(|_| Err(Refusal::internal("the server failed at this request")))
}
