//! The bytes on disk over the bytes that were said: 32 threads append 3 chunks of 500 bytes, to 100 conversations in turn,
//! a million chunks in all.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Bench, measured};
use crate::place::bytes_on_disk;
use crate::rounds::{Measured, Unit};
use crate::texts::{Texts, bytes, conversations};

const THREADS: usize = 32;
const CONVERSATIONS: usize = 100;

pub(super) fn run(bench: &Bench) -> Vec<Measured> {
    let appends = bench.size(333_334, 5_000);
    let turn = Texts::new().chat(3, 500);
    let ids = conversations(CONVERSATIONS);
    let mut series = Vec::new();
    for (engine, peer) in bench.open("disk", bench.engines(|engine| engine.keeps)) {
        eprintln!("disk: {} is filled", engine.name);
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        if at >= appends {
                            break;
                        }
                        peer.append(ids[at % CONVERSATIONS], None, &turn);
                    }
                });
            }
        });
        peer.close();
        let taken = bytes_on_disk(&bench.path("disk", &engine));
        series.push((engine.name, vec![taken as f64 / (appends * bytes(&turn)) as f64]));
    }
    bench.remove("disk");
    vec![Measured { threads: THREADS, ..measured("disk", Unit::cost("times"), series) }]
}
