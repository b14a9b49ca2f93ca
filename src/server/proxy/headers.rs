//! Which headers go on.
//!
//! All of them do, but those of the connection, those of this server, and those that mean the origin at which a page was loaded:
//! at a proxy several upstreams share one.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use crate::server::refusal::Refusal;

/// Headers of one connection.
const OF_CONNECTION: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// Of a request, in addition: the server it asks, its cookies, and what is answered here.
const OF_REQUEST: &[&str] = &["host", "cookie", "expect"];
/// Of an answer, in addition: what a browser takes as said of the whole origin.
const OF_ORIGIN: &[&str] = &[
    "set-cookie",
    "alt-svc",
    "strict-transport-security",
    "clear-site-data",
    "nel",
    "report-to",
    "reporting-endpoints",
    "service-worker-allowed",
    "access-control-allow-origin",
    "access-control-allow-credentials",
    "access-control-allow-headers",
    "access-control-allow-methods",
    "access-control-expose-headers",
    "access-control-max-age",
];
/// Headers that say who asks. One that the connection takes for itself would not be missed.
pub(super) const CREDENTIALS: [&str; 4] = ["authorization", "x-api-key", "x-goog-api-key", "api-key"];
/// This server's own headers.
const OWN: &str = "x-convo-";
/// What a name has in it whose value is a secret.
const SECRET: [&str; 8] = ["key", "auth", "token", "secret", "cookie", "password", "credential", "signature"];
/// Types of answers that no browser runs; those of sound are not among them, either.
const DATA: [&str; 6] = [
    "application/json",
    "application/x-ndjson",
    "application/octet-stream",
    "application/vnd.amazon.eventstream",
    "text/event-stream",
    "text/plain",
];

/// Whether a name is that of a secret.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    // Azure's shared access signatures are `sig`, and the keys of its functions `code`.
    ["sig", "code", "pwd", "pass"].contains(&name.as_str()) || SECRET.iter().any(|part| name.contains(part))
}

/// The parameters of a query: each as it came, its name and its value as a server reads them.
pub(super) fn parameters(query: &str) -> impl Iterator<Item = (&str, Cow<'_, str>, Cow<'_, str>)> {
    // Some servers part them by semicolons, too.
    let pairs = query.split(['&', ';']).filter(|pair| !pair.is_empty());
    pairs.map(|pair| {
        let (name, value) = form_urlencoded::parse(pair.as_bytes()).next().unwrap_or_default();
        (pair, name, value)
    })
}

/// The names that `Connection` claims.
fn claimed(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all("connection").into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|name| !name.is_empty())
}

/// Takes what is of the connection.
fn strip(headers: &mut HeaderMap) {
    let claimed: Vec<HeaderName> = claimed(headers).filter_map(|name| name.parse().ok()).collect();
    for name in claimed {
        headers.remove(name);
    }
    for name in OF_CONNECTION {
        headers.remove(*name);
    }
}

/// Refuses a request that can be read in two ways, or asks for what does not pass.
pub(super) fn check(headers: &HeaderMap) -> Result<(), Refusal> {
    let is_chunked = |value: &HeaderValue| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked");
    if !headers.get_all("transfer-encoding").into_iter().all(is_chunked) {
        let message = "the request's transfer-encoding is not known here: `chunked` is";
        return Err(Refusal::new(501, "unknown_transfer_encoding", message));
    }
    // Of a length beside chunks nothing is left here: the chunks were read, and the request goes on with them alone.
    if headers.get_all("content-length").into_iter().count() > 1 {
        return Err(Refusal::new(400, "invalid_framing", "the request states its length twice"));
    }
    if headers.get_all("host").into_iter().count() > 1 {
        return Err(Refusal::new(400, "invalid_framing", "the request names its host twice"));
    }
    let is_credential = |name: &&str| CREDENTIALS.iter().any(|known| name.eq_ignore_ascii_case(known));
    if let Some(name) = claimed(headers).find(is_credential) {
        let message = format!("`Connection: {name}` would take the key out of the request");
        return Err(Refusal::new(400, "invalid_connection", message));
    }
    let asks = |protocol: &str| protocol.trim().to_ascii_lowercase().starts_with("websocket");
    let is_socket = |value: &HeaderValue| value.to_str().is_ok_and(|protocols| protocols.split(',').any(asks));
    // Any other protocol is an offer, which a server may leave alone: Java's client offers HTTP/2 so.
    if headers.get_all("upgrade").iter().any(is_socket)
        && claimed(headers).any(|name| name.eq_ignore_ascii_case("upgrade"))
    {
        let message = "No WebSocket passes here. Ask by POST: Codex does with \
                       `supports_websockets = false` in `[model_providers.NAME]` of its config.toml.";
        return Err(Refusal::new(426, "no_websockets", message));
    }
    Ok(())
}

/// The headers of a request that go on.
pub(super) fn onward(headers: &mut HeaderMap) {
    strip(headers);
    for name in OF_REQUEST {
        headers.remove(*name);
    }
    strip_own(headers);
}

/// What this server says itself is said by nobody else.
fn strip_own(headers: &mut HeaderMap) {
    let own: Vec<HeaderName> = headers.keys().filter(|name| name.as_str().starts_with(OWN)).cloned().collect();
    for name in own {
        headers.remove(name);
    }
}

/// The headers of an answer that go on.
pub(super) fn back(headers: &mut HeaderMap) {
    if headers.contains_key("transfer-encoding") {
        // It was read by its chunks: its length is what they have (RFC 9112, 6.3).
        headers.remove("content-length");
    }
    strip(headers);
    for name in OF_ORIGIN {
        headers.remove(*name);
    }
    strip_own(headers);
    if !is_data(headers) {
        // A page of the upstream's would be one of this server.
        headers.insert("content-security-policy", HeaderValue::from_static("sandbox"));
    }
}

/// Whether an answer is of one type, and no browser runs that. Of several, in one header or more, a browser takes the last.
fn is_data(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all("content-type").into_iter();
    let (Some(content_type), None) = (types.next(), types.next()) else { return false };
    let content_type = content_type.to_str().unwrap_or_default().to_ascii_lowercase();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    !content_type.contains(',') && (DATA.contains(&essence) || essence.starts_with("audio/"))
}

/// The headers without secrets.
pub(super) fn harmless(headers: &HeaderMap) -> HeaderMap {
    let harmless = headers.iter().filter(|(name, _)| !is_secret(name.as_str()));
    harmless.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The secrets of a request, without the words before them.
pub(super) fn secrets<'a>(headers: &'a HeaderMap, query: Option<&'a str>) -> impl Iterator<Item = String> + 'a {
    let values =
        headers.iter().filter(|(name, _)| is_secret(name.as_str())).filter_map(|(_, value)| value.to_str().ok());
    let words = values.map(|value| value.rsplit(' ').next().unwrap_or_default());
    let pairs = parameters(query.unwrap_or_default()).filter(|(_, name, _)| is_secret(name));
    // An upstream may repeat it as it came, or as it was meant.
    let values = pairs.flat_map(|(pair, _, value)| {
        let sent = pair.split_once('=').map_or("", |(_, sent)| sent);
        [sent.to_owned(), value.into_owned()]
    });
    words.map(str::to_owned).chain(values)
}

/// A query without the parameters that are secrets.
pub(super) fn harmless_query(query: &str) -> String {
    let harmless = parameters(query).filter(|(_, name, _)| !is_secret(name));
    harmless.map(|(pair, ..)| pair).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn names(headers: &HeaderMap) -> Vec<&str> {
        let mut names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn what_is_of_the_connection_stays() {
        let mut headers = of(&[
            ("connection", "keep-alive, X-Hop"),
            ("x-hop", "1"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("host", "here"),
            ("cookie", "convo_session=1"),
            ("expect", "100-continue"),
            ("x-convo-key", "convo_1"),
            ("x-convo-key", "convo_2"),
            ("x-convo-anything", "1"),
            ("authorization", "Bearer k"),
            ("accept-encoding", "gzip, br"),
            ("x-request-id", "mine"),
        ]);
        onward(&mut headers);
        assert_eq!(names(&headers), ["accept-encoding", "authorization", "x-request-id"]);
    }

    #[test]
    fn what_is_of_the_origin_stays() {
        let mut headers = of(&[
            ("content-type", "text/event-stream; charset=utf-8"),
            ("set-cookie", "__cf_bm=1"),
            ("alt-svc", "h3=\":443\""),
            ("access-control-allow-origin", "*"),
            ("strict-transport-security", "max-age=1"),
            ("retry-after", "1"),
            ("request-id", "req_1"),
            ("x-convo-recorded", "no"),
            ("content-length", "20"),
            ("transfer-encoding", "chunked"),
        ]);
        back(&mut headers);
        assert_eq!(names(&headers), ["content-type", "request-id", "retry-after"]);
        let mut headers = of(&[("content-type", "application/json"), ("content-length", "20")]);
        back(&mut headers);
        assert_eq!(names(&headers), ["content-length", "content-type"]);
        for content_types in [
            &["text/html"][..],
            &["image/svg+xml"],
            &["application/xhtml+xml"],
            &["TEXT/HTML"],
            &["text/xml"],
            &["application/json, text/html"],
            &["application/json", "text/html"],
            &["text/plain;a=b,text/html"],
            &["application/json+html"],
        ] {
            let mut headers = of(&[("content-security-policy", "default-src *")]);
            for content_type in content_types {
                headers.append("content-type", HeaderValue::from_static(content_type));
            }
            back(&mut headers);
            assert_eq!(headers.get("content-security-policy").unwrap(), "sandbox", "{content_types:?}");
        }
        for content_type in ["application/json", "Text/Event-Stream ; charset=utf-8", "audio/mpeg"] {
            let mut headers = of(&[("content-type", content_type)]);
            back(&mut headers);
            assert!(!headers.contains_key("content-security-policy"), "{content_type}");
        }
        let mut headers = HeaderMap::new();
        back(&mut headers);
        assert_eq!(headers.get("content-security-policy").unwrap(), "sandbox");
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused() {
        let table = [
            (400, of(&[("content-length", "1"), ("content-length", "1")])),
            (400, of(&[("host", "a"), ("host", "b")])),
            (501, of(&[("transfer-encoding", "gzip, chunked")])),
            (400, of(&[("connection", "close, X-Api-Key")])),
            (400, of(&[("connection", "authorization")])),
            (426, of(&[("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")])),
        ];
        for (status, headers) in table {
            assert_eq!(check(&headers).unwrap_err().status, status, "{headers:?}");
        }
        check(&of(&[("connection", "Upgrade, HTTP2-Settings"), ("upgrade", "h2c")])).unwrap();
        check(&of(&[("connection", "keep-alive, x-other"), ("content-length", "1"), ("host", "a")])).unwrap();
    }

    #[test]
    fn secrets_are_taken_out() {
        let headers = of(&[
            ("authorization", "Bearer canary"),
            ("x-api-key", "canary"),
            ("x-goog-api-key", "canary"),
            ("x-some-token", "canary"),
            ("sec-websocket-protocol", "a"),
            ("anthropic-beta", "b"),
            ("x-claude-code-session-id", "s"),
        ]);
        assert_eq!(
            names(&harmless(&headers)),
            ["anthropic-beta", "sec-websocket-protocol", "x-claude-code-session-id"]
        );
        assert_eq!(
            harmless_query("beta=true&key=canary&alt=sse&X-Amz-Signature=c&access_token=d"),
            "beta=true&alt=sse"
        );
        let hidden = "a=b&%6bey=canary&%61ccess%5Ftoken=canary;X-Amz-Signature=canary&c;d=1";
        assert_eq!(harmless_query(hidden), "a=b&c&d=1");
        let found: Vec<String> = secrets(&HeaderMap::new(), Some("%6bey=a%2Bcanary&x=y")).collect();
        assert_eq!(found, ["a%2Bcanary", "a+canary"]);
    }
}
