//! The log behind a server: the store of a server in a process of its own, as a program and a library use it.

mod commands;
pub(crate) mod cut;
mod hostile;
mod killed;
mod leases;
mod owners;
mod tls;

use crate::common::running::Running;
use conversation_store::Store;

/// The URL of a server's store.
fn url(server: &Running) -> String {
    format!("http://{}", server.client.address)
}

/// The store of a server.
fn store(server: &Running) -> Store {
    Store::open(&url(server)).unwrap()
}

/// The body of a call.
pub(crate) fn frame(head: &[u8], bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(head.len()).unwrap().to_be_bytes(), head, bytes].concat()
}
