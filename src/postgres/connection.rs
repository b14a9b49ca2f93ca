//! One connection, and what its server says beside answers.

use std::future::{Future, poll_fn};
use std::path::Path;
use std::pin::Pin;

use deadpool_postgres::Connect;
use tokio::task::JoinHandle;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Error as Refusal, Socket};

use super::tls::{Stream, Tls};
use crate::error::Result;

/// Makes connections.
pub(super) struct Connector {
    tls: Tls,
}

impl Connector {
    /// `encrypts`: whether connections are encrypted; `roots`: the file of certificates that are trusted.
    pub(super) fn new(encrypts: bool, roots: Option<&Path>) -> Result<Self> {
        Ok(Self { tls: if encrypts { Tls::new(roots)? } else { Tls::unused()? } })
    }
}

impl Connect for Connector {
    fn connect(
        &self,
        config: &Config,
    ) -> Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Refusal>> + Send + '_>> {
        let (tls, config) = (self.tls.clone(), config.clone());
        Box::pin(async move {
            let (client, connection) = config.connect(tls).await?;
            Ok((client, tokio::spawn(drive(connection))))
        })
    }
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
