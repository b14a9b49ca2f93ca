//! Two `convo serve` on one database, with a balancer that sends each request to the other one and loses answers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use conversation_store::model::{Chunk, FinishReason, Message, Metadata, Role};
use conversation_store::{AppendOptions, Cursor, Error, MessageState, Store};
use serde_json::json;

use crate::balancer::Balancer;
use crate::common::http::Client;
use crate::common::running::Running;
use crate::common::uploads::is_cut_and_comes_again;

const THREADS: usize = 4;
const APPENDS: usize = 60;
const PATIENCE: Duration = Duration::from_secs(120);

/// Two servers on one database, and a way to both.
fn servers(options: &str) -> Option<([Running; 2], Balancer)> {
    let url = crate::running()?.url() + options;
    Store::open(&url).unwrap();
    let servers = [Running::start(&url, &[]), Running::start(&url, &[])];
    let balancer = Balancer::start(servers.iter().map(|server| server.client.address.clone()).collect());
    Some((servers, balancer))
}

fn store(address: &str) -> Store {
    Store::open(&format!("http://{address}")).unwrap()
}

fn text(message: &str) -> Vec<Chunk> {
    vec![Chunk::text(message)]
}

/// What is appended with a key is there once, and who follows misses nothing and gets nothing twice, whichever server answers.
#[test]
fn appends_and_followers_that_change_between_servers_find_one_log() {
    let Some((servers, balancer)) = servers("") else { return };
    let own = store(&servers[0].client.address);
    own.append("chat", &[Message::user("first")]).unwrap();
    balancer.lose_every(7);
    let done = AtomicBool::new(false);
    let seqs = |entries: Vec<conversation_store::Entry>| entries.into_iter().map(|entry| entry.seq).collect::<Vec<_>>();
    let (acknowledged, followed) = thread::scope(|scope| {
        let (balancer, done) = (&balancer, &done);
        let following = scope.spawn(move || {
            let begun = Instant::now();
            let (mut since, mut all) = (Cursor::from(0), Vec::new());
            // A follower whose server is gone for it goes on from its cursor.
            while all.len() < 1 + THREADS * APPENDS && begun.elapsed() < PATIENCE {
                let Ok(reader) = Store::open(&format!("http://{}", balancer.address)) else { continue };
                let Ok(mut tail) = reader.tail("chat", since) else { continue };
                while let Ok(entries) = tail.next(Duration::from_millis(200)) {
                    all.extend(seqs(entries));
                    since = tail.cursor();
                    if all.len() % 5 == 0 || done.load(Ordering::Relaxed) {
                        break;
                    }
                }
            }
            all
        });
        let writers = (0..THREADS).map(|writer| {
            scope.spawn(move || {
                let begun = Instant::now();
                let store = loop {
                    match Store::open(&format!("http://{}", balancer.address)) {
                        Ok(store) => break store,
                        Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
                    }
                };
                let append = |at: usize| {
                    let said = format!("{writer}/{at}");
                    let options = AppendOptions::new().with_idempotency_key(&said);
                    loop {
                        match store.append_with("chat", &[Message::user(&said)], &options) {
                            Ok(receipt) => return (receipt.first_seq, said),
                            Err(Error::OutcomeUnknown { .. } | Error::Io { .. }) if begun.elapsed() < PATIENCE => {}
                            Err(error) => panic!("{said}: {error}"),
                        }
                    }
                };
                (0..APPENDS).map(append).collect::<Vec<_>>()
            })
        });
        let writers: Vec<_> = writers.collect();
        let acknowledged: BTreeMap<u64, String> =
            writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
        done.store(true, Ordering::Relaxed);
        (acknowledged, following.join().unwrap())
    });
    assert!(balancer.lost() > APPENDS / 4, "{} answers were lost", balancer.lost());
    assert_eq!(acknowledged.len(), THREADS * APPENDS, "two appends were answered alike");
    let stored: BTreeMap<u64, Vec<Chunk>> = own
        .load_raw("chat")
        .unwrap()
        .into_iter()
        .skip(1)
        .map(|stored| (stored.first_seq, stored.message.chunks))
        .collect();
    assert_eq!(stored, acknowledged.iter().map(|(seq, said)| (*seq, text(said))).collect());
    assert_eq!(followed, (1..=1 + (THREADS * APPENDS) as u64).collect::<Vec<_>>());
    assert_eq!(own.verify(|_, _| ()).unwrap().problems, []);
}

/// A browser follows: its connection is cut again and again, and each new one goes to the other server.
#[test]
fn events_go_on_at_the_other_server() {
    const EVENTS: u64 = 80;
    let Some((servers, balancer)) = servers("") else { return };
    let client = Client { address: balancer.address.clone(), key: None };
    let path = "/api/v1/conversations/chat";
    let say = |at: u64| {
        let message = json!({ "role": "user", "chunks": [{ "type": "text", "text": format!("{at}") }] });
        servers[at as usize % 2].client.post(&format!("{path}/messages"), &message).ok();
        thread::sleep(Duration::from_millis(5));
    };
    say(0);
    let (mut seen, mut connections) = (Vec::new(), 0);
    thread::scope(|scope| {
        scope.spawn(|| (1..EVENTS).for_each(say));
        let begun = Instant::now();
        while seen.len() < EVENTS as usize && begun.elapsed() < PATIENCE {
            connections += 1;
            let last = seen.last().copied().unwrap_or_default();
            let mut events = client.follow(&format!("{path}/events"), &[("last-event-id", &format!("{last}"))]);
            while seen.len() < EVENTS as usize
                && let Some(event) = events.next()
            {
                seen.extend(event.id);
            }
        }
    });
    assert_eq!(seen, (1..=EVENTS).collect::<Vec<_>>());
    assert!(connections > 2, "{connections} connections");
}

/// The writer of a message is with one server. The other one says that it does not know it, and what the first one took is
/// there, once.
#[test]
fn a_stream_that_comes_to_the_other_server_is_closed_with_what_it_has() {
    let Some((servers, balancer)) = servers("") else { return };
    balancer.only(0);
    let store = store(&balancer.address);
    let other = self::store(&servers[1].client.address);
    store.append("chat", &[Message::user("question")]).unwrap();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    for part in ["as ", "far ", "as "] {
        writer.push(0, Chunk::text(part)).unwrap();
    }
    store.sync().unwrap();
    assert_eq!(other.load_raw("chat").unwrap()[1].state, MessageState::Streaming);
    balancer.only(1);
    let closed = writer.push(0, Chunk::text("elsewhere"));
    assert!(matches!(closed, Err(Error::MessageClosed { message_index: 1, .. })), "{closed:?}");
    // Its connection comes back: the message goes on, and nothing is missing or doubled.
    balancer.only(0);
    writer.push(0, Chunk::text("it came")).unwrap();
    drop(writer);
    crate::cluster::until("the end", || other.load_raw("chat").unwrap()[1].state == MessageState::Interrupted);
    assert_eq!(other.load_raw("chat").unwrap()[1].message.chunks, text("as far as it came"));
    // The conversation goes on at the other server.
    other.append("chat", &[Message::user("go on")]).unwrap();
    assert_eq!(other.verify(|_, _| ()).unwrap().problems, []);
}

/// The end of a message is taken, its answer is lost, and the repetition comes to a server that does not know the writer.
#[test]
fn an_end_whose_answer_is_lost_is_unknown_at_the_other_server() {
    let Some((servers, balancer)) = servers("") else { return };
    balancer.only(0);
    let store = store(&balancer.address);
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("all of it")).unwrap();
    let other = self::store(&servers[1].client.address);
    let unknown = thread::scope(|scope| {
        balancer.lose(1);
        let finishing = scope.spawn(|| writer.finish(Some(FinishReason::Stop), None));
        crate::cluster::until("the lost answer", || balancer.lost() == 1);
        balancer.only(1);
        finishing.join().unwrap()
    });
    assert!(matches!(unknown, Err(Error::OutcomeUnknown { .. })), "{unknown:?}");
    let stored = other.load_raw("chat").unwrap();
    assert_eq!(stored.len(), 1);
    assert_eq!((&stored[0].message.chunks, stored[0].state), (&text("all of it"), MessageState::Complete));
}

/// The server that has the writer is killed: the other one ends the message once its lease has run out.
#[test]
fn a_stream_whose_server_is_killed_is_interrupted_by_the_other_one() {
    let Some((mut servers, balancer)) = servers("&lease_seconds=2") else { return };
    balancer.only(0);
    let store = store(&balancer.address);
    store.append("chat", &[Message::user("question")]).unwrap();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("as far as it came")).unwrap();
    store.sync().unwrap();
    servers[0].kill();
    balancer.only(1);
    let closed = writer.finish(None, None);
    assert!(matches!(closed, Err(Error::MessageClosed { message_index: 1, .. })), "{closed:?}");
    let state = || store.load_raw("chat").unwrap()[1].state;
    crate::cluster::until("the end of the lease", || state() == MessageState::Interrupted);
    assert_eq!(store.load_raw("chat").unwrap()[1].message.chunks, text("as far as it came"));
    let mut again = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    again.push(0, Chunk::text("again")).unwrap();
    again.finish(None, None).unwrap();
    assert_eq!(store.load_raw("chat").unwrap().len(), 3);
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
}

/// An upload to one server is cut, and comes again to the other one; then the server of one is killed.
#[test]
fn an_upload_that_was_cut_comes_again_at_the_other_server() {
    let Some((mut servers, _)) = servers("&lease_seconds=2") else { return };
    let [first, second] = [0, 1].map(|at: usize| servers[at].client.clone());
    is_cut_and_comes_again(&first, || second.clone(), drop);
    is_cut_and_comes_again(
        &first,
        || second.clone(),
        |upload| {
            servers[0].kill();
            drop(upload);
        },
    );
}
