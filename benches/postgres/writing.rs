//! Appends beside plain inserts of the same bytes over as many connections.

use std::time::Duration;

use conversation_store::Store;
use conversation_store::model::Message;
use tokio_postgres::NoTls;

use crate::measure::{Measured, measure, milliseconds};
use crate::postgres::Server;

const WRITERS: [usize; 4] = [1, 8, 64, 256];
/// Rounds of each way, in turn: what else the machine does affects both alike.
const ROUNDS: usize = 5;
/// Bytes of a message's text.
pub(crate) const BYTES: usize = 500;

/// Shows each number of writers: of the appends and the inserts the medians of their rounds, and of each pair of rounds the
/// median of its share. A line of JSON follows.
pub(crate) fn show(server: &Server, time: Duration) {
    println!("| writers | way | a second | p50, ms | p99, ms | share of the `INSERT`s |");
    println!("|---:|---|---:|---:|---:|---:|");
    for writers in WRITERS {
        let rounds: Vec<_> =
            (0..ROUNDS).map(|_| [inserts, appends].map(|way| with_wal(server, writers, time, way))).collect();
        let share = middle(rounds.iter().map(|[insert, append]| append.0.per_second / insert.0.per_second));
        let mut line = serde_json::json!({ "writers": writers, "share": share });
        for (way, name) in ["insert", "append"].into_iter().enumerate() {
            let of = |value: fn(&Measured) -> f64| middle(rounds.iter().map(|round| value(&round[way].0)));
            let wal = middle(rounds.iter().map(|round| round[way].1));
            let per_second = of(|it| it.per_second);
            let (p50, p99) = (of(|it| milliseconds(it.p50)), of(|it| milliseconds(it.p99)));
            let share = if way == 0 { 1.0 } else { share };
            println!("| {writers} | {name} | {per_second:.0} | {p50:.2} | {p99:.2} | {share:.2} |");
            line[name] =
                serde_json::json!({ "per_second": per_second, "p50_ms": p50, "p99_ms": p99, "wal_bytes": wal });
        }
        println!("{line}");
    }
}

/// One round, and the bytes that the server wrote to its log for each write.
fn with_wal(
    server: &Server,
    writers: usize,
    time: Duration,
    way: fn(&Server, usize, Duration) -> Measured,
) -> (Measured, f64) {
    let wal = || -> f64 {
        let written = server.value("SELECT pg_current_wal_insert_lsn() - '0/0'").unwrap().unwrap();
        written.parse().unwrap()
    };
    let before = wal();
    let measured = way(server, writers, time);
    let bytes = (wal() - before) / measured.count as f64;
    (measured, bytes)
}

/// The value in the middle.
fn middle(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Appends of a store that is opened as usual, each writer to a conversation of its own.
fn appends(server: &Server, writers: usize, time: Duration) -> Measured {
    let store = Store::open(&server.url()).unwrap();
    let text = "x".repeat(BYTES);
    measure(writers, time, |writer, _| {
        store.append(format!("chat {writer}"), &[Message::user(&text)]).unwrap();
    })
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
