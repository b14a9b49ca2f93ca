//! Where a request is meant to go: an upstream, and a path of it. Both are judged and handed on as the bytes that came. And
//! which calls are calls of a model: by method and the end of the path, as servers read it.

use std::borrow::Cow;

use axum::http::{Method, Uri};
use percent_encoding::percent_decode_str;

use crate::provider::Target;
use crate::server::refusal::Refusal;

/// Ends of paths. An upstream may have anything before them.
const ENDS: &[(&str, Target)] = &[
    ("/v1/messages", Target::ANTHROPIC),
    ("/chat/completions", Target::OPENAI_CHAT),
    ("/responses", Target::OPENAI_RESPONSES),
];
/// What follows the model in the last part of a path: what comes before the model, and what after it.
const METHODS: &[(&str, &str, Target)] = &[
    ("models", ":generateContent", Target::GEMINI),
    ("models", ":streamGenerateContent", Target::GEMINI),
    ("model", "/converse", Target::BEDROCK_CONVERSE),
    ("model", "/converse-stream", Target::BEDROCK_CONVERSE),
];
/// Parts of paths by which a wire is known whatever is called, for the form of an error.
const PARTS: &[(&str, Target)] =
    &[("/v1/messages", Target::ANTHROPIC), ("/v1beta/", Target::GEMINI), ("/v1alpha/", Target::GEMINI)];

/// The wire of a call of a model.
pub(super) fn called(method: &Method, path: &str) -> Option<Target> {
    if method != Method::POST {
        return None;
    }
    let path = &*as_read(path);
    let ends = ENDS.iter().find(|(end, _)| path.ends_with(end)).map(|(_, target)| *target);
    ends.or_else(|| {
        METHODS.iter().find(|(before, after, _)| is_of_model(path, before, after)).map(|(.., target)| *target)
    })
}

/// A path as servers of models read it: its encoded characters, and without a slash at its end. One that is no UTF-8 then is left
/// as it came.
fn as_read(path: &str) -> Cow<'_, str> {
    let decoded = percent_decode_str(path).decode_utf8().unwrap_or(Cow::Borrowed(path));
    match decoded {
        Cow::Borrowed(path) => Cow::Borrowed(path.trim_end_matches('/')),
        Cow::Owned(path) => Cow::Owned(path.trim_end_matches('/').to_owned()),
    }
}

/// The model that is named in the path of a call.
pub(super) fn model(path: &str) -> Option<String> {
    let path = as_read(path);
    let (_, after, _) = METHODS.iter().find(|(before, after, _)| is_of_model(&path, before, after))?;
    Some(path.strip_suffix(after)?.rsplit_once('/')?.1.to_owned())
}

/// The id of the response that a call asks for once more: `GET .../responses/ID`, or `POST .../responses/ID/cancel`.
pub(super) fn fetched<'p>(method: &Method, path: &'p str) -> Option<&'p str> {
    let path = match *method {
        Method::GET => path,
        Method::POST => path.strip_suffix("/cancel")?,
        _ => return None,
    };
    let (before, id) = path.rsplit_once('/')?;
    (before.ends_with("/responses") && !id.is_empty()).then_some(id)
}

/// Whether a path ends with `/BEFORE/MODEL` and what is after it.
fn is_of_model(path: &str, before: &str, after: &str) -> bool {
    let model = path.strip_suffix(after).and_then(|path| path.rsplit_once('/'));
    model.is_some_and(|(path, model)| !model.is_empty() && path.rsplit('/').next() == Some(before))
}

/// The wire in whose form an error is written.
pub(super) fn of_errors(method: &Method, path: &str) -> Target {
    let part = || PARTS.iter().find(|(part, _)| path.contains(part)).map(|(_, target)| *target);
    called(method, path).or_else(part).unwrap_or(Target::OPENAI_CHAT)
}

/// What every path of the proxy begins with.
const PREFIX: &str = "/proxy/";

/// The name of an upstream, and the path there: empty, or with a slash before it.
pub(super) fn parts(path: &str) -> Option<(&str, &str)> {
    let rest = path.strip_prefix(PREFIX)?;
    let end = rest.find('/').unwrap_or(rest.len());
    rest.split_at_checked(end)
}

/// Refuses what could leave the part of the upstream that its URL names, or be read in two ways.
///
/// `TRACE` is refused, too: its answer repeats the request, with the key that it was given here.
pub(super) fn check(method: &Method, uri: &Uri, path: &str) -> Result<(), Refusal> {
    if *method == Method::TRACE {
        return Err(Refusal::new(405, "method_not_allowed", "TRACE does not pass"));
    }
    let invalid = |problem: &str| Err(Refusal::new(400, "invalid_path", format!("the path {problem}")));
    if uri.scheme().is_some() || uri.authority().is_some() {
        return Err(Refusal::new(400, "invalid_path", "the request names a host before its path"));
    }
    if path.contains("//") {
        return invalid("has two slashes in a row");
    }
    let lower = path.to_ascii_lowercase();
    if lower.contains('\\') || lower.contains("%5c") || lower.contains("%2f") {
        return invalid("has a backslash, or an encoded slash");
    }
    // What comes after a semicolon is a parameter of its part to some servers.
    let name =
        |part: &str| part.replace("%2e", ".").replace("%3b", ";").split(';').next().unwrap_or_default().to_owned();
    if lower.split('/').any(|part| matches!(&*name(part), "." | "..")) {
        return invalid("has a part `.` or `..`");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_models_are_known_by_their_paths() {
        let table = [
            ("/v1/messages", Some("anthropic")),
            ("/api/v1/messages", Some("anthropic")),
            ("/v1/messages/count_tokens", None),
            ("/v1/messages/batches", None),
            ("/v1/threads/thread_1/messages", None),
            ("/v1/chat/completions", Some("openai-chat")),
            ("/chat/completions", Some("openai-chat")),
            ("/openai/deployments/x/chat/completions", Some("openai-chat")),
            ("/v1/completions", None),
            ("/v1/responses", Some("openai-responses")),
            ("/v1/responses/resp_1/cancel", None),
            ("/v1/responses/compact", None),
            ("/v1beta/models/gemini-3:generateContent", Some("gemini")),
            ("/v1beta/models/gemini-3:streamGenerateContent", Some("gemini")),
            ("/v1beta/models/gemini-3:countTokens", None),
            ("/v1beta/tunedModels/x:generateContent", None),
            ("/v1beta/models/:generateContent", None),
            ("/model/amazon.nova/converse", Some("bedrock-converse")),
            ("/model/amazon.nova/converse-stream", Some("bedrock-converse")),
            ("/model/amazon.nova/invoke", None),
            ("/v1/chat/complet%69ons", Some("openai-chat")),
            ("/v1/messages/", Some("anthropic")),
            ("/v1beta/models/gemini-3%3AgenerateContent", Some("gemini")),
            ("/v1/%ff/messages", None),
            ("/converse", None),
            ("", None),
        ];
        for (path, wire) in table {
            assert_eq!(called(&Method::POST, path).map(|target| target.wire().name), wire, "{path}");
            assert!(called(&Method::GET, path).is_none(), "{path}");
        }
        let models = [
            ("/model/amazon.nova%3A0/converse-stream", Some("amazon.nova:0")),
            ("/v1beta/models/gemini-3:generateContent", Some("gemini-3")),
            ("/v1/messages", None),
        ];
        for (path, named) in models {
            assert_eq!(model(path).as_deref(), named, "{path}");
        }
        let responses = [
            (Method::GET, "/v1/responses/resp_1", Some("resp_1")),
            (Method::POST, "/v1/responses/resp_1/cancel", Some("resp_1")),
            (Method::POST, "/v1/responses/resp_1", None),
            (Method::DELETE, "/v1/responses/resp_1", None),
            (Method::GET, "/v1/responses/resp_1/input_items", None),
            (Method::GET, "/v1/responses/", None),
            (Method::GET, "/v1/responses", None),
        ];
        for (method, path, id) in responses {
            assert_eq!(fetched(&method, path), id, "{method} {path}");
        }
        assert_eq!(of_errors(&Method::POST, "/v1/messages/count_tokens").wire().name, "anthropic");
        assert_eq!(of_errors(&Method::GET, "/v1beta/models").wire().name, "gemini");
        assert_eq!(of_errors(&Method::GET, "/v1/models").wire().name, "openai-chat");
    }

    #[test]
    fn a_path_is_that_of_an_upstream() {
        let table = [
            ("/proxy/a", Some(("a", ""))),
            ("/proxy/a/", Some(("a", "/"))),
            ("/proxy/a/v1/x", Some(("a", "/v1/x"))),
            ("/proxy/a//x", Some(("a", "//x"))),
            ("/proxy//x", Some(("", "/x"))),
            ("/proxy", None),
            ("/v1/x", None),
        ];
        for (path, expected) in table {
            assert_eq!(parts(path), expected, "{path}");
        }
    }

    #[test]
    fn no_path_leaves_its_upstream() {
        let checked = |path: &str| check(&Method::GET, &Uri::from_static("/"), path).is_ok();
        for path in ["", "/", "/v1/x", "/v1/models/a:b", "/a..b/.c/d.", "/%20/%E2%82%AC", "/v1/x/", "/..."] {
            assert!(checked(path), "{path}");
        }
        for path in [
            "//x",
            "/a//b",
            "/..",
            "/../x",
            "/a/./b",
            "/a/%2e%2e/b",
            "/%2E./x",
            "/.%2e",
            "/%2e",
            "/a%2fb",
            "/a%2Fb",
            "/a\\b",
            "/a%5Cb",
        ] {
            assert!(!checked(path), "{path}");
        }
        assert!(check(&Method::GET, &Uri::from_static("http://evil/proxy/a/x"), "/x").is_err());
        assert!(check(&Method::TRACE, &Uri::from_static("/"), "/x").is_err());
    }
}
