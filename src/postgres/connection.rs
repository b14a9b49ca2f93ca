//! One connection: how it is encrypted (the certificate is checked, and the name of the host), and what its server says beside
//! answers.

use std::future::{Future, poll_fn};
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use deadpool_postgres::Connect;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::JoinHandle;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Error as Refusal, SimpleQueryMessage, Socket};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as Encrypted;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::error::{Error, Result};

/// A call is a transaction of its own, at the level that the role or the database sets: writes refuse any other. Where the
/// connection is a pooler's, this is for one server's connection of many, so nothing is set that is so already.
const READ_COMMITTED: &str = "SELECT set_config('default_transaction_isolation', 'read committed', false) \
                              WHERE current_setting('default_transaction_isolation') <> 'read committed'";

/// A setting that a connection is made with. A pooler has made its connections to the server by itself, without it.
const MARK: &str = "-cconversation_store.direct=on";
const IS_MARKED: &str = "SELECT current_setting('conversation_store.direct', true)";

/// Makes connections.
pub(super) struct Connector {
    tls: Tls,
    /// Whether all connections that were made so far are those of the server itself. Nobody asks where there is none.
    are_direct: Option<Arc<AtomicBool>>,
}

impl Connector {
    /// `encrypts`: whether connections are encrypted; `roots`: the file of certificates that are trusted; `are_direct`: is set
    /// to false once a pooler gives a connection, before the connection is used.
    pub(super) fn new(encrypts: bool, roots: Option<&Path>, are_direct: Option<Arc<AtomicBool>>) -> Result<Self> {
        Ok(Self { tls: if encrypts { Tls::new(roots)? } else { Tls::unused()? }, are_direct })
    }
}

impl Connect for Connector {
    fn connect(
        &self,
        config: &Config,
    ) -> Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Refusal>> + Send + '_>> {
        let (tls, config) = (self.tls.clone(), config.clone());
        let are_direct = self.are_direct.clone().filter(|are_direct| are_direct.load(Ordering::Acquire));
        Box::pin(async move {
            let first = if are_direct.is_some() { marked(&config) } else { config.clone() };
            let (client, connection) = match first.connect(tls.clone()).await {
                Err(refusal) if are_direct.is_some() && refuses_options(&refusal) => config.connect(tls).await?,
                connected => connected?,
            };
            let driven = tokio::spawn(drive(connection));
            let rows = client.simple_query(&format!("{READ_COMMITTED}; {IS_MARKED}")).await?;
            if let Some(are_direct) = are_direct.filter(|_| !rows.iter().any(is_on)) {
                are_direct.store(false, Ordering::Release);
            }
            Ok((client, driven))
        })
    }
}

/// The mark, beside what the URL says.
fn marked(config: &Config) -> Config {
    let mut marked = config.clone();
    marked.options(format!("{} {MARK}", config.get_options().unwrap_or_default()).trim_start());
    marked
}

/// Whether a pooler takes no settings: PgBouncer says that the protocol is violated, others that they have no such feature.
fn refuses_options(refusal: &Refusal) -> bool {
    let refused = refusal.code();
    refused.is_some_and(|code| [SqlState::PROTOCOL_VIOLATION, SqlState::FEATURE_NOT_SUPPORTED].contains(code))
}

fn is_on(message: &SimpleQueryMessage) -> bool {
    matches!(message, SimpleQueryMessage::Row(row) if row.get(0) == Some("on"))
}

/// Moves what is sent and received. It ends, and the connection with it, where the server says that a commit was not waited
/// for: the call that asked for it then has no answer, and its outcome is not known.
async fn drive(mut connection: Connection<Socket, Stream>) {
    while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
        match message {
            // The server's function says which notice it is: its text may be in any language.
            Ok(AsyncMessage::Notice(notice)) if notice.routine() == Some("SyncRepWaitForLSN") => {
                tracing::warn!("the database did not wait for its standbys: {}", notice.message());
                return;
            }
            Ok(_) => {}
            Err(_) => return,
        }
    }
}

/// Makes encrypted connections.
#[derive(Clone)]
struct Tls(Arc<ClientConfig>);

impl Tls {
    /// `roots`: the file of certificates that are trusted, in place of the system's.
    fn new(roots: Option<&Path>) -> Result<Self> {
        let mut store = RootCertStore::empty();
        match roots {
            Some(path) => {
                let failed = |error: &dyn std::fmt::Display| {
                    Error::InvalidInput(format!("sslrootcert: {} holds no certificates: {error}", path.display()))
                };
                let certificates = CertificateDer::pem_file_iter(path).map_err(|error| failed(&error))?;
                for certificate in certificates {
                    let certificate = certificate.map_err(|error| failed(&error))?;
                    store.add(certificate).map_err(|error| failed(&error))?;
                }
                if store.is_empty() {
                    return Err(failed(&"it has none"));
                }
            }
            None => {
                store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        Self::with_roots(store)
    }

    /// For connections that are not encrypted.
    fn unused() -> Result<Self> {
        Self::with_roots(RootCertStore::empty())
    }

    fn with_roots(store: RootCertStore) -> Result<Self> {
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::InvalidInput(format!("TLS: {error}")))?;
        Ok(Self(Arc::new(config.with_root_certificates(store).with_no_client_auth())))
    }
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Stream;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Handshake> {
        Ok(Handshake { config: Arc::clone(&self.0), host: host.to_owned() })
    }
}

/// A connection that is to be encrypted.
struct Handshake {
    config: Arc<ClientConfig>,
    /// Empty for a socket of this machine, which has no name that a certificate could have.
    host: String,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Stream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let name = ServerName::try_from(self.host).map_err(io::Error::other)?;
            let stream = TlsConnector::from(self.config).connect(name, socket).await?;
            Ok(Stream(Box::new(stream)))
        })
    }
}

/// An encrypted connection.
struct Stream(Box<Encrypted<Socket>>);

impl TlsStream for Stream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(context, into)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(context)
    }
}
