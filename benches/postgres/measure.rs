//! How long things take.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Writes of each writer before those that are measured: a server plans a statement for any values after five.
const WARM: usize = 8;

/// What one way of writing did.
pub(crate) struct Measured {
    pub(crate) per_second: f64,
    /// Of all writes, the first ones too.
    pub(crate) count: usize,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
}

impl Measured {
    fn of(writers: usize, mut times: Vec<Duration>, begun: Instant) -> Self {
        let count = times.len() + WARM * writers;
        let per_second = times.len() as f64 / begun.elapsed().as_secs_f64();
        times.sort_unstable();
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        Self { per_second, count, p50: at(0.5), p99: at(0.99) }
    }
}

/// Runs writers for a time: each gets its number, and the number of its write. Nothing counts before all of them are warm: have
/// their connections, their plans and their conversations.
pub(crate) fn measure(writers: usize, time: Duration, write: impl Fn(usize, usize) + Sync) -> Measured {
    let (done, warm, mut begun) = (AtomicBool::new(false), Barrier::new(writers + 1), Instant::now());
    let times = thread::scope(|scope| {
        let (done, warm, write) = (&done, &warm, &write);
        let threads = (0..writers).map(|writer| {
            scope.spawn(move || {
                let mut times = Vec::new();
                (0..WARM).for_each(|at| write(writer, at));
                warm.wait();
                for at in WARM.. {
                    let start = Instant::now();
                    write(writer, at);
                    times.push(start.elapsed());
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                }
                times
            })
        });
        let threads: Vec<_> = threads.collect();
        warm.wait();
        begun = Instant::now();
        thread::sleep(time);
        done.store(true, Ordering::Relaxed);
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    Measured::of(writers, times, begun)
}

/// The time that something takes, in the middle of many.
pub(crate) fn median(mut work: impl FnMut()) -> Duration {
    let mut times: Vec<_> = (0..101)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

/// As milliseconds.
pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
