//! What all pages share: their frame and their files, what makes any text harmless, and what a browser may do with them.

use std::fmt::{self, Write};
use std::sync::LazyLock;

use askama::Template;
use askama::filters::Escaper;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};

use crate::html::write_escaped;
use crate::model::Name;
use crate::server::app::{App, Call, Caller, Outcome, Reply, reply};
use crate::server::auth::{is_of_here, is_of_host, is_visit};
use crate::server::keys::{RESERVED, Scope, digest};
use crate::server::native::parameters;
use crate::server::refusal::Refusal;

const HTML: &str = "text/html; charset=utf-8";

/// What is around a page's content.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) version: &'static str,
    /// Who is logged in.
    pub(super) owner: Option<String>,
    /// Whether the links to other pages are shown.
    pub(super) has_links: bool,
    /// Where the API is described.
    pub(super) api: &'static str,
}

impl Frame {
    pub(super) fn of(call: &Call) -> Self {
        Self::new(&call.app, Some(&call.caller))
    }

    pub(super) fn new(app: &App, caller: Option<&Caller>) -> Self {
        // The key's: what the page shows may be another's.
        let digest = caller.filter(|caller| caller.session.is_some()).and_then(|caller| caller.digest.as_deref());
        let key = digest.and_then(|digest| app.keys.as_ref()?.find_digest(digest));
        let owner = key.map(|key| key.owner.clone());
        let api = if cfg!(feature = "viewer") { "/docs" } else { "/openapi.json" };
        Self { version: &VERSION, has_links: app.keys.is_none() || owner.is_some(), owner, api }
    }
}

/// Whose is shown, if it is not the reader's own.
pub(super) fn other_owner(call: &Call) -> Option<&str> {
    call.caller.acts_for.get().map(String::as_str)
}

/// The request as one for the owner of the conversation in its path: an admin sees by its id what any owner has.
pub(super) fn for_its_owner(call: &Call) -> Result<Call, Refusal> {
    let name = parameters::name(call);
    if !call.caller.scopes.contains(&Scope::Admin) || name.key().is_some() {
        return Ok(call.clone());
    }
    let view = call.store().log().view(&Name::from(name.id()))?;
    let owner = view.map(|view| view.head.owner.clone()).filter(|owner| !owner.starts_with(RESERVED));
    Ok(owner.map_or_else(|| call.clone(), |owner| call.of(owner)))
}

/// An address with these parameters, and with the owner whose is shown, if it is not the reader's own.
pub(super) fn address_for<'a>(
    path: &str,
    query: impl IntoIterator<Item = (&'a str, &'a str)>,
    owner: Option<&'a str>,
) -> String {
    let query = query.into_iter().chain(owner.map(|owner| ("owner", owner)));
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// 200, or another status, with a page.
pub(super) fn page(status: u16, template: &impl Template) -> Outcome {
    let html = template.render();
    let mut html = html.map_err(|error| Refusal::internal(format!("cannot write the page: {error}")))?;
    html.shrink_to_fit();
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
#[template(config = "src/server/pages/askama.toml", path = "problem.html")]
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

/// Nothing is loaded but the program's own files and pictures that are part of a page; nothing is sent elsewhere; no script
/// and no style in a page counts.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const HEADERS: [(&str, &str); 4] = [
    ("content-security-policy", POLICY),
    // A form states its origin only if addresses may be sent to the same origin.
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("x-frame-options", "DENY"),
];

/// Adds what keeps a page harmless, and out of caches.
pub(crate) fn protect(reply: &mut Reply) {
    let headers = reply.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.entry("cache-control").or_insert(HeaderValue::from_static("no-store"));
}

/// What was asked, for an answer that explains why there is no other.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The path, and what follows it.
    pub(crate) path: String,
    is_get: bool,
    accepts_html: bool,
}

impl Asked {
    pub(crate) fn of(request: &Request) -> Self {
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let accept = request.headers().get("accept").and_then(|value| value.to_str().ok()).unwrap_or_default();
        Self { path, is_get: request.method() == Method::GET, accepts_html: accept.contains("text/html") }
    }

    /// Whether a person waits for the answer.
    pub(crate) fn expects_page(&self) -> bool {
        self.accepts_html || self.path == "/pages" || self.path.starts_with("/pages/")
    }

    /// Whether a person follows a link.
    pub(crate) fn is_visit(&self) -> bool {
        self.is_get && self.accepts_html
    }
}

/// Refuses what a script or a page of another origin loads; a link from there may be followed.
pub(crate) fn not_embedded(headers: &HeaderMap) -> Result<(), Refusal> {
    if is_of_here(headers) || is_visit(headers) {
        return Ok(());
    }
    Err(Refusal::new(403, "foreign_origin", "Pages cannot be loaded by other sites."))
}

/// Refuses a form that another site sends. A browser states where a form comes from; what states nothing is refused.
pub(crate) fn same_origin(headers: &HeaderMap) -> Result<(), Refusal> {
    let of = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let is_same = match (of("sec-fetch-site"), of("origin")) {
        (Some(site), _) => site == "same-origin",
        (None, Some(origin)) => is_of_host(origin, of("host")),
        (None, None) => false,
    };
    if is_same {
        return Ok(());
    }
    Err(Refusal::new(
        403,
        "foreign_origin",
        "This form was not sent from these pages. Open the page here and send it again.",
    ))
}

/// A name, a type, a content.
const ASSETS: &[(&str, &str, &str)] = &[
    ("style.css", "text/css; charset=utf-8", include_str!("assets/style.css")),
    ("live.js", "text/javascript; charset=utf-8", include_str!("assets/live.js")),
    ("page.js", "text/javascript; charset=utf-8", include_str!("assets/page.js")),
    ("icon.svg", "image/svg+xml", include_str!("assets/icon.svg")),
    #[cfg(feature = "viewer")]
    ("viewer.css", "text/css; charset=utf-8", include_str!("assets/viewer.css")),
    #[cfg(feature = "viewer")]
    ("viewer.js", "text/javascript; charset=utf-8", include_str!("assets/viewer.js")),
];

/// Changes when an asset does: part of their addresses, so that browsers can keep them.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let all: String = ASSETS.iter().map(|(_, _, content)| *content).collect();
    digest(&all).chars().take(12).collect()
});

pub(super) fn asset(call: &Call, _: &[u8]) -> Outcome {
    let name = call.part("asset");
    let Some((_, content_type, content)) = ASSETS.iter().find(|(known, _, _)| *known == name) else {
        return Err(Refusal::not_found("There is no such file."));
    };
    let mut reply = reply(200, content_type, *content);
    let is_named = call.query.get("v") == Some(VERSION.as_str());
    let kept = if is_named { "public, max-age=31536000, immutable" } else { "no-cache" };
    reply.headers_mut().insert("cache-control", HeaderValue::from_static(kept));
    Ok(reply)
}

/// The escaper of all templates; `askama.toml` names it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visible;

impl Escaper for Visible {
    fn write_escaped_str<W: Write>(&self, out: W, text: &str) -> fmt::Result {
        write_escaped(out, text)
    }
}
