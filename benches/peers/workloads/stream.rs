//! One answer of 1,000 deltas of 20 bytes, from its beginning to its durable end. The peers make every delta durable; the
//! store makes them durable within its window, and all of them at the end.

use std::time::Instant;

use super::{Bench, measured};
use crate::rounds::{Measured, Unit, interleave};
use crate::texts::{Texts, conversation};

const DELTAS: usize = 1_000;
const DELTA_BYTES: usize = 20;

pub(super) fn run(bench: &Bench) -> Vec<Measured> {
    let mut peers = bench.open("stream", bench.engines(|engine| engine.keeps));
    let deltas = Texts::new().deltas(DELTAS, DELTA_BYTES);
    let series = interleave("stream", bench.size(15, 3), &mut peers, |peer, round| {
        let start = Instant::now();
        peer.stream(conversation(round), &deltas);
        start.elapsed().as_secs_f64() * 1e6 / deltas.len() as f64
    });
    bench.end("stream", peers);
    vec![measured("stream", Unit::cost("µs/delta"), series)]
}
