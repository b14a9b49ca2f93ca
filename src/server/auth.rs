//! The caller: by the key that came with the request, or at the pages by the session of a key. A server that needs no keys is there
//! for programs on this machine, and for no page of another site.
//!
//! A browser sends what any site wants, also to `localhost`. Two facts give the site away: the name by which it found the server (a
//! site may give its own name the address 127.0.0.1), and the origin of a request that it makes itself.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method};

use super::app::{App, Caller};
use super::keys::{Key, Keys, Scope, SessionId, check_owner, digest};
use super::refusal::Refusal;

/// The cookie of a session. Over TLS its name has a prefix with which browsers take it only from a secure origin.
pub(crate) const COOKIES: [&str; 2] = ["__Secure-convo_session", "convo_session"];

/// The header that names the owner for whom a key with the scope `impersonate` acts.
pub(crate) const OWNER: &str = "x-convo-owner";

/// The caller: the owner comes from the key, or from a key that may name one.
pub(crate) fn caller(app: &App, headers: &HeaderMap) -> Result<Caller, Refusal> {
    on_behalf(by_key(app, headers)?, headers)
}

/// The caller, for the owner that the request names.
pub(crate) fn on_behalf(mut caller: Caller, headers: &HeaderMap) -> Result<Caller, Refusal> {
    let mut named = headers.get_all(OWNER).into_iter();
    let Some(name) = named.next() else { return Ok(caller) };
    if !caller.scopes.contains(&Scope::Impersonate) {
        return Err(Refusal::missing_scope(Scope::Impersonate));
    }
    let refused = |problem: &str| Refusal::value(OWNER, problem);
    if named.next().is_some() {
        return Err(refused("it is given more than once"));
    }
    let owner = std::str::from_utf8(name.as_bytes()).map_err(|_| refused("it is not UTF-8"))?;
    check_owner(owner).map_err(|error| refused(&error.to_string()))?;
    caller.acts_for.get_or_init(|| owner.to_owned());
    owner.clone_into(&mut caller.owner);
    Ok(caller)
}

fn by_key(app: &App, headers: &HeaderMap) -> Result<Caller, Refusal> {
    let Some(keys) = &app.keys else { return Ok(nobody(Scope::ALL.to_vec())) };
    let Some(value) = headers.get("authorization") else {
        let message = "You didn't provide a key: send it as the header `Authorization: Bearer KEY`.";
        return Err(Refusal::new(401, "invalid_api_key", message));
    };
    let text = value.to_str().unwrap_or_default();
    let secret = text.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let caller = secret.and_then(|(_, secret)| of_secret(keys, secret.trim()));
    caller.ok_or_else(|| Refusal::new(401, "invalid_api_key", "Incorrect or expired key provided."))
}

/// The caller whose key this is, where keys are needed.
pub(crate) fn known(app: &App, secret: &str) -> Option<Caller> {
    app.keys.as_ref().and_then(|keys| of_secret(keys, secret))
}

fn of_secret(keys: &Keys, secret: &str) -> Option<Caller> {
    let digest = digest(secret);
    let key = keys.find_digest(&digest)?;
    Some(of(&key, Some(digest), None))
}

/// The caller of a page: by the cookie of a session. A key that was revoked, or has expired, ends its sessions.
pub(crate) fn visitor(app: &App, headers: &HeaderMap) -> Result<Caller, Refusal> {
    let Some(keys) = &app.keys else { return Ok(nobody(Scope::ALL.to_vec())) };
    let session = cookies(app, headers).find_map(|cookie| app.sessions.find(cookie, Instant::now()));
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
    let (key, owner) = ("none".to_owned(), String::new());
    Caller { key, owner, scopes, digest: None, session: None, repaired: false, acts_for: Arc::default() }
}

fn of(key: &Key, digest: Option<String>, session: Option<SessionId>) -> Caller {
    let Key { id, owner, scopes, repaired, .. } = key.clone();
    Caller { key: id, owner, scopes, digest, session, repaired, acts_for: Arc::default() }
}

/// What the cookies of sessions hold. A server that speaks TLS sets only the one with the prefix: the other may come from anybody
/// who is between, and speaks without TLS in its name.
fn cookies<'a>(app: &App, headers: &'a HeaderMap) -> impl Iterator<Item = &'a str> {
    let [secure, plain] = COOKIES;
    let plain = app.config.server.tls_key.is_none().then_some(plain);
    let lines = headers.get_all("cookie").into_iter().filter_map(|value| value.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(move |(name, _)| *name == secure || Some(*name) == plain).map(|(_, value)| value)
}

/// Refuses what a page of another site asks for, if no key is needed.
pub(crate) fn is_welcome(app: &App, method: &Method, headers: &HeaderMap) -> Result<(), Refusal> {
    if app.keys.is_some() {
        return Ok(());
    }
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("(not text)"));
    let (host, origin) = (text("host"), text("origin"));
    if let Some(host) = host.filter(|host| !app.config.auth.insecure_no_auth && !is_this_machine(host)) {
        let message = format!(
            "This server needs no keys, so it is there for localhost alone, and was asked for as {host:?}. Create a key with \
             `convo keys create`, or accept everybody with --insecure-no-auth."
        );
        return Err(Refusal::new(403, "unknown_host", message));
    }
    let (is_known, origin) = match origin {
        Some(origin) => {
            let is_known =
                is_of_host(origin, host) || app.config.server.cors_origins.iter().any(|known| known == origin);
            (is_known, origin)
        }
        // A page that only loads something states no origin: a picture, an object, a request whose answer it may not read.
        None => (is_of_here(headers) || method == Method::GET && is_visit(headers), "another site"),
    };
    if is_known {
        return Ok(());
    }
    let message =
        format!("Pages of {origin:?} may not use this server. `server.cors_origins` names the origins that may.");
    Err(Refusal::new(403, "foreign_origin", message))
}

/// Whether no page of another origin sent a request, as far as its browser states that.
pub(crate) fn is_of_here(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-site").is_none_or(|site| site == "same-origin" || site == "none")
}

/// Whether a person follows a link, so that the answer is in a window of its own.
pub(crate) fn is_visit(headers: &HeaderMap) -> bool {
    // Some browsers state no destination.
    headers.get("sec-fetch-mode").is_some_and(|mode| mode == "navigate")
        && headers.get("sec-fetch-dest").is_none_or(|destination| destination == "document")
}

/// Whether an origin is that of the host that was asked.
pub(crate) fn is_of_host(origin: &str, host: Option<&str>) -> bool {
    let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    authority.is_some_and(|authority| Some(authority) == host)
}

/// Whether a name can mean nothing but this machine.
fn is_this_machine(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    match name.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => {
            let name = name.to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_local() {
        for host in [
            "localhost",
            "LocalHost:8080",
            "app.localhost:1",
            "127.0.0.1:8080",
            "127.9.9.9",
            "[::1]:80",
            "[::ffff:127.0.0.1]",
        ] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in [
            "evil.example:8080",
            "localhost.evil.example",
            "evillocalhost",
            "10.0.0.1",
            "0.0.0.0:8080",
            "[::]:80",
            "",
            "a b",
        ] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
