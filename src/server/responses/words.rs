//! OpenAI's words for how a response failed.

/// Codes that OpenAI's own responses have. Sources: types of the official Python SDK (openai 3.52.0), `ResponseError`; beside
/// them what OpenAI's Codex decides by (gh:openai/codex, `ResponsesStreamEvent`).
const CODES: &[&str] = &[
    "server_error",
    "rate_limit_exceeded",
    "invalid_prompt",
    "data_residency_mismatch",
    "bio_policy",
    "misalignment_policy_violation",
    "vector_store_timeout",
    "invalid_image",
    "invalid_image_format",
    "invalid_base64_image",
    "invalid_image_url",
    "image_too_large",
    "image_too_small",
    "image_parse_error",
    "image_content_policy_violation",
    "invalid_image_mode",
    "image_file_too_large",
    "unsupported_image_media_type",
    "empty_image_file",
    "failed_to_download_image",
    "image_file_not_found",
    "context_length_exceeded",
    "insufficient_quota",
    "usage_not_included",
    "server_is_overloaded",
    "slow_down",
    "cyber_policy",
];

/// What other providers say, and statuses of HTTP.
const OTHERS: &[(&str, &[&str])] = &[
    (
        "rate_limit_exceeded",
        &[
            "429",
            "rate_limit_error",
            "rate_limit",
            "RESOURCE_EXHAUSTED",
            "too_many_requests",
            "throttlingException",
            "ThrottlingException",
        ],
    ),
    (
        "invalid_prompt",
        &[
            "400",
            "413",
            "422",
            "invalid_request_error",
            "request_too_large",
            "INVALID_ARGUMENT",
            "validationException",
            "ValidationException",
        ],
    ),
];

/// OpenAI's code for an error, by the code of who reports it.
pub(super) fn code(word: &str) -> &'static str {
    let own = CODES.iter().find(|code| **code == word);
    let other = || OTHERS.iter().find(|(_, words)| words.contains(&word)).map(|(code, _)| *code);
    own.copied().or_else(other).unwrap_or("server_error")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_openais() {
        for word in CODES {
            assert_eq!(code(word), *word);
        }
        for (own, words) in OTHERS {
            assert!(CODES.contains(own));
            words.iter().for_each(|word| assert_eq!(code(word), *own));
        }
        for word in ["overloaded_error", "529", "INTERNAL", ""] {
            assert_eq!(code(word), "server_error");
        }
    }
}
