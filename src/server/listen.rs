//! Connections: accepted, encrypted if configured, and served one request after the other; none may take for ever.

use std::collections::{HashMap, VecDeque};
use std::future::Future as _;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::app::App;
use crate::error::{Error, Result};
use crate::log::locked;

/// The most bytes of a request's head, and of one read or write.
const BUFFER: usize = 64 * 1024;

/// An address that is served.
pub(crate) struct Listening {
    pub(crate) listener: TcpListener,
    pub(crate) router: Router,
    pub(crate) tls: Option<TlsAcceptor>,
    /// How many connections it has at one time.
    pub(crate) connections: usize,
}

/// File handles that the store needs for itself, beside those of connections: at least, and at most.
const RESERVED: (usize, usize) = (192, 2_048);

/// How many connections a server may have, from clients and to upstreams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connections {
    pub(crate) clients: usize,
    pub(crate) upstreams: usize,
}

/// How many connections a server may have: as many as it is set to, as far as there are file handles, of which the store has the
/// other half. Where calls go on to upstreams, clients and upstreams share them: a call may outlast its client.
pub(crate) fn most_connections(set: usize, has_upstreams: bool) -> Connections {
    // Only Linux has them here.
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let handles = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next()?.parse::<usize>().ok());
    let Some(handles) = handles else { return Connections { clients: set, upstreams: usize::MAX } };
    let left = handles.saturating_sub((handles / 2).clamp(RESERVED.0, RESERVED.1));
    let left = (if has_upstreams { left / 2 } else { left }).max(1);
    if left < set {
        tracing::info!(
            handles,
            connections = left,
            "fewer connections than limits.connections: there are too few file handles"
        );
    }
    Connections { clients: left.min(set), upstreams: left }
}

/// What TLS needs, from two files in PEM.
pub(crate) fn tls(certificate: &Path, key: &Path) -> Result<TlsAcceptor> {
    let invalid =
        |path: &Path, error: &dyn std::fmt::Display| Error::InvalidInput(format!("{}: {error}", path.display()));
    let chain =
        CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| invalid(certificate, &error))?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| invalid(key, &error))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|config| config.with_no_client_auth().with_single_cert(chain, secret));
    Ok(TlsAcceptor::from(Arc::new(config.map_err(|error| invalid(key, &error))?)))
}

/// Binds an address.
pub(crate) async fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.map_err(Error::io(format!("listen on {address}")))
}

/// Accepts connections until `ending` is true, then waits for the open ones, as long as that is allowed.
pub(crate) async fn serve(listening: Listening, app: Arc<App>, mut ending: watch::Receiver<bool>) {
    let Listening { listener, router, tls, connections } = listening;
    // Each connection has one end of it.
    let (open, _) = watch::channel(());
    let room = Arc::new(Semaphore::new(connections));
    let silent = Arc::new(Silent::default());
    loop {
        let accepted = tokio::select! {
            biased;
            _ = ending.wait_for(|is_ending| *is_ending) => break,
            accepted = accept(&listener, &room, &silent) => accepted,
        };
        let Some((stream, address, room)) = accepted else { continue };
        let (app, router, tls) = (Arc::clone(&app), router.clone(), tls.clone());
        let (held, ending) = (open.subscribe(), ending.clone());
        let first = silent.begin(address.ip());
        tokio::spawn(async move {
            let limits = &app.config.limits;
            // What is sent is sent at once: an answer does not wait for more data.
            let _ = stream.set_nodelay(true);
            let stream = Timed::new(stream, limits.idle());
            app.metrics.connections.inc();
            let too_long = first.too_long(limits.first_head());
            let served = async {
                match tls {
                    None => connection(stream, router, &first, limits.header(), ending).await,
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            connection(stream, router, &first, limits.header(), ending).await;
                        }
                    }
                }
            };
            tokio::select! {
                () = served => {}
                () = too_long => {}
            }
            app.metrics.connections.dec();
            drop((room, held));
        });
    }
    drop(listener);
    let patience = Duration::from_secs(app.config.server.shutdown_seconds);
    if timeout(patience, open.closed()).await.is_err() {
        tracing::warn!("requests in progress were ended early");
    }
}

/// The next connection. If there is no room for it, one that has asked for nothing yet makes room.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
    silent: &Silent,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    match listener.accept().await {
        Ok((stream, address)) => {
            if room.available_permits() == 0 {
                silent.end_one();
            }
            let room = Arc::clone(room).acquire_owned().await.ok()?;
            Some((stream, address, room))
        }
        Err(error) => {
            // Usually no file handles are left: some become free again.
            tracing::warn!(%error, "a connection was not accepted");
            sleep(Duration::from_millis(100)).await;
            None
        }
    }
}

/// The connections on which no request has come yet, by address, oldest first.
#[derive(Debug, Default)]
struct Silent(Mutex<HashMap<IpAddr, VecDeque<Arc<Notify>>>>);

/// A connection, until its first request has come.
#[derive(Debug)]
struct First {
    silent: Arc<Silent>,
    address: IpAddr,
    end: Arc<Notify>,
    has_asked: AtomicBool,
}

impl Silent {
    fn locked(&self) -> MutexGuard<'_, HashMap<IpAddr, VecDeque<Arc<Notify>>>> {
        locked(&self.0)
    }

    fn begin(self: &Arc<Self>, address: IpAddr) -> Arc<First> {
        let end = Arc::new(Notify::new());
        self.locked().entry(address).or_default().push_back(Arc::clone(&end));
        Arc::new(First { silent: Arc::clone(self), address, end, has_asked: AtomicBool::new(false) })
    }

    /// Ends the oldest connection of the address that has most of them.
    fn end_one(&self) {
        let mut silent = self.locked();
        if let Some(oldest) = silent.values_mut().max_by_key(|ends| ends.len()).and_then(VecDeque::pop_front) {
            oldest.notify_one();
        }
    }
}

impl First {
    /// A request has come.
    fn asked(&self) {
        if self.has_asked.swap(true, Ordering::AcqRel) {
            return;
        }
        let mut silent = self.silent.locked();
        if let Some(ends) = silent.get_mut(&self.address) {
            ends.retain(|end| !Arc::ptr_eq(end, &self.end));
            if ends.is_empty() {
                silent.remove(&self.address);
            }
        }
    }

    /// Returns if no request comes in time, or another connection needs the room.
    async fn too_long(&self, patience: Duration) {
        let _ = timeout(patience, self.end.notified()).await;
        if self.has_asked.load(Ordering::Acquire) {
            std::future::pending().await
        }
    }
}

impl Drop for First {
    fn drop(&mut self) {
        self.asked();
    }
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    first: &Arc<First>,
    patience: Duration,
    mut ending: watch::Receiver<bool>,
) {
    let first = Arc::clone(first);
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request: Request<Incoming>| {
        first.asked();
        router.call(request)
    });
    // The limits of connections are those of HTTP/1.1: no other version is spoken.
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(patience).max_buf_size(BUFFER);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service).with_upgrades());
    let ends = async { _ = ending.wait_for(|is_ending| *is_ending).await };
    let served = tokio::select! {
        biased;
        served = connection.as_mut() => served,
        () = ends => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    // A client that goes away is no failure of ours.
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Ends a connection on which a write waits for too long: a client that reads nothing would keep its answer in memory.
#[derive(Debug)]
struct Timed<T> {
    inner: T,
    patience: Duration,
    /// Runs while a write waits.
    waiting: Pin<Box<Sleep>>,
    is_waiting: bool,
}

impl<T> Timed<T> {
    pub(crate) fn new(inner: T, patience: Duration) -> Self {
        Self { inner, patience, waiting: Box::pin(sleep(patience)), is_waiting: false }
    }

    /// Passes a write's result on; a write that waits for too long has failed.
    fn timed<R>(&mut self, poll: Poll<io::Result<R>>, context: &mut Context<'_>) -> Poll<io::Result<R>> {
        if poll.is_ready() {
            self.is_waiting = false;
            return poll;
        }
        if !self.is_waiting {
            self.is_waiting = true;
            self.waiting.as_mut().reset(Instant::now() + self.patience);
        }
        ready!(self.waiting.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client reads nothing")))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Timed<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Timed<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.timed(poll, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.inner).poll_write_vectored(context, slices);
        self.timed(poll, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.inner).poll_flush(context);
        self.timed(poll, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.inner).poll_shutdown(context);
        self.timed(poll, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The address with most connections makes room for others, also where theirs are older.
    #[test]
    fn room_is_made_by_the_address_that_has_most_connections() {
        let silent = Arc::new(Silent::default());
        let address = |last: u8| IpAddr::from([127, 0, 0, last]);
        let others: Vec<_> = (1..9).map(|last| silent.begin(address(last))).collect();
        let mut most: VecDeque<_> = (0..3).map(|_| silent.begin(address(9))).collect();
        let left = |last: u8| silent.locked().get(&address(last)).map_or(0, VecDeque::len);
        silent.end_one();
        silent.end_one();
        assert!((1..=9).all(|last| left(last) == 1));
        // The last of an address goes with its first request.
        most.pop_back().unwrap().asked();
        drop(others);
        assert!(silent.locked().is_empty());
    }
}
