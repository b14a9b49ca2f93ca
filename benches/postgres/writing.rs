//! Appends beside plain inserts of the same bytes over as many connections.

use std::time::Duration;

use conversation_store::Store;
use conversation_store::model::Message;
use tokio_postgres::NoTls;

use crate::measure::{Measured, measure};
use crate::postgres::Server;

const WRITERS: [usize; 3] = [1, 16, 64];
/// Rounds of each: what else the machine does affects all ways alike.
const ROUNDS: usize = 3;
/// Bytes of a message's text.
pub(crate) const BYTES: usize = 500;

/// Bytes that the server wrote to its log so far.
fn wal(server: &Server) -> f64 {
    let written = server.value("SELECT pg_current_wal_insert_lsn() - '0/0'").unwrap().unwrap();
    written.parse().unwrap()
}

/// Shows each way of writing in each number of writers: of its rounds the one in the middle, with its share of the inserts.
pub(crate) fn show(server: &Server, time: Duration) {
    for writers in WRITERS {
        let mut rounds: [Vec<(Measured, f64)>; 3] = Default::default();
        for _ in 0..ROUNDS {
            for (way, rounds) in rounds.iter_mut().enumerate() {
                let before = wal(server);
                let measured = match way {
                    0 => inserts(server, writers, time),
                    way => appends(server, writers, way == 2, time),
                };
                let bytes = (wal(server) - before) / measured.count as f64;
                rounds.push((measured, bytes));
            }
        }
        let shares: [Vec<f64>; 3] = rounds
            .each_ref()
            .map(|way| way.iter().zip(&rounds[0]).map(|(it, plain)| it.0.per_second / plain.0.per_second).collect());
        for ((mut rounds, mut shares), name) in
            rounds.into_iter().zip(shares).zip(["INSERT, prepared", "append, unnamed", "append, prepared"])
        {
            rounds.sort_by(|a, b| a.0.per_second.total_cmp(&b.0.per_second));
            shares.sort_by(f64::total_cmp);
            let (measured, wal) = &rounds[ROUNDS / 2];
            println!(
                "{writers:2} writers, {name:16}   {measured}   {wal:6.0} bytes of log   {:.2} of the inserts",
                shares[ROUNDS / 2]
            );
        }
    }
}

fn appends(server: &Server, writers: usize, prepared: bool, time: Duration) -> Measured {
    let store = Store::open(&format!("{}&pool={writers}&prepared={prepared}", server.url())).unwrap();
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
