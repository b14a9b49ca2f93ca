//! The OpenAPI document, for people: Swagger UI, whose files are in a crate, and so in the program.

use std::sync::LazyLock;

use askama::Template;
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Request};
use swagger_ui_dist::{ApiDefinition, OpenApiSource, generate_routes};
use tower_service::Service as _;

use super::frame::{Frame, page};
use crate::server::app::{Call, Outcome, Streaming};
use crate::server::refusal::Refusal;

const PATH: &str = "/docs";
/// What the page needs of the crate. The crate's own page has a script in it, which the policy of the pages forbids.
const FILES: [&str; 2] = ["swagger-ui.css", "swagger-ui-bundle.js"];

#[derive(Template)]
#[template(config = "src/server/pages/askama.toml", path = "viewer.html")]
struct Viewer {
    frame: Frame,
}

pub(super) fn viewer(call: &Call, _: &[u8]) -> Outcome {
    call.query.check(&[])?;
    page(200, &Viewer { frame: Frame::of(call) })
}

static CRATE: LazyLock<Router> = LazyLock::new(|| {
    let api_definition = OpenApiSource::Uri("/openapi.json");
    generate_routes(ApiDefinition { uri_prefix: PATH, api_definition, title: None })
});

pub(super) fn file(call: Call, _: Body) -> Streaming {
    Box::pin(async move {
        let none = || Refusal::not_found("There is no such file.");
        let name = FILES.into_iter().find(|name| *name == call.part("file")).ok_or_else(none)?;
        let request = Request::get(format!("{PATH}/{name}")).body(Body::empty());
        let request = request.map_err(|error| Refusal::internal(format!("cannot ask for {name}: {error}")))?;
        let Ok(mut reply) = CRATE.clone().call(request).await;
        reply.headers_mut().insert("cache-control", HeaderValue::from_static("public, max-age=86400"));
        Ok(reply)
    })
}
