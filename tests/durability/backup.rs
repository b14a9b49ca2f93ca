//! A backup is one moment of a store that goes on being used, becomes a store of any engine, and is itself or an error.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use conversation_store::model::{Chunk, FinishReason, Message, Metadata, Role};
use conversation_store::{AppendOptions, Durability, Entry, Error, ListQuery, Store, StoredMessage};
use proptest::prelude::*;

const THREADS: usize = 8;

fn url(engine: &str, path: &Path) -> String {
    format!("{engine}:{}", path.display())
}

fn open_backup(file: &Path) -> Result<Store, Error> {
    Store::open(&url("backup", file))
}

/// Everything that a store tells of its conversations.
fn told(store: &Store) -> BTreeMap<String, (Vec<StoredMessage>, Vec<Entry>, String)> {
    let items = store.list(&ListQuery::new().with_limit(usize::MAX)).unwrap().items;
    let of = |id| (store.load_raw(id).unwrap(), store.entries(id, .., usize::MAX).unwrap());
    let told = items.iter().map(|item| {
        let (messages, entries) = of(item.id);
        (item.id.to_string(), (messages, entries, format!("{item:?}")))
    });
    told.collect()
}

fn assert_sound(store: &Store) {
    assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
}

/// A store with a bit of everything: forks, one of a deleted conversation, a rewind, streams, keys, parts, redactions.
fn fill(store: &Store) {
    let key = AppendOptions::new().with_idempotency_key("once");
    store.append_with("a", &[Message::user("one"), Message::user("two")], &key).unwrap();
    store.append("a", &[Message::user("large ".repeat(60_000))]).unwrap();
    store.fork_to("a", Some(2), "fork").unwrap();
    store.fork_to("fork", None, "fork of the fork").unwrap();
    store.append("fork of the fork", &[Message::user("own")]).unwrap();
    store.append("gone", &[Message::user("shared"), Message::user("not shared")]).unwrap();
    store.fork_to("gone", Some(1), "survivor").unwrap();
    store.delete("gone").unwrap();
    let mut writer = store.begin("a", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("streamed")).unwrap();
    writer.finish(Some(FinishReason::Stop), None).unwrap();
    let mut writer = store.begin("a", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("interrupted")).unwrap();
    drop(writer);
    store.append("b", &[Message::user("hidden"), Message::user("redacted")]).unwrap();
    store.redact("b", 1, None).unwrap();
    store.rewind("b", 0).unwrap();
    store.set_title("b", Some("a title")).unwrap();
    store.sync().unwrap();
}

#[test]
fn a_backup_becomes_a_store_of_any_engine() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let engines: &[&str] = if cfg!(feature = "fjall") { &["sled", "fjall"] } else { &["sled"] };
    let original = Store::open("memory:").unwrap();
    fill(&original);
    let wanted = told(&original);
    let mut file = path("0.backup");
    original.backup(&file, |_, _| ()).unwrap();
    // From engine to engine, and back.
    for (step, engine) in engines.iter().chain(engines).enumerate() {
        let read = open_backup(&file).unwrap();
        assert_eq!(told(&read), wanted);
        assert_sound(&read);
        let url = url(engine, &path(&format!("{step}.db")));
        let mut last = (0, 0);
        let restored = Store::restore(&file, &url, |done, all| last = (done, all)).unwrap();
        assert_eq!((restored.conversations, last.1), (5, 2 * restored.bytes));
        let store = Store::open(&url).unwrap();
        assert_eq!(told(&store), wanted, "{engine}");
        assert_sound(&store);
        // Keys are known still, ids of deleted conversations are taken still, and all goes on where it was.
        let key = AppendOptions::new().with_idempotency_key("once");
        let again = store.append_with("a", &[Message::user("one"), Message::user("two")], &key).unwrap();
        assert!(again.duplicate);
        assert!(matches!(store.append("gone", &[Message::user("x")]), Err(Error::SharedByForks { .. })));
        file = path(&format!("{}.backup", step + 1));
        store.backup(&file, |_, _| ()).unwrap();
        let receipt = store.append("b", &[Message::user("next")]).unwrap();
        assert_eq!(receipt.message_indexes, [2]);
        assert_sound(&store);
        assert!(matches!(Store::restore(&file, &url, |_, _| ()), Err(Error::Busy(_))));
        drop(store);
        assert!(matches!(Store::restore(&file, &url, |_, _| ()), Err(Error::InvalidInput(_))));
    }
    let memory = Store::restore(&file, "memory:", |_, _| ());
    assert!(matches!(&memory, Err(Error::InvalidInput(text)) if text.contains("backup:")), "{memory:?}");
}

/// Ends the threads of a test, also where it fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn a_backup_is_one_moment_of_a_store_that_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&url("sled", &dir.path().join("db"))).unwrap();
    let done = AtomicBool::new(false);
    let acknowledged: Vec<AtomicU64> = (0..THREADS).map(|_| AtomicU64::new(0)).collect();
    let name = |thread: usize| format!("chat {thread}");
    thread::scope(|scope| {
        let _stop = Stop(&done);
        for (thread, acknowledged) in acknowledged.iter().enumerate() {
            let (store, done) = (&store, &done);
            scope.spawn(move || {
                for append in 0_u64.. {
                    if done.load(Ordering::Acquire) {
                        break;
                    }
                    let durability = if append % 3 == 0 { Durability::Buffered } else { Durability::Durable };
                    let options =
                        AppendOptions::new().with_durability(durability).with_idempotency_key(append.to_string());
                    let pair = [Message::user(append.to_string()), Message::assistant([Chunk::text("x".repeat(900))])];
                    let receipt = store.append_with(name(thread), &pair, &options).unwrap();
                    if receipt.durable {
                        acknowledged.store(receipt.last_seq, Ordering::Release);
                    }
                    if append % 20 == 19 {
                        let fork = store.fork(name(thread), None).unwrap();
                        store.append(fork, &[Message::user("own")]).unwrap();
                        store.delete(fork).unwrap();
                    }
                }
            });
        }
        for number in 0..12 {
            let before: Vec<u64> = acknowledged.iter().map(|seq| seq.load(Ordering::Acquire)).collect();
            let file = dir.path().join(format!("{number}.backup"));
            store.backup(&file, |_, _| ()).unwrap();
            let backup = open_backup(&file).unwrap();
            assert_sound(&backup);
            for (thread, before) in before.into_iter().enumerate() {
                let Ok(messages) = backup.load_raw(name(thread)) else {
                    assert_eq!(before, 0, "backup {number} does not have {}", name(thread));
                    continue;
                };
                assert!(backup.describe(name(thread)).unwrap().last_seq >= before, "backup {number}");
                assert!(messages.len().is_multiple_of(2), "an append is half there");
                let now = store.load_raw(name(thread)).unwrap();
                assert_eq!(messages, now[..messages.len()], "backup {number}");
            }
        }
    });
    assert_sound(&store);
}

/// A backup with several frames, and its bytes.
fn backup(dir: &Path) -> (PathBuf, Vec<u8>) {
    let store = Store::open("memory:").unwrap();
    fill(&store);
    for number in 0..30_u64 {
        // What cannot be compressed makes frames.
        let text: String = (0..30_000).map(|at: u64| char::from(33 + (at * at * (number + 7) % 89) as u8)).collect();
        store.append(format!("chat {number}"), &[Message::user(text)]).unwrap();
    }
    let file = dir.join("backup");
    store.backup(&file, |_, _| ()).unwrap();
    let bytes = fs::read(&file).unwrap();
    (file, bytes)
}

/// Opening and restoring what was made of a backup both fail, by an error that says what it is.
fn assert_refused(dir: &Path, bytes: &[u8]) {
    let file = dir.join("damaged");
    fs::write(&file, bytes).unwrap();
    let is_told = |error: &Error| {
        matches!(error, Error::Corrupt { .. } | Error::InvalidInput(_) | Error::UnsupportedVersion { .. })
    };
    let opened = open_backup(&file);
    assert!(opened.as_ref().is_err_and(is_told), "{opened:?}");
    let db = dir.join("db");
    let restored = Store::restore(&file, &url("sled", &db), |_, _| ());
    assert!(restored.as_ref().is_err_and(is_told), "{restored:?}");
    assert!(!db.exists(), "something was made of it");
}

#[test]
fn a_damaged_backup_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (_, bytes) = backup(dir.path());
    let length = bytes.len();
    proptest!(crate::common::config(crate::common::cases("CONVO_DAMAGED_BACKUPS", 200)), |(
        at in 0..length,
        kind in 0..4,
        bit in 0..8,
        more in 1..5000_usize,
    )| {
        let mut damaged = bytes.clone();
        match kind {
            0 => damaged[at] ^= 1_u8 << bit,
            1 => damaged.truncate(at),
            2 => damaged[at..(at + more).min(length)].fill(0),
            _ => drop(damaged.splice(at..(at + more).min(length), [])),
        }
        if damaged != bytes {
            assert_refused(dir.path(), &damaged);
        }
    });
}
