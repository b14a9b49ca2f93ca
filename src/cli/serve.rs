//! The server, its keys, and whether it is well.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use conversation_store::model::Timestamp;
use conversation_store::server::{Config, Key, KeyFile, KeyOptions, LogLines, Scope, Server};
use conversation_store::{Error, Health, Store};
use serde::Serialize;

use super::failure::{Exit, Failure, Outcome};
use super::location::Location;
use super::output::{Output, note, warn};
use super::text;
use super::values::{moment, seconds};

/// Serve the store over HTTP: the OpenAI Conversations API, and everything else that the store does
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  convo serve
  convo keys create --keys keys.json --owner ada
  convo serve --listen 0.0.0.0:8080 --keys keys.json
  curl -H 'Authorization: Bearer KEY' http://127.0.0.1:8080/v1/conversations

The OpenAI Conversations API is under /v1, the native API under /api/v1, its description at /openapi.json, and pages \
for people at /. Settings come from the defaults, then --config, then CONVO_TABLE__NAME in the environment, then flags: the last one counts. \
Without keys, the server listens only on addresses of this machine. SIGTERM and SIGINT end it: it answers the requests \
in progress, sends followers a last event, and closes the store.")]
pub(super) struct Serve {
    /// The address; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    listen: Option<SocketAddr>,
    /// The file of keys that `convo keys create` writes; read again when it changes
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    /// An address for health and metrics only, without keys
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    admin_listen: Option<SocketAddr>,
    /// A file of settings, TOML
    #[arg(long, value_name = "FILE", env = "CONVO_CONFIG")]
    config: Option<PathBuf>,
    /// Serve other machines without keys: everyone who reaches the address can read and write everything
    #[arg(long)]
    insecure_no_auth: bool,
    /// Check the settings and exit
    #[arg(long)]
    check_config: bool,
    /// Print the settings in effect, as TOML, and exit
    #[arg(long)]
    print_config: bool,
}

/// Where it listens, once it does.
#[derive(Serialize)]
struct Listening {
    listening: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    admin: Option<String>,
}

pub(super) fn serve(args: &Serve, location: &Location, output: &mut Output) -> Outcome {
    #[cfg_attr(not(feature = "search"), expect(unused_mut, reason = "there is no index to name"))]
    let mut config = settings(args)?;
    if args.print_config {
        output.verbatim(&config.to_toml())?;
        return Ok(Exit::Done);
    }
    Server::check(&config).map_err(|error| match &config.auth.keys_file {
        Some(file) => of_keys(error, file),
        None => error.into(),
    })?;
    let _lines = LogLines::begin(&config.log)?;
    if args.check_config {
        return Ok(Exit::Done);
    }
    give_memory_back();
    #[cfg(feature = "search")]
    if config.pages.search_index.is_none() {
        config.pages.search_index = super::search::beside(location)?;
    }
    let url = location.url()?.into_owned();
    let has_upstreams = !config.upstreams.is_empty();
    let store = location.create()?;
    let Health { went_back, .. } = store.health();
    if let Some((from, to)) = went_back {
        warn(&format!("{}: what is left can be read", Error::WentBack { from, to }));
    }
    let is_tls = config.server.tls_key.is_some();
    let server = bind(store, config)?;
    let scheme = if is_tls { "https" } else { "http" };
    let listening = Listening {
        listening: format!("{scheme}://{}", server.address()?),
        admin: server.admin_address()?.map(|address| format!("http://{address}")),
    };
    output.result(&listening, || lines(&listening, &text::printable(&url), has_upstreams))?;
    output.flush()?;
    server.run()?;
    Ok(Exit::Done)
}

/// What is where, and what a client's base URL is.
fn lines(listening: &Listening, store: &str, has_upstreams: bool) -> String {
    let at = &listening.listening;
    let mut lines = format!("listening on {at}\n");
    let mut row = |what: &str, where_it_is: &str| lines.push_str(&format!("  {what:<22}{where_it_is}\n"));
    row("store", store);
    row("pages for people", at);
    row("native API", &format!("{at}/api/v1"));
    row("openai SDK", &format!("{at}/v1 for conversations and responses"));
    if has_upstreams {
        row("calls to be recorded", &format!("{at}/proxy/UPSTREAM"));
    }
    if let Some(admin) = &listening.admin {
        row("health and metrics", admin);
    }
    lines
}

/// A server that has its addresses.
pub(super) fn bind(store: Store, config: Config) -> Result<Server, Failure> {
    Server::bind(store, config).map_err(|error| {
        let is_taken = matches!(&error, Error::Io { source, .. } if source.kind() == ErrorKind::AddrInUse);
        let failure = Failure::from(error);
        if !is_taken {
            return failure;
        }
        failure.with_cure(
            "another program listens there: end it, or choose another address with --listen (port 0 is any free one)",
        )
    })
}

/// glibc keeps large buffers that were freed, in a heap for each thread, unless a process begins with a size from which on they are
/// given back. So the program begins again, as the same process, with that size in its environment.
pub(super) fn give_memory_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        use std::os::unix::process::CommandExt as _;

        const SIZE: (&str, &str) = ("MALLOC_MMAP_THRESHOLD_", "1048576");
        if [SIZE.0, "GLIBC_TUNABLES"].iter().any(|name| std::env::var_os(name).is_some()) {
            return;
        }
        let mut arguments = std::env::args_os();
        if let (Ok(program), Some(name)) = (std::env::current_exe(), arguments.next()) {
            let mut again = std::process::Command::new(program);
            // It returns only if that is not possible: the server works, and takes more memory.
            let _ = again.arg0(name).args(arguments).env(SIZE.0, SIZE.1).exec();
        }
    }
}

/// The settings of a file and of the environment.
pub(super) fn read(file: Option<&Path>) -> Result<Config, Failure> {
    let environment =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    Ok(Config::read(file, environment)?)
}

fn settings(args: &Serve) -> Result<Config, Failure> {
    let mut config = read(args.config.as_deref())?;
    if let Some(listen) = args.listen {
        config.server.listen = listen;
    }
    if args.admin_listen.is_some() {
        config.server.admin_listen = args.admin_listen;
    }
    if args.keys.is_some() {
        config.auth.keys_file.clone_from(&args.keys);
    }
    config.auth.insecure_no_auth |= args.insecure_no_auth;
    Ok(config)
}

pub(super) fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "expected an address and a port, as 127.0.0.1:8080")
}

/// Ask the server on this machine whether it is ready, as a container's HEALTHCHECK does
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  convo healthcheck
  convo healthcheck --config convo.toml

In a Dockerfile: HEALTHCHECK CMD [\"convo\", \"healthcheck\"]

Asks the server of the same settings on this machine: those of --config, then CONVO_TABLE__NAME in the environment. It asks \
server.admin_listen if that is set, which a server that speaks TLS needs. Exit code 0 if the server is ready, 1 if it is not, \
or does not answer: what Docker expects.")]
pub(super) struct Healthcheck {
    /// The address of the server; by default that of the settings
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    listen: Option<SocketAddr>,
    /// A file of settings, TOML
    #[arg(long, value_name = "FILE", env = "CONVO_CONFIG")]
    config: Option<PathBuf>,
    /// Ask only whether the process answers, not whether the store can be written
    #[arg(long)]
    live: bool,
    /// How long to wait for the answer
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    timeout: Duration,
}

/// What the server answered.
#[derive(Serialize)]
struct Answer {
    healthy: bool,
    answer: String,
}

pub(super) fn healthcheck(args: &Healthcheck, output: &mut Output) -> Outcome {
    let Config { server, .. } = read(args.config.as_deref())?;
    let address = match (args.listen, server.admin_listen) {
        (Some(listen), _) => listen,
        (None, Some(admin)) => admin,
        (None, None) if server.tls_key.is_some() => {
            return Err(Failure::usage(
                "the server speaks TLS: its health is asked on server.admin_listen, which is not set",
            ));
        }
        (None, None) => server.listen,
    };
    let path = if args.live { "/livez" } else { "/readyz" };
    let shown = match ask(reachable(address), path, args.timeout) {
        Ok(answer) => Answer { healthy: answer.starts_with("HTTP/1.1 200 "), answer: body(&answer).to_owned() },
        Err(error) => Answer { healthy: false, answer: format!("{address}: {error}") },
    };
    output.result(&shown, || shown.answer.clone())?;
    Ok(if shown.healthy { Exit::Done } else { Exit::Findings })
}

/// Where a server that listens on all addresses is reached.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// The whole answer to one request: the server closes the connection after it.
fn ask(address: SocketAddr, path: &str, timeout: Duration) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, timeout)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(64 * 1024).read_to_string(&mut answer)?;
    Ok(answer)
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or(answer, |(_, body)| body)
}

/// Create, list and revoke the keys of a server
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  convo keys create --keys keys.json --owner ada
  convo keys create --keys keys.json --owner ada --scopes read --expires 2027-01-01
  # a backend with many users: each request names its owner
  convo keys create --keys keys.json --owner backend --scopes read,append,delete,impersonate
  convo keys list --keys keys.json
  convo keys revoke key_0123456789ab --keys keys.json

`create` prints only the secret, on stdout, once: the file has only its hash. Scopes: read, append, delete, admin, \
impersonate. With impersonate, the header x-convo-owner of a request names the owner for whom it is; without the header \
it is for --owner. A server reads the file again within two seconds after it changes.")]
pub(super) struct Keys {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Create a key, and print its secret
    Create {
        /// The file of keys; it is created if it does not exist
        #[arg(long, value_name = "FILE")]
        keys: PathBuf,
        /// What the key permits
        #[arg(long, value_delimiter = ',', default_value = "read,append,delete", value_parser = scope())]
        scopes: Vec<Scope>,
        /// When the key expires: a date (its beginning, UTC), or a time as RFC 3339
        #[arg(long, value_name = "DATE", value_parser = moment)]
        expires: Option<Timestamp>,
        /// Items of the Conversations API come as OpenAI accepts them, unless a request says otherwise
        #[arg(long)]
        repaired: bool,
    },
    /// List the keys, without their secrets
    List {
        /// The file of keys
        #[arg(long, value_name = "FILE")]
        keys: PathBuf,
    },
    /// Revoke a key
    Revoke {
        /// The key's id, as `list` prints it
        id: String,
        /// The file of keys
        #[arg(long, value_name = "FILE")]
        keys: PathBuf,
    },
}

/// A key, as it is printed.
#[derive(Serialize)]
struct ShownKey<'a> {
    id: &'a str,
    owner: &'a str,
    scopes: Vec<&'static str>,
    created_at: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    repaired: bool,
}

pub(super) fn keys(args: &Keys, location: &Location, output: &mut Output) -> Outcome {
    match &args.action {
        Action::Create { keys, scopes, expires, repaired } => {
            let owner = location.owner().ok_or_else(|| {
                Failure::usage("the key needs an owner")
                    .with_cure("--owner NAME: the key opens the conversations of NAME")
            })?;
            let mut options = KeyOptions::new().with_repaired(*repaired);
            options.expires_at = *expires;
            let created = KeyFile::new(keys).create(owner, scopes, &options);
            let cannot = |error| if keys.exists() { of_keys(error, keys) } else { Failure::from(error) };
            let (key, secret) = created.map_err(cannot)?;
            output.verbatim(&format!("{secret}\n"))?;
            note(&format!("{} of {owner}: this secret is not shown again", key.id));
        }
        Action::List { keys } => {
            let keys = KeyFile::new(keys).list().map_err(|error| of_keys(error, keys))?;
            if output.is_text() {
                output.text(&table(&keys))?;
            } else {
                keys.iter().try_for_each(|key| output.json(&shown(key)))?;
            }
        }
        Action::Revoke { id, keys } => {
            let key = KeyFile::new(keys).revoke(id).map_err(|error| match &error {
                Error::NotFound { .. } => Failure::from(error)
                    .with_cure(format!("`convo keys list --keys {}` shows the keys", keys.display())),
                _ => of_keys(error, keys),
            })?;
            output.result(&shown(&key), || format!("{} of {} is revoked", key.id, text::printable(&key.owner)))?;
        }
    }
    Ok(Exit::Done)
}

/// The failure of a file of keys: what to do, if it cannot be read.
fn of_keys(error: Error, keys: &Path) -> Failure {
    let failure = Failure::from(error);
    if KeyFile::new(keys).list().is_ok() {
        return failure;
    }
    failure.with_cure(
        "`convo keys create --keys FILE --owner NAME` makes a file of keys where there is none, and prints a key",
    )
}

fn shown(key: &Key) -> ShownKey<'_> {
    ShownKey {
        id: &key.id,
        owner: &key.owner,
        scopes: key.scopes.iter().map(|scope| scope.as_str()).collect(),
        created_at: &key.created_at,
        expires_at: key.expires_at.as_deref(),
        repaired: key.repaired,
    }
}

fn table(keys: &[Key]) -> String {
    if keys.is_empty() {
        return "no keys".to_owned();
    }
    let heads = ["KEY", "OWNER", "SCOPES", "EXPIRES"].map(str::to_owned);
    let row = |key: &Key| {
        let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.as_str()).collect();
        let expires = key.expires_at.clone().unwrap_or_else(|| "never".to_owned());
        [key.id.clone(), text::cut(&key.owner, 40), scopes.join(","), expires]
    };
    text::table(&std::iter::once(heads).chain(keys.iter().map(row)).collect::<Vec<_>>())
}

fn scope() -> impl TypedValueParser<Value = Scope> {
    PossibleValuesParser::new(Scope::ALL.map(Scope::as_str))
        .try_map(|name| Scope::from_name(&name).ok_or("no such scope"))
}
