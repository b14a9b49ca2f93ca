//! The default build stays light.

use std::collections::BTreeSet;
use std::process::Command;

/// This crate and all that it needs, at most.
const CRATES: usize = 45;

/// The packages of a build with these features: what it links or expands, without what only tests need.
fn packages(features: &[&str]) -> BTreeSet<String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["tree", "--locked", "--offline", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"]);
    let output = command.args(features).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
}

fn has(packages: &BTreeSet<String>, name: &str) -> bool {
    packages.iter().any(|package| package.split(' ').next() == Some(name))
}

#[test]
fn default_features_stay_light() {
    let packages = packages(&[]);
    assert!(has(&packages, "conversation-store") && has(&packages, "sled"));
    assert!(packages.len() <= CRATES, "{} crates: {packages:#?}", packages.len());
}

#[test]
fn what_only_the_program_needs_is_not_in_the_library() {
    let (library, program) = (packages(&[]), packages(&["--features", "cli"]));
    for name in ["clap", "clap_complete", "clap_mangen", "anstream", "anstyle", "strsim", "terminal_size", "tempfile"] {
        assert!(has(&program, name), "{name} is no part of the program any more");
        assert!(!has(&library, name), "{name} is in the default build");
    }
}

#[test]
fn what_only_databases_and_archives_need_is_not_in_the_program() {
    let (program, whole) = (packages(&["--features", "cli"]), packages(&["--features", "cli,archives"]));
    for name in ["rusqlite", "zip"] {
        assert!(has(&whole, name), "{name} reads no imports any more");
        assert!(!has(&program, name), "{name} is in the program's first build");
    }
}

#[test]
fn what_only_the_server_needs_is_not_in_the_program() {
    let (program, server) = (packages(&["--features", "cli"]), packages(&["--features", "server"]));
    for name in ["askama", "axum", "hyper", "tokio", "tokio-rustls"] {
        assert!(has(&server, name), "{name} is no part of the server any more");
        assert!(!has(&program, name), "{name} is in the program without the server");
    }
    // `ring` builds with less than `aws-lc` does.
    assert!(has(&server, "ring") && !has(&server, "aws-lc-rs"));
}

#[test]
fn what_only_the_log_on_postgresql_needs_is_nowhere_else() {
    let (server, postgres) = (packages(&["--features", "server"]), packages(&["--features", "postgres"]));
    for name in ["deadpool-postgres", "tokio-postgres"] {
        assert!(has(&postgres, name), "{name} is no part of the log on PostgreSQL any more");
        assert!(!has(&server, name), "{name} is in the server without it");
    }
    assert!(has(&postgres, "ring") && !has(&postgres, "aws-lc-rs"));
}

#[test]
fn what_only_the_client_of_a_server_needs_is_nowhere_else() {
    let (server, client) = (packages(&["--features", "server"]), packages(&["--features", "client"]));
    assert!(has(&client, "ureq") && !has(&server, "ureq"));
    // It blocks, as the calls of a store do: no runtime comes with it.
    assert!(!has(&client, "tokio") && has(&client, "ring") && !has(&client, "aws-lc-rs"));
}

#[test]
fn search_is_in_no_build_that_does_not_name_it() {
    assert!(has(&packages(&["--features", "search"]), "tantivy"));
    for features in ["sled", "cli", "server"] {
        assert!(!has(&packages(&["--features", features]), "tantivy"), "{features}");
    }
}

#[test]
fn the_library_works_without_an_engine_on_disk() {
    assert!(!has(&packages(&["--no-default-features"]), "sled"));
}
