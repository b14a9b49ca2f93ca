//! The same work a fixed number of times, on one engine, for a tool that counts instructions:
//! `valgrind --tool=callgrind --toggle-collect='*profile::appends*' PROGRAM --bench --only profile --engine memory`.

use std::hint::black_box;

use conversation_store::model::{ConversationId, Message};

use super::Bench;
use crate::engines::Peer;
use crate::rounds::Measured;
use crate::texts::{Texts, conversation};

pub(super) fn run(bench: &Bench) -> Vec<Measured> {
    let times = bench.size(2_000, 200);
    for (engine, peer) in bench.open("profile", bench.engines(|engine| engine.reads)) {
        let mut texts = Texts::new();
        let (chat, turn) = (texts.chat(3, 500), texts.agent_turn(800));
        let (own, long) = (conversation(0), conversation(1));
        peer.fill(&mut std::iter::repeat_n((long, turn.as_slice()), 200));
        peer.fill(&mut (2..102).map(|number| (conversation(number), chat.as_slice())));
        let batch = texts.chat(100, 500);
        eprintln!("profile: {}, {times} appends", engine.name);
        appends(&*peer, own, times, &chat);
        eprintln!("profile: {} appends of 100 chunks", times / 20);
        imports(&*peer, own, times / 20, &batch);
        eprintln!("profile: {} loads of 1,000 chunks", times / 20);
        loads(&*peer, long, times / 20);
        eprintln!("profile: {times} tails of 10 entries");
        tails(&*peer, long, times);
        eprintln!("profile: {times} lists of 50 conversations");
        lists(&*peer, times);
        peer.close();
    }
    bench.remove("profile");
    Vec::new()
}

#[inline(never)]
fn appends(peer: &dyn Peer, id: ConversationId, times: usize, messages: &[Message]) {
    for _ in 0..times {
        peer.append(id, None, messages);
    }
}

#[inline(never)]
fn imports(peer: &dyn Peer, id: ConversationId, times: usize, messages: &[Message]) {
    for _ in 0..times {
        peer.append(id, None, messages);
    }
}

#[inline(never)]
fn loads(peer: &dyn Peer, id: ConversationId, times: usize) {
    for _ in 0..times {
        black_box(peer.load(id));
    }
}

#[inline(never)]
fn tails(peer: &dyn Peer, id: ConversationId, times: usize) {
    for _ in 0..times {
        black_box(peer.tail(id, 10));
    }
}

#[inline(never)]
fn lists(peer: &dyn Peer, times: usize) {
    for _ in 0..times {
        black_box(peer.list(50));
    }
}
