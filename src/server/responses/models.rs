//! Which upstream a model is at, and where and how it is called there.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;

use crate::model::Body as ChunkBody;
use crate::provider::{Target, decode};
use crate::server::app::{App, Call};
use crate::server::config::Model;
use crate::server::proxy::{self, Secrets};
use crate::server::refusal::Refusal;
use crate::server::upstream::Upstream;

/// The most bytes of an error that are read.
const ERROR_BYTES: usize = 64 * 1024;
/// Headers of the client that go on: what they switch on is the upstream's.
const ONWARD: [&str; 3] = ["anthropic-beta", "openai-organization", "openai-project"];
const ANTHROPIC_VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

/// A model at an upstream.
#[derive(Clone, Debug)]
pub(super) struct At {
    pub(super) upstream: Arc<Upstream>,
    pub(super) target: Target,
    /// The model's name there.
    pub(super) model: String,
    /// How many tokens it takes, if the settings say so.
    pub(super) context_tokens: Option<u64>,
}

impl At {
    /// By the settings' table of models; else `upstream/model`; else at the default upstream.
    pub(super) fn of(app: &App, model: &str) -> Result<Self, Refusal> {
        let row = app.config.models.iter().find(|row| row.is_of(model));
        let (name, model, wire, context_tokens) = match (row, model.split_once('/')) {
            (Some(Model { upstream, wire, rename, context_tokens, .. }), _) => {
                (upstream.as_str(), rename.as_deref().unwrap_or(model), wire.as_deref(), *context_tokens)
            }
            (None, Some((name, rest))) if app.upstreams.find(name).is_some() => (name, rest, None, None),
            _ => match app.upstreams.default() {
                Some(upstream) => (upstream.set.name.as_str(), model, None, None),
                None => return Err(unknown(app, model)),
            },
        };
        let upstream = app.upstreams.find(name).cloned().ok_or_else(|| unknown(app, model))?;
        let target = match wire {
            Some(wire) => wire.parse().ok(),
            None => upstream.target.or_else(|| by_name(name)),
        };
        // Nearly every server of models speaks Chat Completions.
        let target = target.or_else(|| "openai-chat/compatible".parse().ok()).unwrap_or(Target::OPENAI_CHAT);
        Ok(Self { upstream, target, model: model.to_owned(), context_tokens })
    }

    /// The upstream's name.
    pub(super) fn name(&self) -> &str {
        &self.upstream.set.name
    }

    /// The request that asks it for an answer.
    pub(super) fn request(&self, call: &Call, body: Vec<u8>) -> Result<Request, Refusal> {
        let (path, query) = path(self.target, self.upstream.path(), &self.model);
        let mut request = Request::new(Body::from(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.upstream.uri(&path, query.as_deref())?;
        let headers = request.headers_mut();
        let fixed = [
            ("content-type", "application/json"),
            ("accept", "text/event-stream"),
            ("accept-encoding", "identity"),
            ("user-agent", concat!("convo/", env!("CARGO_PKG_VERSION"))),
        ];
        for (name, value) in fixed {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        if self.target.wire().name == Target::ANTHROPIC.wire().name {
            let (name, value) = ANTHROPIC_VERSION;
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        for name in ONWARD.map(HeaderName::from_static) {
            if let Some(value) = call.headers.get(&name) {
                headers.insert(name, value.clone());
            }
        }
        if let Some((name, value)) = proxy::credential(&call.app, &call.headers, &self.upstream, self.target) {
            headers.insert(name, value);
        }
        Ok(request)
    }

    /// Sends it: the answer's head, if that is not an error.
    pub(super) async fn send(&self, request: Request) -> Result<Response<Incoming>, Refusal> {
        let secrets = Secrets::of(request.headers(), None);
        let answer = self.upstream.send(request).await?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let mut refusal = self.refused(answer).await;
        secrets.take_out(&mut refusal.message);
        Err(refusal)
    }

    /// The upstream's error, in OpenAI's form.
    async fn refused(&self, answer: Response<Incoming>) -> Refusal {
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, ERROR_BYTES).collect().await;
        let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let said = decode(self.target, &body).ok();
        let error = said.into_iter().flat_map(|message| message.chunks).find_map(|chunk| match chunk.body {
            ChunkBody::Error { message, code } => Some((message, code)),
            _ => None,
        });
        let (message, code) = error.unwrap_or_else(|| (String::from_utf8_lossy(&body).into_owned(), None));
        let status = head.status.as_u16();
        // What is no error of HTTP is one of the upstream.
        let status = if (400..600).contains(&status) { status } else { 502 };
        let message = format!("upstream {}: {message}", self.name());
        let mut refusal = Refusal::new(status, "upstream_error", message).detail("upstream", self.name());
        if let Some(code) = code {
            refusal = refusal.detail("code", code);
        }
        refusal.retry_after = retry_after(&head.headers).or((status == 429 || status >= 500).then_some(1));
        refusal
    }
}

fn retry_after(headers: &HeaderMap) -> Option<u64> {
    headers.get("retry-after")?.to_str().ok()?.parse().ok()
}

fn unknown(app: &App, model: &str) -> Refusal {
    let names: Vec<_> = app.upstreams.names().collect();
    if names.is_empty() {
        let message = "This is a store of conversations, and no model answers here yet. Name an upstream in the settings, \
                       `[[upstream]] name = \"openai\"` with `default = true`.";
        return Refusal::new(404, "no_upstream", message);
    }
    let message = format!(
        "The model '{model}' is at no upstream: name it `UPSTREAM/MODEL`, with one of {}; or set a `[[model]]` or a default \
         upstream.",
        names.join(", ")
    );
    Refusal { param: Some("model".to_owned()), ..Refusal::new(404, "model_not_found", message) }
}

/// The wire of upstreams that have several: the one that says most.
fn by_name(name: &str) -> Option<Target> {
    [("anthropic", Target::ANTHROPIC), ("openai", Target::OPENAI_RESPONSES), ("gemini", Target::GEMINI)]
        .into_iter()
        .find(|(known, _)| *known == name)
        .map(|(_, target)| target)
}

/// The path and the query of a call whose answer streams. `prefix`: what comes first in the paths of the upstream's clients, `/v1`
/// of most servers of OpenAI's wires.
///
/// Sources: the references of the five APIs; Gemini's stream is of events with `alt=sse`, else it is an array.
pub(super) fn path(target: Target, prefix: &str, model: &str) -> (String, Option<String>) {
    let prefix = prefix.trim_end_matches('/');
    // Clients of Anthropic's wire have the version in their paths, not in what comes before these.
    let before_version = prefix.strip_suffix("/v1").unwrap_or(prefix);
    match target.wire().name {
        "openai-responses" => (format!("{prefix}/responses"), None),
        "anthropic" => (format!("{before_version}/v1/messages"), None),
        "gemini" => {
            // What other servers have is none of its versions.
            let version = if before_version.is_empty() { "/v1beta" } else { prefix };
            let (kind, name) = match model.split_once('/') {
                Some((kind @ ("models" | "tunedModels"), name)) => (kind, name),
                _ => ("models", model),
            };
            let path = format!("{version}/{kind}/{}:streamGenerateContent", encoded(name));
            (path, Some("alt=sse".to_owned()))
        }
        "bedrock-converse" => (format!("{before_version}/model/{}/converse-stream", encoded(model)), None),
        _ => (format!("{prefix}/chat/completions"), None),
    }
}

/// One segment of a path (RFC 3986): what is not unreserved is escaped.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_goes_where_the_wire_takes_it() {
        let table = [
            ("openai-chat", "/v1", "gpt-5", "/v1/chat/completions", None),
            ("openai-chat/perplexity", "", "sonar", "/chat/completions", None),
            ("openai-responses", "/v1/", "gpt-5", "/v1/responses", None),
            ("anthropic", "", "claude-sonnet-5", "/v1/messages", None),
            ("anthropic", "/v1", "qwen3", "/v1/messages", None),
            ("gemini", "", "gemini-3-pro", "/v1beta/models/gemini-3-pro:streamGenerateContent", Some("alt=sse")),
            ("gemini", "/v1", "models/gemini-3", "/v1beta/models/gemini-3:streamGenerateContent", Some("alt=sse")),
            ("gemini", "/v1alpha", "gemini-3", "/v1alpha/models/gemini-3:streamGenerateContent", Some("alt=sse")),
            ("gemini", "", "tunedModels/a b", "/v1beta/tunedModels/a%20b:streamGenerateContent", Some("alt=sse")),
            ("gemini", "", "../x?key=", "/v1beta/models/..%2Fx%3Fkey%3D:streamGenerateContent", Some("alt=sse")),
            (
                "bedrock-converse",
                "",
                "us.anthropic.claude-opus-4-8-v1:0",
                "/model/us.anthropic.claude-opus-4-8-v1%3A0/converse-stream",
                None,
            ),
            ("bedrock-converse", "", "arn:aws:x/y", "/model/arn%3Aaws%3Ax%2Fy/converse-stream", None),
        ];
        for (target, prefix, model, expected, query) in table {
            let found = path(target.parse().unwrap(), prefix, model);
            assert_eq!(found, (expected.to_owned(), query.map(str::to_owned)), "{target} {prefix} {model}");
        }
    }
}
