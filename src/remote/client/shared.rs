//! What all calls of an open log share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::follow::Followed;
use super::http::{Again, Server};
use crate::error::{Error, Result};
use crate::log::locked;
use crate::remote::PROTOCOL;
use crate::remote::call::{Hello, Nothing, Welcome, Writers};

/// What all calls share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) server: Arc<Server>,
    pub(super) read_only: bool,
    pub(super) welcome: Welcome,
    closed: AtomicBool,
    /// The writers that live, in the order in which they began.
    pub(super) writers: Mutex<Vec<String>>,
    /// The log was closed, for who keeps the writers.
    pub(super) ending: Condvar,
    pub(super) followed: Arc<Followed>,
}

impl Shared {
    /// Greets the server.
    pub(super) fn new(server: Server, read_only: bool) -> Result<Self> {
        let (welcome, _) = server.call("hello", &Hello { protocol: PROTOCOL }, &[], Again::Read)?;
        let server = Arc::new(server);
        let followed = Arc::new(Followed::new(Arc::clone(&server)));
        Ok(Self {
            server,
            read_only,
            welcome,
            closed: AtomicBool::new(false),
            writers: Mutex::default(),
            ending: Condvar::new(),
            followed,
        })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(super) fn check_writable(&self) -> Result<()> {
        match (self.is_closed(), self.read_only) {
            (true, _) => Err(Error::Closed),
            (false, true) => Err(Error::ReadOnly),
            (false, false) => Ok(()),
        }
    }

    /// Reads: a call that may be repeated.
    pub(super) fn read<A: DeserializeOwned>(&self, call: &str, asked: &impl Serialize) -> Result<(A, Vec<u8>)> {
        self.server.call(call, asked, &[], Again::Read)
    }

    /// Writes.
    pub(super) fn write<A: DeserializeOwned>(
        &self,
        call: &str,
        asked: &impl Serialize,
        bytes: &[u8],
        again: Again,
    ) -> Result<A> {
        self.check_writable()?;
        Ok(self.server.call(call, asked, bytes, again)?.0)
    }

    /// Makes all durable that was accepted.
    pub(super) fn sync(&self) -> Result<()> {
        if self.read_only {
            return Ok(());
        }
        let (Nothing {}, _) = self.read("sync", &Nothing {})?;
        Ok(())
    }

    /// Drops a writer: what is not finished is interrupted.
    pub(super) fn drop_writers(&self, writers: Vec<String>) -> Result<()> {
        if writers.is_empty() {
            return Ok(());
        }
        let (Nothing {}, _) = self.read("drop", &Writers { writers })?;
        Ok(())
    }

    /// Takes no more writes, and lets go of what is still being written. A second call does nothing.
    pub(super) fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let writers = std::mem::take(&mut *locked(&self.writers));
        self.ending.notify_all();
        let dropped = self.drop_writers(writers);
        let synced = self.sync();
        self.followed.close();
        dropped.and(synced)
    }
}
