//! How long things take.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What one way of writing did.
pub(crate) struct Measured {
    pub(crate) per_second: f64,
    pub(crate) count: usize,
    p50: Duration,
    p99: Duration,
}

impl Measured {
    fn of(mut times: Vec<Duration>, begun: Instant) -> Self {
        let count = times.len();
        let per_second = count as f64 / begun.elapsed().as_secs_f64();
        times.sort_unstable();
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        Self { per_second, count, p50: at(0.5), p99: at(0.99) }
    }
}

impl std::fmt::Display for Measured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { per_second, p50, p99, .. } = self;
        let (p50, p99) = (milliseconds(*p50), milliseconds(*p99));
        write!(f, "{per_second:7.0}/s   p50 {p50:6.2} ms   p99 {p99:6.2} ms")
    }
}

/// Runs writers for a time: each gets its number, and the number of its write.
pub(crate) fn measure(writers: usize, time: Duration, write: impl Fn(usize, usize) + Sync) -> Measured {
    let (done, begun) = (AtomicBool::new(false), Instant::now());
    let times = thread::scope(|scope| {
        let (done, write) = (&done, &write);
        let threads = (0..writers).map(|writer| {
            scope.spawn(move || {
                let mut times = Vec::new();
                for at in 0.. {
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
        thread::sleep(time);
        done.store(true, Ordering::Relaxed);
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    Measured::of(times, begun)
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
