//! A refusal in the form that the wire's clients read.

use axum::http::HeaderValue;
use serde_json::{Value, json};

use crate::provider::Target;
use crate::server::app::{Reply, reply};
use crate::server::refusal::Refusal;

/// The answer.
pub(super) fn refused(target: Target, refusal: &Refusal) -> Reply {
    let name = target.wire().name;
    let body = if name == Target::ANTHROPIC.wire().name {
        anthropic(refusal)
    } else if name == Target::GEMINI.wire().name {
        gemini(refusal)
    } else {
        return refusal.reply();
    };
    let own = refusal.reply();
    let mut answer = reply(refusal.status, "application/json", body.to_string());
    for (name, value) in own.headers() {
        answer.headers_mut().entry(name).or_insert_with(|| HeaderValue::clone(value));
    }
    answer
}

fn anthropic(refusal: &Refusal) -> Value {
    let kind = match refusal.status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    json!({ "type": "error", "error": { "type": kind, "message": refusal.message, "code": refusal.code } })
}

fn gemini(refusal: &Refusal) -> Value {
    let status = match refusal.status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        504 => "DEADLINE_EXCEEDED",
        502 | 503 => "UNAVAILABLE",
        500.. => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    };
    let details = json!([{ "reason": refusal.code }]);
    json!({ "error": { "code": refusal.status, "message": refusal.message, "status": status, "details": details } })
}
