//! How work grows with what it is for.

use std::fs;
use std::sync::LazyLock;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// So much is worked on, and eight times as much.
const FEW: usize = 6_000;
const MANY: usize = 8 * FEW;
/// How many times as long the eightfold may take. In proportion it is up to twelve times, because caches hold less of it; the
/// square of it is sixty-four times.
const MOST: u32 = 20;
/// A time that is shorter is taken for this.
const LEAST: Duration = Duration::from_millis(50);
/// What takes longer is taken for work without an end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Fails unless the work grows in proportion. `prepare` gives the work on so much, of which no time is counted before it runs.
pub(crate) fn assert_in_proportion<W: FnOnce() + Send + 'static>(what: &str, prepare: impl Fn(usize) -> W) {
    // What else runs on the machine only adds to it.
    let mut measured = (0..3).map(|_| (spent(what, prepare(FEW)), spent(what, prepare(MANY))));
    let is_in_proportion = |(few, many): (Duration, Duration)| {
        println!("{what}: {few:?}, and eight times as much {many:?}");
        many < few.max(LEAST) * MOST
    };
    assert!(measured.any(is_in_proportion), "{what}: eight times as much takes more than {MOST} times as long");
}

/// How long the processor works on it. Work without an end is left behind, on its thread.
fn spent(what: &str, work: impl FnOnce() + Send + 'static) -> Duration {
    let (done, waiting) = mpsc::channel();
    thread::spawn(move || {
        let begun = processor_time();
        work();
        done.send(processor_time() - begun)
    });
    let spent = waiting.recv_timeout(PATIENCE);
    spent.unwrap_or_else(|error| panic!("{what}: it failed, or has not ended after {PATIENCE:?}: {error}"))
}

/// The time that a processor worked for this thread; where the system does not tell it, the time that passed.
fn processor_time() -> Duration {
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let Ok(stat) = fs::read_to_string("/proc/thread-self/stat") else { return BEGUN.elapsed() };
    // After the name, which may have spaces: fields 14 and 15 of proc(5), in hundredths of a second.
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let ticks = fields.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap());
    Duration::from_millis(10 * ticks.sum::<u64>())
}
