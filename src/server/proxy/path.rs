//! Where a request is meant to go: an upstream, and a path of it. Both are judged and handed on as the bytes that came.

use axum::http::{Method, Uri};

use crate::server::refusal::Refusal;

/// What every path of the proxy begins with.
pub(super) const PREFIX: &str = "/proxy/";

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
    if lower.split('/').any(|part| matches!(&*part.replace("%2e", "."), "." | "..")) {
        return invalid("has a part `.` or `..`");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
