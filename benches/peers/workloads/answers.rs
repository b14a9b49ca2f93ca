//! Many answers at one time: what a delta costs, and how long after it came it is durable. A table of our own engines.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use conversation_store::model::{Chunk, Metadata, Role};
use conversation_store::{MessageWriter, Store};

use super::Bench;
use crate::report::{row, show};
use crate::rounds::Measured;
use crate::texts::{Texts, conversation};

/// Each answer gets a delta in such a time.
const PAUSE: Duration = Duration::from_millis(30);
const DELTA_BYTES: usize = 20;
/// The threads that the answers share.
const THREADS: usize = 4;
/// How often it is looked whether a delta is durable.
const LOOK: Duration = Duration::from_micros(500);

pub(super) fn run(bench: &Bench) -> Vec<Measured> {
    let engines = bench.engines(|engine| engine.ours && engine.keeps);
    if engines.is_empty() {
        return Vec::new();
    }
    println!();
    row(["engine", "answers", "deltas/s", "CPU, µs/delta", "durable after, p50, ms", "p99, ms"].map(str::to_owned));
    println!("|---|{}", "---:|".repeat(5));
    let time = Duration::from_secs(bench.size(5, 1) as u64);
    for engine in engines {
        for answers in [1, 100, 1_000] {
            let path = bench.path("answers", &engine);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let store = Store::open(&format!("{}:{}", engine.name, path.display())).unwrap();
            let (deltas, cpu, mut ages) = measure(&store, answers, time);
            store.close().unwrap();
            bench.remove("answers");
            ages.sort_unstable();
            let at = |share: f64| show(ages[((ages.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3);
            let (rate, each) = (deltas / time.as_secs_f64(), cpu.as_secs_f64() * 1e6 / deltas);
            row([engine.title.to_owned(), answers.to_string(), show(rate), show(each), at(0.5), at(0.99)]);
        }
    }
    Vec::new()
}

/// The deltas, the processors' time, and after how long those of one more answer were durable.
fn measure(store: &Store, answers: usize, time: Duration) -> (f64, Duration, Vec<Duration>) {
    let text = Texts::new().deltas(1, DELTA_BYTES).remove(0);
    let begin = |number| store.begin(conversation(number), Role::Assistant, Metadata::default()).unwrap();
    let mut writers: Vec<MessageWriter> = (0..answers).map(begin).collect();
    let mut shares: Vec<Vec<MessageWriter>> = Vec::new();
    while !writers.is_empty() {
        shares.push(writers.split_off(writers.len() - writers.len().min(answers.div_ceil(THREADS))));
    }
    let is_over = AtomicBool::new(false);
    let (before, begun) = (processors(), Instant::now());
    let (deltas, ages) = thread::scope(|scope| {
        let pushing: Vec<_> = shares
            .into_iter()
            .map(|mut share| {
                let (is_over, text) = (&is_over, &text);
                scope.spawn(move || {
                    let mut deltas = 0;
                    while !is_over.load(Ordering::Relaxed) {
                        let round = Instant::now();
                        for writer in &mut share {
                            writer.push(0, Chunk::text(text.clone())).unwrap();
                            deltas += 1;
                        }
                        thread::sleep(PAUSE.saturating_sub(round.elapsed()));
                    }
                    deltas
                })
            })
            .collect();
        let (mut probe, mut ages) = (begin(answers), Vec::new());
        while begun.elapsed() < time {
            let before = store.describe(conversation(answers)).unwrap().last_seq;
            let pushed = Instant::now();
            probe.push(0, Chunk::text(text.clone())).unwrap();
            while store.describe(conversation(answers)).unwrap().last_seq == before {
                thread::sleep(LOOK);
            }
            ages.push(pushed.elapsed());
        }
        is_over.store(true, Ordering::Relaxed);
        (pushing.into_iter().map(|pushing| pushing.join().unwrap()).sum::<usize>() + ages.len(), ages)
    });
    (deltas as f64, processors().saturating_sub(before), ages)
}

/// The processors' time of this process, in hundredths of a second.
fn processors() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // After the name: fields 14 and 15 of proc(5), in ticks.
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let ticks: u64 = fields.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    Duration::from_millis(ticks * 10)
}
