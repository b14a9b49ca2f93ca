//! A primary and two standbys, of which one must have what is committed. They are a test's own, and end with it.

use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::postgres::Server;

/// The standbys, by the names that commits wait for.
const STANDBYS: [&str; 2] = ["a", "b"];
const QUORUM: &str = "ANY 1 (a, b)";
/// Of every node, before any is promoted. The standbys look for a primary often, and each node keeps what another one may
/// still need. What is shared in memory is a file of the node, as a killed server removes nothing.
const SETTINGS: &[&str] = &[
    "-c",
    "synchronous_standby_names=ANY 1 (a, b)",
    "-c",
    "wal_retrieve_retry_interval=100ms",
    "-c",
    "wal_keep_size=256MB",
    "-c",
    "dynamic_shared_memory_type=mmap",
];
/// How long anything here may take.
const PATIENCE: Duration = Duration::from_secs(180);

/// Three servers.
pub(crate) struct Cluster {
    primary: Server,
    standbys: [Server; 2],
}

impl Cluster {
    /// Starts the servers, and waits until commits wait for the standbys.
    pub(crate) fn start() -> Self {
        let primary = Server::start(SETTINGS).unwrap();
        let standbys = STANDBYS.map(|name| Server::standby_of(&primary, name, SETTINGS).unwrap());
        let cluster = Self { primary, standbys };
        for node in [&cluster.primary].into_iter().chain(&cluster.standbys) {
            assert_eq!(node.value("SHOW synchronous_standby_names").unwrap().as_deref(), Some(QUORUM));
        }
        let ready = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'quorum'";
        until("the standbys", || cluster.primary.value(ready).unwrap().as_deref() == Some("2"));
        cluster
    }

    /// The URL of a store that finds the primary, whichever node that is. `options`: more of them, each with its `&`.
    pub(crate) fn url(&self, options: &str) -> String {
        let nodes = [&self.standbys[1], &self.primary, &self.standbys[0]];
        let nodes = nodes.map(|node| format!("127.0.0.1:{}", node.port)).join(",");
        format!("postgres://postgres@{nodes}/postgres?target_session_attrs=read-write{options}")
    }

    /// Stops the processes that send to the standbys: nothing is replicated any more.
    pub(crate) fn stop_senders(&self) {
        let senders =
            self.primary.value("SELECT string_agg(pid::text, ' ') FROM pg_stat_replication").unwrap().unwrap();
        let senders: Vec<u32> = senders.split(' ').map(|pid| pid.parse().unwrap()).collect();
        assert_eq!(senders.len(), STANDBYS.len());
        signal("STOP", &senders);
    }

    /// Ends all connections of clients to the primary. Which commits they waited for, they do not get to know.
    pub(crate) fn cut_connections(&self) {
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                   WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        self.primary.run(cut).unwrap();
    }

    /// Kills all processes of the primary.
    pub(crate) fn kill_primary(&self) {
        let first = self.primary.pid();
        // It starts no more while the others are counted.
        signal("STOP", &[first]);
        let mut all = children(first);
        assert!(all.len() > STANDBYS.len(), "{all:?}");
        all.push(first);
        signal("KILL", &all);
    }

    /// Makes the standby that has received more the primary, and lets the other one follow it.
    pub(crate) fn promote(&self) {
        let received = self.standbys.each_ref().map(|standby| {
            // What the primary has sent, it takes before it notices that there is no primary.
            let receiving = "SELECT count(*) FROM pg_stat_wal_receiver";
            until("the end of receiving", || standby.value(receiving).unwrap().as_deref() == Some("0"));
            let received = standby.value("SELECT (pg_last_wal_receive_lsn() - '0/0')::bigint").unwrap();
            received.unwrap().parse::<u64>().unwrap()
        });
        let further = usize::from(received[1] > received[0]);
        let (promoted, other) = (&self.standbys[further], 1 - further);
        // It does not wait in the query, which what is still to be replayed may have to wait for.
        promoted.run("SELECT pg_promote(false)").unwrap();
        let is_primary = "SELECT NOT pg_is_in_recovery()";
        until("the promotion", || promoted.value(is_primary).unwrap().as_deref() == Some("t"));
        let follow = format!("ALTER SYSTEM SET primary_conninfo = '{}'", promoted.replication(STANDBYS[other]));
        self.standbys[other].run(&follow).unwrap();
        self.standbys[other].run("SELECT pg_reload_conf()").unwrap();
    }
}

/// Waits until something is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}: not within {PATIENCE:?}");
        sleep(Duration::from_millis(10));
    }
}

fn signal(signal: &str, processes: &[u32]) {
    let processes = processes.iter().map(u32::to_string);
    let sent = Command::new("kill").arg(format!("-{signal}")).args(processes).status().unwrap();
    assert!(sent.success());
}

/// The processes that a process has started.
fn children(parent: u32) -> Vec<u32> {
    let processes =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let is_child = |process: &u32| {
        let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // The name before the last bracket may hold anything; then come the state and the parent.
        let parent_of = status.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        parent_of == Some(parent)
    };
    processes.filter(is_child).collect()
}
