//! The same work a fixed number of times, on one engine after the other, for a tool that counts instructions:
//! `valgrind --tool=callgrind --toggle-collect='*profile::append' PROGRAM --bench --only profile --engine memory`.

use std::hint::black_box;
use std::time::Instant;

use conversation_store::model::{ConversationId, Message};

use super::Bench;
use crate::engines::Peer;
use crate::report::{row, show};
use crate::rounds::Measured;
use crate::texts::{Texts, conversation};

/// What the work is done with.
struct Subject<'a> {
    peer: &'a dyn Peer,
    own: ConversationId,
    /// A conversation of 1,000 chunks.
    long: ConversationId,
    turn: Vec<Message>,
    batch: Vec<Message>,
}

/// The name, how much less often than the others it is done, and the work.
type Step = (&'static str, usize, fn(&Subject<'_>, usize));

const STEPS: &[Step] = &[
    ("append of 3 chunks", 1, append),
    ("append of 100 chunks", 20, import),
    ("load of 1,000 chunks", 20, load),
    ("last 10 entries", 1, tail),
    ("list of 50", 1, list),
];

pub(super) fn run(bench: &Bench) -> Vec<Measured> {
    let times = bench.size(4_000, 200);
    println!();
    row(["work", "engine", "µs"].map(str::to_owned));
    println!("|---|---|---:|");
    for (engine, peer) in bench.open("profile", bench.engines(|engine| engine.reads)) {
        let mut texts = Texts::new();
        let (turn, batch, agent_turn) = (texts.chat(3, 500), texts.chat(100, 500), texts.agent_turn(800));
        let (own, long) = (conversation(0), conversation(1));
        peer.fill(&mut std::iter::repeat_n((long, agent_turn.as_slice()), 200));
        peer.fill(&mut (2..102).map(|number| (conversation(number), turn.as_slice())));
        let subject = Subject { peer: &*peer, own, long, turn, batch };
        for (name, less, step) in STEPS {
            let start = Instant::now();
            step(&subject, times / less);
            let each = start.elapsed().as_secs_f64() * 1e6 / (times / less) as f64;
            row([(*name).to_owned(), engine.title.to_owned(), show(each)]);
        }
        peer.close();
    }
    bench.remove("profile");
    Vec::new()
}

#[inline(never)]
fn append(subject: &Subject<'_>, times: usize) {
    for _ in 0..times {
        subject.peer.append(subject.own, None, &subject.turn);
    }
}

#[inline(never)]
fn import(subject: &Subject<'_>, times: usize) {
    for _ in 0..times {
        subject.peer.append(subject.own, None, &subject.batch);
    }
}

#[inline(never)]
fn load(subject: &Subject<'_>, times: usize) {
    for _ in 0..times {
        black_box(subject.peer.load(subject.long));
    }
}

#[inline(never)]
fn tail(subject: &Subject<'_>, times: usize) {
    for _ in 0..times {
        black_box(subject.peer.tail(subject.long, 10));
    }
}

#[inline(never)]
fn list(subject: &Subject<'_>, times: usize) {
    for _ in 0..times {
        black_box(subject.peer.list(50));
    }
}
