//! What several tests share.

#![allow(dead_code, reason = "each test takes what it needs of this")]

pub(crate) mod blocks;
#[cfg(all(feature = "postgres", unix))]
pub(crate) mod bouncer;
pub(crate) mod chat;
#[cfg(all(feature = "cli", target_os = "linux"))]
pub(crate) mod disk;
pub(crate) mod growth;
pub(crate) mod hostile;
#[cfg(feature = "server")]
pub(crate) mod http;
pub(crate) mod items;
#[cfg(feature = "server")]
pub(crate) mod openssl;
pub(crate) mod parsed;
pub(crate) mod place;
#[cfg(all(feature = "postgres", unix))]
pub(crate) mod postgres;
#[cfg(feature = "cli")]
pub(crate) mod program;
pub(crate) mod prompts;
pub(crate) mod reported;
#[cfg(feature = "server")]
pub(crate) mod running;
#[cfg(feature = "search")]
pub(crate) mod search;
pub(crate) mod stored;
pub(crate) mod unknown;
#[cfg(feature = "server")]
pub(crate) mod uploads;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

#[allow(unused_imports, reason = "each test takes what it needs of this")]
pub(crate) use place::tempdir;

/// The number of cases of a property test: from the environment, or this.
pub(crate) fn cases(variable: &str, default: u32) -> u32 {
    std::env::var(variable).ok().and_then(|cases| cases.parse().ok()).unwrap_or(default)
}

/// A property test's configuration: that many cases, no files for failures.
pub(crate) fn config(cases: u32) -> proptest::test_runner::Config {
    proptest::test_runner::Config { cases, failure_persistence: None, ..Default::default() }
}

/// Where rendered requests are written for the oracle, if it is asked for.
pub(crate) fn rendered_dir() -> Option<PathBuf> {
    std::env::var_os("CONVO_RENDERED").map(PathBuf::from)
}

/// Says why tests are skipped: on stderr itself, because what a test prints is not shown when it passes. Each reason once.
pub(crate) fn skipped(reason: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(reason.to_owned()) {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {reason}");
    }
}
