//! Two keys come with a call: one of this server, and one of the upstream.
//!
//! This server's key is in `x-convo-key`, or in the upstream's place for clients that can set no header. It goes nowhere. The
//! upstream's key is the client's, or that of the settings.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::exchange::Secrets;
use super::headers::{CREDENTIALS, parameters};
use crate::provider::Target;
use crate::server::app::{App, Caller};
use crate::server::auth::{OWNER, known, nobody, on_behalf};
use crate::server::keys::Scope;
use crate::server::refusal::Refusal;
use crate::server::upstream::Upstream;

/// Where this server's key is, if not in the upstream's place.
const OWN: &str = "x-convo-key";
/// What every key of this server begins with. A client that wants some key, where none is needed, gets by with this alone.
const PREFIX: &str = "convo";

/// What is shorter may be a part of a path.
const KEY_BYTES: usize = 16;

/// The caller, and the place of the upstream's key if this server's was there. What is this server's is taken out.
pub(super) fn caller(
    app: &App,
    headers: &mut HeaderMap,
    path: &str,
    query: Option<&str>,
) -> Result<(Caller, Option<HeaderName>), Refusal> {
    let is_key = |segment: &str| is_own(segment) && segment.len() > KEY_BYTES;
    if path.split('/').any(is_key) || query.is_some_and(|query| parameters(query).any(|(_, _, value)| is_own(&value))) {
        let message = "A key of this server does not stand in a URL: send it as the header `x-convo-key`.";
        return Err(Refusal::new(400, "key_in_url", message));
    }
    let mut given: Vec<String> = headers.get_all(OWN).into_iter().map(|value| secret(value).to_owned()).collect();
    let mut place = None;
    for name in CREDENTIALS.map(HeaderName::from_static) {
        let (own, others): (Vec<_>, Vec<_>) =
            headers.get_all(&name).into_iter().cloned().partition(|value| is_own(secret(value)));
        if own.is_empty() {
            continue;
        }
        if headers.get(OWN).is_none() {
            given.extend(own.iter().map(|value| secret(value).to_owned()));
        }
        headers.remove(&name);
        for value in others {
            headers.append(&name, value);
        }
        place = Some(name);
    }
    headers.remove(OWN);
    let named = headers.clone();
    headers.remove(OWNER);
    if app.keys.is_none() {
        return Ok((on_behalf(nobody(Scope::ALL.to_vec()), &named)?, place));
    }
    let unknown = |message: &str| Err(Refusal::new(401, "invalid_api_key", message));
    let mut callers = given.iter().map(|secret| known(app, secret));
    match (callers.next(), callers.next()) {
        (None, _) => unknown(
            "This server needs a key of its own: send it as the header `x-convo-key: KEY`, or in the place of the provider's key.",
        ),
        (Some(Some(caller)), None) => Ok((on_behalf(caller, &named)?, place)),
        (Some(_), Some(_)) => unknown("Several keys of this server came at one time."),
        (Some(None), None) => unknown("Incorrect or expired key of this server provided."),
    }
}

/// The header with which an upstream is asked by this server itself: the client's key, if it came beside one of this server; else
/// that of the settings.
pub(crate) fn credential(
    app: &App,
    asked: &HeaderMap,
    upstream: &Upstream,
    target: Target,
) -> Option<(HeaderName, HeaderValue)> {
    let is_of_client = |value: &&HeaderValue| !is_own(secret(value));
    // Where keys are needed, the client's key for this server is in `Authorization`.
    let names = CREDENTIALS.iter().filter(|name| app.keys.is_none() || **name != "authorization");
    let given = names.filter_map(|name| asked.get(*name)).find(is_of_client).map(|value| secret(value).to_owned());
    let key = given.as_deref().or(upstream.key())?;
    let place = place(target);
    let value = if place == "authorization" { format!("Bearer {key}") } else { key.to_owned() };
    let mut value = HeaderValue::try_from(value).ok()?;
    value.set_sensitive(true);
    Some((place, value))
}

/// Where a wire has its key.
fn place(target: Target) -> HeaderName {
    let wire = target.wire().name;
    HeaderName::from_static(match wire {
        _ if wire == Target::ANTHROPIC.wire().name => "x-api-key",
        _ if wire == Target::GEMINI.wire().name => "x-goog-api-key",
        _ => "authorization",
    })
}

/// Puts the key of the settings into a request that has none of the upstream's.
pub(super) fn complete(
    headers: &mut HeaderMap,
    query: Option<&str>,
    upstream: &Upstream,
    place: Option<HeaderName>,
    target: Target,
) {
    let in_query = query.is_some_and(|query| parameters(query).any(|(_, name, _)| name == "key"));
    let (false, Some(key)) = (in_query || CREDENTIALS.iter().any(|name| headers.contains_key(*name)), upstream.key())
    else {
        return;
    };
    let place = place.unwrap_or_else(|| self::place(target));
    let value = if place == "authorization" { format!("Bearer {key}") } else { key.to_owned() };
    if let Ok(mut value) = HeaderValue::try_from(value) {
        value.set_sensitive(true);
        headers.insert(place, value);
    }
}

/// What begins so is signed for one request, or is a token that expires: of Amazon, of Anthropic's and Google's logins, and of
/// GitHub's programs.
const RENEWED: &[&str] = &["AWS4-", "bedrock-api-key-", "sk-ant-oat", "ya29.", "ghs_", "ghu_"];
/// What is longer is a token.
const LASTING: usize = 256;

/// The keys of the upstream's by which one client is known from another. What is renewed within a conversation is none of them.
pub(super) fn lasting(headers: &HeaderMap, query: Option<&str>) -> Secrets {
    let in_headers = CREDENTIALS.iter().flat_map(|name| headers.get_all(*name)).map(|value| secret(value).to_owned());
    let in_query = parameters(query.unwrap_or_default()).filter(|(_, name, _)| name == "key");
    let in_query = in_query.map(|(_, _, value)| value.into_owned());
    Secrets::all(in_headers.chain(in_query).filter(|key| lasts(key)))
}

fn lasts(key: &str) -> bool {
    // A JSON Web Token has its parts between dots; GitHub Copilot's has fields.
    let is_token = key.starts_with("ey") && key.matches('.').count() >= 2 || key.contains(';');
    !is_token && key.len() <= LASTING && !RENEWED.iter().any(|prefix| key.starts_with(prefix)) && !is_own(key)
}

fn is_own(secret: &str) -> bool {
    secret == PREFIX || secret.strip_prefix(PREFIX).is_some_and(|rest| rest.starts_with('_'))
}

/// What a header says without its scheme.
fn secret(value: &HeaderValue) -> &str {
    let text = value.to_str().unwrap_or_default().trim();
    match text.split_once(' ') {
        Some((scheme, secret)) if scheme.eq_ignore_ascii_case("bearer") => secret.trim(),
        _ => text,
    }
}
