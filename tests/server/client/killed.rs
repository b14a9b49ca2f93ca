//! A server that is killed, with clients.

use std::time::Duration;

use conversation_store::model::{Chunk, Message, Metadata, Role};
use conversation_store::{Error, MessageState, Store, StoreOptions};

use super::{store, url};
use crate::common::running::{Running, run};

/// How a server is written to while it is killed.
const LOADS: &[&[&str]] = &[
    &["--threads", "8", "--streams", "2", "--mixed"],
    &["--threads", "1"],
    &["--threads", "32"],
    &["--threads", "2", "--streams", "8", "--chunk-bytes", "300000"],
];
/// The store begins again after so many rounds, once it was verified itself.
const ROUNDS: u64 = 12;

/// Every append that a client saw acknowledged is there, through the next server, and in the store itself. `CONVO_KILLS` is how
/// often a server is killed.
#[test]
fn what_was_acknowledged_through_a_server_outlives_it() {
    let kills = std::env::var("CONVO_KILLS").map_or(3, |kills| kills.parse().unwrap());
    let (mut acknowledged, mut round) = (0, 0);
    while round < kills {
        let mut server = Running::durable(&[]);
        let all = server.dir.path().join("acks").to_str().unwrap().to_owned();
        let mut owed = String::new();
        for _ in 0..ROUNDS.min(kills - round) {
            let load = LOADS[usize::try_from(round).unwrap() % LOADS.len()];
            let acks = server.dir.path().join(format!("acks-{round}")).to_str().unwrap().to_owned();
            let (from, to) = (url(&server), acks.clone());
            let writing = std::thread::spawn(move || {
                let args = ["--store", &from, "bench", "--seconds", "60", "--acks", &to];
                run(&[args.as_slice(), load].concat(), &[])
            });
            // Once there is something to lose, and then at any moment.
            while std::fs::read_to_string(&acks).map_or(0, |acks| acks.lines().count()) < 100 {
                assert!(!writing.is_finished(), "{:?}", writing.join());
                std::thread::sleep(Duration::from_millis(5));
            }
            std::thread::sleep(Duration::from_micros(round * 7_919 % 50_000));
            server.kill();
            let (code, _, stderr) = writing.join().unwrap();
            assert_eq!(code, Some(2), "its server is gone: {stderr}");
            let lines = std::fs::read_to_string(&acks).unwrap();
            owed.push_str(lines.rfind('\n').map_or("", |end| lines.split_at(end + 1).0));
            server.restart();
            let (code, found, stderr) = run(&["--store", &url(&server), "--json", "verify", "--acks", &acks], &[]);
            assert_eq!(code, Some(0), "round {round}, {load:?}: {found} {stderr}");
            round += 1;
        }
        server.kill();
        std::fs::write(&all, &owed).unwrap();
        let store = format!("sled:{}", server.dir.path().join("store").display());
        let (code, found, stderr) = run(&["--store", &store, "--json", "verify", "--acks", &all], &[]);
        assert_eq!(code, Some(0), "{found} {stderr}");
        acknowledged += owed.lines().count();
    }
    println!("{round} kills of a server, {acknowledged} acknowledgements: nothing was lost");
}

#[test]
fn a_writer_of_a_server_that_was_killed_is_closed() {
    let mut server = Running::start("sled:DIR/store?cache_mb=1", &[]);
    let address = server.client.address.clone();
    let first = store(&server);
    let mut writer = first.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("as far as it came")).unwrap();
    first.sync().unwrap();
    server.kill();
    let gone = writer.push(0, Chunk::text("!"));
    assert!(matches!(gone, Err(Error::Io { .. })), "{gone:?}");
    server.args.extend(["--listen".to_owned(), address]);
    server.restart();
    let closed = writer.push(0, Chunk::text("!"));
    assert!(matches!(closed, Err(Error::MessageClosed { message_index: 0, .. })), "{closed:?}");
    // The same client goes on.
    let stored = first.load_raw("chat").unwrap();
    assert_eq!(stored[0].message.chunks, [Chunk::text("as far as it came")]);
    assert_eq!(stored[0].state, MessageState::Interrupted);
    first.append("chat", &[Message::user("go on")]).unwrap();
}

#[test]
fn a_store_that_is_only_read_or_was_closed_takes_no_writes() {
    let server = Running::open();
    let writes = store(&server);
    writes.append("chat", &[Message::user("hello")]).unwrap();
    let reads = StoreOptions::new().with_read_only(true).open(&url(&server)).unwrap();
    assert_eq!(reads.load("chat").unwrap().messages().len(), 1);
    let refused = |store: &Store| store.append("chat", &[Message::user("more")]).unwrap_err();
    assert!(matches!(refused(&reads), Error::ReadOnly));
    writes.close().unwrap();
    assert!(matches!(refused(&writes), Error::Closed) && writes.health().closed);
    assert_eq!(reads.load("chat").unwrap().messages().len(), 1);
}
