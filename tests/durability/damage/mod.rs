//! Files of a store are damaged: what is loaded then is what was said, or an error, or a problem that `verify` finds.
//!
//! `CONVO_DAMAGES` says how often on each engine.

mod examine;
mod expected;
mod injury;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::common::program::{Dice, copy, number, run};
use examine::{Examined, PLACE};
use injury::{Injury, WATERMARK};

/// What does not end by then hangs.
const PATIENCE: Duration = Duration::from_secs(60);
const SEED: u64 = 20_261_121;
/// Of so many injuries one comes together with a damaged watermark.
const WITH_WATERMARK: u64 = 5;

/// What became of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// All that was acknowledged is there, and nothing is found.
    OldData,
    /// All of it is there, and `verify` or opening tells of damage.
    OldDataTold,
    /// An error on opening.
    ErrorOnOpen,
    /// Something is missing, and loading it, opening or `verify` says so.
    ErrorOnLoad,
    SilentLoss,
    WrongData,
    Panic,
}

const OUTCOMES: &[(Outcome, &str)] = &[
    (Outcome::OldData, "old data"),
    (Outcome::OldDataTold, "old data, damage told"),
    (Outcome::ErrorOnOpen, "error on opening"),
    (Outcome::ErrorOnLoad, "error on loading, or told"),
    (Outcome::SilentLoss, "silent loss"),
    (Outcome::WrongData, "wrong data"),
    (Outcome::Panic, "panic or hang"),
];

/// Not a test by itself: what the other process does with a damaged store.
#[test]
fn the_other_process() {
    if let Some(place) = std::env::var_os(PLACE) {
        examine::examine(Path::new(&place));
    }
}

/// A store that was closed, or whose process was killed, and what it holds.
struct Original {
    dir: tempfile::TempDir,
    engine: &'static str,
}

impl Original {
    fn new(engine: &'static str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        expected::make(engine, dir.path());
        Self { dir, engine }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Damages a copy, and looks at it in a process of its own.
    fn try_case(&self, from: &str, dice: &mut Dice, with_watermark: bool) -> (Outcome, Option<Examined>, String) {
        let place = self.path("case");
        let _ = fs::remove_dir_all(&place);
        fs::create_dir(&place).unwrap();
        copy(&self.path(from), &place.join("db"));
        fs::copy(self.path("expected"), place.join("expected")).unwrap();
        let injury = Injury::inflict(&place.join("db"), dice);
        if with_watermark {
            fs::write(place.join("db").join(WATERMARK), b"damaged").unwrap();
        }
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "damage::the_other_process", "--nocapture"]);
        command.env(PLACE, &place).env("CONVO_DAMAGE_ENGINE", self.engine).env("RUST_BACKTRACE", "0");
        let ended = run(command, PATIENCE);
        let shown = format!("{from}, {injury}, watermark damaged: {with_watermark}");
        let examined = examine::read(&ended.stdout);
        match examined {
            Some(examined) if ended.exit == Some(0) => (outcome(&examined), Some(examined), shown),
            _ => (Outcome::Panic, None, format!("{shown}: {ended:?}")),
        }
    }
}

fn outcome(examined: &Examined) -> Outcome {
    let stages = &examined.stages;
    if stages.iter().any(|stage| stage.wrong > 0) {
        return Outcome::WrongData;
    }
    if stages.iter().any(|stage| stage.opened && stage.short > 0 && !stage.is_told) {
        return Outcome::SilentLoss;
    }
    let [reading, ..] = stages;
    if !reading.opened {
        return Outcome::ErrorOnOpen;
    }
    if reading.told + reading.short > 0 {
        return Outcome::ErrorOnLoad;
    }
    if stages.iter().any(|stage| stage.is_told) { Outcome::OldDataTold } else { Outcome::OldData }
}

fn damaged_files(engine: &'static str) {
    let mut dice = Dice::seeded(number("CONVO_SEED", SEED));
    let original = Original::new(engine);
    let mut table: BTreeMap<(bool, Outcome), u64> = BTreeMap::new();
    let mut loads: BTreeMap<Outcome, (u64, u64)> = BTreeMap::new();
    let mut failed = Vec::new();
    let cases = number("CONVO_DAMAGES", 12);
    for case in 0..cases {
        let from = if dice.below(2) == 0 { "closed" } else { "killed" };
        let with_watermark = dice.below(WITH_WATERMARK) == 0;
        let (outcome, examined, shown) = original.try_case(from, &mut dice, with_watermark);
        *table.entry((with_watermark, outcome)).or_default() += 1;
        let detail = examined.as_ref().map_or("", |examined| examined.stages[0].detail.as_str());
        println!("{engine} {case}: {outcome:?}: {shown}: {detail}");
        if outcome >= Outcome::SilentLoss {
            failed.push((shown, format!("{examined:?}")));
        }
        if let Some(examined) = examined {
            let (whole, count) = loads.entry(outcome).or_default();
            *whole += examined.stages[0].whole;
            *count += examined.expected;
        }
    }
    println!("{engine}: {cases} damages; in brackets: with the watermark damaged too");
    for (outcome, name) in OUTCOMES {
        let count = |with_watermark| table.get(&(with_watermark, *outcome)).copied().unwrap_or_default();
        let (whole, of) = loads.get(outcome).copied().unwrap_or_default();
        println!("{name:28} {:4} ({:2}) {:6.2} % load", count(false), count(true), percent(whole, of));
    }
    let (whole, of) = loads.values().fold((0, 0), |(whole, of), (more, count)| (whole + more, of + count));
    println!("of all conversations {:.2} % load", percent(whole, of));
    assert!(failed.is_empty(), "{failed:#?}");
}

fn percent(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { part as f64 * 100.0 / of as f64 }
}

#[test]
fn damaged_files_of_sled() {
    damaged_files("sled");
}

#[cfg(feature = "fjall")]
#[test]
fn damaged_files_of_fjall() {
    damaged_files("fjall");
}
