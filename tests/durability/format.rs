//! Stores that version 1 of the format wrote, on each engine and as a backup, are read as they were for as long as that
//! version is.
//!
//! `CONVO_WRITE_FIXTURE=1 cargo test --all-features --test durability format::` wrote them, when the version became final. Never again:
//! what a later program writes is another store, in another folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use conversation_store::model::{Chunk, FinishReason, Json, Message, Metadata, Name, Role, Timestamp};
use conversation_store::{AppendOptions, Error, ListQuery, NewConversation, Store, StoreOptions};
use serde::Serialize;
use tempfile::TempDir;

/// Owners of what is in a fixture.
const OWNERS: [&str; 2] = ["", "ada"];
const START: i64 = 1_767_323_045_000_000;
/// What an opening need not find, and what another machine would not have.
const PASSING: [&str; 2] = ["lock", "ballast"];
/// Marks a folder that is empty.
const EMPTY: &str = "empty";
const BACKUP: &str = "backup";
const EXPECTED: &str = "expected.txt";
/// fjall makes its journal so long beforehand, of zeros: those at its end are not kept.
const JOURNAL: (&str, u64) = ("jnl", 64 * 1024 * 1024);
/// The store's engine, and where its files are.
const ENGINES: [&str; 2] = ["sled", "fjall"];

fn fixtures() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "fixtures", "format", "v1"].iter().collect()
}

fn options(clock: &Arc<AtomicI64>) -> StoreOptions {
    let clock = Arc::clone(clock);
    StoreOptions::new().with_clock(move || Timestamp::from_micros(clock.load(Ordering::Relaxed)))
}

fn metadata(id: &str) -> Metadata {
    Metadata { id: Some(id.to_owned()), model: Some("m-1".to_owned()), ..Metadata::default() }
}

/// A message of which this version does not know all.
fn unknown() -> Message {
    let line = r#"{"role":"assistant","chunks":[{"type":"x_widget","deep":{"er":1.50},"id":"item_1"},{"type":"text","text":"\ud83d é","x":null},{"type":"opaque","provider":"p","kind":"k","json":{"b":1,"a":2}}],"usage":{"total":1.0},"id":"msg_1","x":[1]}"#;
    Message::from_json(line).unwrap()
}

/// A little of everything, each at a time of its own.
fn fill(store: &Store, clock: &AtomicI64) {
    let tick = || clock.fetch_add(1_000_000, Ordering::Relaxed);
    let ada = |key: &str| Name::from(key).with_owner("ada");
    let new = NewConversation::new().with_title("Plans").with_tag("work").with_tag("later");
    store.create(ada("chat"), &new.with_metadata(Json::new(r#"{"project":7.0,"b":null}"#).unwrap())).unwrap();
    tick();
    for line in include_str!("../fixtures/incident.jsonl").lines() {
        store.append(ada("chat"), &[Message::from_json(line).unwrap()]).unwrap();
        tick();
    }
    let once = AppendOptions::new().with_idempotency_key("once");
    let pair = [unknown(), Message::new(Role::Assistant, [])];
    store.append_with(ada("chat"), &pair, &once).unwrap();
    tick();
    store.append("large", &[Message::user("large ".repeat(6_000))]).unwrap();
    tick();
    // Two streams side by side, one is finished, one is dropped; a third is not, when the store is closed.
    let begin = |name: &str| store.begin(name, Role::Assistant, metadata(name)).unwrap();
    let (mut finished, mut dropped) = (begin("streams"), begin("streams"));
    for piece in ["one ", "two ", "three"] {
        finished.push(0, Chunk::text(piece)).unwrap();
        finished.push(1, Chunk::tool_call("call_1", "tool", "1")).unwrap();
        store.sync().unwrap();
        dropped.push(0, Chunk::thinking(piece)).unwrap();
        store.sync().unwrap();
        tick();
    }
    finished.finish(Some(FinishReason::ToolCalls), Some(Json::new(r#"{"output":3}"#).unwrap())).unwrap();
    drop(dropped);
    store.sync().unwrap();
    tick();
    // What is hidden, erased, told in short.
    let said: Vec<Message> = (0..6).map(|number| Message::user(format!("message {number}"))).collect();
    store.append("changed", &said).unwrap();
    store.append("changed", &[Message::assistant([Chunk::text("kept"), Chunk::text("removed")])]).unwrap();
    tick();
    store.redact("changed", 1, None).unwrap();
    store.remove("changed", 2, None).unwrap();
    store.remove("changed", 6, Some(1)).unwrap();
    store.summarize("changed", 3, "a summary").unwrap();
    store.append("changed", &[Message::user("hidden")]).unwrap();
    store.rewind("changed", 7).unwrap();
    store.set_title("changed", Some("a title")).unwrap();
    store.tag("changed", &["a", "b"]).unwrap();
    store.untag("changed", &["a"]).unwrap();
    tick();
    // In the middle of a message; a fork of a fork without entries of its own; one that goes on; an empty one.
    store.fork_to("changed", Some(7), "fork").unwrap();
    store.fork_to("fork", None, "fork of the fork").unwrap();
    tick();
    store.append("fork", &[Message::user("on the fork")]).unwrap();
    store.fork_to("fork", Some(0), "empty").unwrap();
    tick();
    // Deleted, and read by a fork; and one that is gone.
    store.append("gone", &[Message::user("shared"), Message::user("not shared")]).unwrap();
    store.fork_to("gone", Some(1), "survivor").unwrap();
    store.redact("survivor", 0, None).unwrap();
    store.delete("gone").unwrap();
    store.append("nothing", &[Message::user("nothing")]).unwrap();
    store.delete("nothing").unwrap();
    tick();
    let mut unfinished = begin("unfinished");
    unfinished.push(0, Chunk::text("cut o")).unwrap();
    store.close().unwrap();
}

/// A line of what is told.
fn line(what: &str, told: &impl Serialize) -> String {
    format!("{what} {}\n", serde_json::to_string(told).unwrap())
}

/// All that a store tells, a line each.
fn told(store: &Store) -> String {
    let mut lines = Vec::new();
    for owner in OWNERS {
        for item in store.list(&ListQuery::new().with_owner(owner).with_limit(usize::MAX)).unwrap().items {
            lines.push(line("conversation", &item));
            lines.push(line("metadata", &store.metadata(item.id).unwrap()));
            let entries = store.entries(item.id, .., usize::MAX).unwrap();
            lines.extend(entries.iter().map(|entry| line("entry", entry)));
            lines.extend(store.load_raw(item.id).unwrap().iter().map(|stored| line("message", stored)));
            let loaded = store.load_strict(item.id).unwrap();
            lines.extend(loaded.messages().iter().map(|stored| line("loaded", stored)));
            lines.extend(loaded.report().iter().map(|report| line("report", report)));
            lines.push(line("summary", &loaded.summary()));
        }
    }
    for tag in ["a", "b"] {
        lines.push(line(tag, &store.list(&ListQuery::new().with_tag(tag)).unwrap().items));
    }
    for item in ["item_1", "msg_1", "streams"] {
        lines.push(line(item, &store.find_item_everywhere(item).unwrap()));
    }
    lines.push(line("unfinished", &store.unfinished().unwrap()));
    lines.concat()
}

/// Copies what is in a folder; `file` copies one of its files.
fn copy(from: &Path, to: &Path, file: fn(&Path, &Path)) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target, file),
            false => file(&entry.path(), &target),
        }
    }
}

fn is_journal(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == JOURNAL.0)
}

/// A file of a store into the fixture.
fn keep(from: &Path, to: &Path) {
    let mut bytes = fs::read(from).unwrap();
    if is_journal(from) {
        assert_eq!(bytes.len() as u64, JOURNAL.1);
        bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
    }
    fs::write(to, bytes).unwrap();
}

/// Folders without files would not be kept.
fn mark_empty(folder: &Path) {
    let within: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    if within.is_empty() {
        fs::write(folder.join(EMPTY), "").unwrap();
    }
    within.iter().filter(|path| path.is_dir()).for_each(|path| mark_empty(path));
}

/// A file of the fixture into a store.
fn take(from: &Path, to: &Path) {
    if from.ends_with(EMPTY) {
        return;
    }
    fs::write(to, fs::read(from).unwrap()).unwrap();
    if is_journal(from) {
        fs::OpenOptions::new().write(true).open(to).unwrap().set_len(JOURNAL.1).unwrap();
    }
}

/// A copy of a fixture, or what a backup gives: its folder, and the URL of the store.
fn copied(dir: &TempDir, of: &str) -> (PathBuf, String) {
    let path = dir.path().join(of);
    let engine = if of == BACKUP { "sled" } else { of };
    let url = format!("{engine}:{}", path.display());
    match of {
        BACKUP => _ = Store::restore(fixtures().join(BACKUP), &url, |_, _| ()).unwrap(),
        engine => copy(&fixtures().join(engine), &path, take),
    }
    (path, url)
}

/// When the fixtures are opened.
fn later() -> Arc<AtomicI64> {
    Arc::new(AtomicI64::new(2 * START))
}

/// Line by line: an error names the first that differs.
fn same(told: &str, expected: &str, of: &str) {
    told.lines().zip(expected.lines()).for_each(|(told, expected)| assert_eq!(told, expected, "{of}"));
    assert_eq!(told.lines().count(), expected.lines().count(), "{of}");
}

#[test]
fn the_fixtures_are_written() {
    if std::env::var_os("CONVO_WRITE_FIXTURE").is_none() {
        return;
    }
    for engine in ENGINES {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store");
        let clock = Arc::new(AtomicI64::new(START));
        let url = format!("{engine}:{}", path.display());
        fill(&options(&clock).open(&url).unwrap(), &clock);
        let kept = fixtures().join(engine);
        let _ = fs::remove_dir_all(&kept);
        PASSING.iter().for_each(|name| fs::remove_file(path.join(name)).unwrap());
        copy(&path, &kept, keep);
        mark_empty(&kept);
        let file = fixtures().join(BACKUP);
        let _ = fs::remove_file(&file);
        options(&clock).with_read_only(true).open(&url).unwrap().backup(file, |_, _| ()).unwrap();
        let told = told(&options(&later()).open(&url).unwrap());
        fs::write(fixtures().join(EXPECTED), told).unwrap();
    }
}

#[test]
fn stores_of_version_1_are_read_as_they_were() {
    let expected = fs::read_to_string(fixtures().join(EXPECTED)).unwrap();
    for of in ENGINES.into_iter().chain([BACKUP]) {
        let dir = tempfile::tempdir().unwrap();
        let (_, url) = copied(&dir, of);
        {
            let store = options(&later()).with_read_only(true).open(&url).unwrap();
            assert_eq!(store.verify(|_, _| ()).unwrap().problems, [], "{of}");
            assert_eq!(store.health().damage, [""; 0], "{of}");
        }
        let store = options(&later()).open(&url).unwrap();
        // A restored store was opened when it was restored.
        let opened = store.describe("unfinished").unwrap().last_activity.to_string();
        let at = Timestamp::from_micros(later().load(Ordering::Relaxed)).to_string();
        same(&told(&store).replace(&opened, &at), &expected, of);
        // It is written on as if nothing had been in between: keys are known, names that were deleted are free or not.
        let chat = Name::from("chat").with_owner("ada");
        let once = AppendOptions::new().with_idempotency_key("once");
        assert!(
            store.append_with(chat.clone(), &[unknown(), Message::new(Role::Assistant, [])], &once).unwrap().duplicate
        );
        let other = store.append_with(chat.clone(), &[Message::user("other")], &once);
        assert!(matches!(other, Err(Error::KeyReused { .. })), "{of}: {other:?}");
        let next = store.describe(chat.clone()).unwrap();
        let receipt = store.append(chat, &[Message::user("new")]).unwrap();
        assert_eq!((receipt.first_seq, &receipt.message_indexes[..]), (next.last_seq + 1, &[next.messages][..]));
        assert!(matches!(store.append("gone", &[Message::user("a")]), Err(Error::SharedByForks { .. })));
        assert_eq!(store.append("nothing", &[Message::user("a")]).unwrap().first_seq, 1);
        store.delete("survivor").unwrap();
        assert_eq!(store.append("gone", &[Message::user("a")]).unwrap().first_seq, 1);
        assert_eq!(store.verify(|_, _| ()).unwrap().problems, [], "{of}");
    }
}

#[test]
fn a_backup_of_version_1_is_read_where_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let (_, url) = copied(&dir, "sled");
    let store = told(&options(&later()).with_read_only(true).open(&url).unwrap());
    let backup = Store::open(&format!("backup:{}", fixtures().join(BACKUP).display())).unwrap();
    assert_eq!(backup.verify(|_, _| ()).unwrap().problems, []);
    same(&told(&backup), &store, BACKUP);
}

#[test]
fn a_later_version_is_refused() {
    let is_newer = |result: Result<Store, Error>| match result {
        Err(Error::UnsupportedVersion { found: 2, supported: 1, what }) => what,
        other => panic!("{other:?}"),
    };
    for engine in ENGINES {
        let dir = tempfile::tempdir().unwrap();
        let (path, url) = copied(&dir, engine);
        let marker = path.join("CONVERSATION-STORE");
        let text = fs::read_to_string(&marker).unwrap();
        assert_eq!(text.lines().nth(1), Some("format 1"));
        for newer in [text.replace("format 1", "format 2"), text + "needs what comes later\n"] {
            fs::write(&marker, newer).unwrap();
            for read_only in [false, true] {
                let what = is_newer(StoreOptions::new().with_read_only(read_only).open(&url));
                assert!(what.contains(path.to_str().unwrap()), "{what}");
            }
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("newer");
    let mut bytes = fs::read(fixtures().join(BACKUP)).unwrap();
    assert_eq!(bytes[8..12], [0, 0, 0, 1]);
    bytes[11] = 2;
    fs::write(&file, bytes).unwrap();
    assert_eq!(is_newer(Store::open(&format!("backup:{}", file.display()))), "the backup");
}
