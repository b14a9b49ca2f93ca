//! Durable appends of 3 chunks of 500 bytes.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use conversation_store::model::Message;

use super::Bench;
use crate::engines::Peer;
use crate::rounds::{Measured, Unit, interleave};
use crate::texts::{Texts, conversations};

const CHUNKS: usize = 3;
const CHUNK_BYTES: usize = 500;
const UNIT: Unit = Unit::rate("appends/s");
/// How long a round takes for one engine, also in a quick run: in shorter ones, what an engine does in the background falls
/// into some rounds only.
const ROUND: Duration = Duration::from_millis(400);

/// What a thread does: its number, and how much it has done.
type Append<'a> = &'a (dyn Fn(&dyn Peer, usize, usize) + Sync);

/// Each thread has a conversation of its own.
pub(super) fn distinct(bench: &Bench) -> Vec<Measured> {
    let (turns, ids) = (turns(), conversations(32));
    run(bench, "append", &[1, 8, 32], &|peer, thread, done| {
        peer.append(ids[thread], None, &turns[done % turns.len()]);
    })
}

/// The same, with a new idempotency key each.
pub(super) fn idempotent(bench: &Bench) -> Vec<Measured> {
    let (turns, ids) = (turns(), conversations(32));
    let keys = AtomicUsize::new(0);
    run(bench, "append_idempotent", &[1, 8, 32], &|peer, thread, done| {
        let key = format!("request-{}", keys.fetch_add(1, Ordering::Relaxed));
        peer.append(ids[thread], Some(&key), &turns[done % turns.len()]);
    })
}

/// All threads append to one.
pub(super) fn one_conversation(bench: &Bench) -> Vec<Measured> {
    let (turns, ids) = (turns(), conversations(1));
    run(bench, "append_one_conversation", &[16], &|peer, _, done| {
        peer.append(ids[0], None, &turns[done % turns.len()]);
    })
}

fn turns() -> Vec<Vec<Message>> {
    let mut texts = Texts::new();
    (0..64).map(|_| texts.chat(CHUNKS, CHUNK_BYTES)).collect()
}

fn run(bench: &Bench, workload: &'static str, threads: &[usize], append: Append<'_>) -> Vec<Measured> {
    let mut peers = bench.open(workload, bench.engines(|engine| engine.keeps));
    let mut all = Vec::new();
    for threads in bench.threads(threads) {
        let title = format!("{workload}, {threads} threads");
        let series = interleave(&title, bench.size(25, 6), &mut peers, |peer, _| rate(&**peer, threads, ROUND, append));
        all.push(Measured { workload, threads, unit: UNIT, series });
    }
    bench.end(workload, peers);
    all
}

/// Appends a second, by so many threads.
fn rate(peer: &dyn Peer, threads: usize, time: Duration, append: Append<'_>) -> f64 {
    let ready = Barrier::new(threads + 1);
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|thread| {
                let ready = &ready;
                scope.spawn(move || {
                    ready.wait();
                    let (end, mut done) = (Instant::now() + time, 0);
                    while Instant::now() < end {
                        append(peer, thread, done);
                        done += 1;
                    }
                    done
                })
            })
            .collect();
        ready.wait();
        let start = Instant::now();
        let done: usize = running.into_iter().map(|thread| thread.join().unwrap()).sum();
        done as f64 / start.elapsed().as_secs_f64()
    })
}
