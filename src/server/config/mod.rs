//! The settings of a server: defaults < a TOML file < the environment < flags.

mod model;
mod upstream;
mod wrong;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use toml::{Table, Value};

use crate::error::{Error, Result};
use crate::log::limits::{check_key, check_tags};
use crate::model::Name;
use crate::store::Retention;
pub use model::Model;
pub use upstream::{OnDisconnect, Record, Repair, Upstream, WithoutSession};
use wrong::{YEAR, invalid};

/// The settings of a server. Every field has a default; an unknown name is an error.
///
/// In a file, each field is a table:
///
/// ```toml
/// [server]
/// listen = "127.0.0.1:8080"
///
/// [auth]
/// keys_file = "/etc/convo/keys.json"
///
/// [limits]
/// body_bytes = 67108864
///
/// [[retention]]
/// idle = "90d"
/// ```
///
/// In the environment, each name is `CONVO_`, the table, two underscores, and the name: `CONVO_LIMITS__BODY_BYTES`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Config {
    /// Addresses, TLS, the shutdown.
    pub server: Serving,
    /// Who may do what.
    pub auth: Auth,
    /// Limits on memory and time.
    pub limits: Bounds,
    /// What is logged.
    pub log: Log,
    /// What the OpenAI Conversations API accepts.
    pub openai: OpenAi,
    /// The pages for people.
    pub pages: Pages,
    /// What agents may do, by the Model Context Protocol.
    pub mcp: Mcp,
    /// Which conversations are erased in the background. None by default; only a file can have policies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub retention: Vec<Policy>,
    /// Servers of models to which `/proxy/NAME` leads. None by default; only a file can have them.
    #[serde(rename = "upstream", skip_serializing_if = "Vec::is_empty")]
    pub upstreams: Vec<Upstream>,
    /// Where models are, for `POST /v1/responses`. The first row that a model's name fits counts; only a file can have them.
    #[serde(rename = "model", skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<Model>,
}

/// Addresses, TLS, the shutdown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Serving {
    /// The address of both APIs: 127.0.0.1:8080. Port 0 takes a free one. An address that other machines reach needs
    /// keys.
    pub listen: SocketAddr,
    /// An address for health and metrics only, without keys. Absent: metrics need a key with the scope `admin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin_listen: Option<SocketAddr>,
    /// The certificate chain, PEM. With `tls_key`, the server speaks TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_certificate: Option<PathBuf>,
    /// The private key of the certificate, PEM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_key: Option<PathBuf>,
    /// Origins whose pages may call the APIs from a browser: `https://chat.example`. None by default.
    pub cors_origins: Vec<String>,
    /// Seconds between the signal to end and the last accepted connection: time for a load balancer to see `readyz`. 0.
    pub drain_seconds: u64,
    /// Seconds that requests have to finish after that: 30.
    pub shutdown_seconds: u64,
    /// Seconds between two rounds of the policies of retention: 3,600. The first one begins with the server.
    pub retention_seconds: u64,
}

/// Who may do what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Auth {
    /// The file of keys, created by `convo keys create`. Absent: no key is needed, and conversations have no owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys_file: Option<PathBuf>,
    /// Whether an address that other machines reach may be served without keys. Everyone who reaches it can then read
    /// and write everything.
    pub insecure_no_auth: bool,
}

/// Limits on memory and time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Bounds {
    /// Bytes of one request's body: 32 MiB.
    pub body_bytes: usize,
    /// Bytes that all requests together make the server hold: 512 MiB. One owner may hold three quarters of them. What does not
    /// fit waits for 5 seconds, and is refused with 503 then. Its earlier name is `bodies_bytes`.
    #[serde(alias = "bodies_bytes")]
    pub held_bytes: usize,
    /// Connections at one time: 16,384; fewer if the process may have few file handles, of which upstreams have half. When there
    /// are as many, the oldest on which no request has come yet makes room, of the address that has most of them; otherwise more
    /// wait to be accepted.
    pub connections: usize,
    /// Requests in progress, without followers and ingests, and without those whose body is still arriving: 1,024. More are refused
    /// with 503.
    pub requests: usize,
    /// Calls of the store in progress, each with a thread: 64. More wait.
    pub store_threads: usize,
    /// Followers of events and ingests, all together: 12,288.
    pub streams: usize,
    /// Followers of events and ingests of one key: 12,288.
    pub streams_per_key: usize,
    /// Requests per second of one key, which may all come at once; 0, the default, for no limit. More are refused with
    /// 429.
    pub requests_per_second: u32,
    /// Bytes that one owner may have stored; 0, the default, for no limit. Over it, what adds to them gets 413.
    pub owner_bytes: u64,
    /// Conversations that one owner may have; 0, the default, for no limit. Over it, a new one gets 413.
    pub owner_conversations: u64,
    /// Seconds in which the first request's head must arrive on a new connection, with what TLS needs before it: 10.
    pub first_head_seconds: u64,
    /// Seconds in which a request's head must arrive, also after the previous request on the same connection: 75, more
    /// than proxies keep a connection open.
    pub header_seconds: u64,
    /// Seconds in which the next piece of a body must arrive, and in which a client must read the next piece of an
    /// answer: 30.
    pub idle_seconds: u64,
    /// Seconds in which a whole body must arrive, except for an ingested answer: 300.
    pub body_seconds: u64,
    /// Seconds in which the next piece of an ingested answer must arrive: 600.
    pub ingest_idle_seconds: u64,
    /// Seconds between comments that keep a connection of events alive: 15.
    pub keep_alive_seconds: u64,
    /// Seconds after which the unfinished messages of a client of the log (`--store http://...`) are interrupted, if nothing is
    /// heard of it: 30; at least 3.
    pub lease_seconds: u64,
}

/// What is logged, on stderr. Content is never logged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Log {
    /// `json`, `text` or `calls`.
    pub format: LogFormat,
    /// `error`, `warn`, `info`, `debug`, `trace` or `off`; also by module: `warn,conversation_store=debug`.
    pub level: String,
}

/// The form of a line of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum LogFormat {
    /// One JSON object a line.
    #[default]
    Json,
    /// Text for people.
    Text,
    /// Text for somebody who watches the proxy: a line for each call of a model that is recorded, and warnings.
    Calls,
}

/// What the OpenAI Conversations API accepts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct OpenAi {
    /// The most items of one request: 20, as OpenAI's. Some versions of SDKs send more.
    pub items_per_request: usize,
    /// Whether items of an unknown type are refused, as OpenAI does. By default they are stored.
    pub strict_item_types: bool,
    /// Whether items are listed as a provider accepts them, unless a request says otherwise. By default as they are stored.
    pub repaired_items: bool,
}

/// The pages for people, under `/pages`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Pages {
    /// Whether they are served: they are by default.
    pub enabled: bool,
    /// Hours after which a session ends: 12. It ends earlier when its key does, and with the server.
    pub session_hours: u64,
    /// The directory of the search index. Absent: the program takes the one beside the store, and the library one in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search_index: Option<PathBuf>,
    /// The language of the words in the index: English if nothing is said. An index in another one is made again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search_language: Option<String>,
}

/// What agents may do, by the Model Context Protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Mcp {
    /// Whether those whose key has the scope `append` may append notes, tag and fork: false by default.
    pub write: bool,
}

/// Conversations that are erased once nobody has used them for a time, as `convo prune` does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Policy {
    /// How long nothing has happened: `90d`, `2w`, `36h`. At least a minute.
    #[serde(deserialize_with = "idle")]
    pub idle: String,
    /// Only conversations of this owner; empty: those without one. Absent: those of every owner, which costs a read for each
    /// conversation of the store in each round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Only conversations that have all of these tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Of each owner's conversations with these tags, so many of the newest stay, however old they are: 0.
    #[serde(default)]
    pub keep_last: usize,
}

/// A time that a policy may have.
fn idle<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    let policy = Policy { idle: text, ..Policy::default() };
    policy.idle().map_err(D::Error::custom)?;
    Ok(policy.idle)
}

impl Policy {
    /// How long nothing has happened.
    pub(crate) fn idle(&self) -> Result<Duration> {
        let idle = Retention::parse_idle(&self.idle)?;
        if idle < Duration::from_secs(60) {
            let problem = "less than a minute would erase conversations that are in use";
            return Err(Error::InvalidInput(format!("{:?}: {problem}", self.idle)));
        }
        Ok(idle)
    }

    fn check(&self) -> Result<()> {
        self.idle()?;
        check_key(&Name::from("").with_owner(self.owner.as_deref().unwrap_or_default()))?;
        check_tags(&self.tags)
    }
}

impl Default for Serving {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            admin_listen: None,
            tls_certificate: None,
            tls_key: None,
            cors_origins: Vec::new(),
            drain_seconds: 0,
            shutdown_seconds: 30,
            retention_seconds: 3_600,
        }
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            body_bytes: 32 * 1024 * 1024,
            held_bytes: 512 * 1024 * 1024,
            connections: 16_384,
            requests: 1_024,
            store_threads: 64,
            streams: 12_288,
            streams_per_key: 12_288,
            requests_per_second: 0,
            owner_bytes: 0,
            owner_conversations: 0,
            first_head_seconds: 10,
            header_seconds: 75,
            idle_seconds: 30,
            body_seconds: 300,
            ingest_idle_seconds: 600,
            keep_alive_seconds: 15,
            lease_seconds: 30,
        }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self { format: LogFormat::default(), level: "info".to_owned() }
    }
}

impl Default for OpenAi {
    fn default() -> Self {
        Self { items_per_request: 20, strict_item_types: false, repaired_items: false }
    }
}

impl Default for Pages {
    fn default() -> Self {
        Self { enabled: true, session_hours: 12, search_index: None, search_language: None }
    }
}

/// Threads of the store, each with a stack.
const MOST_THREADS: usize = 4_096;
/// The prefix of names in the environment.
const PREFIX: &str = "CONVO_";

impl Config {
    /// Reads the file, if there is one, and then the environment: pairs of a name and a value.
    ///
    /// # Errors
    /// `InvalidInput` that names the file or the variable; `Io`.
    pub fn read(file: Option<&Path>, environment: impl IntoIterator<Item = (String, String)>) -> Result<Self> {
        let mut table = match file {
            None => Table::new(),
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(Error::io(format!("read {}", path.display())))?;
                parse(&text, &path.display().to_string())?;
                table_of(&text, &path.display().to_string())?
            }
        };
        for (name, value) in environment {
            let Some((section, key)) = name.strip_prefix(PREFIX).and_then(|name| name.split_once("__")) else {
                continue;
            };
            let (section, key) = (section.to_lowercase(), key.to_lowercase());
            let value = read_value(&value);
            // One variable at a time, so that an error names it.
            let alone =
                Table::from_iter([(section.clone(), Value::Table(Table::from_iter([(key.clone(), value.clone())])))]);
            alone.try_into::<Self>().map_err(|error| invalid(&name, error.message()))?;
            if let Value::Table(section) = table.entry(section).or_insert_with(|| Value::Table(Table::new())) {
                section.insert(key, value);
            }
        }
        table.try_into().map_err(|error| invalid("the configuration", error.message()))
    }

    /// Fails on settings that cannot be served.
    ///
    /// # Errors
    /// `InvalidInput` for an address that other machines reach without keys, half of TLS, a limit of 0, a time of more than a
    /// year, more than 4,096 threads, or a wrong origin.
    pub fn check(&self) -> Result<()> {
        let Serving { listen, tls_certificate, tls_key, cors_origins, .. } = &self.server;
        if !listen.ip().is_loopback() && self.auth.keys_file.is_none() && !self.auth.insecure_no_auth {
            return Err(Error::InvalidInput(format!(
                "{listen} can be reached from other machines, and no keys are set: create some with `convo keys create` and \
                 give --keys FILE, or listen on 127.0.0.1; --insecure-no-auth serves without keys"
            )));
        }
        if tls_certificate.is_some() != tls_key.is_some() {
            return Err(invalid("server", "tls_certificate and tls_key are needed together"));
        }
        if let Some(origin) = cors_origins.iter().find(|origin| !is_origin(origin)) {
            return Err(invalid(
                "server.cors_origins",
                &format!("{origin:?} is not an origin such as https://chat.example"),
            ));
        }
        for (number, policy) in self.retention.iter().enumerate() {
            policy.check().map_err(|error| invalid(&format!("retention, policy {number}"), &error.to_string()))?;
        }
        #[cfg(feature = "search")]
        if let Some(Err(error)) = self.pages.search_language.as_deref().map(str::parse::<crate::search::Language>) {
            return Err(invalid("pages.search_language", &error.to_string()));
        }
        upstream::check(&self.upstreams)?;
        model::check(&self.models, &self.upstreams)?;
        if self.server.retention_seconds == 0 {
            return Err(invalid("server.retention_seconds", "it must be at least 1"));
        }
        if self.limits.store_threads > MOST_THREADS {
            return Err(invalid("limits.store_threads", &format!("it may be {MOST_THREADS} at most")));
        }
        if let Some((name, _)) = self.times().into_iter().find(|(_, seconds)| *seconds > YEAR) {
            return Err(invalid(name, &format!("it may be a year at most: {YEAR} seconds")));
        }
        let limits = [
            ("body_bytes", self.limits.body_bytes),
            ("held_bytes", self.limits.held_bytes),
            ("connections", self.limits.connections),
            ("requests", self.limits.requests),
            ("store_threads", self.limits.store_threads),
        ];
        if self.limits.lease_seconds < 3 {
            return Err(invalid("limits.lease_seconds", "it must be at least 3"));
        }
        match limits.iter().find(|(_, limit)| *limit == 0) {
            Some((name, _)) => Err(invalid(&format!("limits.{name}"), "it must be at least 1")),
            None => Ok(()),
        }
    }

    /// Every time that is set, in seconds.
    fn times(&self) -> [(&'static str, u64); 11] {
        let Self { server, limits, pages, .. } = self;
        [
            ("server.drain_seconds", server.drain_seconds),
            ("server.shutdown_seconds", server.shutdown_seconds),
            ("server.retention_seconds", server.retention_seconds),
            ("limits.first_head_seconds", limits.first_head_seconds),
            ("limits.header_seconds", limits.header_seconds),
            ("limits.idle_seconds", limits.idle_seconds),
            ("limits.body_seconds", limits.body_seconds),
            ("limits.ingest_idle_seconds", limits.ingest_idle_seconds),
            ("limits.keep_alive_seconds", limits.keep_alive_seconds),
            ("limits.lease_seconds", limits.lease_seconds),
            ("pages.session_hours", pages.session_hours.saturating_mul(3_600)),
        ]
    }

    /// The settings as a file.
    #[must_use]
    pub fn to_toml(&self) -> String {
        // Tables of numbers and texts can always be written.
        toml::to_string(self).unwrap_or_default()
    }
}

impl Bounds {
    pub(crate) const fn first_head(&self) -> Duration {
        Duration::from_secs(self.first_head_seconds)
    }

    pub(crate) const fn header(&self) -> Duration {
        Duration::from_secs(self.header_seconds)
    }

    pub(crate) const fn idle(&self) -> Duration {
        Duration::from_secs(self.idle_seconds)
    }

    pub(crate) const fn body(&self) -> Duration {
        Duration::from_secs(self.body_seconds)
    }

    pub(crate) const fn ingest_idle(&self) -> Duration {
        Duration::from_secs(self.ingest_idle_seconds)
    }

    pub(crate) const fn keep_alive(&self) -> Duration {
        Duration::from_secs(self.keep_alive_seconds)
    }

    pub(crate) const fn lease(&self) -> Duration {
        Duration::from_secs(self.lease_seconds)
    }
}

impl Pages {
    pub(crate) const fn session(&self) -> Duration {
        Duration::from_secs(self.session_hours.saturating_mul(3_600))
    }

    /// The language of the search index, if the settings name one.
    #[cfg(feature = "search")]
    pub(crate) fn language(&self) -> Option<crate::search::Language> {
        self.search_language.as_deref().and_then(|name| name.parse().ok())
    }
}

/// Whether a text is what a browser sends as `Origin`: scheme, host and port, and nothing after them.
fn is_origin(text: &str) -> bool {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    host.is_some_and(|host| {
        !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte))
    })
}

/// Fails with the line of the error in a file.
fn parse(text: &str, name: &str) -> Result<()> {
    toml::from_str::<Config>(text).map(|_| ()).map_err(|error| invalid(name, &error.to_string()))
}

fn table_of(text: &str, name: &str) -> Result<Table> {
    text.parse().map_err(|error: toml::de::Error| invalid(name, error.message()))
}

/// A value of the environment: TOML if it is valid TOML, as `8` and `["a", "b"]` are; otherwise a text.
fn read_value(text: &str) -> Value {
    let value = format!("v = {text}").parse::<Table>().ok().and_then(|mut table| table.remove("v"));
    value.unwrap_or_else(|| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(environment: &[(&str, &str)]) -> Result<Config> {
        Config::read(None, environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    }

    #[test]
    fn the_environment_counts_before_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("convo.toml");
        std::fs::write(&file, "[server]\nlisten = \"127.0.0.1:1\"\n[limits]\nbody_bytes = 5\n").unwrap();
        let environment = [("CONVO_LIMITS__BODY_BYTES", "7"), ("CONVO_STORE", "sled:x"), ("PATH", "a__b")];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let config = Config::read(Some(&file), environment).unwrap();
        assert_eq!((config.server.listen.port(), config.limits.body_bytes), (1, 7));
        assert_eq!(Config::read(None, []).unwrap(), Config::default());
        assert_eq!(toml::from_str::<Config>(&config.to_toml()).unwrap(), config);
    }

    #[test]
    fn what_is_not_known_is_named() {
        let error = of(&[("CONVO_LIMITS__BODIES", "7")]).unwrap_err().to_string();
        assert!(error.contains("CONVO_LIMITS__BODIES") && error.contains("unknown field"), "{error}");
        let error = of(&[("CONVO_LIMITS__BODY_BYTES", "much")]).unwrap_err().to_string();
        assert!(error.contains("CONVO_LIMITS__BODY_BYTES"), "{error}");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("convo.toml");
        std::fs::write(&file, "[server]\nport = 1\n").unwrap();
        let error = Config::read(Some(&file), []).unwrap_err().to_string();
        assert!(error.contains("convo.toml") && error.contains("line 2"), "{error}");
    }

    #[test]
    fn an_open_address_needs_keys() {
        let open = of(&[("CONVO_SERVER__LISTEN", "0.0.0.0:8080")]).unwrap();
        assert!(open.check().unwrap_err().to_string().contains("convo keys create"));
        let mut keyed = open.clone();
        keyed.auth.keys_file = Some(PathBuf::from("keys.json"));
        keyed.check().unwrap();
        let mut insecure = open;
        insecure.auth.insecure_no_auth = true;
        insecure.check().unwrap();
        of(&[("CONVO_SERVER__LISTEN", "[::1]:8080")]).unwrap().check().unwrap();
        assert!(of(&[("CONVO_LIMITS__REQUESTS", "0")]).unwrap().check().is_err());
        assert!(of(&[("CONVO_SERVER__TLS_KEY", "k.pem")]).unwrap().check().is_err());
    }
}
