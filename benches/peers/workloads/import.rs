//! A million chunks, 100 in each durable append, over 100 conversations.

use std::time::Instant;

use super::{Bench, measured};
use crate::rounds::{Measured, Unit, interleave};
use crate::texts::{Texts, conversations};

const CHUNKS: usize = 100;
const CHUNK_BYTES: usize = 500;
const CONVERSATIONS: usize = 100;

pub(super) fn run(bench: &Bench) -> Vec<Measured> {
    let (rounds, chunks) = (bench.size(9, 3), bench.size(1_000_000, 40_000));
    let mut peers = bench.open("import", bench.engines(|engine| engine.keeps));
    let mut texts = Texts::new();
    let batches: Vec<_> = (0..16).map(|_| texts.chat(CHUNKS, CHUNK_BYTES)).collect();
    let ids = conversations(CONVERSATIONS);
    // The round that warms up takes its part too.
    let appends = chunks / CHUNKS / (rounds + 1);
    let series = interleave("import", rounds, &mut peers, |peer, _| {
        let start = Instant::now();
        for at in 0..appends {
            peer.append(ids[at % CONVERSATIONS], None, &batches[at % batches.len()]);
        }
        (appends * CHUNKS) as f64 / start.elapsed().as_secs_f64()
    });
    bench.end("import", peers);
    vec![measured("import", Unit::rate("chunks/s"), series)]
}
