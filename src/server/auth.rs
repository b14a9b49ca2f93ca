//! The caller: by the key that came with the request, or at the pages by the session of a key.

use std::time::Instant;

use axum::http::HeaderMap;

use super::app::{App, Caller};
use super::keys::{Key, Scope, digest};
use super::refusal::Refusal;
use super::sessions::SessionId;

/// The cookie of a session. Over TLS its name has a prefix with which browsers take it only from a secure origin.
pub(crate) const COOKIES: [&str; 2] = ["__Secure-convo_session", "convo_session"];

/// The caller: the owner comes from the key alone.
pub(crate) fn caller(app: &App, headers: &HeaderMap) -> Result<Caller, Refusal> {
    let Some(keys) = &app.keys else { return Ok(nobody(Scope::ALL.to_vec())) };
    let Some(value) = headers.get("authorization") else {
        let message = "You didn't provide a key: send it as the header `Authorization: Bearer KEY`.";
        return Err(Refusal::new(401, "invalid_api_key", message));
    };
    let text = value.to_str().unwrap_or_default();
    let secret = text.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let digest = secret.map(|(_, secret)| digest(secret.trim()));
    let key = digest.as_ref().and_then(|digest| keys.find_digest(digest));
    let wrong = || Refusal::new(401, "invalid_api_key", "Incorrect or expired key provided.");
    let key = key.ok_or_else(wrong)?;
    Ok(of(&key, digest, None))
}

/// The caller of a page: by the cookie of a session. A key that was revoked, or has expired, ends its sessions.
pub(crate) fn visitor(app: &App, headers: &HeaderMap) -> Result<Caller, Refusal> {
    let Some(keys) = &app.keys else { return Ok(nobody(Scope::ALL.to_vec())) };
    let session = cookies(headers).find_map(|cookie| app.sessions.find(cookie, Instant::now()));
    let key = session.as_ref().and_then(|(_, digest)| keys.find_digest(digest));
    match (session, key) {
        (Some((session, digest)), Some(key)) => Ok(of(&key, Some(digest), Some(session))),
        _ => Err(Refusal::new(401, "not_logged_in", "You are not logged in, or your session has ended.")),
    }
}

/// Whether the caller's key is still valid, and the session has not ended.
pub(crate) fn is_still(app: &App, caller: &Caller) -> bool {
    let has_key = match (&app.keys, &caller.digest) {
        (Some(keys), Some(digest)) => keys.find_digest(digest).is_some(),
        _ => true,
    };
    has_key && caller.session.as_ref().is_none_or(|session| app.sessions.key_of(session, Instant::now()).is_some())
}

/// A caller who needs no key.
pub(crate) fn nobody(scopes: Vec<Scope>) -> Caller {
    Caller { key: "none".to_owned(), owner: String::new(), scopes, digest: None, session: None }
}

fn of(key: &Key, digest: Option<String>, session: Option<SessionId>) -> Caller {
    Caller { key: key.id.clone(), owner: key.owner.clone(), scopes: key.scopes.clone(), digest, session }
}

/// What the cookies of sessions hold.
fn cookies(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let lines = headers.get_all("cookie").into_iter().filter_map(|value| value.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(name, _)| COOKIES.contains(name)).map(|(_, value)| value)
}
