//! What is synced, and how much is not.
//!
//! However much is appended or erased at once, and after a kill too, sled's log has little that is not synced: what was more
//! than a segment did not always open after a power cut (`docs/durability.md`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::program::{Ended, PATIENCE, convo, copy, run};
use crate::failing_calls::shim;
use tempfile::TempDir;

/// Less than a segment: sled writes up to some seven bytes for one.
const MOST: u64 = 7 * 1024 * 1024;
const MB: usize = 1_000_000;

struct Place {
    dir: TempDir,
    shim: PathBuf,
}

impl Place {
    fn new() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        shim(dir.path()).map(|shim| Self { dir, shim })
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    /// A file of messages of so many bytes each.
    fn lines(&self, name: &str, sizes: &[usize]) -> String {
        let line = |bytes: &usize| {
            format!("{{\"role\":\"user\",\"chunks\":[{{\"type\":\"text\",\"text\":\"{}\"}}]}}\n", "x".repeat(*bytes))
        };
        fs::write(self.path(name), sizes.iter().map(line).collect::<String>()).unwrap();
        self.path(name)
    }

    fn command(&self, db: &str, args: &[&str]) -> Command {
        let mut command = convo(args);
        command.args(["--json", "--store", &format!("sled:{}", self.path(db))]);
        command.env("LD_PRELOAD", &self.shim).env("FAULT_DIRECTORY", self.path(db));
        command.env("FAULT_SYNCED", self.path("synced")).env("FAULT_UNSYNCED", self.path("most"));
        command
    }

    /// The program, which ends before this call.
    fn killed(&self, db: &str, args: &[&str], call: &str, at: u32) -> Command {
        let mut command = self.command(db, args);
        command.env("FAULT_CALL", call).env("FAULT_AT", at.to_string()).env("FAULT_HOW", "kill");
        command
    }

    /// Runs the program on a store. `killed`: before which sync it is killed.
    fn run(&self, db: &str, args: &[&str], killed: Option<u32>) -> Ended {
        let most = self.path("most");
        let _ = fs::remove_file(&most);
        let command = match killed {
            Some(at) => self.killed(db, args, "fdatasync", at),
            None => self.command(db, args),
        };
        let ended = run(command, PATIENCE);
        assert!(ended.exit == Some(0) || (killed.is_some() && ended.exit.is_none()), "{args:?}: {ended:?}");
        if ended.exit.is_some() {
            let most: u64 = fs::read_to_string(&most).unwrap().parse().unwrap();
            assert!(most <= MOST, "{args:?}: {most} bytes of sled's log were not synced");
        }
        ended
    }
}

#[test]
fn little_is_unsynced_whatever_is_written_or_erased() {
    let Some(place) = Place::new() else { return };
    let many = place.lines("many", &[MB; 40]);
    let large = place.lines("large", &[8 * MB, 40 * MB, 30_000, 8 * MB]);
    let sizes: Vec<usize> = (1..400).map(|at| 97 * at).collect();
    let mixed = place.lines("mixed", &sizes);
    let one = place.lines("one", &[10]);
    for (chat, lines) in [("many", &many), ("large", &large), ("mixed", &mixed)] {
        place.run("db", &["append", chat, lines], None);
    }
    assert!(place.run("db", &["verify"], None).stdout.contains("\"problems\":[]"));
    place.run("db", &["redact", "large", "1", "--yes"], None);
    for chat in ["many", "large", "mixed"] {
        // Cut off at any sync, it is finished by what comes next.
        for at in [3, 7, 20, 60] {
            copy(&place.dir.path().join("db"), &place.dir.path().join("cut"));
            place.run("cut", &["delete", chat, "--yes"], Some(at));
            place.run("cut", &["append", "other", &one], None);
            let listed = place.run("cut", &["list"], None).stdout;
            assert!(at < 20 || !listed.contains(chat), "{chat}, {at}: {listed}");
            assert!(place.run("cut", &["verify"], None).stdout.contains("\"problems\":[]"), "{chat}, {at}");
            fs::remove_dir_all(place.path("cut")).unwrap();
        }
        place.run("db", &["delete", chat, "--yes"], None);
    }
    assert!(place.run("db", &["verify"], None).stdout.contains("\"problems\":[]"));
}

/// A vacuum that is cut off before any of its calls leaves the store with all that it had.
#[test]
fn a_vacuum_that_is_cut_off_anywhere_loses_nothing() {
    let Some(place) = Place::new() else { return };
    let lines = place.lines("lines", &[10, 300_000, 10, 10]);
    for chat in ["kept", "deleted"] {
        place.run("db", &["append", chat, &lines], None);
    }
    place.run("db", &["redact", "kept", "2", "--yes"], None);
    place.run("db", &["delete", "deleted", "--yes"], None);
    let expected = place.run("db", &["show", "kept", "--raw"], None).stdout;
    let mut killed = 0;
    for call in ["rename", "fsync", "fdatasync", "pwrite", "write"] {
        for at in (1..12).chain([16, 24, 40, 70]) {
            let _ = fs::remove_dir_all(place.path("cut"));
            copy(&place.dir.path().join("db"), &place.dir.path().join("cut"));
            let ended = run(place.killed("cut", &["vacuum"], call, at), PATIENCE);
            killed += u32::from(ended.exit.is_none());
            assert_eq!(place.run("cut", &["show", "kept", "--raw"], None).stdout, expected, "{call} {at}: {ended:?}");
            assert!(place.run("cut", &["verify"], None).stdout.contains("\"problems\":[]"), "{call} {at}");
            assert!(!place.dir.path().join("cut/compacted").exists(), "{call} {at}");
            // It makes fewer such calls.
            if ended.exit.is_some() {
                break;
            }
        }
    }
    assert!(killed > 25, "{killed} were killed");
}

/// A new name is durable once the directory that holds it is synced.
#[test]
fn every_directory_that_is_created_is_synced() {
    let Some(place) = Place::new() else { return };
    place.run("a/b/c/db", &["append", "chat", &place.lines("one", &[10])], None);
    let synced = fs::read_to_string(place.path("synced")).unwrap();
    for holder in ["a/b/c/db", "a/b/c", "a/b", "a", ""] {
        let holder = place.dir.path().join(holder).components().collect::<PathBuf>();
        assert!(synced.lines().any(|line| Path::new(line) == holder), "{} is not synced", holder.display());
    }
}

/// What does not fit into the journal is in a file of its own until sled has it. It is durable before the journal refers to it, and
/// an opening does not trust what it read of it: that may have been in the system's memory alone.
#[test]
fn the_file_of_a_large_append_is_synced() {
    let Some(place) = Place::new() else { return };
    let (large, one) = (place.lines("large", &[8 * MB]), place.lines("one", &[10]));
    let file = place.dir.path().join("db/journal.large");
    let is_synced = || {
        let synced = fs::read_to_string(place.path("synced")).unwrap();
        fs::remove_file(place.path("synced")).unwrap();
        synced.lines().any(|line| Path::new(line) == file)
    };
    // Sled has a part of it.
    place.run("db", &["append", "chat", &large], Some(8));
    assert!(file.exists() && is_synced(), "when it was written");
    place.run("db", &["append", "chat", &one], None);
    assert!(is_synced(), "by the next opening");
    assert!(!file.exists());
    assert_eq!(place.run("db", &["show", "chat", "--raw"], None).stdout.lines().count(), 2);
}

/// A restore that was cut off leaves nothing that a later append takes for a new store.
#[test]
fn a_restore_that_is_cut_off_leaves_no_store() {
    let Some(place) = Place::new() else { return };
    let one = place.lines("one", &[10]);
    for _ in 0..3 {
        place.run("db", &["append", "chat", &one], None);
    }
    place.run("db", &["backup", &place.path("backup")], None);
    let mut refused = 0;
    for call in ["fsync", "fdatasync", "write", "pwrite", "ftruncate"] {
        for at in (1..9).chain([12, 20, 40]) {
            let _ = fs::remove_dir_all(place.path("new"));
            let restored = run(place.killed("new", &["restore", &place.path("backup")], call, at), PATIENCE);
            let names = fs::read_dir(place.path("new")).into_iter().flatten();
            if names.map(|entry| entry.unwrap().file_name()).all(|name| name == "lock") {
                continue;
            }
            let after = run(place.command("new", &["append", "chat", &one]), PATIENCE);
            if after.exit == Some(0) {
                assert_eq!(after.json()["last_seq"], 4, "{call} {at}: {restored:?}, {after:?}");
            } else {
                assert!(after.stderr.contains("a restore into it was interrupted"), "{call} {at}: {after:?}");
                refused += 1;
            }
            // It makes fewer such calls.
            if restored.exit.is_some() {
                break;
            }
        }
    }
    assert!(refused > 20, "{refused} were refused");
}
