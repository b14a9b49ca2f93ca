//! The server, as clients see it: a process of its own, on a socket of its own, one promise a test. `client` is the log behind a
//! server, as a program and a library use it; what a log must do is `tests/conformance`, which runs on it too.
#![cfg(feature = "server")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod behalf;
#[cfg(feature = "client")]
mod client;
#[path = "../common/mod.rs"]
mod common;
mod connections;
mod conventions;
mod crash;
mod documented;
mod full_disk;
mod held;
mod items;
#[cfg(feature = "mcp")]
mod mcp;
mod native;
mod openai;
mod owners;
mod pages;
mod proxy;
mod quotas;
mod recorded;
mod redaction;
mod repaired;
mod repaired_items;
mod responses;
mod retention;
#[cfg(feature = "search")]
mod search;
#[cfg(feature = "client")]
mod strangers;
mod streams;
mod upstreams;
