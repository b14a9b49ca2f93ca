//! The Model Context Protocol over HTTP: what agents ask of their owner's conversations.
//!
//! A request is answered on the thread that it has for the store: what runs beside it there ends with it. There are no sessions,
//! and nothing is sent that was not asked for; so any server of a store answers any request.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, Request};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::app::Handler::Store;
use super::app::{Call, Outcome};
use super::keys::Scope::{self, Read};
use super::refusal::Refusal;
use super::route::Route;
use crate::mcp::{McpServer, Opened};

/// The protocol describes itself: it is not in the OpenAPI document.
pub(crate) const ROUTES: &[Route] = &[Route::post("/mcp", Read, Store(answer))];

fn answer(call: &Call, body: &[u8]) -> Outcome {
    let server = served(call);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| Refusal::internal(format!("cannot answer: {error}")))?;
    let reply = runtime.block_on(async {
        let (parts, body) = service(&server).handle(request(call, body)).await.into_parts();
        body.collect().await.map(|body| axum::http::Response::from_parts(parts, Body::from(body.to_bytes())))
    });
    match server.take_busy() {
        // It is tried again once there is room for it.
        Some(busy) => Err(busy.into()),
        None => reply.map_err(|error| Refusal::internal(format!("cannot answer: {error}"))),
    }
}

/// What the caller may do.
fn served(call: &Call) -> McpServer {
    let (store, app) = (call.store().clone(), Arc::clone(&call.app));
    let open = move || {
        let app = Arc::clone(&app);
        Ok(Opened::new(store.clone(), move |store, query| app.finder.find(store, query)))
    };
    let may_write = call.app.config.mcp.write && call.caller.scopes.contains(&Scope::Append);
    McpServer::new(open).with_owner(&*call.caller.owner).with_writing(may_write)
}

fn service(server: &McpServer) -> StreamableHttpService<McpServer, NeverSessionManager> {
    let server = server.clone();
    // Who may call from where, and how much, was decided before.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .disable_allowed_hosts()
        .with_max_request_body_bytes(usize::MAX);
    StreamableHttpService::new(move || Ok(server.clone()), Arc::default(), config)
}

fn request(call: &Call, body: &[u8]) -> Request<Full<Bytes>> {
    let mut request = Request::post("/mcp").body(Full::new(Bytes::copy_from_slice(body))).unwrap_or_default();
    request.headers_mut().clone_from(&call.headers);
    request.headers_mut().remove("authorization");
    // HTTP/2 has none.
    request.headers_mut().insert("host", HeaderValue::from_static("localhost"));
    request
}
