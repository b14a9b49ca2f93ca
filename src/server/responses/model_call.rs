use crate::provider::Target;
pub(super) fn path(target: Target, prefix: &str, model: &str) -> (String, Option<String>) {
    match target.wire().name {
        "anthropic" => ("/v1/messages".to_owned(), None),
        "gemini" => (format!("/v1beta/models/{model}:streamGenerateContent"), Some("alt=sse".to_owned())),
        "bedrock-converse" => (format!("/model/{model}/converse-stream"), None),
        "openai-responses" => (format!("{prefix}/responses"), None),
        _ => (format!("{prefix}/chat/completions"), None),
    }
}
