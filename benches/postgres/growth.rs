//! What a store of many conversations costs: appends, lists and loads, and bytes on disk.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use conversation_store::model::{Chunk, Message, Name};
use conversation_store::{AppendOptions, ListQuery, Store};

use crate::measure::{median, milliseconds};
use crate::postgres::{Server, schema};

/// Conversations of one owner.
const OF_OWNER: usize = 100;
const PAGE: usize = 50;
const THREADS: usize = 16;
/// Messages of a usual chat: a user says 100 bytes, an assistant 700.
const MESSAGES: usize = 20;
/// Conversations that show how many bytes a message takes.
const CHATS: usize = 2_000;

fn name(at: usize) -> Name {
    Name::from(format!("chat {at}")).with_owner(format!("owner {}", at / OF_OWNER))
}

/// Does something so often, in several threads.
fn in_threads(count: usize, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < count) {
                    work(at);
                }
            });
        }
    });
}

/// Fills a store without waiting for the disk.
fn fill(server: &Server, fill: impl FnOnce()) {
    let wait = |setting: &str| {
        server.run(&format!("ALTER SYSTEM SET synchronous_commit = {setting}")).unwrap();
        server.run("SELECT pg_reload_conf()").unwrap();
    };
    wait("off");
    fill();
    wait("on");
    server.run("VACUUM ANALYZE").unwrap();
    server.run("CHECKPOINT").unwrap();
}

/// Shows appends, lists and loads in stores of so many conversations.
pub(crate) fn show(server: &Server, sizes: &[usize]) {
    let (mut there, store) = (0, Store::open(&server.url()).unwrap());
    for size in sizes {
        fill(server, || {
            in_threads(size - there, |at| {
                store.append(name(there + at), &[Message::user("x".repeat(100)), answer()]).unwrap();
            })
        });
        there = *size;
        // Far apart from one another, and each only once.
        let mut at = 0;
        let mut next = || {
            at = (at + 7_919) % size;
            at
        };
        let append = median(|| drop(store.append(name(next()), &[Message::user("x".repeat(100))]).unwrap()));
        let load = median(|| assert!(store.load(name(next())).unwrap().messages().len() >= 2));
        let list = median(|| {
            let query = ListQuery::new().with_owner(format!("owner {}", next() / OF_OWNER)).with_limit(PAGE);
            assert_eq!(store.list(&query).unwrap().items.len(), PAGE);
        });
        println!(
            "{size:8} conversations   append {:.2} ms   list of {PAGE} {:.2} ms   load {:.2} ms",
            milliseconds(append),
            milliseconds(list),
            milliseconds(load)
        );
    }
}

fn answer() -> Message {
    Message::assistant([Chunk::text("x".repeat(700))])
}

/// Shows how many bytes the messages of usual chats take, each appended by itself with a key.
pub(crate) fn show_bytes(server: &Server) {
    let url = server.url();
    let store = Store::open(&url).unwrap();
    fill(server, || {
        in_threads(CHATS, |chat| {
            for at in 0..MESSAGES {
                let message = if at % 2 == 0 { Message::user("x".repeat(100)) } else { answer() };
                let options = AppendOptions::new().with_idempotency_key(format!("turn {at}"));
                store.append_with(name(chat), &[message], &options).unwrap();
            }
        })
    });
    let messages = (CHATS * MESSAGES) as f64;
    println!("bytes on disk for a message of 400 bytes, in chats of {MESSAGES}, with the indexes:");
    let size = store.size().unwrap();
    for table in size.tables.iter().filter(|table| table.rows > 1) {
        println!("{:>16} {:6.0}   {:8} rows", table.name, table.bytes as f64 / messages, table.rows);
    }
    println!("{:>16} {:6.0}", "all", size.bytes.unwrap() as f64 / messages);
    let hot = format!(
        "SELECT (100 * n_tup_hot_upd / greatest(n_tup_upd, 1))::text FROM pg_stat_all_tables \
         WHERE schemaname = '{}' AND relname = 'cs_conversation'",
        schema(&url)
    );
    println!("changes of a conversation's row that changed no index: {} %", server.value(&hot).unwrap().unwrap());
}
