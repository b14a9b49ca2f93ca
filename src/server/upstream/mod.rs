//! Servers of models: where they are, their keys, and the client that calls them.
//!
//! - `address`: which addresses a name may lead to.
//! - `coding`: how an answer is encoded on its way.
//!
//! A request is sent once: also one whose connection ended before it was sent is not sent again, as its body may have been
//! read.

mod address;
mod coding;

use std::error::Error as _;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::uri::{Authority, PathAndQuery, Scheme};
use axum::http::{HeaderValue, Request, Response, Uri};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error as SendError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::config;
use super::refusal::Refusal;
use crate::error::{Error, Result};
use crate::provider::Target;
use address::{Checked, NotAllowed, Reach};
pub(crate) use coding::Coding;

/// How long a connection may take to begin.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a connection without requests is kept.
const IDLE: Duration = Duration::from_secs(60);
/// How many of them, and the part of all that they may be.
const IDLE_CONNECTIONS: usize = 64;
const IDLE_PART: usize = 4;
/// The most bytes of one read of an upstream, and of the head of its answer.
const BUFFER: usize = 64 * 1024;
/// What an upstream may send of one answer by HTTP/2 before it is read. The connection has room for all of them: who reads slowly
/// keeps nobody else's answer back.
const WINDOW: u32 = 256 * 1024;
const WINDOW_OF_CONNECTION: u32 = (1 << 31) - 1;

/// The upstreams of the settings.
#[derive(Debug)]
pub(crate) struct Upstreams {
    all: Vec<Arc<Upstream>>,
    /// The calls that may still begin: each has a connection.
    calls: Arc<Semaphore>,
}

impl Upstreams {
    /// Those of the settings, with the keys that the environment holds; with so many connections.
    pub(crate) fn open(set: &[config::Upstream], connections: usize) -> Result<Self> {
        let mut roots = None;
        let idle = (connections / IDLE_PART / set.len().max(1)).min(IDLE_CONNECTIONS);
        let open = |upstream: &config::Upstream| Upstream::open(upstream, idle, &mut roots).map(Arc::new);
        let all: Vec<_> = set.iter().map(open).collect::<Result<_>>()?;
        let calls = connections.saturating_sub(idle.saturating_mul(all.len())).clamp(1, Semaphore::MAX_PERMITS);
        Ok(Self { all, calls: Arc::new(Semaphore::new(calls)) })
    }

    /// Takes a connection for a call, as long as that lasts.
    pub(crate) fn begin(&self) -> std::result::Result<OwnedSemaphorePermit, Refusal> {
        let room = Arc::clone(&self.calls).try_acquire_owned();
        room.map_err(|_| Refusal::busy("the server is at its limit of calls in progress; try again"))
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Arc<Upstream>> {
        self.all.iter().find(|upstream| upstream.set.name == name)
    }

    /// Fails if one of them is the server that listens here: a call would pass through it without end.
    pub(crate) fn check(&self, listen: SocketAddr) -> Result<()> {
        let Some(own) = self.all.iter().find(|upstream| upstream.base.is_at(listen)) else { return Ok(()) };
        Err(Error::InvalidInput(format!(
            "upstream {}: {listen} is the address of this server itself: choose another address to listen on",
            own.set.name
        )))
    }

    /// The names of all.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|upstream| &*upstream.set.name)
    }

    /// Where what `/v1` does not serve itself goes.
    pub(crate) fn default(&self) -> Option<&Arc<Upstream>> {
        self.all.iter().find(|upstream| upstream.set.default)
    }
}

/// A server of models.
pub(crate) struct Upstream {
    pub(crate) set: config::Upstream,
    /// The dialect that it speaks, where that is not its wire's own.
    pub(crate) target: Option<Target>,
    base: Base,
    key: Option<String>,
    client: Client<HttpsConnector<HttpConnector<Checked>>, Body>,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("set", &self.set).finish_non_exhaustive()
    }
}

/// Scheme, host and port, and the path before that of requests, without a slash at its end.
#[derive(Clone, Debug)]
struct Base {
    scheme: Scheme,
    authority: Authority,
    path: String,
}

impl Base {
    fn read(name: &str, url: &str) -> Result<Self> {
        let wrong = |problem: &str| Error::InvalidInput(format!("upstream {name}: url: {problem}"));
        let parts = url.parse::<Uri>().map_err(|error| wrong(&error.to_string()))?.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err(wrong("expected https://HOST or http://HOST"));
        };
        if scheme != Scheme::HTTP && scheme != Scheme::HTTPS {
            return Err(wrong("expected https or http"));
        }
        if authority.as_str().contains('@') {
            return Err(wrong("keys do not stand in a URL: name the variable that holds one as key_env"));
        }
        let path = parts.path_and_query.as_ref().map_or("", PathAndQuery::as_str);
        if path.contains('?') {
            return Err(wrong("it has no query"));
        }
        Ok(Self { scheme, authority, path: path.trim_end_matches('/').to_owned() })
    }

    fn host(&self) -> &str {
        self.authority.host().trim_start_matches('[').trim_end_matches(']')
    }

    /// Whether it is at an address of this machine, as the settings name it.
    fn is_at(&self, listen: SocketAddr) -> bool {
        let port = self.authority.port_u16().unwrap_or(if self.scheme == Scheme::HTTPS { 443 } else { 80 });
        let is_here = match self.host().parse::<IpAddr>() {
            Ok(ip) => ip == listen.ip() || (ip.is_loopback() && listen.ip().is_unspecified()),
            Err(_) => self.host() == "localhost" && (listen.ip().is_loopback() || listen.ip().is_unspecified()),
        };
        is_here && port == listen.port()
    }

    /// Whether the settings name an address that is not of the internet.
    fn is_private(&self) -> Result<bool> {
        let host = self.host();
        match host.parse().map(address::reach) {
            Ok(Reach::Never) => Err(Error::InvalidInput(format!("{host} is no address of a server of models"))),
            Ok(reach) => Ok(reach == Reach::Private),
            Err(_) => Ok(host == "localhost" || host.ends_with(".localhost")),
        }
    }
}

impl Upstream {
    fn open(set: &config::Upstream, idle: usize, roots: &mut Option<Arc<RootCertStore>>) -> Result<Self> {
        let name = &*set.name;
        let known = known(name);
        let url = set.url.as_deref().or(known.map(|known| known.url)).ok_or_else(|| {
            let names: Vec<_> = KNOWN_UPSTREAMS.iter().map(|known| known.name).collect();
            Error::InvalidInput(format!("upstream {name}: it needs a url; these need none: {}", names.join(", ")))
        })?;
        let base = Base::read(name, url)?;
        let target = set.wire.as_deref().or(known.and_then(|known| known.wire));
        let target = target.map(str::parse::<Target>).transpose();
        let target = target.map_err(|error| Error::InvalidInput(format!("upstream {name}: wire: {error}")))?;
        let key = set.key_env.as_deref().map(|variable| {
            let key = std::env::var(variable).ok().filter(|key| HeaderValue::from_str(key).is_ok() && !key.is_empty());
            key.ok_or_else(|| Error::InvalidInput(format!("upstream {name}: {variable} holds no key")))
        });
        let checked = Checked { private: set.private_addresses || base.is_private()? };
        if base.scheme == Scheme::HTTPS && roots.is_none() {
            let mut store = RootCertStore::empty();
            store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            *roots = Some(Arc::new(store));
        }
        let roots = roots.clone().unwrap_or_else(|| Arc::new(RootCertStore::empty()));
        let client = client(checked, idle, roots).map_err(|problem| Error::InvalidInput(format!("TLS: {problem}")))?;
        Ok(Self { set: set.clone(), target, base, key: key.transpose()?, client })
    }

    /// What comes before `/chat/completions` and `/responses`.
    pub(crate) fn path(&self) -> &'static str {
        known(&self.set.name).filter(|_| self.set.url.is_none()).map_or("/v1", |known| match known.wire {
            Some(_) => known.path,
            None => "/v1",
        })
    }

    /// The key of the settings.
    pub(crate) fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Where a path leads, with its query. Neither is changed.
    pub(crate) fn uri(&self, path: &str, query: Option<&str>) -> std::result::Result<Uri, Refusal> {
        let Base { scheme, authority, path: base } = &self.base;
        let slash = if base.is_empty() && path.is_empty() { "/" } else { "" };
        let (mark, query) = query.map_or(("", ""), |query| ("?", query));
        let whole = format!("{base}{path}{slash}{mark}{query}");
        let parts = Uri::builder().scheme(scheme.clone()).authority(authority.clone()).path_and_query(whole);
        parts.build().map_err(|error| Refusal::new(400, "invalid_path", error.to_string()))
    }

    /// Sends a request: the head of its answer.
    pub(crate) async fn send(&self, request: Request<Body>) -> std::result::Result<Response<Incoming>, Refusal> {
        match timeout(self.set.answer(), self.client.request(request)).await {
            // It was not asked to: what a proxy before this server would take for a tunnel is none.
            Ok(Ok(answer)) if answer.status().is_informational() => {
                let message = format!("upstream {} switched to another protocol", self.set.name);
                Err(Refusal::new(502, "upstream_cut", message))
            }
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.refused(&error)),
            Err(_) => {
                let message = format!(
                    "upstream {} did not begin to answer within {} seconds",
                    self.set.name, self.set.answer_seconds
                );
                Err(Refusal { retry_after: Some(1), ..Refusal::new(504, "upstream_silent", message) })
            }
        }
    }

    fn refused(&self, error: &SendError) -> Refusal {
        let name = &self.set.name;
        let mut causes = vec![error.to_string()];
        let mut cause = error.source();
        while let Some(error) = cause {
            let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
            if error.is::<NotAllowed>() || wrapped.is_some_and(|error| error.is::<NotAllowed>()) {
                let message =
                    format!("upstream {name}: {error}; private_addresses = true permits networks of your own");
                return Refusal::new(502, "upstream_address", message);
            }
            causes.push(error.to_string());
            cause = error.source();
        }
        let causes = causes.join(": ");
        let (code, what) = match error.is_connect() {
            true => ("upstream_unreachable", "cannot be reached"),
            false => ("upstream_cut", "ended the connection before it answered"),
        };
        Refusal { retry_after: Some(1), ..Refusal::new(502, code, format!("upstream {name} {what}: {causes}")) }
    }
}

fn client(
    checked: Checked,
    idle: usize,
    roots: Arc<RootCertStore>,
) -> std::result::Result<Client<HttpsConnector<HttpConnector<Checked>>, Body>, tokio_rustls::rustls::Error> {
    let mut http = HttpConnector::new_with_resolver(checked);
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_connect_timeout(Some(CONNECT));
    http.set_keepalive(Some(IDLE));
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_all_versions();
    let mut builder = Client::builder(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .retry_canceled_requests(false)
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(idle)
        .http1_max_buf_size(BUFFER)
        .http2_initial_stream_window_size(WINDOW)
        .http2_initial_connection_window_size(WINDOW_OF_CONNECTION);
    Ok(builder.build(connector.wrap_connector(http)))
}

/// A server of models whose address everybody knows.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct KnownUpstream {
    /// Its name: an [`Upstream`](super::config::Upstream) of this name needs no URL.
    pub name: &'static str,
    /// Where it is, without what clients put after it: `/v1` belongs to their base URL.
    pub url: &'static str,
    /// The dialect that it speaks, where that is not its wire's own.
    pub wire: Option<&'static str>,
    /// The variable of the environment in which its clients take their base URL.
    pub variable: &'static str,
    /// What follows `/proxy/NAME` in that base URL.
    pub path: &'static str,
}

const fn openai(name: &'static str, url: &'static str, wire: Option<&'static str>) -> KnownUpstream {
    KnownUpstream { name, url, wire, variable: "OPENAI_BASE_URL", path: "/v1" }
}

/// A client that knows nothing of the server but its own wire.
const fn other(name: &'static str, url: &'static str, variable: &'static str) -> KnownUpstream {
    KnownUpstream { name, url, wire: None, variable, path: "" }
}

/// The servers of models whose addresses everybody knows. Local ones come last: they are where they listen by default.
pub const KNOWN_UPSTREAMS: &[KnownUpstream] = &[
    other("anthropic", "https://api.anthropic.com", "ANTHROPIC_BASE_URL"),
    openai("openai", "https://api.openai.com", None),
    other("gemini", "https://generativelanguage.googleapis.com", "GOOGLE_GEMINI_BASE_URL"),
    openai("cerebras", "https://api.cerebras.ai", Some("openai-chat/cerebras")),
    openai("deepseek", "https://api.deepseek.com", Some("openai-chat/deepseek")),
    openai("fireworks", "https://api.fireworks.ai/inference", Some("openai-chat/compatible")),
    openai("groq", "https://api.groq.com/openai", Some("openai-chat/groq")),
    openai("mistral", "https://api.mistral.ai", Some("openai-chat/mistral")),
    openai("moonshot", "https://api.moonshot.ai", Some("openai-chat/moonshot")),
    openai("openrouter", "https://openrouter.ai/api", Some("openai-chat/openrouter")),
    KnownUpstream { path: "", ..openai("perplexity", "https://api.perplexity.ai", Some("openai-chat/perplexity")) },
    openai("together", "https://api.together.xyz", Some("openai-chat/compatible")),
    openai("xai", "https://api.x.ai", Some("openai-chat/xai")),
    openai("litellm", "http://127.0.0.1:4000", Some("openai-chat/compatible")),
    openai("llamacpp", "http://127.0.0.1:8080", Some("openai-chat/compatible")),
    openai("lmstudio", "http://127.0.0.1:1234", Some("openai-chat/compatible")),
    openai("ollama", "http://127.0.0.1:11434", Some("openai-chat/ollama")),
    openai("vllm", "http://127.0.0.1:8000", Some("openai-chat/vllm")),
];

/// The well-known server of a name.
pub(crate) fn known(name: &str) -> Option<&'static KnownUpstream> {
    KNOWN_UPSTREAMS.iter().find(|known| known.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(name: &str, url: Option<&str>) -> Result<Upstream> {
        let set = config::Upstream { url: url.map(str::to_owned), ..config::Upstream::new(name) };
        Upstream::open(&set, IDLE_CONNECTIONS, &mut None)
    }

    #[test]
    fn every_well_known_name_opens() {
        for known in KNOWN_UPSTREAMS {
            let upstream = open(known.name, None).unwrap();
            assert_eq!(upstream.uri("/v1/x", Some("a=%20b")).unwrap(), format!("{}/v1/x?a=%20b", known.url).as_str());
        }
    }

    #[test]
    fn a_path_comes_behind_that_of_the_url() {
        let of = |url: &str, path: &str| open("x", Some(url)).unwrap().uri(path, None).unwrap().to_string();
        assert_eq!(of("http://127.0.0.1:1", ""), "http://127.0.0.1:1/");
        assert_eq!(of("http://127.0.0.1:1/api/", ""), "http://127.0.0.1:1/api");
        assert_eq!(of("http://127.0.0.1:1/api/", "/"), "http://127.0.0.1:1/api/");
        assert_eq!(of("http://127.0.0.1:1/api", "/%E2%82%AC/a:b"), "http://127.0.0.1:1/api/%E2%82%AC/a:b");
    }

    #[test]
    fn what_is_no_url_of_a_server_is_refused() {
        for url in [
            "ftp://x",
            "x",
            "/x",
            "https://user:key@x",
            "https://x?key=1",
            "http://169.254.169.254",
            "http://0.0.0.0:1",
        ] {
            assert!(open("x", Some(url)).is_err(), "{url}");
        }
        assert!(open("x", None).unwrap_err().to_string().contains("anthropic"));
    }
}
