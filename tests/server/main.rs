//! The server, as clients see it: a process of its own, on a socket of its own, one promise a test.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod conventions;
mod crash;
mod documented;
mod full_disk;
mod http;
mod items;
mod native;
mod openai;
#[path = "../common/openssl.rs"]
mod openssl;
mod owners;
mod pages;
mod quotas;
mod retention;
mod running;
mod streams;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// A theme: its name, and its tests by theirs.
type Theme = (&'static str, &'static [(&'static str, fn())]);

const THEMES: &[Theme] = &[
    ("conventions", conventions::TESTS),
    ("crash", crash::TESTS),
    ("documented", documented::TESTS),
    ("full_disk", full_disk::TESTS),
    ("items", items::TESTS),
    ("native", native::TESTS),
    ("openai", openai::TESTS),
    ("owners", owners::TESTS),
    ("pages", pages::TESTS),
    ("quotas", quotas::TESTS),
    ("retention", retention::TESTS),
    ("streams", streams::TESTS),
];

/// The table of a theme's tests.
macro_rules! tests {
    ($($test:ident),* $(,)?) => {
        pub(crate) const TESTS: &[(&str, fn())] = &[$((stringify!($test), $test)),*];
    };
}
use tests;

fn main() -> ExitCode {
    let mut trials = Vec::new();
    for (theme, tests) in THEMES {
        for (name, test) in *tests {
            trials.push(Trial::test(format!("{theme}::{name}"), move || {
                test();
                Ok(())
            }));
        }
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
