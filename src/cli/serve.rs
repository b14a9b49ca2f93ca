use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use conversation_store::server::{Config, LogFormat, Server};
use conversation_store::{Error, Health};
use serde::Serialize;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::failure::{Exit, Failure, Outcome};
use super::location::Location;
use super::output::{Output, warn};

const EXAMPLES: &str = "\
Examples:
  convo serve
  convo keys create --keys keys.json --owner ada
  convo serve --listen 0.0.0.0:8080 --keys keys.json
  curl -H 'Authorization: Bearer KEY' http://127.0.0.1:8080/v1/conversations

The OpenAI Conversations API is under /v1, the native API under /api/v1, its description at /openapi.json, and pages \
for people at /. Settings come from the defaults, then --config, then CONVO_TABLE__NAME in the environment, then flags: the last one counts. \
Without keys, the server listens only on addresses of this machine. SIGTERM and SIGINT end it: it answers the requests \
in progress, sends followers a last event, and closes the store.";

/// Serve the store over HTTP: the OpenAI Conversations API, and everything else that the store does
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
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

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    #[cfg_attr(not(feature = "search"), expect(unused_mut, reason = "there is no index to name"))]
    let mut config = settings(args)?;
    if args.print_config {
        output.verbatim(&config.to_toml())?;
        return Ok(Exit::Done);
    }
    config.check()?;
    log(&config)?;
    if args.check_config {
        return Ok(Exit::Done);
    }
    #[cfg(feature = "search")]
    if config.pages.search_index.is_none() {
        config.pages.search_index = super::search::beside(location)?;
    }
    let store = location.create()?;
    let Health { went_back, .. } = store.health();
    if let Some((from, to)) = went_back {
        warn(&format!("{}: what is left can be read", Error::WentBack { from, to }));
    }
    let is_tls = config.server.tls_key.is_some();
    let server = Server::bind(store, config)?;
    let scheme = if is_tls { "https" } else { "http" };
    let listening = Listening {
        listening: format!("{scheme}://{}", server.address()?),
        admin: server.admin_address()?.map(|address| format!("http://{address}")),
    };
    output.result(&listening, || format!("listening on {}", listening.listening))?;
    output.flush()?;
    server.run()?;
    Ok(Exit::Done)
}

/// The settings of a file and of the environment.
pub(super) fn read(file: Option<&Path>) -> Result<Config, Failure> {
    let environment =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    Ok(Config::read(file, environment)?)
}

fn settings(args: &Args) -> Result<Config, Failure> {
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

/// Writes the log to stderr.
fn log(config: &Config) -> Result<(), Failure> {
    let level: Targets = config
        .log
        .level
        .parse()
        .map_err(|error| Failure::usage(format!("log.level: {:?}: {error}", config.log.level)))?;
    let registry = tracing_subscriber::registry().with(level);
    let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let started = match config.log.format {
        LogFormat::Text => registry.with(layer.with_ansi(false)).try_init(),
        _ => registry.with(layer.json().flatten_event(true).with_current_span(false).with_span_list(false)).try_init(),
    };
    started.map_err(|error| Failure::failed(format!("cannot begin the log: {error}")))
}
