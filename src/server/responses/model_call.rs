//! Where a model is called.

use std::fmt::Write as _;

use crate::provider::Target;

/// The path and the query of a call whose answer streams. `prefix`: what comes first in the paths of the upstream's clients, `/v1`
/// of most servers of OpenAI's wires.
///
/// Sources: the references of the five APIs; Gemini's stream is of events with `alt=sse`, else it is an array.
pub(super) fn path(target: Target, prefix: &str, model: &str) -> (String, Option<String>) {
    let prefix = prefix.trim_end_matches('/');
    // Clients of Anthropic's wire have the version in their paths, not in what comes before these.
    let before_version = prefix.strip_suffix("/v1").unwrap_or(prefix);
    match target.wire().name {
        "openai-responses" => (format!("{prefix}/responses"), None),
        "anthropic" => (format!("{before_version}/v1/messages"), None),
        "gemini" => {
            // What other servers have is none of its versions.
            let version = if before_version.is_empty() { "/v1beta" } else { prefix };
            let (kind, name) = match model.split_once('/') {
                Some((kind @ ("models" | "tunedModels"), name)) => (kind, name),
                _ => ("models", model),
            };
            let path = format!("{version}/{kind}/{}:streamGenerateContent", encoded(name));
            (path, Some("alt=sse".to_owned()))
        }
        "bedrock-converse" => (format!("{before_version}/model/{}/converse-stream", encoded(model)), None),
        _ => (format!("{prefix}/chat/completions"), None),
    }
}

/// One segment of a path (RFC 3986): what is not unreserved is escaped.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_goes_where_the_wire_takes_it() {
        let table = [
            ("openai-chat", "/v1", "gpt-5", "/v1/chat/completions", None),
            ("openai-chat/perplexity", "", "sonar", "/chat/completions", None),
            ("openai-responses", "/v1/", "gpt-5", "/v1/responses", None),
            ("anthropic", "", "claude-sonnet-5", "/v1/messages", None),
            ("anthropic", "/v1", "qwen3", "/v1/messages", None),
            ("gemini", "", "gemini-3-pro", "/v1beta/models/gemini-3-pro:streamGenerateContent", Some("alt=sse")),
            ("gemini", "/v1", "models/gemini-3", "/v1beta/models/gemini-3:streamGenerateContent", Some("alt=sse")),
            ("gemini", "/v1alpha", "gemini-3", "/v1alpha/models/gemini-3:streamGenerateContent", Some("alt=sse")),
            ("gemini", "", "tunedModels/a b", "/v1beta/tunedModels/a%20b:streamGenerateContent", Some("alt=sse")),
            ("gemini", "", "../x?key=", "/v1beta/models/..%2Fx%3Fkey%3D:streamGenerateContent", Some("alt=sse")),
            (
                "bedrock-converse",
                "",
                "us.anthropic.claude-opus-4-8-v1:0",
                "/model/us.anthropic.claude-opus-4-8-v1%3A0/converse-stream",
                None,
            ),
            ("bedrock-converse", "", "arn:aws:x/y", "/model/arn%3Aaws%3Ax%2Fy/converse-stream", None),
        ];
        for (target, prefix, model, expected, query) in table {
            let found = path(target.parse().unwrap(), prefix, model);
            assert_eq!(found, (expected.to_owned(), query.map(str::to_owned)), "{target} {prefix} {model}");
        }
    }
}
