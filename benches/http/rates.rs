//! Calls a second, through HTTP and in the process itself.

use std::hint::black_box;
use std::slice::from_ref;
use std::thread;
use std::time::{Duration, Instant};

use conversation_store::Store;
use conversation_store::model::Message;

use crate::at;
use crate::server::{Connection, Server, directory};

/// Rounds of each, in turn, and how long one takes.
const ROUNDS: usize = 5;
const ROUND: Duration = Duration::from_secs(2);
/// Bytes of a message, as in the other benchmarks.
const BYTES: usize = 1_500;
/// Messages of a conversation that is read.
const READ: usize = 20;

type Call<'a> = Box<dyn FnMut(&str) + 'a>;

/// Calls from so many threads for a round: the time of each.
fn round<'a>(
    threads: usize,
    name: impl Fn(usize) -> String + Sync,
    start: impl Fn() -> Call<'a> + Sync,
) -> Vec<Duration> {
    let calls = |thread: usize| {
        let (mut call, conversation) = (start(), name(thread));
        let (begun, mut times) = (Instant::now(), Vec::new());
        while begun.elapsed() < ROUND {
            let before = Instant::now();
            call(&conversation);
            times.push(before.elapsed());
        }
        times
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || calls(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

/// The ways in turn, at 1, 8 and 64 connections. `name` gives the conversation of a thread in a round.
fn compare<'a>(
    name: impl Fn(usize, usize) -> String + Sync,
    http: impl Fn() -> Call<'a> + Sync,
    bare: impl Fn() -> Call<'a> + Sync,
    embedded: impl Fn() -> Call<'a> + Sync,
) {
    let times = "p50      p99      ";
    println!("connections  HTTP/s  {times}bare/s  {times}embedded/s  {times}HTTP/embedded  HTTP/bound");
    for connections in [1, 8, 64] {
        let (mut all, mut ratios, mut bounded) = ([const { Vec::new() }; 3], Vec::new(), Vec::new());
        for number in 0..ROUNDS {
            let name = |thread| name(connections * 1_000 + number, thread);
            let rounds =
                [round(connections, name, &http), round(connections, name, &bare), round(connections, name, &embedded)];
            let [http, bare, embedded] = rounds.each_ref().map(|times| times.len() as f64);
            ratios.push(http / embedded);
            // One after the other, a bare call and the embedded one.
            bounded.push(http * (1.0 / bare + 1.0 / embedded));
            all.iter_mut().zip(rounds).for_each(|(all, times)| all.extend(times));
        }
        let row = |times: &mut Vec<Duration>| {
            times.sort_unstable();
            let rate = times.len() as f64 / (ROUNDS as f64 * ROUND.as_secs_f64());
            format!("{rate:<8.0}{:<9.1?}{:<9.1?}", at(times, 0.5), at(times, 0.99))
        };
        let [http, bare, embedded] = all.each_mut().map(row);
        let [ratio, bound] = [ratios, bounded].map(|mut shares| {
            shares.sort_unstable_by(f64::total_cmp);
            shares[ROUNDS / 2]
        });
        println!("{connections:<13}{http}{bare}{embedded}{:<4}{ratio:<15.2}{bound:.2}", "");
    }
}

pub(crate) fn appends() {
    let (server, dir, text) = (Server::start(), directory(), "x".repeat(BYTES));
    let store = Store::open(&format!("sled:{}", dir.path().join("store").display())).unwrap();
    let bare = Server::bare(Connection::open(&server.address).append("first", &text));
    println!("durable appends of {BYTES} bytes, {ROUNDS} rounds of {ROUND:?} each in turn");
    compare(
        |round, thread| format!("chat-{round}-{thread}"),
        || {
            let (mut connection, text) = (Connection::open(&server.address), text.clone());
            Box::new(move |conversation| _ = connection.append(conversation, &text))
        },
        || {
            let (mut connection, text) = (Connection::open(&bare.address), text.clone());
            Box::new(move |conversation| _ = connection.append(conversation, &text))
        },
        || {
            let (store, message) = (store.clone(), Message::user(text.clone()));
            Box::new(move |conversation| _ = store.append(conversation, from_ref(&message)).unwrap())
        },
    );
}

pub(crate) fn reads() {
    let (server, dir, text) = (Server::start(), directory(), "x".repeat(BYTES));
    let store = Store::open(&format!("sled:{}", dir.path().join("store").display())).unwrap();
    let name = |thread: usize| format!("chat-{thread}");
    let mut connection = Connection::open(&server.address);
    for conversation in (0..64).map(name) {
        for _ in 0..READ {
            connection.append(&conversation, &text);
            store.append(&*conversation, from_ref(&Message::user(text.clone()))).unwrap();
        }
    }
    let bare = Server::bare(connection.read(&name(0)));
    println!("reads of {READ} messages of {BYTES} bytes, {ROUNDS} rounds of {ROUND:?} each in turn");
    compare(
        |_, thread| name(thread),
        || {
            let mut connection = Connection::open(&server.address);
            Box::new(move |conversation| _ = connection.read(conversation))
        },
        || {
            let mut connection = Connection::open(&bare.address);
            Box::new(move |conversation| _ = connection.read(conversation))
        },
        || Box::new(|conversation| _ = black_box(store.messages(conversation, 0, READ).unwrap())),
    );
}
