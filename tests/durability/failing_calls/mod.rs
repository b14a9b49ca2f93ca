//! Each system call of opening, committing and closing fails in turn, or the process ends before it: after that the store
//! opens, and holds what was acknowledged.
//!
//! `CONVO_FAULTS` says how many of all cases are tried on each engine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::program::{Ended, PATIENCE, convo, copy, number, run, verify};
use serde_json::Value;
use tempfile::TempDir;

/// The calls that change files.
const CALLS: &[&str] = &["fdatasync", "fsync", "sync_file_range", "pwrite", "write", "ftruncate", "rename"];
/// What happens to a call, and whether it happens to all later ones too.
const FAULTS: &[(&str, bool)] = &[
    ("EIO", false),
    ("EIO", true),
    ("ENOSPC", false),
    ("ENOSPC", true),
    ("short", false),
    ("short", true),
    ("kill", false),
];
/// Of more calls than this the first half and the last half of so many are taken.
const MOST_CALLS: u64 = 40;

/// What the program does while a call fails: appends lines to a store, new or not.
struct Work {
    name: &'static str,
    is_new: bool,
    lines: usize,
    line_bytes: usize,
}

const WORK: &[Work] = &[
    Work { name: "a new store", is_new: true, lines: 5, line_bytes: 300 },
    Work { name: "a store", is_new: false, lines: 5, line_bytes: 300 },
    // The log grows beyond a segment.
    Work { name: "large appends", is_new: false, lines: 10, line_bytes: 1_000_000 },
];

#[derive(Clone, Copy, Debug)]
struct Fault {
    call: &'static str,
    at: u64,
    how: &'static str,
    lasts: bool,
}

/// Compiles what comes between the program and the system. Absent: there is no compiler.
pub(crate) fn shim(dir: &Path) -> Option<PathBuf> {
    let shim = dir.join("fault.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/durability/failing_calls/fault.c");
    let mut compile = Command::new("cc");
    compile.args(["-Wall", "-Werror", "-shared", "-fPIC", "-o"]).args([&shim, &source]).arg("-ldl");
    match compile.output() {
        Ok(compiled) => assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr)),
        Err(error) => {
            crate::common::skipped(&format!("failing calls: there is no C compiler: {error}"));
            return None;
        }
    }
    Some(shim)
}

/// Where the cases run.
struct Place {
    engine: &'static str,
    dir: TempDir,
    shim: PathBuf,
}

impl Place {
    fn new(engine: &'static str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let shim = shim(dir.path())?;
        let place = Self { engine, dir, shim };
        place.lines("before", 5, 300);
        let prepared = run(place.append(&place.path("prepared"), "before"), PATIENCE);
        assert_eq!(prepared.exit, Some(0), "{prepared:?}");
        for work in WORK {
            place.lines(work.name, work.lines, work.line_bytes);
        }
        Some(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn url(&self, db: &Path) -> String {
        format!("{}:{}", self.engine, db.display())
    }

    fn lines(&self, name: &str, lines: usize, bytes: usize) {
        let line = format!(r#"{{"role":"user","chunks":[{{"type":"text","text":"{}"}}]}}"#, "x".repeat(bytes));
        fs::write(self.path(name), format!("{line}\n").repeat(lines)).unwrap();
    }

    fn append(&self, db: &Path, lines: &str) -> Command {
        convo(&["append", "chat", self.path(lines).to_str().unwrap(), "--json", "--store", &self.url(db)])
    }

    /// The store as it is before the work, if there is one.
    fn set_up(&self, work: &Work) -> PathBuf {
        let db = self.path("db");
        let _ = fs::remove_dir_all(&db);
        if !work.is_new {
            copy(&self.path("prepared"), &db);
        }
        db
    }

    fn watched(&self, db: &Path, work: &Work) -> Command {
        let mut command = self.append(db, work.name);
        command.env("LD_PRELOAD", &self.shim).env("FAULT_DIRECTORY", db);
        command
    }

    /// How often each call is made where nothing fails.
    fn counts(&self, work: &Work) -> BTreeMap<String, u64> {
        let (db, counts) = (self.set_up(work), self.path("counts"));
        let mut command = self.watched(&db, work);
        command.env("FAULT_COUNTS", &counts);
        let ended = run(command, PATIENCE);
        assert_eq!(ended.exit, Some(0), "{ended:?}");
        let counts = fs::read_to_string(counts).unwrap();
        let counts = counts.lines().map(|line| line.split_once(' ').unwrap());
        counts.map(|(call, count)| (call.to_owned(), count.parse().unwrap())).collect()
    }

    /// Tries a case. Gives how the program ended.
    fn try_case(&self, work: &Work, fault: Fault) -> Ended {
        let db = self.set_up(work);
        let mut command = self.watched(&db, work);
        command.env("FAULT_CALL", fault.call).env("FAULT_AT", fault.at.to_string()).env("FAULT_HOW", fault.how);
        if fault.lasts {
            command.env("FAULT_LASTS", "1");
        }
        let ended = run(command, PATIENCE);
        let case = format!("{}, {fault:?}: {ended:?}", work.name);
        assert!(!ended.hung, "{case}");
        let receipts: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        match (ended.exit, fault.how) {
            (Some(0), _) => assert_eq!(receipts.len(), work.lines, "{case}"),
            (Some(2), _) => assert!(ended.stderr.contains("{\"error\":{"), "{case}"),
            (None, "kill") => {}
            _ => panic!("{case}"),
        }
        let before = if work.is_new { 0 } else { 5 };
        let id = conversation_store::model::Name::from("chat").id();
        let acked = receipts.last().map_or(before, |receipt| receipt["last_seq"].as_u64().unwrap());
        let acks = self.path("acks");
        fs::write(&acks, format!("{id} {acked}\n")).unwrap();
        if acked > 0 {
            let verdict = verify(&self.url(&db), &acks);
            assert!(verdict.is_clean(), "{case}: {verdict:?}");
        }
        let after = run(self.append(&db, "before"), PATIENCE);
        assert_eq!(after.exit, Some(0), "{case}: {after:?}");
        ended
    }
}

/// All cases: work by work, call by call.
fn cases(place: &Place) -> Vec<(&'static Work, Fault)> {
    let mut cases = Vec::new();
    for work in WORK {
        let counts = place.counts(work);
        for call in CALLS {
            let count = counts[*call];
            for at in (1..=count).filter(|at| *at <= MOST_CALLS / 2 || *at > count - count.min(MOST_CALLS / 2)) {
                for (how, lasts) in FAULTS {
                    if *how != "short" || call.ends_with("write") {
                        cases.push((work, Fault { call, at, how, lasts: *lasts }));
                    }
                }
            }
        }
    }
    cases
}

/// `noticed`: the calls whose failure the program has to tell.
fn what_was_acknowledged_is_there_whatever_call_fails(engine: &'static str, noticed: &[&str]) {
    let Some(place) = Place::new(engine) else { return };
    let cases = cases(&place);
    let wanted = number("CONVO_FAULTS", 60) as usize;
    let mut ends: BTreeMap<(&str, &str), [u64; 3]> = BTreeMap::new();
    // Evenly spread, and every kind of fault comes up: a call has five of them, a write seven.
    let mut step = cases.len() / wanted.min(cases.len());
    while step.is_multiple_of(5) || step.is_multiple_of(7) {
        step += 1;
    }
    for (work, fault) in cases.iter().step_by(step) {
        let ended = place.try_case(work, *fault);
        let end = match ended.exit {
            Some(0) => 0,
            Some(_) => 1,
            None => 2,
        };
        ends.entry((fault.call, fault.how)).or_default()[end] += 1;
    }
    println!(
        "{engine}: {} cases of {}; call, fault: done, told, killed",
        cases.iter().step_by(step).count(),
        cases.len()
    );
    for ((call, how), [done, told, killed]) in &ends {
        println!("{call:16} {how:7} {done:4} {told:4} {killed:4}");
    }
    for call in noticed {
        assert!(ends.iter().any(|((of, _), [_, told, _])| of == call && *told > 0), "no fault of {call} was noticed");
    }
}

#[test]
fn whatever_call_of_sled_fails() {
    what_was_acknowledged_is_there_whatever_call_fails("sled", &["fdatasync", "sync_file_range", "pwrite"]);
}

#[cfg(feature = "fjall")]
#[test]
fn whatever_call_of_fjall_fails() {
    what_was_acknowledged_is_there_whatever_call_fails("fjall", &["fdatasync", "write"]);
}
