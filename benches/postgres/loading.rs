//! The load of a conversation beside a `SELECT` of its rows.

use conversation_store::Store;
use conversation_store::model::Message;
use tokio_postgres::NoTls;

use crate::measure::{median, milliseconds};
use crate::postgres::{Server, schema};
use crate::writing::BYTES;

/// Messages of the conversation that is loaded.
const CHUNKS: usize = 1_000;

pub(crate) fn show(server: &Server) {
    let url = server.url();
    let store = Store::open(&url).unwrap();
    for _ in 0..CHUNKS {
        store.append("large", &[Message::user("x".repeat(BYTES))]).unwrap();
    }
    let load = median(|| assert_eq!(store.load("large").unwrap().messages().len(), CHUNKS));
    let rows = &format!("SELECT r.body FROM {}.cs_record r ORDER BY r.first_seq", schema(&url));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let config = format!("host=127.0.0.1 port={} user=postgres dbname=postgres", server.port);
    let (client, connection) = runtime.block_on(tokio_postgres::connect(&config, NoTls)).unwrap();
    runtime.spawn(connection);
    let select = median(|| assert_eq!(runtime.block_on(client.query(rows, &[])).unwrap().len(), CHUNKS));
    println!(
        "load of {CHUNKS} messages   {:.2} ms   SELECT of their rows   {:.2} ms   {:.2} times as long",
        milliseconds(load),
        milliseconds(select),
        load.as_secs_f64() / select.as_secs_f64()
    );
}
