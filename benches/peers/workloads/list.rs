//! The 50 newest of 100,000 conversations.

use std::hint::black_box;

use super::{Bench, measured};
use crate::rounds::{Measured, Unit, interleave, time_each};
use crate::texts::{Texts, conversation};

const PAGE: usize = 50;

pub(super) fn run(bench: &Bench) -> Vec<Measured> {
    let conversations = bench.size(100_000, 3_000);
    let peers = bench.open("list", bench.engines(|engine| engine.reads));
    let turn = Texts::new().chat(3, 100);
    let mut again = Vec::new();
    for (engine, peer) in peers {
        eprintln!("list: {} is filled", engine.name);
        peer.fill(&mut (0..conversations).map(|at| (conversation(at), turn.as_slice())));
        if engine.keeps {
            peer.close();
            again.push((engine, (engine.open)(&bench.path("list", &engine))));
        } else {
            again.push((engine, peer));
        }
    }
    let series = interleave("list", bench.size(25, 3), &mut again, |peer, _| {
        let each = time_each(bench.round_time() / 4, || {
            assert_eq!(black_box(peer.list(PAGE)).len(), PAGE);
            1
        });
        each.as_secs_f64() * 1e6
    });
    bench.end("list", again);
    vec![measured("list", Unit::cost("µs"), series)]
}
