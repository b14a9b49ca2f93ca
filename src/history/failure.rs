//! Whether asking again can help, after a generation that failed.

use super::group::StoredMessage;
use crate::model::{Body, Role};

/// Codes of failures that the same request meets again: the request, the key, the model or the account is wrong. All other
/// failures pass: too many requests, an overloaded or broken server, a lost connection; and so may what is not known.
///
/// Sources: Anthropic, "Errors" (docs.claude.com/en/api/errors); OpenAI, "Error codes"
/// (platform.openai.com/docs/guides/error-codes); Google, `google.rpc.Code` (ai.google.dev/gemini-api/docs/troubleshooting);
/// Amazon Bedrock, `Converse`, "Errors".
const PERMANENT: &[&str] = &[
    "400",
    "401",
    "402",
    "403",
    "404",
    "413",
    "422",
    "invalid_request_error",
    "authentication_error",
    "billing_error",
    "permission_error",
    "not_found_error",
    "request_too_large",
    "invalid_api_key",
    "insufficient_quota",
    "model_not_found",
    "context_length_exceeded",
    "content_policy_violation",
    "invalid_prompt",
    "invalid_argument",
    "failed_precondition",
    "unauthenticated",
    "permission_denied",
    "not_found",
    "validationexception",
    "accessdeniedexception",
    "resourcenotfoundexception",
];

/// Whether the last message is an answer that failed, and would fail again.
pub(super) fn fails_again(messages: &[StoredMessage]) -> bool {
    let is_permanent = |body: &Body| match body {
        Body::Error { code: Some(code), .. } => PERMANENT.contains(&code.to_ascii_lowercase().as_str()),
        _ => false,
    };
    let last = messages.last().filter(|stored| stored.message.role == Role::Assistant);
    last.is_some_and(|stored| stored.message.chunks.iter().any(|chunk| is_permanent(&chunk.body)))
}
