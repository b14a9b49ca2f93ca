//! Durable appends a second, through HTTP and in the process itself.

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

/// Appends from so many threads for a round: the time of each append.
fn round(threads: usize, number: usize, start: impl Fn() -> Box<dyn FnMut(&str)> + Sync) -> Vec<Duration> {
    let appends = |thread: usize| {
        let (mut append, conversation) = (start(), format!("chat-{number}-{thread}"));
        let (begun, mut times) = (Instant::now(), Vec::new());
        while begun.elapsed() < ROUND {
            let before = Instant::now();
            append(&conversation);
            times.push(before.elapsed());
        }
        times
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|thread| scope.spawn(move || appends(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

pub(crate) fn run() {
    let (server, dir, text) = (Server::start(), directory(), "x".repeat(BYTES));
    let store = Store::open(&format!("sled:{}", dir.path().join("store").display())).unwrap();
    println!("durable appends of {BYTES} bytes, {ROUNDS} rounds of {ROUND:?} each in turn");
    println!("connections  HTTP/s  p50      p99      embedded/s  p50      p99      HTTP/embedded");
    for connections in [1, 8, 64] {
        let (mut http, mut embedded, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..ROUNDS {
            let number = connections * 1_000 + number;
            let one = round(connections, number, || {
                let (mut connection, text) = (Connection::open(&server.address), text.clone());
                Box::new(move |conversation| connection.append(conversation, &text))
            });
            let other = round(connections, number, || {
                let (store, message) = (store.clone(), Message::user(text.clone()));
                Box::new(move |conversation| _ = store.append(conversation, std::slice::from_ref(&message)).unwrap())
            });
            ratios.push(one.len() as f64 / other.len() as f64);
            http.extend(one);
            embedded.extend(other);
        }
        http.sort_unstable();
        embedded.sort_unstable();
        ratios.sort_unstable_by(f64::total_cmp);
        let row = |times: &[Duration]| {
            let rate = times.len() as f64 / (ROUNDS as f64 * ROUND.as_secs_f64());
            format!("{rate:<8.0}{:<9.1?}{:<9.1?}", at(times, 0.5), at(times, 0.99))
        };
        println!("{connections:<13}{}{:<4}{}{:.2}", row(&http), "", row(&embedded), ratios[ROUNDS / 2]);
    }
}
