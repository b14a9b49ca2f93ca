//! What every log must do, one promise a test, each on every place that a store can be in.
//!
//! The tests know the public interface of the store alone. To put another log behind it: a row in [`PLACES`].
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod appends;
mod changes;
#[path = "../common/mod.rs"]
mod common;
mod control;
mod forks;
mod incident;
mod items;
mod lists;
mod model;
mod owners;
mod place;
mod reading;
mod redaction;
mod retention;
mod said;
mod streams;
mod summaries;
mod threads;
mod usage;
mod values;

use std::process::ExitCode;

use conversation_store::Interruption;
use libtest_mimic::{Arguments, Completion, Trial};
use place::{Place, Row};

/// Where a store can be.
const PLACES: &[Row] = &[
    Row {
        name: "memory",
        missing: || None,
        url: |_| "memory:".to_owned(),
        empty: None,
        served: false,
        near: true,
        survives: false,
        buffers: true,
        closed: Interruption::Reopened,
    },
    Row {
        name: "sled",
        missing: || (!cfg!(feature = "sled")).then(|| "the feature sled is off".to_owned()),
        url: |dir| format!("sled:{}?cache_mb=1", dir.display()),
        empty: None,
        served: false,
        near: true,
        survives: true,
        buffers: true,
        closed: Interruption::Reopened,
    },
    Row {
        name: "fjall",
        missing: || (!cfg!(feature = "fjall")).then(|| "the feature fjall is off".to_owned()),
        url: |dir| format!("fjall:{}?cache_mb=1", dir.display()),
        empty: None,
        served: false,
        near: true,
        survives: true,
        buffers: true,
        closed: Interruption::Reopened,
    },
    #[cfg(all(feature = "postgres", unix))]
    Row {
        name: "postgres",
        missing: common::postgres::missing,
        // No lease runs out here, however slow the machine is: `tests/postgres` has those that do.
        url: |_| common::postgres::server().unwrap().url() + "&lease_seconds=3600",
        empty: Some(common::postgres::empty),
        served: false,
        near: false,
        survives: true,
        buffers: false,
        closed: Interruption::Reopened,
    },
    #[cfg(all(feature = "postgres", unix))]
    Row {
        name: "pgbouncer",
        missing: common::bouncer::missing,
        url: |_| common::bouncer::bouncer().unwrap().url() + "?lease_seconds=3600",
        empty: Some(common::postgres::empty),
        served: false,
        near: false,
        survives: true,
        buffers: false,
        closed: Interruption::Reopened,
    },
    // Two schemas of one server are its clusters.
    #[cfg(all(feature = "postgres", unix))]
    Row {
        name: "shards",
        missing: common::postgres::missing,
        url: |dir| common::postgres::server().unwrap().shards(dir, 2, "&lease_seconds=3600&pool=4"),
        empty: Some(common::postgres::empty),
        served: false,
        near: false,
        survives: true,
        buffers: false,
        closed: Interruption::Reopened,
    },
    #[cfg(all(feature = "client", feature = "server"))]
    Row {
        name: "http",
        missing: || (!cfg!(feature = "sled")).then(|| "the feature sled is off".to_owned()),
        url: |dir| format!("sled:{}?cache_mb=1", dir.display()),
        empty: None,
        served: true,
        near: false,
        survives: true,
        buffers: true,
        // A client that is closed drops its writers: the server goes on.
        closed: Interruption::Dropped,
    },
    #[cfg(all(feature = "client", feature = "server", feature = "postgres", unix))]
    Row {
        name: "http_postgres",
        missing: common::postgres::missing,
        url: |_| common::postgres::server().unwrap().url() + "&lease_seconds=3600",
        empty: Some(common::postgres::empty),
        served: true,
        near: false,
        survives: true,
        buffers: false,
        closed: Interruption::Dropped,
    },
];

/// A theme: its name, and its tests by theirs.
type Theme = (&'static str, &'static [(&'static str, fn(&Place))]);

const THEMES: &[Theme] = &[
    // The longest come first: nothing waits for them alone at the end.
    ("model", model::TESTS),
    ("redaction", redaction::TESTS),
    ("appends", appends::TESTS),
    ("changes", changes::TESTS),
    ("control", control::TESTS),
    ("forks", forks::TESTS),
    ("incident", incident::TESTS),
    ("items", items::TESTS),
    ("lists", lists::TESTS),
    ("retention", retention::TESTS),
    ("owners", owners::TESTS),
    ("reading", reading::TESTS),
    ("streams", streams::TESTS),
    ("summaries", summaries::TESTS),
    ("threads", threads::TESTS),
    ("usage", usage::TESTS),
    ("values", values::TESTS),
];

/// The table of a theme's tests.
macro_rules! tests {
    ($($test:ident),* $(,)?) => {
        pub(crate) const TESTS: &[(&str, fn(&crate::place::Place))] = &[$((stringify!($test), $test)),*];
    };
}
use tests;

fn main() -> ExitCode {
    let mut trials = Vec::new();
    for (theme, tests) in THEMES {
        for row in PLACES {
            for (name, test) in *tests {
                let run = move || match (row.missing)() {
                    Some(reason) => {
                        common::skipped(&format!("{}: {reason}", row.name));
                        Ok(Completion::ignored_with(reason))
                    }
                    None => {
                        test(&Place::new(row));
                        Ok(Completion::Completed)
                    }
                };
                trials.push(Trial::ignorable_test(format!("{}::{theme}::{name}", row.name), run));
            }
        }
    }
    let mut arguments = Arguments::from_args();
    if arguments.test_threads.is_none() {
        // They wait for servers most of their time.
        arguments.test_threads = std::thread::available_parallelism().ok().map(|cores| 3 * cores.get());
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    place::end();
    conclusion.exit_code()
}
