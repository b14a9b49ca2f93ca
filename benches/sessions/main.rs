//! The embedded store for `run.py`, which measures it beside what chat developers use today. Commands come on stdin, one a line:
//! `fill CONVERSATION MESSAGES`, `append CONVERSATION TIMES`, `load CONVERSATION TIMES`. Each is answered by one line: how many
//! microseconds each time took, as JSON.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a benchmark")]

use std::hint::black_box;
use std::io::{self, BufRead, Write};
use std::time::Instant;

use conversation_store::Store;
use conversation_store::model::{Chunk, Message};

/// The most messages of an append while a conversation is filled.
const BATCH: usize = 1_000;

fn main() {
    let Some(url) = std::env::args().skip(1).find(|argument| !argument.starts_with("--")) else {
        eprintln!("python3 benches/sessions/run.py runs this; it needs the URL of a store");
        return;
    };
    let store = Store::open(&url).unwrap();
    for line in io::stdin().lock().lines() {
        let line = line.unwrap();
        let mut words = line.split(' ');
        let (command, conversation) = (words.next().unwrap(), words.next().unwrap());
        let times: usize = words.next().unwrap().parse().unwrap();
        let micros = match command {
            "fill" => {
                for done in (0..times).step_by(BATCH) {
                    let messages: Vec<_> = turn().into_iter().cycle().take(BATCH.min(times - done)).collect();
                    store.append(conversation, &messages).unwrap();
                }
                Vec::new()
            }
            "append" => each(times, || drop(black_box(store.append(conversation, &turn()).unwrap()))),
            "load" => each(times, || drop(black_box(store.load(conversation).unwrap()))),
            other => panic!("{other}: no such command"),
        };
        println!("{micros:?}");
        io::stdout().flush().unwrap();
    }
    store.close().unwrap();
}

fn each(times: usize, work: impl Fn()) -> Vec<u128> {
    let one = |_| {
        let start = Instant::now();
        work();
        start.elapsed().as_micros()
    };
    (0..times).map(one).collect()
}

/// What is said: 200 bytes and 800 bytes, as in `run.py`.
fn turn() -> Vec<Message> {
    vec![Message::user("u".repeat(200)), Message::assistant([Chunk::text("a".repeat(800))])]
}
