//! A program that its client starts, and talks with by stdin and stdout.

use std::io;

use rmcp::ServiceExt as _;

use super::McpServer;
use crate::error::{Error, Result};

impl McpServer {
    /// Serves on stdin and stdout, until stdin ends.
    ///
    /// # Errors
    /// `Io`.
    pub fn serve_stdio(self) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(Error::io("start the threads of the server"))?;
        let served = runtime.block_on(async {
            match self.serve(rmcp::transport::stdio()).await {
                Ok(running) => running.waiting().await.map(|_| ()).map_err(io::Error::other),
                // A client that goes before it has said anything.
                Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
                Err(error) => Err(io::Error::other(error)),
            }
        });
        // A read of stdin may still wait.
        runtime.shutdown_background();
        served.map_err(Error::io("serve the protocol on stdin and stdout"))
    }
}
