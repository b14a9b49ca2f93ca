//! What a browser may do with the pages, and who may send forms to them.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};

use crate::server::app::Reply;
use crate::server::local::is_of_host;
use crate::server::refusal::Refusal;

/// Nothing is loaded but the program's own files and pictures that are part of a page; nothing is sent elsewhere; no script
/// and no style in a page counts.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const HEADERS: [(&str, &str); 6] = [
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    // A form states its origin only if addresses may be sent to the same origin.
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
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
    let is = |name: &str, values: &[&str]| {
        headers.get(name).and_then(|value| value.to_str().ok()).is_none_or(|value| values.contains(&value))
    };
    if is("sec-fetch-site", &["same-origin", "none"]) || is("sec-fetch-mode", &["navigate"]) {
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
