//! What several tests share.

#![allow(dead_code, reason = "each test takes what it needs of this")]

pub(crate) mod blocks;
#[cfg(all(feature = "postgres", unix))]
pub(crate) mod bouncer;
pub(crate) mod chat;
pub(crate) mod hostile;
pub(crate) mod items;
pub(crate) mod parsed;
#[cfg(all(feature = "postgres", unix))]
pub(crate) mod postgres;
#[cfg(feature = "cli")]
pub(crate) mod program;
pub(crate) mod prompts;
pub(crate) mod reported;
pub(crate) mod stored;

use std::path::PathBuf;

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
