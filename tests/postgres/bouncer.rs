//! Through PgBouncer, which gives each transaction one of few connections. That all promises hold there, `tests/conformance`
//! shows.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

use conversation_store::model::{Chunk, Message};
use conversation_store::{AppendOptions, Store};

use crate::common::bouncer::{Bouncer, CONNECTIONS, bouncer};

const THREADS: usize = 64;
const APPENDS: usize = 50;
/// Written by several threads each.
const CONVERSATIONS: usize = 16;

/// PgBouncer, if there is one; without one, a test prints the reason and ends.
fn running() -> Option<&'static Bouncer> {
    bouncer().map_err(|reason| crate::common::skipped(&format!("PgBouncer: {reason}"))).ok()
}

/// The role that a URL names.
fn role(url: &str) -> &str {
    url.split("//").nth(1).unwrap().split('@').next().unwrap()
}

#[test]
fn many_threads_append_over_few_connections() {
    let Some(bouncer) = running() else { return };
    let url = bouncer.url();
    let store = Store::open(&format!("{url}?pool={THREADS}")).unwrap();
    let connections = format!("SELECT count(*) FROM pg_stat_activity WHERE usename = '{}'", role(&url));
    let done = AtomicBool::new(false);
    let (appended, most) = scope(|scope| {
        let watching = scope.spawn(|| {
            let mut most = 0;
            while !done.load(Ordering::Relaxed) {
                most = most.max(bouncer.server.value(&connections).unwrap().unwrap().parse::<usize>().unwrap());
                sleep(Duration::from_millis(20));
            }
            most
        });
        let store = &store;
        let writers: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || write(store, thread))).collect();
        let appended: Vec<_> = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
        done.store(true, Ordering::Relaxed);
        (appended, watching.join().unwrap())
    });
    assert!((1..=CONNECTIONS).contains(&most), "{most} connections");
    let mut stored = BTreeMap::new();
    for conversation in 0..CONVERSATIONS {
        let messages = store.load_raw(format!("chat {conversation}")).unwrap();
        assert!(messages.iter().map(|stored| stored.first_seq).eq(1..=messages.len() as u64));
        stored.extend(messages.into_iter().map(|stored| ((conversation, stored.first_seq), stored.message.chunks)));
    }
    // Nothing is prepared on a connection that the next transaction of another program gets.
    let named = "SELECT count(*) FROM pg_prepared_statements";
    let connection = format!("host=127.0.0.1 port={} dbname=postgres user={}", bouncer.port, role(&url));
    assert_eq!(bouncer.server.value_by(&connection, named).unwrap().as_deref(), Some("0"));
    assert_eq!(appended.len(), THREADS * APPENDS);
    assert_eq!(stored, appended.into_iter().collect());
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
}

/// What one thread appends, each twice with one key: the place of each, and what is there.
fn write(store: &Store, thread: usize) -> Vec<((usize, u64), Vec<Chunk>)> {
    let conversation = thread % CONVERSATIONS;
    let append = |at| {
        let text = format!("{thread}/{at}");
        let options = AppendOptions::new().with_idempotency_key(&text);
        let append = || store.append_with(format!("chat {conversation}"), &[Message::user(&text)], &options).unwrap();
        let (first, again) = (append(), append());
        assert_eq!((first.duplicate, again.duplicate), (false, true));
        assert_eq!(first.first_seq, again.first_seq);
        ((conversation, first.first_seq), vec![Chunk::text(text)])
    };
    (0..APPENDS).map(append).collect()
}

/// The URL cannot name a schema here: the role has to.
#[test]
fn options_of_a_connection_are_refused() {
    let Some(bouncer) = running() else { return };
    let refused = Store::open(&(bouncer.url() + "?options=-csearch_path%3Dpublic")).unwrap_err().to_string();
    assert!(refused.contains("unsupported startup parameter"), "{refused}");
}
