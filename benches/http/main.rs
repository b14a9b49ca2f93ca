//! What the server costs: `cargo bench --bench http --all-features`. Durable appends a second, and reads, through HTTP at 1, 8 and
//! 64 connections, in short rounds in turn with two others: the same requests to a bare server, which reads them and answers as
//! many bytes, and the same calls in the process itself. `HTTP/bound` compares with a bare request and such a call, one after the
//! other. Then followers: 10,000 of them on 100 conversations, the time from an append to its event, and the server's memory for
//! each. The load runs on the same cores as the server. `-- appends`, `-- reads` and `-- followers` run one of them;
//! `CONVO_BENCH_DIR` is where the stores are.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, missing_docs, reason = "a benchmark")]

mod followers;
mod rates;
mod server;

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

/// Set in the process that has enough file handles.
const RAISED: &str = "CONVO_BENCH_RAISED";

fn main() {
    if let Ok(bytes) = std::env::var(server::BARE) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        return runtime.block_on(server::answer(bytes.parse().unwrap()));
    }
    if std::env::var_os(RAISED).is_none() {
        // Each follower has a file handle here, and one in the server.
        let mut raised = Command::new("sh");
        raised.args(["-c", "ulimit -n $(ulimit -Hn); exec \"$@\"", "sh"]).args(std::env::args_os()).env(RAISED, "1");
        let error = raised.exec();
        println!("the number of file handles cannot be raised: {error}");
    }
    let wants = |name: &str| {
        let named: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
        named.is_empty() || named.iter().any(|argument| argument == name)
    };
    if wants("appends") {
        rates::appends();
    }
    if wants("reads") {
        rates::reads();
    }
    if wants("followers") {
        followers::run();
    }
}

/// Of sorted times, the one at a share of them.
fn at(times: &[Duration], share: f64) -> Duration {
    times[((times.len() - 1) as f64 * share) as usize]
}
