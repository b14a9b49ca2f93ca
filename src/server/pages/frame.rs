//! What all pages share: their frame, and the page that explains an error.

use askama::Template;
use axum::http::HeaderValue;

use super::assets;
use super::guard::{Asked, protect};
use crate::server::app::{App, Call, Caller, Outcome, Reply, reply};
use crate::server::refusal::Refusal;

pub(super) const HTML: &str = "text/html; charset=utf-8";

/// What is around a page's content.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) version: &'static str,
    /// Who is logged in.
    pub(super) owner: Option<String>,
    /// Whether the links to other pages are shown.
    pub(super) has_links: bool,
}

impl Frame {
    pub(super) fn of(call: &Call) -> Self {
        Self::new(&call.app, Some(&call.caller))
    }

    pub(super) fn new(app: &App, caller: Option<&Caller>) -> Self {
        let owner = caller.filter(|caller| caller.session.is_some()).map(|caller| caller.owner.clone());
        Self { version: &assets::VERSION, has_links: app.keys.is_none() || owner.is_some(), owner }
    }
}

/// 200, or another status, with a page.
pub(super) fn page(status: u16, template: &impl Template) -> Outcome {
    let html = template.render();
    let html = html.map_err(|error| Refusal::internal(format!("cannot write the page: {error}")))?;
    Ok(reply(status, HTML, html))
}

/// An answer that leads to another page of ours.
pub(super) fn see_other(path: &str) -> Outcome {
    let location = HeaderValue::from_str(path).map_err(|_| Refusal::internal("cannot write an address"))?;
    let mut reply = reply(303, HTML, "");
    reply.headers_mut().insert("location", location);
    Ok(reply)
}

#[derive(Template)]
#[template(path = "problem.html")]
struct Problem<'a> {
    frame: Frame,
    title: &'static str,
    status: u16,
    message: &'a str,
    code: &'a str,
    retry_after: Option<u64>,
}

/// A request that was refused, as a page; who is not logged in is led to the page that logs in.
pub(crate) fn refused(app: &App, asked: &Asked, caller: Option<&Caller>, refusal: &Refusal) -> Reply {
    if refusal.status == 401 && asked.is_visit() {
        let next: String = form_urlencoded::byte_serialize(asked.path.as_bytes()).collect();
        if let Ok(mut reply) = see_other(&format!("/pages/login?next={next}")) {
            protect(&mut reply);
            return reply;
        }
    }
    let title = match refusal.status {
        401 => "Log in first",
        403 => "Not permitted",
        404 => "Not found",
        405 => "Not possible here",
        410 => "Something else is here now",
        413 => "Too large",
        429 => "Too many requests",
        400..=499 => "This cannot be answered",
        503 => "Not available right now",
        _ => "The server failed",
    };
    let problem = Problem {
        frame: Frame::new(app, caller),
        title,
        status: refusal.status,
        message: &refusal.message,
        code: refusal.code.unwrap_or_default(),
        retry_after: refusal.retry_after,
    };
    let mut reply = page(refusal.status, &problem).unwrap_or_else(|refusal| refusal.reply());
    // The API's own answer has what programs and proxies look at.
    for name in ["retry-after", "x-should-retry"] {
        if let Some(value) = refusal.reply().headers_mut().remove(name) {
            reply.headers_mut().insert(name, value);
        }
    }
    protect(&mut reply);
    reply
}
