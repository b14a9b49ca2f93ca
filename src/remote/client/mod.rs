//! The log of a server: `http://...` and `https://...`.
//!
//! Each call of the log is one request (`docs/http-api.md`); what a conversation means is read here, from the same records as in
//! every other log. `http` makes requests, `log` is the log as a store sees it, `writer` a message that is written, `follow` who
//! waits for news.

mod follow;
mod http;
mod log;
mod shared;
mod writer;

use std::sync::Arc;
use std::thread;

use self::http::{Server, Url};
use self::shared::Shared;
use crate::error::{Error, Result};
use crate::log::Opening;

pub(crate) use self::http::is_http;

/// The log of a server.
#[derive(Debug)]
pub(crate) struct Client {
    shared: Arc<Shared>,
}

impl Client {
    /// Opens the log of the server at a URL. Fails if there is none, or if it refuses the key.
    pub(crate) fn open(url: &str, opening: Opening) -> Result<Self> {
        if opening.accept_loss {
            let message = "a loss is accepted where the store is, not through a server: name the store itself";
            return Err(Error::InvalidInput(message.to_owned()));
        }
        let shared = Arc::new(Shared::new(Server::new(&Url::parse(url)?)?, opening.read_only)?);
        if !opening.read_only {
            let kept = Arc::downgrade(&shared);
            let spawned = thread::Builder::new().name("convo-keep".to_owned()).spawn(move || writer::keep(&kept));
            spawned.map_err(Error::io("start a thread"))?;
        }
        Ok(Self { shared })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.shared.close();
    }
}
