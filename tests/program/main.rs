//! The program `convo`, run as people and scripts run it.
#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod append;
mod backup;
mod bad_input;
mod bench;
mod change;
mod check;
#[path = "../common/mod.rs"]
mod common;
#[cfg(all(feature = "server", unix))]
mod container;
#[cfg(all(feature = "archives", unix))]
mod explain;
mod help;
mod ingest;
#[cfg(feature = "client")]
mod live_check;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(all(feature = "server", unix))]
mod proxy;
mod read;
mod repair;
mod replay;
#[cfg(feature = "search")]
mod search;
#[cfg(target_os = "linux")]
mod terminal;
mod transfer;
mod usage;
mod verify;

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use conversation_store::Store;
use serde_json::Value;
use tempfile::TempDir;

/// The conversation of `fixtures/incident.jsonl`.
const INCIDENT: &str = "1a997b08-09c2-412c-b296-48703c8aaf58";
/// The store of a [`Place`].
const STORE: &str = "sled:./convo.db";
const HELLO: &str = r#"{"role": "user", "chunks": [{"type": "text", "text": "hello"}]}"#;
const ANSWER: &str = r#"{"role": "assistant", "chunks": [{"type": "text", "text": "Hi!"}], "finish_reason": "stop"}"#;

/// A directory of its own, in which the program runs.
struct Place {
    dir: TempDir,
}

/// What a run came to.
struct Run {
    exit: i32,
    stdout: String,
    stderr: String,
}

impl Place {
    fn new() -> Self {
        Self { dir: crate::common::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).unwrap();
    }

    /// The default store, opened by this process.
    fn store(&self) -> Store {
        Store::open(&format!("sled:{}", self.path("convo.db").display())).unwrap()
    }

    fn run(&self, args: &[&str]) -> Run {
        self.run_with(args, "")
    }

    fn run_with(&self, args: &[&str], stdin: impl Into<Vec<u8>>) -> Run {
        let mut command = Command::cargo_bin("convo").unwrap();
        command.current_dir(self.dir.path()).env("CONVO_STORE", STORE).args(args).write_stdin(stdin);
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Run { exit: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// A run that is done, with nothing to say on stderr.
    fn ok(&self, args: &[&str]) -> Run {
        let run = self.run(args);
        assert_eq!((run.exit, run.stderr.as_str()), (0, ""), "{args:?}");
        run
    }

    /// Appends lines to a conversation.
    fn append(&self, conversation: &str, lines: &[&str]) {
        assert_eq!(self.run_with(&["append", conversation], lines.join("\n")).exit, 0);
    }
}

impl Run {
    /// The lines of stdout, as JSON.
    fn json(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn incident() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/incident.jsonl")
}

#[test]
fn options_stand_before_and_after_the_subcommand() {
    let place = Place::new();
    place.append("c", &[HELLO]);
    let wanted = place.ok(&["list"]).stdout;
    std::fs::rename(place.path("convo.db"), place.path("other.db")).unwrap();
    for args in [
        ["--store", "sled:other.db", "--json", "list"],
        ["list", "--json", "--store", "sled:other.db"],
        ["--store=sled:other.db", "list", "--limit=9", "--json"],
    ] {
        assert_eq!(place.ok(&args).stdout, wanted);
    }
    let mut command = Command::cargo_bin("convo").unwrap();
    command.current_dir(place.dir.path()).env("CONVO_STORE", "sled:other.db").arg("list");
    command.assert().success().stdout(wanted);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    use std::process::{Command, Stdio};
    let place = Place::new();
    let long = format!(r#"{{"role": "user", "chunks": [{{"type": "text", "text": "{}"}}]}}"#, "x".repeat(200_000));
    place.append("c", &[&long, &long]);
    place.write("more.jsonl", format!("{HELLO}\n{HELLO}\n"));
    for args in [["show", "c"], ["entries", "c"], ["append", "d"]] {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("convo"))
            .current_dir(place.dir.path())
            .env("CONVO_STORE", STORE)
            .args(args)
            .stdin(std::fs::File::open(place.path("more.jsonl")).unwrap())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &[][..]), "{args:?}");
    }
    // What was to be appended is there, although nobody read the receipts.
    assert_eq!(place.store().load("d").unwrap().messages().len(), 2);
}
