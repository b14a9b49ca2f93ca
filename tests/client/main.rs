//! The log behind a server: the store of a server in a process of its own, as a program and a library use it. What a log must
//! do is `tests/conformance`, which runs on it too.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod commands;
mod cut;
mod hostile;
#[allow(dead_code, reason = "the tests of the server use all of it")]
#[path = "../server/http.rs"]
mod http;
mod killed;
mod leases;
#[path = "../common/openssl.rs"]
mod openssl;
mod owners;
#[allow(dead_code, reason = "the tests of the server use all of it")]
#[path = "../server/running.rs"]
mod running;
mod tls;

use conversation_store::Store;
use running::Running;

/// The URL of a server's store.
fn url(server: &Running) -> String {
    format!("http://{}", server.client.address)
}

/// The store of a server.
fn store(server: &Running) -> Store {
    Store::open(&url(server)).unwrap()
}
