//! The power is cut under a store that is being written: everything that was acknowledged is there afterwards, whole.
//!
//! Needs root, mount and mkfs.ext4; `CONVO_POWER_CUTS` says how often on each engine. `docs/durability.md` has the long run.
//! A program of its own: how old an append may be that a cut takes is a promise in time, and other tests take time.
#![cfg(all(feature = "cli", target_os = "linux"))]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

use std::collections::HashMap;
use std::fs;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::common::disk::{Cut, Disk};
use crate::common::program::{Dice, Verdict, Writer, number, still_owed, verify};

/// What is written while the power goes.
struct Load {
    name: &'static str,
    /// The store lives through all cuts; else each round has a new one.
    keeps: bool,
    args: &'static [&'static str],
}

const DURABLE: &[Load] = &[
    Load { name: "new, 1 thread", keeps: false, args: &["--threads", "1"] },
    Load { name: "new, 8 threads", keeps: false, args: &["--threads", "8"] },
    Load { name: "new, 32 threads", keeps: false, args: &["--threads", "32"] },
    Load { name: "kept, 1 thread", keeps: true, args: &["--threads", "1"] },
    Load { name: "kept, 8 threads", keeps: true, args: &["--threads", "8"] },
    Load { name: "kept, 32 threads", keeps: true, args: &["--threads", "32"] },
    Load { name: "new, forks, rewinds, streams", keeps: false, args: &["--threads", "8", "--mixed", "--streams", "4"] },
    Load { name: "kept, forks, rewinds, streams", keeps: true, args: &["--threads", "8", "--mixed", "--streams", "4"] },
    Load { name: "kept, chunks of 1 MB", keeps: true, args: &["--threads", "4", "--chunk-bytes", "1000000"] },
    Load { name: "new, chunks of 1 MB", keeps: false, args: &["--threads", "2", "--chunk-bytes", "1000000"] },
    // More than the journal before sled holds: sled gets each by itself.
    Load { name: "kept, chunks of 20 MB", keeps: true, args: &["--threads", "2", "--chunk-bytes", "20000000"] },
];

/// What a cut may take of a buffered load.
enum Most {
    /// Appends up to this age: the store's window, and two commits on a machine that does other things too. What syncs of the
    /// disk take comes on top.
    Age(Duration),
    /// Appends of this many bytes: appends come faster than the disk takes them.
    Bytes(usize),
}

/// The window of 25 ms, and commits.
const WINDOW: Most = Most::Age(Duration::from_millis(500));
/// 4 MiB that wait, and a commit of twice as much that is in progress.
const QUEUE: Most = Most::Bytes(12 * 1024 * 1024);
/// What `convo bench` appends, if nothing else is said.
const APPEND_BYTES: usize = 1500;

const BUFFERED: &[(Load, Most)] = &[
    (
        Load {
            name: "new, 4 threads, 800 a second",
            keeps: false,
            args: &["--threads", "4", "--rate", "200", "--durability", "buffered"],
        },
        WINDOW,
    ),
    (
        Load {
            name: "kept, 4 threads, 800 a second, streams",
            keeps: true,
            args: &["--threads", "4", "--rate", "200", "--streams", "4", "--durability", "buffered"],
        },
        WINDOW,
    ),
    (
        Load { name: "kept, as fast as it can", keeps: true, args: &["--threads", "2", "--durability", "buffered"] },
        QUEUE,
    ),
];

/// How long is written before the cut, from the first acknowledgement on, at most.
const LONGEST: Duration = Duration::from_millis(2500);
/// What an image may take before a new one is made.
const FULL: u64 = 1_000_000_000;

/// The disks share what is below them. Where time is measured, nobody else may use it.
static DISK: RwLock<()> = RwLock::new(());

/// How the power can be cut, and how often it is to be. Absent: it cannot be, and nobody insists.
fn cuts() -> Option<(Cut, u64)> {
    let required = number("CONVO_REQUIRE_MOUNT", 0) == 1;
    let rounds = number("CONVO_POWER_CUTS", if required { 10 } else { 0 });
    match crate::common::disk::cut() {
        _ if rounds == 0 => crate::common::skipped("power cuts: CONVO_POWER_CUTS=10 asks for them, as root"),
        Err(error) if required => panic!("a disk to cut the power of cannot be had: {error}"),
        Err(error) => {
            crate::common::skipped(&format!("power cuts: a disk cannot be had: {error}"));
        }
        Ok(cut) => return Some((cut, rounds)),
    }
    None
}

/// The numbers of fsync, fdatasync and `sync_file_range`: on arm64 and riscv64 they are the same.
const SYNCS: [&str; 3] = if cfg!(target_arch = "x86_64") { ["74", "75", "277"] } else { ["82", "83", "84"] };

/// Notes by which calls the threads of a program wait for a disk: the kernel shows what they are in.
struct Watch {
    /// The watch ends when this is dropped.
    stop: Sender<()>,
    watching: JoinHandle<Vec<SyncCall>>,
}

/// A call that syncs, as it was seen.
#[derive(Clone)]
struct SyncCall {
    /// Its number, and what it was given.
    call: String,
    begun: Instant,
    seen: Instant,
}

impl Watch {
    fn start(process: u32) -> Self {
        // If they cannot be read, no sync is seen.
        for file in ["syscall", "io"] {
            fs::read_to_string(format!("/proc/{process}/{file}")).unwrap();
        }
        let (stop, stopped) = mpsc::channel();
        let watching = thread::spawn(move || {
            let (mut calls, mut current) = (Vec::new(), HashMap::new());
            while stopped.recv_timeout(Duration::from_millis(5)) == Err(RecvTimeoutError::Timeout) {
                current = syncing(process, &current);
                calls.extend(current.values().cloned());
            }
            calls
        });
        Self { stop, watching }
    }

    fn end(self) -> Vec<SyncCall> {
        drop(self.stop);
        self.watching.join().unwrap()
    }
}

/// The syncs that threads of a process are in, those that were seen before among them. By the thread, and how often it wrote: who
/// commits writes between two syncs. sled writes in other threads, so two syncs of a checkpoint may be seen as one.
fn syncing(process: u32, before: &HashMap<String, SyncCall>) -> HashMap<String, SyncCall> {
    let seen = Instant::now();
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
    let calls = tasks.filter_map(|task| {
        let task = task.ok()?.path();
        let call = fs::read_to_string(task.join("syscall")).ok()?;
        let number = call.split_whitespace().next()?;
        // In a long call a thread runs now and then.
        let runs = number == "running";
        if !runs && !SYNCS.contains(&number) {
            return None;
        }
        let io = fs::read_to_string(task.join("io")).ok()?;
        let name = format!("{} {}", task.display(), io.lines().find(|line| line.starts_with("syscw"))?);
        let known = before.get(&name);
        let sync = if runs {
            known?.clone()
        } else {
            let begun = known.filter(|known| known.call == call).map_or(seen, |known| known.begun);
            SyncCall { call, begun, seen }
        };
        Some((name, sync))
    });
    calls.collect()
}

/// The longest that a sync took before a cut, of those that an append of this age may have waited for.
fn longest(calls: &[SyncCall], cut_at: Instant, age: Duration) -> Duration {
    let waited_for = calls.iter().filter(|call| call.seen + age >= cut_at);
    waited_for.map(|call| call.seen.min(cut_at).saturating_duration_since(call.begun)).max().unwrap_or_default()
}

/// The rounds of one load.
struct Series<'a> {
    engine: &'static str,
    load: &'a Load,
    options: &'static str,
    disk: Disk,
    rounds: u64,
    /// What was acknowledged in earlier rounds of a store that lives on.
    acknowledged: String,
}

/// What a round came to.
struct Round {
    verdict: Verdict,
    /// How long it wrote before the cut, at least.
    wrote: Duration,
    /// The longest that a sync took which the oldest of what is lost may have waited for.
    synced: Duration,
    acknowledged: usize,
    /// How many of these are not there.
    lost: usize,
    /// How long before the cut the first of them was acknowledged.
    oldest_lost: Option<Duration>,
}

impl<'a> Series<'a> {
    fn new(engine: &'static str, load: &'a Load, options: &'static str) -> Self {
        Self { engine, load, options, disk: Disk::new().unwrap(), rounds: 0, acknowledged: String::new() }
    }

    fn round(&mut self, cut: Cut, dice: &mut Dice) -> Round {
        if self.disk.used() > FULL {
            self.disk = Disk::new().unwrap();
            self.acknowledged.clear();
        }
        self.rounds += 1;
        let name = if self.load.keeps { "kept".to_owned() } else { format!("new-{}", self.rounds) };
        let path = self.disk.mount_point().join(name);
        let store = format!("{}:{}{}", self.engine, path.display(), self.options);
        let file = self.disk.outside("acks");
        let _ = fs::remove_file(&file);
        let mut writer = Writer::start(&store, &file, self.load.args);
        let wrote = dice.time(LONGEST);
        let watch = self.load.args.contains(&"--rate").then(|| Watch::start(writer.process()));
        writer.write_for(wrote);
        let cut_at = Instant::now();
        self.disk.cut(cut, &writer);
        let calls = watch.map(Watch::end).unwrap_or_default();
        let acks = writer.kill();
        self.disk.remount();
        let all = format!("{}{}", self.acknowledged, acks.whole());
        fs::write(&file, &all).unwrap();
        let verdict = verify(&store, &file);
        let oldest_lost = acks.first_lost(&verdict.lost).map(|time| cut_at - time);
        let synced = oldest_lost.map_or(Duration::ZERO, |age| longest(&calls, cut_at, age));
        let is_newest = verdict.lost.is_empty() || oldest_lost.is_some();
        assert!(is_newest, "{}: what was there after an earlier cut is gone: {verdict:?}", self.load.name);
        if self.load.keeps {
            self.acknowledged = still_owed(&all, &verdict.lost);
        } else {
            fs::remove_dir_all(path).unwrap();
        }
        let (acknowledged, kept) = (acks.whole(), still_owed(acks.whole(), &verdict.lost));
        let [acknowledged, kept] = [acknowledged, &kept].map(|acks| acks.lines().count());
        Round { verdict, wrote, synced, acknowledged, lost: acknowledged - kept, oldest_lost }
    }
}

fn what_is_durable_survives(engine: &'static str) {
    let _disk = DISK.read().unwrap_or_else(PoisonError::into_inner);
    let Some((cut, rounds)) = cuts() else { return };
    let mut dice = Dice::new();
    let mut series: Vec<Series<'_>> = DURABLE.iter().map(|load| Series::new(engine, load, "")).collect();
    let (mut acknowledged, count) = (0, series.len());
    for round in 0..rounds {
        let at = round as usize % count;
        // The other way of cutting the power is kept in use.
        let cut = if dice.below(8) == 0 { Cut::Copy } else { cut };
        let done = series[at].round(cut, &mut dice);
        let (load, entries) = (series[at].load.name, done.verdict.entries);
        println!("{engine} {round}: {load}, {cut:?}: {} acknowledged, {entries} entries", done.acknowledged);
        assert!(done.verdict.is_clean(), "{load}, {cut:?}: {:?}", done.verdict);
        acknowledged += done.acknowledged;
    }
    println!("{engine}: {rounds} power cuts, {acknowledged} acknowledgements: nothing was lost");
}

fn what_is_buffered_loses_no_more_than_waits(engine: &'static str) {
    let _alone = DISK.write().unwrap_or_else(PoisonError::into_inner);
    let Some((cut, rounds)) = cuts() else { return };
    let mut dice = Dice::new();
    let mut series: Vec<(Series<'_>, &Most)> =
        BUFFERED.iter().map(|(load, most)| (Series::new(engine, load, ""), most)).collect();
    let (mut acknowledged, mut blind, count) = (0, 0, series.len());
    let rounds = rounds.div_ceil(2);
    for round in 0..rounds {
        let (series, most) = &mut series[round as usize % count];
        let done = series.round(cut, &mut dice);
        let (load, lost, oldest) = (series.load.name, done.lost, done.oldest_lost.unwrap_or_default());
        println!(
            "{engine} {round}: {load}: {} acknowledged, {lost} lost, the oldest {oldest:?} old",
            done.acknowledged
        );
        assert_eq!(done.verdict.broken, [""; 0], "{load}: the store opens, and has no hole");
        let could_show_more = match most {
            Most::Age(age) => {
                let most = *age + 2 * done.synced;
                println!("{engine} {round}: it may have waited for syncs of up to {:?}", done.synced);
                assert!(oldest <= most, "{load}: an append is gone that was {oldest:?} old, more than {most:?}");
                done.wrote > most
            }
            Most::Bytes(bytes) => {
                assert!(lost * APPEND_BYTES <= *bytes, "{load}: {lost} appends are gone, which is more than waits");
                done.acknowledged * APPEND_BYTES > *bytes
            }
        };
        blind += u64::from(!could_show_more);
        acknowledged += done.acknowledged;
    }
    println!("{engine}: {rounds} power cuts, {acknowledged} buffered appends: no more lost than waited");
    if blind > 0 {
        println!("{engine}: {blind} of them wrote too little to lose more than may wait");
    }
    if blind == rounds {
        crate::common::skipped("how much a power cut takes of buffered appends: each round wrote less than may wait");
    }
}

/// Without the syncs of our own, the same test has to fail: else it would prove nothing.
fn what_is_never_synced_does_not_survive(engine: &'static str) {
    let _disk = DISK.read().unwrap_or_else(PoisonError::into_inner);
    let Some((cut, rounds)) = cuts() else { return };
    let mut dice = Dice::new();
    let mut series = Series::new(engine, &DURABLE[1], "?sync=never");
    for round in 0..rounds {
        let done = series.round(cut, &mut dice);
        let verdict = done.verdict;
        println!("{engine} {round}: {} acknowledged, clean: {}", done.acknowledged, verdict.is_clean());
        if !verdict.is_clean() {
            return;
        }
    }
    panic!("{rounds} power cuts took nothing from a store that never syncs: the test is blind");
}

#[test]
fn what_is_durable_survives_on_sled() {
    what_is_durable_survives("sled");
}

#[test]
fn what_is_buffered_loses_no_more_than_waits_on_sled() {
    what_is_buffered_loses_no_more_than_waits("sled");
}

#[test]
fn what_is_never_synced_does_not_survive_on_sled() {
    what_is_never_synced_does_not_survive("sled");
}

#[cfg(feature = "fjall")]
mod fjall {
    #[test]
    fn what_is_durable_survives_on_fjall() {
        super::what_is_durable_survives("fjall");
    }

    #[test]
    fn what_is_buffered_loses_no_more_than_waits_on_fjall() {
        super::what_is_buffered_loses_no_more_than_waits("fjall");
    }

    #[test]
    fn what_is_never_synced_does_not_survive_on_fjall() {
        super::what_is_never_synced_does_not_survive("fjall");
    }
}
