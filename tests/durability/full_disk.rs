//! The disk becomes full while a store is written: a typed error, then a store that can be read while the disk is full,
//! and written once there is room.
//!
//! Needs a tmpfs of its own: as root, or where user namespaces may be had.

use std::collections::HashMap;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use conversation_store::model::Message;
use conversation_store::{AppendOptions, Durability, Error, Health, ListQuery, Store, StoreOptions};
use tempfile::TempDir;

/// Tells a run of this test in a namespace of its own that it is one.
const INNER: &str = "CONVO_FULL_DISK_INNER";

/// A small disk.
struct Disk {
    dir: TempDir,
}

impl Disk {
    /// Absent: it could not be mounted.
    fn mount(megabytes: u32) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let size = format!("size={megabytes}m");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "none"]).arg(dir.path()).output();
        mounted.is_ok_and(|mounted| mounted.status.success()).then_some(Self { dir })
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("db")
    }

    /// With a cache so small that most reads go to the disk.
    fn url(&self) -> String {
        format!("sled:{}?cache_mb=1", self.path().display())
    }

    /// Takes some of the room.
    fn take(&self, megabytes: usize) {
        fs::write(self.dir.path().join("fill"), vec![1; megabytes * 1024 * 1024]).unwrap();
    }

    /// Takes all the room that is left.
    fn fill(&self) {
        let mut file = fs::File::options().create(true).append(true).open(self.dir.path().join("fill")).unwrap();
        for bytes in [64 * 1024, 4096, 1] {
            while file.write_all(&vec![1; bytes]).is_ok() {}
        }
    }

    fn make_room(&self) {
        fs::remove_file(self.dir.path().join("fill")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.dir.path()).status();
    }
}

/// Runs a test where tmpfs can be mounted: here, or in a namespace of its own.
fn with_disks(name: &str, test: fn()) {
    if Disk::mount(1).is_some() {
        return test();
    }
    let required = std::env::var("CONVO_REQUIRE_MOUNT").is_ok_and(|required| required == "1");
    assert!(!required && std::env::var_os(INNER).is_none(), "a tmpfs cannot be mounted");
    let mut inner = Command::new("unshare");
    inner.arg("-Urm").arg(std::env::current_exe().unwrap()).args(["--exact", name, "--nocapture"]).env(INNER, "1");
    match Command::new("unshare").args(["-Urm", "true"]).status() {
        Ok(status) if status.success() => assert!(inner.status().unwrap().success()),
        _ => crate::common::skipped("full disks: a tmpfs can be mounted neither here nor in a user namespace"),
    }
}

/// Appends until that fails. Gives the last acknowledged seq of each conversation, and the error.
fn append_until_full(store: &Store, bytes: usize) -> (HashMap<String, u64>, Error) {
    let mut acknowledged = HashMap::new();
    for number in 0_u64.. {
        let name = format!("chat {}", number % 7);
        match store.append(&name, &[Message::user("x".repeat(bytes))]) {
            Ok(receipt) => acknowledged.insert(name, receipt.last_seq),
            Err(error) => return (acknowledged, error),
        };
    }
    unreachable!("a disk has an end");
}

fn assert_there(store: &Store, acknowledged: &HashMap<String, u64>) {
    for (name, seq) in acknowledged {
        assert!(store.describe(name).unwrap().last_seq >= *seq, "{name}");
        let loaded = store.load_strict(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(loaded.messages().len() as u64 >= *seq, "{name}");
    }
    assert_eq!(store.list(&ListQuery::new()).unwrap().items.len(), acknowledged.len());
}

/// As [`assert_there`]; or it says why it cannot read something, until the store is opened again: where sled still has to
/// finish the split or the merge of a page, a read has to write. That is seldom: sled got nothing for which there was no room.
fn assert_there_or_told(store: &Store, acknowledged: &HashMap<String, u64>) {
    let told = acknowledged.keys().filter(|name| store.load_strict(*name).is_err()).count();
    assert!(told <= 1, "{told} of {} cannot be read", acknowledged.len());
    for (name, seq) in acknowledged {
        match store.load_strict(name) {
            Ok(loaded) => assert!(loaded.messages().len() as u64 >= *seq, "{name}"),
            Err(error) => assert!(is_full(&error), "{name}: {error}"),
        }
    }
}

fn is_full(error: &Error) -> bool {
    matches!(error, Error::Poisoned { cause } | Error::OutcomeUnknown { cause } if cause.contains("No space left on device"))
}

fn becomes_full_and_has_room_again() {
    // Each size ends at another place of sled's segments.
    for (megabytes, bytes) in [(48, 700), (55, 3000), (61, 100_000), (46, 1_500_000)] {
        let disk = Disk::mount(megabytes).unwrap();
        disk.take(16);
        let store = Store::open(&disk.url()).unwrap();
        let (mut acknowledged, error) = append_until_full(&store, bytes);
        assert!(is_full(&error), "{error}");
        assert!(is_full(&store.append("chat 0", &[Message::user("more")]).unwrap_err()));
        assert!(store.health().poisoned.unwrap().contains("No space left"));
        // With the disk full, by this or by another program.
        assert_there_or_told(&store, &acknowledged);
        disk.fill();
        assert_there_or_told(&store, &acknowledged);
        drop(store);

        disk.fill();
        for opening in 0..8 {
            let store = StoreOptions::new().with_read_only(opening % 2 == 0).open(&disk.url());
            let store = store.unwrap_or_else(|error| panic!("{megabytes} MB, opening {opening}: {error}"));
            assert!(store.health().disk_full || opening > 0);
            assert_there(&store, &acknowledged);
            assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
            // What fits into the room that the store's file has already is taken.
            let is_typed = match store.append("chat 0", &[Message::user("more")]) {
                Ok(receipt) => acknowledged.insert("chat 0".to_owned(), receipt.last_seq).is_some(),
                Err(Error::Io { source, .. }) => source.kind() == ErrorKind::StorageFull,
                Err(Error::ReadOnly) => opening % 2 == 0,
                Err(error) => is_full(&error),
            };
            assert!(is_typed);
            drop(store);
            disk.fill();
        }

        disk.make_room();
        let store = Store::open(&disk.url()).unwrap();
        assert_eq!(store.health(), Health::default());
        assert_there(&store, &acknowledged);
        store.append("chat 0", &[Message::user("there is room")]).unwrap();
        assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
    }
}

#[test]
fn a_disk_that_becomes_full() {
    with_disks("full_disk::a_disk_that_becomes_full", becomes_full_and_has_room_again);
}

fn is_full_from_the_start() {
    let disk = Disk::mount(1).unwrap();
    disk.fill();
    let error = Store::open(&disk.url()).unwrap_err();
    assert!(matches!(&error, Error::Io { source, .. } if source.kind() == ErrorKind::StorageFull), "{error}");
    disk.make_room();
    // Too little for a segment is too little for a store.
    if let Ok(store) = Store::open(&disk.url()) {
        store.append("chat", &[Message::user("hello")]).unwrap();
    }
}

#[test]
fn a_disk_that_is_full_from_the_start() {
    with_disks("full_disk::a_disk_that_is_full_from_the_start", is_full_from_the_start);
}

fn buffered_appends_are_told_too() {
    let disk = Disk::mount(32).unwrap();
    let store = Store::open(&disk.url()).unwrap();
    let buffered = AppendOptions::new().with_durability(Durability::Buffered);
    let mut writer = None;
    let error = loop {
        match store.append_with("chat", &[Message::user("x".repeat(50_000))], &buffered) {
            Ok(_) if writer.is_none() => {
                writer = Some(store.begin("stream", conversation_store::model::Role::Assistant, Default::default()));
            }
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(is_full(&error), "{error}");
    assert!(is_full(&store.sync().unwrap_err()) && is_full(&store.close().unwrap_err()));
    let finished = writer.unwrap().unwrap().finish(None, None);
    assert!(matches!(finished, Err(Error::Poisoned { .. })), "{finished:?}");
    assert!(Path::new(&disk.path()).exists());
}

#[test]
fn a_disk_that_becomes_full_under_buffered_appends() {
    with_disks("full_disk::a_disk_that_becomes_full_under_buffered_appends", buffered_appends_are_told_too);
}
