//! A load on the user's own disk, measured; and acknowledgements that a test can compare with the store.

mod acks;
mod latency;
mod load;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use conversation_store::{Durability, Limits};
use serde::Serialize;

use super::failure::{Exit, Failure, Outcome};
use super::location::Location;
use super::output::Output;
use super::progress::Progress;
use super::text;
use super::values::seconds;
use acks::Acks;
use load::{Load, Work};

const EXAMPLES: &str = "\
Examples:
  convo bench --store sled:bench.db --threads 8 --seconds 10
  convo bench --store sled:bench.db --durability buffered
  convo bench --store sled:bench.db --mixed --streams 4 --acks acks.txt
  convo verify --store sled:bench.db --acks acks.txt

Each thread appends to new conversations of its own, one message per append, one append after the other. You must name \
the store; it is created if it does not exist, and its conversations stay. To test what a power cut takes: write the \
acks to another disk, cut the power, verify.";

/// Measure what appends cost on this disk
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// Threads that append
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(0..=1024))]
    threads: u16,
    /// Threads that stream messages, a delta every 5 ms
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=1024))]
    streams: u16,
    /// How long
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    seconds: Duration,
    /// When an append returns: once it survives a power cut, or once it is queued
    #[arg(long, value_name = "WHEN", default_value = "durable")]
    durability: When,
    /// Bytes of a message's text
    #[arg(long, value_name = "N", default_value_t = 1500, value_parser = chunk_bytes)]
    chunk_bytes: usize,
    /// The most appends per second of each thread; without it, as fast as it can
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rate: Option<u32>,
    /// Also fork, rewind, set titles and use idempotency keys
    #[arg(long)]
    mixed: bool,
    /// A new file that gets a line for each acknowledged append: `conversation last_seq`
    #[arg(long, value_name = "FILE")]
    acks: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum When {
    Durable,
    Buffered,
}

#[derive(Debug, Serialize)]
struct Shown {
    seconds: f64,
    appends: u64,
    appends_per_second: f64,
    p50_us: u64,
    p99_us: u64,
    max_us: u64,
    streamed: u64,
    text_bytes: u64,
    /// How much more the store takes on disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    disk_bytes: Option<u64>,
}

pub(super) fn run(args: &Args, location: &Location, output: &mut Output) -> Outcome {
    if args.threads + args.streams == 0 {
        return Err(Failure::usage("--threads 0 without --streams: nothing would append"));
    }
    if args.seconds.is_zero() {
        return Err(Failure::usage("--seconds 0 measures nothing"));
    }
    if !location.is_named() {
        return Err(Failure::usage("name the store to measure in: bench writes a lot")
            .with_hint("--store sled:bench.db creates one"));
    }
    let store = location.create()?;
    let before = store.size()?.bytes;
    let durability = match args.durability {
        When::Durable => Durability::Durable,
        When::Buffered => Durability::Buffered,
    };
    let work = Work {
        durability,
        chunk_bytes: args.chunk_bytes,
        pause: args.rate.map(|rate| Duration::from_secs(1) / rate),
        mixed: args.mixed,
    };
    let load = Load::new(&store, Acks::create(args.acks.as_deref())?, work);
    let progress = Progress::seconds();
    let begun = Instant::now();
    let done = load.run(args.threads, args.streams, args.seconds, |passed| {
        progress.set_of(passed.as_secs(), args.seconds.as_secs());
    })?;
    store.close()?;
    let took = begun.elapsed().as_secs_f64();
    drop(progress);
    let after = store.size()?.bytes;
    let rounded = |number: f64| (number * 100.0).round() / 100.0;
    let shown = Shown {
        seconds: rounded(took),
        appends: done.latency.count(),
        appends_per_second: rounded(done.latency.count() as f64 / took),
        p50_us: done.latency.percentile(50),
        p99_us: done.latency.percentile(99),
        max_us: done.latency.max(),
        streamed: done.streamed,
        text_bytes: done.text_bytes,
        disk_bytes: after.zip(before).map(|(after, before)| after.saturating_sub(before)),
    };
    output.result(&shown, || text(&shown))?;
    Ok(Exit::Done)
}

fn text(shown: &Shown) -> String {
    let Shown { seconds, appends, appends_per_second, p50_us, p99_us, max_us, streamed, text_bytes, disk_bytes } =
        shown;
    let megabytes = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    let mut out = format!(
        "{} in {seconds} s: {appends_per_second:.0} a second\n\
         latency: p50 {p50_us} µs, p99 {p99_us} µs, longest {max_us} µs\n\
         {} of text",
        text::count(*appends, "append"),
        megabytes(*text_bytes),
    );
    if let Some(bytes) = disk_bytes {
        out.push_str(&format!(", {} more on disk", megabytes(*bytes)));
    }
    if *streamed > 0 {
        out.push_str(&format!("\n{}", text::count(*streamed, "streamed message")));
    }
    out
}

fn chunk_bytes(text: &str) -> Result<usize, String> {
    let bytes = text.parse::<usize>().ok().filter(|bytes| (1..=Limits::CHUNK_BYTES).contains(bytes));
    bytes.ok_or(format!("expected 1 to {}", Limits::CHUNK_BYTES))
}

/// The bytes of all files below a path.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_the_rate_first() {
        let shown = Shown {
            seconds: 2.0,
            appends: 3000,
            appends_per_second: 1500.4,
            p50_us: 210,
            p99_us: 900,
            max_us: 4000,
            streamed: 1,
            text_bytes: 4_500_000,
            disk_bytes: Some(8_388_608),
        };
        let wanted = "\
3000 appends in 2 s: 1500 a second
latency: p50 210 µs, p99 900 µs, longest 4000 µs
4.5 MB of text, 8.4 MB more on disk
1 streamed message";
        assert_eq!(text(&shown), wanted);
        let memory = Shown { streamed: 0, disk_bytes: None, ..shown };
        assert!(text(&memory).ends_with("4.5 MB of text"));
    }
}
