//! A store in PostgreSQL: `cargo bench --features postgres --bench postgres`. It starts a server of its own, which syncs, and
//! needs PostgreSQL's programs. `CONVO_BENCH_SECONDS` is the time of each round of writes, 5 by default,
//! `CONVO_BENCH_CONVERSATIONS` how many there are in the stores of the table of growth, `1000,100000` by default. An argument
//! names the one part that is to run: `write`, `load`, `bytes` or `growth`. With `CONVO_BENCH_STANDBYS=2` each commit waits for
//! one of two standbys.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a benchmark")]

mod growth;
mod loading;
mod measure;
#[path = "../../tests/common/postgres.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod postgres;
mod writing;

mod place {
    /// The disk: what a sync costs is measured here.
    pub(crate) fn quick() -> &'static std::path::Path {
        std::path::Path::new("/tmp")
    }
}

use std::env;
use std::time::Duration;

use postgres::Server;

fn main() {
    let seconds = env::var("CONVO_BENCH_SECONDS").map_or(5, |seconds| seconds.parse().unwrap());
    let sizes = env::var("CONVO_BENCH_CONVERSATIONS").unwrap_or_else(|_| "1000,100000".to_owned());
    let sizes: Vec<usize> = sizes.split(',').map(|size| size.parse().unwrap()).collect();
    // Cargo adds an argument of its own.
    let named: Vec<String> = env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let is_wanted = |part: &str| named.is_empty() || named.iter().any(|name| name == part);
    let server = match Server::start(&["-c", "fsync=on", "-c", "shared_buffers=1GB", "-c", "max_wal_size=4GB"]) {
        Ok(server) => server,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let standbys = env::var("CONVO_BENCH_STANDBYS").map_or(0, |count| count.parse().unwrap());
    let names: Vec<String> = (0..standbys).map(|number| format!("standby_{number}")).collect();
    let standby = |name: &String| Server::standby_of(&server, name, &["-c", "fsync=on"]).unwrap();
    let _standbys: Vec<Server> = names.iter().map(standby).collect();
    if !names.is_empty() {
        let any = format!("ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 ({})'", names.join(", "));
        server.run(&any).unwrap();
        server.run("SELECT pg_reload_conf()").unwrap();
    }
    if is_wanted("write") {
        writing::show(&server, Duration::from_secs(seconds));
    }
    if is_wanted("load") {
        loading::show(&server);
    }
    if is_wanted("bytes") {
        growth::show_bytes(&server);
    }
    if is_wanted("growth") {
        growth::show(&server, &sizes);
    }
}
