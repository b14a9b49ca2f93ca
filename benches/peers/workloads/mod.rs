//! What is measured.
//!
//! To add a workload: a function that measures it for all engines, and one row in [`WORKLOADS`].

mod answers;
mod append;
mod disk;
pub(crate) mod growth;
mod import;
mod list;
mod load;
pub(crate) mod open;
mod profile;
mod stream;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::engines::{ENGINES, Engine, Peer};
use crate::options::Options;
use crate::rounds::{Measured, Unit};

/// A function, and the names of what it measures.
pub(crate) struct Workload {
    pub(crate) names: &'static [&'static str],
    pub(crate) run: fn(&Bench) -> Vec<Measured>,
    /// Only where it is asked for.
    on_demand: bool,
}

const fn workload(names: &'static [&'static str], run: fn(&Bench) -> Vec<Measured>) -> Workload {
    Workload { names, run, on_demand: false }
}

/// All of them, in the order of the report.
pub(crate) const WORKLOADS: &[Workload] = &[
    workload(&["append"], append::distinct),
    workload(&["append_idempotent"], append::idempotent),
    workload(&["append_one_conversation"], append::one_conversation),
    workload(&["stream"], stream::run),
    workload(&["answers"], answers::run),
    workload(&["import"], import::run),
    workload(&["load_warm", "load_over_decode", "load_cold", "tail"], load::run),
    workload(&["load_large"], load::large),
    workload(&["list"], list::run),
    workload(&["open_clean", "open_killed", "memory"], open::run),
    workload(&["disk"], disk::run),
    Workload { names: &["growth"], run: growth::run, on_demand: true },
    Workload { names: &["profile"], run: profile::run, on_demand: true },
];

/// One run of the program.
pub(crate) struct Bench {
    pub(crate) options: Options,
    pub(crate) dir: PathBuf,
}

impl Bench {
    pub(crate) fn new(options: Options, dir: &Path) -> Self {
        Self { options, dir: dir.to_owned() }
    }

    pub(crate) fn wants(&self, workload: &Workload) -> bool {
        let only = &self.options.only;
        if only.is_empty() {
            !workload.on_demand
        } else {
            only.iter().any(|name| workload.names.contains(&name.as_str()))
        }
    }

    pub(crate) fn wants_result(&self, measured: &Measured) -> bool {
        let only = &self.options.only;
        only.is_empty() || only.iter().any(|name| name == measured.workload)
    }

    /// A size: the first, or the second in a quick run.
    pub(crate) fn size(&self, full: usize, quick: usize) -> usize {
        if self.options.quick { quick } else { full }
    }

    /// How long a round takes for one engine.
    fn round_time(&self) -> Duration {
        Duration::from_millis(self.size(400, 50) as u64)
    }

    /// The numbers of threads that are asked for.
    fn threads(&self, of: &[usize]) -> Vec<usize> {
        of.iter().copied().filter(|threads| self.options.threads.is_none_or(|only| only == *threads)).collect()
    }

    /// The engines that are asked for.
    pub(crate) fn engines(&self, wanted: impl Fn(&Engine) -> bool) -> Vec<Engine> {
        let only = &self.options.engines;
        let named = |engine: &&Engine| only.is_empty() || only.iter().any(|name| name == engine.name);
        ENGINES.iter().filter(named).filter(|engine| wanted(engine)).copied().collect()
    }

    /// Where an engine's store is made for a workload.
    pub(crate) fn path(&self, workload: &str, engine: &Engine) -> PathBuf {
        self.dir.join(workload).join(engine.name)
    }

    /// Opens new stores.
    fn open(&self, workload: &str, engines: Vec<Engine>) -> Vec<(Engine, Box<dyn Peer>)> {
        let open = |engine: Engine| {
            let path = self.path(workload, &engine);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            (engine, (engine.open)(&path))
        };
        engines.into_iter().map(open).collect()
    }

    /// Removes what a workload has made.
    pub(crate) fn remove(&self, workload: &str) {
        let path = self.dir.join(workload);
        if path.exists() {
            fs::remove_dir_all(path).unwrap();
        }
    }

    /// Ends the stores of a workload, and removes them.
    fn end(&self, workload: &str, peers: Vec<(Engine, Box<dyn Peer>)>) {
        peers.into_iter().for_each(|(_, peer)| peer.close());
        self.remove(workload);
    }
}

fn measured(workload: &'static str, unit: Unit, series: Vec<(&'static str, Vec<f64>)>) -> Measured {
    Measured { workload, threads: 1, unit, series }
}
