//! Appends to a store in PostgreSQL beside plain inserts of the same bytes by the same number of connections, and a load
//! beside a `SELECT` of the same rows: `cargo bench --features postgres --bench postgres`. It starts a server of its own, which
//! syncs, and needs PostgreSQL's programs. `CONVO_BENCH_SECONDS` is the time of each measurement, 5 by default.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a benchmark")]

#[path = "../../tests/common/postgres.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod postgres;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use conversation_store::Store;
use conversation_store::model::Message;
use postgres::Server;
use tokio_postgres::NoTls;

const WRITERS: [usize; 3] = [1, 16, 64];
/// Bytes of a message's text.
const BYTES: usize = 500;
/// Messages of the conversation that is loaded.
const CHUNKS: usize = 1_000;

/// What one way of writing did.
struct Measured {
    per_second: f64,
    p50: Duration,
    p99: Duration,
}

impl Measured {
    fn of(mut times: Vec<Duration>, begun: Instant) -> Self {
        let per_second = times.len() as f64 / begun.elapsed().as_secs_f64();
        times.sort_unstable();
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        Self { per_second, p50: at(0.5), p99: at(0.99) }
    }
}

impl std::fmt::Display for Measured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { per_second, p50, p99 } = self;
        write!(
            f,
            "{per_second:7.0}/s   p50 {:6.2} ms   p99 {:6.2} ms",
            p50.as_secs_f64() * 1e3,
            p99.as_secs_f64() * 1e3
        )
    }
}

/// Runs writers for a time: each gets its number, and the number of its write.
fn measure(writers: usize, time: Duration, write: impl Fn(usize, usize) + Sync) -> Measured {
    let (done, begun) = (AtomicBool::new(false), Instant::now());
    let times = thread::scope(|scope| {
        let (done, write) = (&done, &write);
        let threads = (0..writers).map(|writer| {
            scope.spawn(move || {
                let mut times = Vec::new();
                for at in 0.. {
                    let start = Instant::now();
                    write(writer, at);
                    times.push(start.elapsed());
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                }
                times
            })
        });
        let threads: Vec<_> = threads.collect();
        thread::sleep(time);
        done.store(true, Ordering::Relaxed);
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    Measured::of(times, begun)
}

/// Plain inserts: a connection for each writer, a prepared statement, one row with as many bytes.
fn inserts(server: &Server, writers: usize, time: Duration) -> Measured {
    server
        .run(
            "DROP TABLE IF EXISTS plain; CREATE TABLE plain (conv_id bytea, seq bigint, body bytea, PRIMARY KEY (conv_id, seq));",
        )
        .unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let config = format!("host=127.0.0.1 port={} user=postgres dbname=postgres", server.port);
    let clients: Vec<_> = (0..writers)
        .map(|_| {
            runtime.block_on(async {
                let (client, connection) = tokio_postgres::connect(&config, NoTls).await.unwrap();
                tokio::spawn(connection);
                let statement = client.prepare("INSERT INTO plain VALUES ($1, $2, $3)").await.unwrap();
                (client, statement)
            })
        })
        .collect();
    let body = vec![b'x'; BYTES + 30];
    measure(writers, time, |writer, at| {
        let (client, statement) = &clients[writer];
        let conversation = (writer as u128).to_be_bytes().to_vec();
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 3] = [&conversation, &(at as i64), &body];
        runtime.block_on(client.execute(statement, &values)).unwrap();
    })
}

/// The time that something takes, in the middle of many.
fn median(mut work: impl FnMut()) -> Duration {
    let mut times: Vec<_> = (0..101)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

fn main() {
    let seconds = std::env::var("CONVO_BENCH_SECONDS").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(5);
    let time = Duration::from_secs(seconds);
    let server = match Server::start(&["-c", "fsync=on"]) {
        Ok(server) => server,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let text = "x".repeat(BYTES);
    for writers in WRITERS {
        let plain = inserts(&server, writers, time);
        println!("{writers:2} writers, INSERT             {plain}");
        for prepared in [false, true] {
            let store = Store::open(&format!("{}&pool={writers}&prepared={prepared}", server.url())).unwrap();
            let appends = measure(writers, time, |writer, _| {
                store.append(format!("chat {writer}"), &[Message::user(&text)]).unwrap();
            });
            let (share, how) = (appends.per_second / plain.per_second, if prepared { "prepared" } else { "unnamed " });
            println!("{writers:2} writers, append, {how}   {appends}   {share:.2} of the inserts");
        }
    }
    let url = server.url() + "&prepared=true";
    let store = Store::open(&url).unwrap();
    for _ in 0..CHUNKS {
        store.append("large", &[Message::user(&text)]).unwrap();
    }
    let load = median(|| assert_eq!(store.load("large").unwrap().messages().len(), CHUNKS));
    let rows = &format!("SELECT r.body FROM {}.cs_record r ORDER BY r.first_seq", postgres::schema(&url));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let config = format!("host=127.0.0.1 port={} user=postgres dbname=postgres", server.port);
    let (client, connection) = runtime.block_on(tokio_postgres::connect(&config, NoTls)).unwrap();
    runtime.spawn(connection);
    let select = median(|| assert_eq!(runtime.block_on(client.query(rows, &[])).unwrap().len(), CHUNKS));
    println!(
        "load of {CHUNKS} messages   {:.2} ms   SELECT of their rows   {:.2} ms   {:.2} times as long",
        load.as_secs_f64() * 1e3,
        select.as_secs_f64() * 1e3,
        load.as_secs_f64() / select.as_secs_f64()
    );
}
