//! Login by key, and logout.

use std::time::Instant;

use askama::Template;
use axum::http::HeaderValue;

use super::frame::{Frame, page, see_other};
use crate::server::app::{Call, Outcome};
use crate::server::auth::COOKIES;
use crate::server::keys::{Scope, digest};
use crate::server::query::Query;
use crate::server::refusal::Refusal;

#[derive(Template)]
#[template(config = "src/server/pages/askama.toml", path = "login.html")]
struct Login {
    frame: Frame,
    next: String,
    problem: Option<&'static str>,
}

pub(super) fn home(_: &Call, _: &[u8]) -> Outcome {
    see_other("/pages")
}

pub(super) fn form(call: &Call, _: &[u8]) -> Outcome {
    let next = place(call.query.get("next"));
    // Who follows a link from another site comes here without the cookie, and back with it.
    if call.app.keys.is_none() || call.caller.session.is_some() {
        return see_other(&next);
    }
    page(200, &Login { frame: Frame::of(call), next, problem: None })
}

pub(super) fn login(call: &Call, body: &[u8]) -> Outcome {
    let form = Query::new(&String::from_utf8_lossy(body));
    let next = place(form.get("next"));
    let Some(keys) = &call.app.keys else { return see_other(&next) };
    let digest = digest(form.get("key").unwrap_or_default().trim());
    let problem = match keys.find_digest(&digest) {
        None => "This key is wrong, or it has expired.",
        Some(key) if !key.scopes.contains(&Scope::Read) => "This key may not read: it lacks the scope read.",
        Some(_) => {
            let id = call.app.sessions.begin(&digest, Instant::now())?;
            let mut reply = see_other(&next)?;
            let cookie = cookie(call, &id, call.app.sessions.lasts().as_secs());
            reply.headers_mut().append("set-cookie", cookie?);
            return Ok(reply);
        }
    };
    page(401, &Login { frame: Frame::of(call), next, problem: Some(problem) })
}

pub(super) fn logout(call: &Call, _: &[u8]) -> Outcome {
    if let Some(session) = &call.caller.session {
        call.app.sessions.end(session);
    }
    let mut reply = see_other("/pages/login")?;
    reply.headers_mut().append("set-cookie", cookie(call, "", 0)?);
    Ok(reply)
}

/// The cookie of a session. Scripts cannot read it; no other site can send it; only pages get it.
fn cookie(call: &Call, value: &str, seconds: u64) -> Result<HeaderValue, Refusal> {
    let is_secure = call.app.config.server.tls_key.is_some()
        // A proxy may speak TLS for the server: the browser states which address it sees.
        || call.header("origin").is_some_and(|origin| origin.starts_with("https://"));
    let [secure, plain] = COOKIES;
    let (name, attribute) = if is_secure { (secure, "; Secure") } else { (plain, "") };
    let cookie = format!("{name}={value}; Path=/pages; Max-Age={seconds}; HttpOnly; SameSite=Strict{attribute}");
    HeaderValue::from_str(&cookie).map_err(|_| Refusal::internal("cannot write the cookie"))
}

/// Where to go on: a page of ours and nothing else.
fn place(next: Option<&str>) -> String {
    let is_ours = |next: &&str| {
        let is_plain = next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
        is_plain && (*next == "/pages" || next.starts_with("/pages/") || next.starts_with("/pages?"))
    };
    next.filter(is_ours).unwrap_or("/pages").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_leads_to_no_other_site() {
        for ours in ["/pages", "/pages?q=a", "/pages/conversations/x?from=3"] {
            assert_eq!(place(Some(ours)), ours);
        }
        for other in
            ["https://evil.example", "//evil.example", "/\\evil", "/pages\\..", "/pagesx", "/api", "/pages/\r\nx", ""]
        {
            assert_eq!(place(Some(other)), "/pages", "{other:?}");
        }
    }
}
