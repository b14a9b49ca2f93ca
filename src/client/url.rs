//! Where a server is, and the key for it.

use std::fs;

use crate::error::{Error, Result};

/// The environment's name for the key.
const KEY: &str = "CONVO_KEY";

/// A server's URL, taken apart.
#[derive(Debug)]
pub(super) struct Url {
    /// Without options and without a `/` at its end.
    pub(super) base: String,
    pub(super) key: Option<String>,
    /// Whether it is a server of this machine.
    pub(super) is_local: bool,
}

/// Whether a URL names a server.
pub(crate) fn is_http(url: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme))
}

impl Url {
    /// `http://HOST:PORT/PATH?key_file=FILE`.
    pub(super) fn parse(url: &str) -> Result<Self> {
        let (base, options) = url.split_once('?').unwrap_or((url, ""));
        let base = base.trim_end_matches('/');
        let (_, place) = base.split_once("://").unwrap_or_default();
        let authority = place.split('/').next().unwrap_or_default();
        if authority.is_empty() {
            return Err(Error::InvalidInput(format!("{base} names no server: give http://HOST:PORT")));
        }
        if authority.contains('@') {
            // The text may be a secret: it is not shown.
            let message = "a server's URL takes no user and no password: give the key in CONVO_KEY, or name its file with \
                           ?key_file=FILE";
            return Err(Error::InvalidInput(message.to_owned()));
        }
        let mut key = std::env::var(KEY).ok().filter(|key| !key.is_empty());
        for option in options.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("key_file", path)) => {
                    let read = fs::read_to_string(path).map_err(Error::io(format!("read the key in {path}")))?;
                    key = Some(read.trim().to_owned());
                }
                _ => {
                    let name = option.split('=').next().unwrap_or_default();
                    return Err(Error::InvalidInput(format!("{base} has no option {name:?}: there is key_file")));
                }
            }
        }
        let host = authority.strip_prefix('[').and_then(|rest| rest.split(']').next());
        let host = host.unwrap_or_else(|| authority.split(':').next().unwrap_or_default());
        let is_address = host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
        Ok(Self { base: base.to_owned(), key, is_local: is_address || host == "localhost" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart_and_a_wrong_one_is_named() {
        for (url, base, is_local) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080", true),
            ("http://[::1]:8080/", "http://[::1]:8080", true),
            ("http://localhost:8080/convo/", "http://localhost:8080/convo", true),
            ("https://chats.example.org", "https://chats.example.org", false),
        ] {
            let parsed = Url::parse(url).unwrap();
            assert_eq!((parsed.base.as_str(), parsed.is_local), (base, is_local));
        }
        for url in ["http://", "https:///x", "http://host?cache_mb=1", "http://host?key_file=/no/such/file"] {
            Url::parse(url).unwrap_err();
        }
        let error = Url::parse("https://ada:hunter2@host").unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
    }
}
