//! The whole store beside hand-written peers that do the same job at the same durability.
//!
//! `cargo bench --bench peers --features peers,fjall` measures all, which takes a quarter of an hour; `-- --quick` takes
//! three minutes, with fewer rounds and small stores; `cargo test --bench peers --features peers,fjall` only checks that all
//! engines give back the same. `src/docs/performance.md` says how it is measured.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a benchmark fails by panicking")]

mod agree;
mod engines;
mod options;
mod place;
mod report;
mod rounds;
mod texts;
mod workloads;

use std::fs::File;
use std::process::ExitCode;

use options::Options;
use workloads::{Bench, WORKLOADS};

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("{problem}\n\n{}", options::USAGE);
            return ExitCode::from(2);
        }
    };
    let names = || WORKLOADS.iter().flat_map(|workload| workload.names);
    if let Some(unknown) = options.only.iter().find(|only| !names().any(|name| name == only)) {
        eprintln!("{unknown} is no workload; these are: {}", names().copied().collect::<Vec<_>>().join(", "));
        return ExitCode::from(2);
    }
    if let Some(fill) = options.fill {
        workloads::open::fill_and_wait(&options, fill);
        return ExitCode::SUCCESS;
    }
    if let Some(table) = &options.grow {
        workloads::growth::print_table(&options, table);
        return ExitCode::SUCCESS;
    }
    let dir = match place::directory(options.dir.as_deref()) {
        Ok(dir) => dir,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::from(2);
        }
    };
    let bench = Bench::new(options, dir.path());
    agree::check(&bench);
    if bench.options.bench {
        run(&bench);
    }
    ExitCode::SUCCESS
}

fn run(bench: &Bench) {
    let json = bench.options.json.as_ref();
    let mut json = json.map(|path| File::options().create(true).append(true).open(path).unwrap());
    let mut all = Vec::new();
    for workload in WORKLOADS.iter().filter(|workload| bench.wants(workload)) {
        let measured = (workload.run)(bench);
        for measured in measured.into_iter().filter(|measured| bench.wants_result(measured)) {
            if let Some(file) = &mut json {
                report::write_json(file, &measured);
            }
            all.push(measured);
        }
    }
    if !all.is_empty() {
        println!("\n{}\n", place::machine(&bench.dir));
        report::print_values(&all);
        println!();
        report::print_ratios(&all);
    }
}
