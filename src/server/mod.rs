//! The server: the store over HTTP, for chat servers in any language.
//!
//! What lives where, from the bottom:
//!
//! - `config` (the settings), `keys` (who may do what, and who is logged in), `refusal` (errors: one form, one table),
//!   `metrics`.
//! - `ledger` (the bytes that requests hold; what they read counts: a log around the log).
//! - `room` (who has to wait: threads, streams, rates, locks), `writers` (messages that clients of the log are writing),
//!   `exchanges` (calls of models that are recorded now), `begun` (responses), `query`, `app` (what all requests share, what
//!   finds conversations for them, and what one of them is), `body`.
//! - `openai/` and `native/`: the two APIs, each a table of routes, and a file for each group of them. `remote/`: the log
//!   itself, for `convo --store http://...`; its table is not in the OpenAPI document. `mcp`: the Model Context Protocol.
//! - `pages/`: the same for people, as HTML; `auth` (who calls, from where).
//! - `quota/` (limits on what an owner stores: a log around the log), `retention` (what is erased in the background).
//! - `secrets` (keys in a request's fields), `upstream/` (servers of models), `proxy/` (what passes to them, and is recorded),
//!   `responses/` (OpenAI's Responses API over any of them).
//! - `route` (a row of the tables), `openapi` (the document, made from the tables; `schemas`: what no type describes).
//! - `serve` (what happens to every request), `health`, `listen`.
//!
//! **To add a route**: write a row in its API's table, and its handler. The row is what is served, documented and tested:
//! `tests/server/documented.rs` says what is missing.
//!
//! This is the only part of the crate that is async; the store's calls block, and run on threads of their own.

mod app;
mod auth;
mod begun;
mod body;
mod config;
mod exchanges;
#[cfg(feature = "search")]
mod finder;
mod health;
mod keys;
mod ledger;
mod lines;
mod listen;
#[cfg(feature = "mcp")]
mod mcp;
mod metrics;
mod native;
mod openai;
mod openapi;
mod pages;
mod proxy;
mod query;
mod quota;
mod refusal;
mod remote;
mod responses;
mod retention;
mod room;
mod route;
mod schemas;
mod secrets;
mod serve;
mod stops;
mod upstream;
mod writers;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use tokio::runtime::Runtime;
use tokio::sync::{Notify, Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use app::App;
use listen::Listening;
use serve::Face;
use upstream::Upstreams;

pub use config::{
    Auth, Bounds, Config, Log, LogFormat, Mcp, Model, OnDisconnect, OpenAi, Pages, Policy, Record, Repair, Serving,
    Upstream, WithoutSession,
};
pub use keys::{Key, KeyFile, KeyOptions, Scope};
pub use lines::LogLines;
pub use proxy::erasing;
pub use upstream::{KNOWN_UPSTREAMS, KnownUpstream};

use crate::error::{Error, Result};
use crate::store::Store;

/// The routes of both APIs.
const ROUTES: &[&[route::Route]] = &[openai::ROUTES, responses::ROUTES, native::ROUTES];
/// All routes, and whom they face.
const SERVED: &[(Face, &[route::Route])] = &[
    (Face::Api, openai::ROUTES),
    (Face::Api, responses::ROUTES),
    (Face::Api, native::ROUTES),
    (Face::Api, remote::ROUTES),
    #[cfg(feature = "mcp")]
    (Face::Api, mcp::ROUTES),
    (Face::Pages, pages::ROUTES),
    (Face::Door, pages::DOOR),
];

/// Connections to the address of health and metrics.
const ADMIN_CONNECTIONS: usize = 32;

/// A server that is bound to its addresses, and serves once it runs.
#[derive(Debug)]
pub struct Server {
    runtime: Runtime,
    app: Arc<App>,
    addresses: Addresses,
    /// Registered before anybody can know that the server listens.
    signals: Signals,
    ended: Arc<Notify>,
}

/// Ends a [`Server`] from another thread, as SIGTERM does.
#[derive(Clone, Debug)]
pub struct ServerHandle(Arc<Notify>);

impl ServerHandle {
    /// Ends the server. It returns before the server has ended.
    pub fn end(&self) {
        self.0.notify_one();
    }
}

struct Addresses {
    main: Listening,
    admin: Option<Listening>,
}

impl std::fmt::Debug for Addresses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Addresses").finish_non_exhaustive()
    }
}

/// What settings name, read: keys, what TLS needs, and upstreams; and how many connections clients may have.
fn prepared(config: &Config) -> Result<(Option<keys::Keys>, Option<TlsAcceptor>, Upstreams, usize)> {
    config.check()?;
    let keys = config.auth.keys_file.as_deref().map(keys::Keys::open).transpose()?;
    let tls = match (&config.server.tls_certificate, &config.server.tls_key) {
        (Some(certificate), Some(key)) => Some(listen::tls(certificate, key)?),
        _ => None,
    };
    let set = config.limits.connections.min(Semaphore::MAX_PERMITS);
    let connections = listen::most_connections(set, !config.upstreams.is_empty());
    let upstreams = Upstreams::open(&config.upstreams, connections.upstreams)?;
    upstreams.check(config.server.listen)?;
    Ok((keys, tls, upstreams, connections.clients))
}

impl Server {
    /// Fails on settings with which [`Server::bind`] fails, but for addresses that are taken.
    ///
    /// # Errors
    /// As [`Server::bind`].
    pub fn check(config: &Config) -> Result<()> {
        prepared(config).map(|_| ())
    }

    /// Reads the keys, and binds the addresses. The store is closed when the server has ended.
    ///
    /// # Errors
    /// `InvalidInput` as [`Config::check`], and for keys and certificates that cannot be read; `Io` if an address is taken.
    pub fn bind(store: Store, config: Config) -> Result<Self> {
        let (keys, tls, upstreams, connections) = prepared(&config)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            // The store's calls, and a few reads of files.
            .max_blocking_threads(config.limits.store_threads + 8)
            .enable_all()
            .build()
            .map_err(Error::io("start the threads of the server"))?;
        let serving = config.server.clone();
        let store = erasing(quota::limited(store, &config.limits));
        let document = || openapi::document(ROUTES).to_string().into();
        let app = Arc::new(App::new(store, config, keys, upstreams, begun::BegunResponses::new()?, document));
        let main = Listening {
            listener: runtime.block_on(listen::bind(serving.listen))?,
            router: serve::router(&app, SERVED),
            tls,
            connections,
        };
        let admin = match serving.admin_listen {
            None => None,
            Some(address) => Some(Listening {
                listener: runtime.block_on(listen::bind(address))?,
                router: serve::around(health::routes(Router::new(), &app, true), &app),
                tls: None,
                connections: connections.min(ADMIN_CONNECTIONS),
            }),
        };
        let signals = {
            let _runtime = runtime.enter();
            Signals::listen()?
        };
        Ok(Self { runtime, app, addresses: Addresses { main, admin }, signals, ended: Arc::default() })
    }

    /// The address of the APIs, with the port in use.
    ///
    /// # Errors
    /// `Io`.
    pub fn address(&self) -> Result<SocketAddr> {
        self.addresses.main.listener.local_addr().map_err(Error::io("read the address"))
    }

    /// The address of health and metrics, if there is one.
    ///
    /// # Errors
    /// `Io`.
    pub fn admin_address(&self) -> Result<Option<SocketAddr>> {
        let admin = self.addresses.admin.as_ref().map(|admin| admin.listener.local_addr());
        admin.transpose().map_err(Error::io("read the address"))
    }

    /// What ends it from another thread.
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        ServerHandle(Arc::clone(&self.ended))
    }

    /// Serves until SIGTERM or SIGINT, or until its handle ends it. Then it is not ready any more, accepts no new connections,
    /// ends open streams with an event that states this, waits for requests up to [`Serving::shutdown_seconds`], and closes the
    /// store. A second signal ends the process at once, with exit code 1: what was acknowledged is durable.
    ///
    /// # Errors
    /// `Poisoned` if the store could not be closed properly; `Io`.
    pub fn run(self) -> Result<()> {
        let Self { runtime, app, addresses, mut signals, ended } = self;
        let store = app.store.clone();
        runtime.block_on(async {
            let (end, ending) = watch::channel(false);
            tokio::spawn(reload(Arc::clone(&app)));
            tokio::spawn(remote::interrupt_unheard(Arc::clone(&app)));
            tokio::spawn(stops::follow(Arc::clone(&app)));
            let pruning = tokio::spawn(retention::run(Arc::clone(&app)));
            let mut serving = vec![tokio::spawn(listen::serve(addresses.main, Arc::clone(&app), ending.clone()))];
            if let Some(admin) = addresses.admin {
                serving.push(tokio::spawn(listen::serve(admin, Arc::clone(&app), ending)));
            }
            tokio::select! {
                () = signals.next() => {}
                () = ended.notified() => {}
            }
            tracing::info!("ending: no new requests are accepted");
            app.draining.store(true, Ordering::Release);
            tokio::spawn(async move {
                signals.next().await;
                tracing::warn!("ended at once by a second signal");
                std::process::exit(1);
            });
            tokio::time::sleep(Duration::from_secs(app.config.server.drain_seconds)).await;
            let _ = end.send(true);
            app.closing.send_replace(true);
            let end_of_drains = tokio::time::Instant::now() + Duration::from_secs(app.config.server.shutdown_seconds);
            let ending = Arc::clone(&app);
            tokio::spawn(async move {
                tokio::time::sleep_until(end_of_drains).await;
                ending.over.send_replace(true);
            });
            for task in serving {
                let _ = task.await;
            }
            // Answers whose clients have gone had as long; what they are is stored.
            if tokio::time::timeout_at(end_of_drains + STORING, app.exchanges.none()).await.is_err() {
                tracing::warn!("answers of models were not stored to their ends");
            }
            let _ = pruning.await;
        });
        // Closing the store waits for its calls that still run.
        runtime.shutdown_background();
        store.close()
    }
}

/// How long the ends of recorded answers may take to be stored when the server ends.
const STORING: Duration = Duration::from_secs(5);

/// The OpenAPI 3.1 document of both APIs.
#[must_use]
pub fn openapi() -> String {
    format!("{:#}\n", openapi::document(ROUTES))
}

/// Reads the keys again when their file changes.
async fn reload(app: Arc<App>) {
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while app.keys.is_some() {
        ticks.tick().await;
        let reading = Arc::clone(&app);
        let read = tokio::task::spawn_blocking(move || reading.keys.as_ref().map_or(Ok(false), keys::Keys::reload));
        match read.await {
            Ok(Ok(true)) => tracing::info!("the keys were read again"),
            Ok(Ok(false)) | Err(_) => {}
            Ok(Err(error)) => {
                app.metrics.unreadable_keys.inc();
                tracing::error!(%error, "the keys cannot be read again; the earlier ones stay valid");
            }
        }
    }
}

/// The signals that end a server.
#[derive(Debug)]
struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    #[cfg(unix)]
    fn listen() -> Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| signal(kind).map_err(Error::io("listen for signals"));
        Ok(Self { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    #[cfg(unix)]
    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    #[cfg(not(unix))]
    fn listen() -> Result<Self> {
        Ok(Self {})
    }

    #[cfg(not(unix))]
    async fn next(&mut self) {
        let _ = tokio::signal::ctrl_c().await;
    }
}
