//! The log on PostgreSQL where one process is not enough to show what it does: many processes, connections that break,
//! servers that end, roles and versions. What it has in common with other logs, `tests/conformance` shows.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod backups;
#[cfg(all(feature = "client", feature = "server"))]
mod balancer;
mod bouncer;
mod cluster;
#[path = "../common/mod.rs"]
mod common;
mod damage;
mod failover;
mod followers;
#[cfg(target_os = "linux")]
mod full_disk;
mod leases;
mod lists;
mod locks;
mod migrating;
mod moved;
mod moving;
mod opening;
mod outcomes;
mod process;
mod processes;
mod proxy;
mod reaching;
#[cfg(all(feature = "client", feature = "server"))]
mod servers;
mod settings;
mod shards;
mod showing;
mod steps;

use common::postgres::{Server, server};

/// The server, if there is one; without one, a test prints the reason and ends.
fn running() -> Option<&'static Server> {
    match server() {
        Ok(server) => Some(server),
        Err(reason) => {
            common::skipped(&format!("PostgreSQL: {reason}"));
            None
        }
    }
}
