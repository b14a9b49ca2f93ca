//! What a load balancer and a monitor ask: whether the server is alive, whether it is ready, and what it counts.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::routing::get;
use serde_json::json;

use super::app::{App, Reply, ok, reply};
use super::auth::caller;
use super::keys::Scope;
use super::refusal::Refusal;

/// The type of OpenMetrics text.
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Adds the routes of health. On the admin address metrics are open; elsewhere they need a key of the scope `admin`.
pub(crate) fn routes(router: Router, app: &Arc<App>, is_admin: bool) -> Router {
    let (ready, document, measured) = (Arc::clone(app), Arc::clone(app), Arc::clone(app));
    let alive = || async { answer(ok(&json!({ "status": "ok" }))) };
    let version = || async { answer(ok(&json!({ "name": "convo", "version": env!("CARGO_PKG_VERSION") }))) };
    router
        .route("/healthz", get(alive))
        .route("/livez", get(alive))
        .route("/readyz", get(move || async move { readiness(&ready) }))
        .route("/version", get(version))
        .route("/openapi.json", get(move || async move { reply(200, "application/json", document.document.clone()) }))
        .route(
            "/metrics",
            get(move |request: Request| async move {
                if let Err(refusal) = may_measure(&measured, request.headers(), is_admin) {
                    return refusal.reply();
                }
                let app = Arc::clone(&measured);
                // Metrics are there also while all threads of the store wait.
                let _ = tokio::task::spawn_blocking(move || app.metrics.look(&app.store)).await;
                reply(200, METRICS, measured.metrics.to_text())
            }),
        )
}

fn answer(outcome: super::app::Outcome) -> Reply {
    outcome.unwrap_or_else(|refusal| refusal.reply())
}

/// 200 if the store can be written and the server is not ending; otherwise 503, and why.
fn readiness(app: &App) -> Reply {
    let health = app.store.health();
    let problems = [
        ("draining", app.is_draining()),
        ("closed", health.closed),
        ("poisoned", health.poisoned.is_some()),
        ("disk_full", health.disk_full),
        ("went_back", health.went_back.is_some()),
        ("watermark_lost", health.watermark_lost),
        ("damage", !health.damage.is_empty()),
    ];
    let problems: Vec<&str> = problems.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect();
    if problems.is_empty() {
        return answer(ok(&json!({ "status": "ready" })));
    }
    reply(503, "application/json", json!({ "status": "not ready", "problems": problems }).to_string())
}

fn may_measure(app: &App, headers: &HeaderMap, is_admin: bool) -> Result<(), Refusal> {
    if is_admin || caller(app, headers)?.scopes.contains(&Scope::Admin) {
        return Ok(());
    }
    Err(Refusal::new(403, "missing_scope", "metrics need a key of the scope `admin`, or the admin address"))
}
