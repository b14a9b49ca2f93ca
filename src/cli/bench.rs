//! A load on the user's own disk, measured; and acknowledgements that a test can compare with the store.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use conversation_store::model::{Chunk, ConversationId, FinishReason, Message, Metadata, Role};
use conversation_store::{AppendOptions, Durability, Limits, Receipt, Store};
use serde::Serialize;

use super::failure::{Exit, Failure, Outcome};
use super::location::Location;
use super::output::{Output, Progress};
use super::text;
use super::values::seconds;

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
            .with_cure("--store sled:bench.db creates one"));
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
        max_us: done.latency.max,
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

/// Appends to a conversation before the next one begins.
const APPENDS: usize = 20;
/// Deltas of a streamed message, and the pause between them.
const DELTAS: usize = 40;
const PAUSE: Duration = Duration::from_millis(5);
const FILLER: &str = "The quick brown fox jumps over the lazy dog, and goes on. ";

/// What each thread does.
#[derive(Clone, Copy, Debug)]
struct Work {
    durability: Durability,
    /// Bytes of a message.
    chunk_bytes: usize,
    /// The least time from the start of one append to the start of the next.
    pause: Option<Duration>,
    mixed: bool,
}

/// The operations on a store.
#[derive(Debug)]
struct Load<'a> {
    store: &'a Store,
    acks: Acks,
    work: Work,
    stopped: AtomicBool,
    streamed: AtomicU64,
    text_bytes: AtomicU64,
}

/// What was done.
#[derive(Debug)]
struct Done {
    latency: Latency,
    /// Messages that were streamed to their end.
    streamed: u64,
    text_bytes: u64,
}

impl<'a> Load<'a> {
    fn new(store: &'a Store, acks: Acks, work: Work) -> Self {
        let (stopped, streamed, text_bytes) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
        Self { store, acks, work, stopped, streamed, text_bytes }
    }

    /// Runs this many threads for this long. `progress` is called with the time that has passed.
    fn run(&self, threads: u16, streams: u16, length: Duration, progress: impl Fn(Duration)) -> Result<Done, Failure> {
        let begun = Instant::now();
        let mut latency = Latency::default();
        let result = thread::scope(|scope| {
            let appending: Vec<_> = (0..threads).map(|_| scope.spawn(|| self.until_stopped(Self::converse))).collect();
            let streaming: Vec<_> = (0..streams).map(|_| scope.spawn(|| self.until_stopped(Self::stream))).collect();
            while begun.elapsed() < length && !self.stopped.load(Ordering::Acquire) {
                thread::sleep(Duration::from_millis(20).min(length.saturating_sub(begun.elapsed())));
                progress(begun.elapsed());
            }
            self.stopped.store(true, Ordering::Release);
            let mut result = Ok(());
            for thread in appending.into_iter().chain(streaming) {
                match thread.join() {
                    Ok(Ok(own)) => latency.add(&own),
                    Ok(Err(failure)) => result = Err(failure),
                    Err(_) => result = Err(Failure::failed("a thread of the measurement panicked")),
                }
            }
            result
        });
        result?;
        let (streamed, text_bytes) = (self.streamed.load(Ordering::Relaxed), self.text_bytes.load(Ordering::Relaxed));
        Ok(Done { latency, streamed, text_bytes })
    }

    fn until_stopped(&self, step: fn(&Self, &mut Latency) -> Result<(), Failure>) -> Result<Latency, Failure> {
        let mut latency = Latency::default();
        while !self.stopped.load(Ordering::Acquire) {
            step(self, &mut latency).inspect_err(|_| self.stopped.store(true, Ordering::Release))?;
        }
        Ok(latency)
    }

    /// One conversation.
    fn converse(&self, latency: &mut Latency) -> Result<(), Failure> {
        let mut id = ConversationId::new();
        for step in 0..APPENDS {
            if self.stopped.load(Ordering::Acquire) {
                break;
            }
            let mut options = AppendOptions::new().with_durability(self.work.durability);
            if self.work.mixed && step.is_multiple_of(4) {
                options = options.with_idempotency_key(format!("step {step}"));
            }
            let message = self.message(id, step);
            let begun = Instant::now();
            let receipt = self.store.append_with(id, &[message], &options)?;
            latency.note(begun.elapsed());
            self.acknowledge(&receipt)?;
            if self.work.mixed {
                id = self.change(id, step, &receipt)?;
            }
            if let Some(pause) = self.work.pause {
                thread::sleep(pause.saturating_sub(begun.elapsed()));
            }
        }
        Ok(())
    }

    /// Something else that happens to a conversation. Returns the conversation to continue with.
    fn change(&self, id: ConversationId, step: usize, last: &Receipt) -> Result<ConversationId, Failure> {
        match step {
            4 => self.acknowledge(&self.store.set_title(id, Some("A measurement"))?)?,
            8 => {
                let index = last.message_indexes.last().copied().unwrap_or_default();
                self.acknowledge(&self.store.rewind(id, index)?)?;
            }
            12 => {
                let at_seq = last.last_seq - 1;
                let child = self.store.fork(id, Some(at_seq))?;
                self.acks.note(child, at_seq)?;
                return Ok(child);
            }
            _ => {}
        }
        Ok(id)
    }

    /// One conversation with a streamed answer; every fourth writer is dropped before the end.
    fn stream(&self, _: &mut Latency) -> Result<(), Failure> {
        let id = ConversationId::new();
        self.acknowledge(&self.store.append(id, &[Message::user("Tell me.")])?)?;
        let mut writer = self.store.begin(id, Role::Assistant, Metadata::default())?;
        self.acks.note(id, writer.first_seq())?;
        let delta = filler(&id.to_string(), self.work.chunk_bytes.div_ceil(DELTAS));
        let is_finished = id.as_bytes().last().is_none_or(|byte| byte % 4 != 0);
        let deltas = if is_finished { DELTAS } else { DELTAS / 2 };
        for _ in 0..deltas {
            if self.stopped.load(Ordering::Acquire) {
                return Ok(());
            }
            writer.push(0, Chunk::text(&delta))?;
            self.text_bytes.fetch_add(delta.len() as u64, Ordering::Relaxed);
            thread::sleep(PAUSE);
        }
        if is_finished {
            self.acknowledge(&writer.finish(Some(FinishReason::Stop), None)?)?;
            self.streamed.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn message(&self, id: ConversationId, step: usize) -> Message {
        let text = filler(&format!("{id} {step} "), self.work.chunk_bytes);
        self.text_bytes.fetch_add(text.len() as u64, Ordering::Relaxed);
        if step.is_multiple_of(2) { Message::user(text) } else { Message::assistant([Chunk::text(text)]) }
    }

    fn acknowledge(&self, receipt: &Receipt) -> Result<(), Failure> {
        self.acks.note(receipt.conversation, receipt.last_seq)
    }
}

/// This many bytes, beginning as given.
fn filler(begin: &str, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + FILLER.len());
    text.push_str(begin);
    while text.len() < bytes {
        text.push_str(FILLER);
    }
    text.truncate(bytes);
    text
}

/// The file, if the caller named one.
#[derive(Debug)]
struct Acks(Option<Mutex<File>>);

impl Acks {
    fn create(path: Option<&Path>) -> Result<Self, Failure> {
        let create = |path: &Path| {
            File::create_new(path).map_err(|error| Failure::usage(format!("cannot create {}: {error}", path.display())))
        };
        Ok(Self(path.map(create).transpose()?.map(Mutex::new)))
    }

    /// Writes a line with one call: a line that is complete was acknowledged.
    fn note(&self, conversation: ConversationId, last_seq: u64) -> Result<(), Failure> {
        let Some(file) = &self.0 else { return Ok(()) };
        let line = format!("{conversation} {last_seq}\n");
        let written = file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
        written.map_err(|error| Failure::failed(format!("cannot write the acks: {error}")))
    }
}

/// Microseconds, counted: a long run needs no more memory than a short one.
#[derive(Clone, Debug, Default)]
struct Latency {
    counts: BTreeMap<u64, u64>,
    max: u64,
}

impl Latency {
    fn note(&mut self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        *self.counts.entry(rounded_up(micros)).or_default() += 1;
        self.max = self.max.max(micros);
    }

    fn add(&mut self, other: &Self) {
        for (micros, count) in &other.counts {
            *self.counts.entry(*micros).or_default() += count;
        }
        self.max = self.max.max(other.max);
    }

    fn count(&self) -> u64 {
        self.counts.values().sum()
    }

    /// The time in which this many calls of a hundred were done.
    fn percentile(&self, percent: u64) -> u64 {
        let wanted = (self.count() * percent).div_ceil(100);
        let mut seen = 0;
        let reached = self.counts.iter().find(|(_, count)| {
            seen += **count;
            seen >= wanted
        });
        reached.map_or(0, |(micros, _)| *micros).min(self.max)
    }
}

/// To six bits: a figure is at most 1/32 too high.
const fn rounded_up(micros: u64) -> u64 {
    let shift = (u64::BITS - micros.leading_zeros()).saturating_sub(6);
    micros | ((1 << shift) - 1)
}

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

    #[test]
    fn every_time_is_counted_as_one_that_is_close() {
        for micros in (0..5000).chain([65_535, 65_536, 1_000_000, 86_400_000_000]) {
            let upper = rounded_up(micros);
            assert!(upper >= micros && upper - micros <= micros / 32, "{micros}: {upper}");
        }
    }

    #[test]
    fn percentiles() {
        let mut latency = Latency::default();
        for micros in 1..=100 {
            latency.note(Duration::from_micros(micros));
        }
        let mut all = Latency::default();
        all.add(&latency);
        assert_eq!((all.count(), all.max), (100, 100));
        assert_eq!(all.percentile(1), 1);
        assert!((50..=51).contains(&all.percentile(50)));
        assert!((99..=100).contains(&all.percentile(99)));
        assert_eq!(Latency::default().percentile(99), 0);
    }
}
