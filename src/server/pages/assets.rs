//! The files that pages load, all of them part of the program.

use std::sync::LazyLock;

use axum::http::HeaderValue;

use crate::server::app::{Call, Outcome, reply};
use crate::server::keys::digest;
use crate::server::refusal::Refusal;

/// A name, a type, a content.
const ASSETS: [(&str, &str, &str); 3] = [
    ("style.css", "text/css; charset=utf-8", include_str!("assets/style.css")),
    ("live.js", "text/javascript; charset=utf-8", include_str!("assets/live.js")),
    ("icon.svg", "image/svg+xml", include_str!("assets/icon.svg")),
];

/// Changes when an asset does: part of their addresses, so that browsers can keep them.
pub(super) static VERSION: LazyLock<String> = LazyLock::new(|| {
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
