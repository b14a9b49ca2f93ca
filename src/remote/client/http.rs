//! Where a server is, and requests to it.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, fs, thread};

use rustls::crypto::ring;
use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};
use ureq::{Agent, AsSendBody, Body};

use crate::error::{Error, Result};
use crate::remote::failure::Failure;
use crate::remote::{MEDIA_TYPE, PATH, body};

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);
/// How long an answer may take to begin, unless its call may take long.
pub(super) const ANSWER: Duration = Duration::from_secs(120);
/// How long a whole body may take, sent or received, unless its call may take long.
const BODY: Duration = Duration::from_secs(600);
/// How long an answer may take to begin, and then to come, whose call goes through everything: a check, a backup.
pub(super) const LONG: Duration = Duration::from_secs(6 * 60 * 60);
/// Connections that are kept for the next requests.
const IDLE: usize = 256;
/// Pauses before a call that may be repeated is made again.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(400)];
/// The most bytes of an answer, but for a backup: a page of records and the largest record.
const ANSWER_BYTES: u64 = 1024 * 1024 * 1024;
/// The most bytes of an error.
const ERROR_BYTES: u64 = 1024 * 1024;

/// What becomes of a call that the server has not answered: its connection was cut, or something between answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// It only reads: it is made again.
    Read,
    /// It is made again: twice is as once. If no answer comes at all, its outcome is not known.
    Repeat,
    /// It is made again: twice is as once for a server that may have taken it. For one that does not know what it is about,
    /// its outcome is not known.
    RepeatThere,
    /// Its outcome is not known.
    Ask,
}

/// A server.
pub(super) struct Server {
    agent: Agent,
    base: String,
    authorization: Option<String>,
}

/// Without the key.
impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("base", &self.base).finish_non_exhaustive()
    }
}

/// Why there is no answer.
struct Cut {
    error: ureq::Error,
}

/// Why a call has no answer of the server's.
enum Failed {
    /// The server refused it.
    Refused(Error),
    /// Nobody knows whether the server has taken it, unless it cannot have got it.
    Unanswered { error: Error, cause: Box<str>, was_not_sent: bool },
}

impl Cut {
    /// Whether the server cannot have got the request.
    fn was_not_sent(&self) -> bool {
        use std::io::ErrorKind::{ConnectionRefused, NotFound};
        match &self.error {
            ureq::Error::Io(error) => matches!(error.kind(), ConnectionRefused | NotFound),
            ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => true,
            ureq::Error::HostNotFound
            | ureq::Error::ConnectionFailed
            | ureq::Error::BadUri(_)
            | ureq::Error::Http(_)
            | ureq::Error::Tls(_)
            | ureq::Error::Rustls(_) => true,
            _ => false,
        }
    }
}

impl Server {
    pub(super) fn new(url: &Url) -> Result<Self> {
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_connect(Some(CONNECT))
            .timeout_send_body(Some(BODY))
            .max_idle_connections(IDLE)
            .max_idle_connections_per_host(IDLE)
            .user_agent(concat!("convo/", env!("CARGO_PKG_VERSION")));
        if url.is_local {
            config = config.proxy(None);
        }
        if url.base.starts_with("https://") {
            let roots = rustls_native_certs::load_native_certs().certs;
            let roots: Vec<_> = roots.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
            let tls = TlsConfig::builder()
                .provider(TlsProvider::Rustls)
                .root_certs(RootCerts::new_with_certs(&roots))
                .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()));
            config = config.tls_config(tls.build());
        }
        let authorization = url.key.as_ref().map(|key| format!("Bearer {key}"));
        Ok(Self { agent: config.build().new_agent(), base: url.base.clone(), authorization })
    }

    /// The server's URL.
    pub(super) fn shown(&self) -> &str {
        &self.base
    }

    /// Makes a call of the log: the JSON of its answer, and the bytes after it.
    pub(super) fn call<A: DeserializeOwned>(
        &self,
        call: &str,
        asked: &impl Serialize,
        bytes: &[u8],
        again: Again,
    ) -> Result<(A, Vec<u8>)> {
        let body = body::write(asked, bytes)?;
        let path = format!("{PATH}{call}");
        let mut pauses = PAUSES.iter();
        let mut may_be_done = false;
        loop {
            let (error, cause, was_not_sent) = match self.call_once(&path, &body) {
                Ok(answer) => return Ok(answer),
                Err(Failed::Refused(Error::NotFound { what })) if may_be_done && again == Again::RepeatThere => {
                    let cause = format!("no answer came from {}, and now it does not know {what}", self.base);
                    return Err(Error::OutcomeUnknown { cause });
                }
                Err(Failed::Refused(error)) => return Err(error),
                Err(Failed::Unanswered { error, cause, was_not_sent }) => (error, cause, was_not_sent),
            };
            may_be_done |= !was_not_sent;
            match (pauses.next(), again) {
                (Some(pause), Again::Read | Again::Repeat | Again::RepeatThere) => thread::sleep(*pause),
                (_, Again::Ask) if !was_not_sent => return Err(Error::OutcomeUnknown { cause: cause.into() }),
                (None, Again::Repeat | Again::RepeatThere) if may_be_done => {
                    return Err(Error::OutcomeUnknown { cause: cause.into() });
                }
                _ => return Err(error),
            }
        }
    }

    fn call_once<A: DeserializeOwned>(&self, path: &str, body: &[u8]) -> Result<(A, Vec<u8>), Failed> {
        let unanswered = |error, cause: String| Failed::Unanswered { error, cause: cause.into(), was_not_sent: false };
        let (status, mut answer) = self.ask("POST", path, body, ANSWER).and_then(whole).map_err(|cut| {
            let cause = format!("no answer came from {}: {}", self.base, cut.error);
            let was_not_sent = cut.was_not_sent();
            Failed::Unanswered { error: self.gone(cut), cause: cause.into(), was_not_sent }
        })?;
        if status == 200 {
            let (head, bytes) = body::read(&answer).map_err(|error| {
                let error = self.unreadable(&error);
                let cause = error.to_string();
                unanswered(error, cause)
            })?;
            let start = answer.len() - bytes.len();
            answer.drain(..start);
            return Ok((head, answer));
        }
        match self.refused(status, &answer) {
            Ok(error) => Err(Failed::Refused(error)),
            // What refuses a request before the server sees it says so with 4xx.
            Err(error) if (400..500).contains(&status) => Err(Failed::Refused(error)),
            Err(error) => Err(unanswered(error, format!("{} answers {status}", self.base))),
        }
    }

    /// Asks for JSON of the native API.
    pub(super) fn json<A: DeserializeOwned>(&self, method: &str, path: &str, patience: Duration) -> Result<A> {
        match self.ask(method, path, &[], patience).and_then(whole) {
            Ok((200, answer)) => serde_json::from_slice(&answer).map_err(|error| self.unreadable(&error)),
            Ok((status, answer)) => Err(self.refused(status, &answer).unwrap_or_else(|error| error)),
            Err(cut) => Err(self.gone(cut)),
        }
    }

    /// Asks for a file: its bytes, and the headers that tell of it.
    pub(super) fn file(&self, path: &str, headers: [&str; 2]) -> Result<(impl Read + use<>, [u64; 2])> {
        let answer = self.ask("GET", path, &[], LONG).map_err(|cut| self.gone(cut))?;
        let status = answer.status().as_u16();
        if status != 200 {
            let (status, answer) = whole(answer).map_err(|cut| self.gone(cut))?;
            return Err(self.refused(status, &answer).unwrap_or_else(|error| error));
        }
        let number = |name: &str| answer.headers().get(name)?.to_str().ok()?.parse().ok();
        let numbers = headers.map(|name| number(name).unwrap_or_default());
        Ok((answer.into_body().into_reader(), numbers))
    }

    fn ask(
        &self,
        method: &str,
        path: &str,
        body: &[u8],
        patience: Duration,
    ) -> Result<ureq::http::Response<Body>, Cut> {
        let mut request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.base));
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        let asked = if method == "GET" {
            request.body(()).map_err(ureq::Error::from).and_then(|request| self.run(request, patience))
        } else {
            let request = request.header("content-type", MEDIA_TYPE).body(body);
            request.map_err(ureq::Error::from).and_then(|request| self.run(request, patience))
        };
        asked.map_err(|error| Cut { error })
    }

    fn run(
        &self,
        request: ureq::http::Request<impl AsSendBody>,
        patience: Duration,
    ) -> Result<ureq::http::Response<Body>, ureq::Error> {
        let request = self.agent.configure_request(request);
        let request = request.timeout_recv_response(Some(patience)).timeout_recv_body(Some(patience.max(BODY)));
        self.agent.run(request.build())
    }

    /// What the server answered in place of 200; `Err` if it was not the server that answered, or one that this program does
    /// not understand.
    fn refused(&self, status: u16, body: &[u8]) -> Result<Error, Error> {
        #[derive(serde::Deserialize)]
        struct Refused {
            error: Failure,
        }
        match serde_json::from_slice::<Refused>(body) {
            Ok(Refused { error })
                if status == 404 && error.code.as_deref() == Some("not_found") && is_route(&error) =>
            {
                Err(self.strange("it has no log for clients: it is older than this program"))
            }
            Ok(Refused { error }) => error.known(),
            Err(_) => Err(self.strange(&format!("it answers {status}"))),
        }
    }

    fn strange(&self, detail: &str) -> Error {
        Error::InvalidInput(format!("no `convo serve` answers at {}: {detail}", self.base))
    }

    pub(super) fn unreadable(&self, error: &dyn std::fmt::Display) -> Error {
        let source = std::io::Error::new(std::io::ErrorKind::InvalidData, error.to_string());
        Error::io(format!("read the answer of {}", self.base))(source)
    }

    fn gone(&self, cut: Cut) -> Error {
        let source = match cut.error {
            ureq::Error::Io(error) => error,
            error => std::io::Error::other(error),
        };
        Error::io(format!("ask the server at {}", self.base))(source)
    }
}

/// Whether the server does not know the route. What is not there of a store has details.
fn is_route(failure: &Failure) -> bool {
    failure.details.is_empty()
}

/// The status and the whole body of an answer.
fn whole(answer: ureq::http::Response<Body>) -> Result<(u16, Vec<u8>), Cut> {
    let status = answer.status().as_u16();
    let limit = if status == 200 { ANSWER_BYTES } else { ERROR_BYTES };
    let body = answer.into_body().into_with_config().limit(limit).read_to_vec();
    body.map(|body| (status, body)).map_err(|error| Cut { error })
}

/// The environment's name for the key.
const KEY: &str = "CONVO_KEY";

/// A server's URL, taken apart.
#[derive(Debug)]
pub(super) struct Url {
    /// Without options and without a `/` at its end.
    pub(super) base: String,
    pub(super) key: Option<String>,
    /// Whether it is a server of this machine.
    is_local: bool,
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
