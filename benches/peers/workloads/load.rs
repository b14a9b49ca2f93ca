//! Conversations read back, as the same structs by all. The chunks have 800 bytes.

use std::hint::black_box;
use std::time::Instant;

use conversation_store::model::ConversationId;

use super::{Bench, measured};
use crate::engines::{Engine, MEMORY, Peer};
use crate::place::drop_caches;
use crate::rounds::{Measured, Unit, interleave, time_each};
use crate::texts::{Texts, chunks, conversations};

const CHUNK_BYTES: usize = 800;
const CONVERSATIONS: usize = 20;
const CHUNKS: usize = 1_000;
const TAIL: usize = 10;

type Peers = Vec<(Engine, Box<dyn Peer>)>;

/// `load_warm`, the same over reading from memory, `load_cold`, `tail`: of 20 conversations of 1,000 chunks that were
/// written in turns.
pub(super) fn run(bench: &Bench) -> Vec<Measured> {
    let mut peers = written(bench, "load", CONVERSATIONS, CHUNKS);
    let nanos = Unit::cost("ns/chunk");
    let warm = measured("load_warm", nanos, load(bench, "load_warm", &mut peers, CONVERSATIONS));
    let over_decode = over_decode(&warm);
    let ids = conversations(CONVERSATIONS);
    let tail = interleave("tail", bench.size(25, 3), &mut peers, |peer, _| {
        let mut at = 0;
        let each = time_each(bench.round_time() / 4, || {
            at += 1;
            let entries = black_box(peer.tail(ids[at % CONVERSATIONS], TAIL));
            assert_eq!(entries.len(), TAIL);
            1
        });
        each.as_secs_f64() * 1e6
    });
    let tail = measured("tail", Unit::cost("µs"), tail);
    let cold = measured("load_cold", nanos, cold(bench, peers));
    bench.remove("load");
    [warm].into_iter().chain(over_decode).chain([cold, tail]).collect()
}

/// One conversation of 100,000 chunks.
pub(super) fn large(bench: &Bench) -> Vec<Measured> {
    let mut peers = written(bench, "load_large", 1, bench.size(100_000, 5_000));
    let series = load(bench, "load_large", &mut peers, 1);
    bench.end("load_large", peers);
    vec![measured("load_large", Unit::cost("ns/chunk"), series)]
}

/// Stores with conversations of so many chunks, written in turns, and opened again.
fn written(bench: &Bench, workload: &str, count: usize, chunks_each: usize) -> Peers {
    let peers = bench.open(workload, bench.engines(|engine| engine.reads));
    let mut texts = Texts::new();
    let turns: Vec<_> = (0..16).map(|_| texts.agent_turn(CHUNK_BYTES)).collect();
    let appends = count * chunks_each / chunks(&turns[0]);
    let ids = conversations(count);
    let mut again = Vec::new();
    for (engine, peer) in peers {
        eprintln!("{workload}: {} is filled", engine.name);
        peer.fill(&mut (0..appends).map(|at| (ids[at % count], turns[at % turns.len()].as_slice())));
        if engine.keeps {
            peer.close();
            again.push((engine, (engine.open)(&bench.path(workload, &engine))));
        } else {
            again.push((engine, peer));
        }
    }
    again
}

/// Nanoseconds a chunk.
fn load(bench: &Bench, title: &str, peers: &mut Peers, count: usize) -> Vec<(&'static str, Vec<f64>)> {
    let ids = conversations(count);
    interleave(title, bench.size(25, 3), peers, |peer, _| {
        let mut at = 0;
        let each = time_each(bench.round_time() / 2, || {
            at += 1;
            loaded(&**peer, ids[at % count])
        });
        each.as_secs_f64() * 1e9
    })
}

/// Loads a conversation, and counts its chunks. Freeing it is not part of reading it, but falls on all alike.
fn loaded(peer: &dyn Peer, conversation: ConversationId) -> usize {
    let messages = black_box(peer.load(conversation));
    messages.iter().map(|stored| stored.message.chunks.len()).sum()
}

/// Each engine's time over that of the same records in memory.
fn over_decode(warm: &Measured) -> Option<Measured> {
    let (_, memory) = warm.series.iter().find(|(name, _)| *name == MEMORY)?;
    let ratios = |values: &[f64]| values.iter().zip(memory).map(|(value, memory)| value / memory).collect();
    let others = warm.series.iter().filter(|(name, _)| *name != MEMORY);
    let series = others.map(|(name, values)| (*name, ratios(values))).collect();
    Some(measured("load_over_decode", Unit::own("times"), series))
}

/// The first load after the store was opened, with nothing of it in memory.
fn cold(bench: &Bench, peers: Peers) -> Vec<(&'static str, Vec<f64>)> {
    let mut kept: Vec<_> = peers
        .into_iter()
        .filter(|(engine, _)| engine.keeps)
        .map(|(engine, peer)| (engine, (engine, Some(peer))))
        .collect();
    let ids = conversations(CONVERSATIONS);
    let mut warned = false;
    interleave("load_cold", bench.size(15, 2), &mut kept, |(engine, peer), round| {
        if let Some(peer) = peer.take() {
            peer.close();
        }
        if !drop_caches() && !std::mem::replace(&mut warned, true) {
            eprintln!("load_cold: the system's cache cannot be dropped: run as root");
        }
        let opened = (engine.open)(&bench.path("load", engine));
        let start = Instant::now();
        let count = loaded(&*opened, ids[round % CONVERSATIONS]);
        let each = start.elapsed().as_secs_f64() * 1e9 / count as f64;
        opened.close();
        each
    })
}
