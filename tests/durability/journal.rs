//! The journal of a store on sled, as a user meets it: what a killed process left in it is read, listed, verified and
//! backed up; damage to it is reported; a store that had none gets one.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::common::program::copy;
use conversation_store::model::{Body, Message};
use conversation_store::{Error, Health, ListQuery, Store, StoreOptions};
use tempfile::TempDir;

const MARKER: &str = "CONVERSATION-STORE";
/// Two regions.
const BYTES: u64 = 4 * 1024 * 1024;
/// Where a record may begin.
const ALIGNMENT: u64 = 512;
const APPENDS: u64 = 20;

fn url(path: &Path) -> String {
    format!("sled:{}", path.display())
}

fn read_only(path: &Path) -> Store {
    StoreOptions::new().with_read_only(true).open(&url(path)).unwrap()
}

/// The number of the last durable commit, as it was after a few appends: nobody syncs it, so a power cut may leave that.
const EARLY: &str = "watermark.early";

/// A store as a killed process leaves it: what was appended is in the journal alone.
fn killed(dir: &TempDir) -> PathBuf {
    let (path, left) = (dir.path().join("db"), dir.path().join("killed"));
    let store = Store::open(&url(&path)).unwrap();
    for number in 1..=APPENDS {
        assert_eq!(store.append("chat", &[Message::user(format!("line {number}"))]).unwrap().last_seq, number);
        if number == 3 {
            fs::copy(path.join("watermark"), dir.path().join(EARLY)).unwrap();
        }
    }
    copy(&path, &left);
    drop(store);
    left
}

fn text(message: &Message) -> String {
    match &message.chunks[0].body {
        Body::Text { text, .. } => text.clone(),
        other => panic!("{other:?}"),
    }
}

fn lines(store: &Store) -> Vec<String> {
    let loaded = store.load("chat").unwrap();
    loaded.messages().iter().map(|stored| text(&stored.message)).collect()
}

fn written() -> Vec<String> {
    (1..=APPENDS).map(|number| format!("line {number}")).collect()
}

#[test]
fn what_a_killed_process_left_is_seen_by_all_that_reads() {
    let dir = tempfile::tempdir().unwrap();
    let path = killed(&dir);
    let before = fs::read(path.join("journal")).unwrap();
    for _ in 0..2 {
        let store = read_only(&path);
        assert_eq!(store.health(), Health::default());
        assert_eq!(lines(&store), written());
        assert_eq!(store.list(&ListQuery::new()).unwrap().items.len(), 1);
        assert_eq!(store.newest_entries("chat", 3).unwrap().len(), 3);
        let verified = store.verify(|_, _| ()).unwrap();
        assert_eq!((verified.problems, verified.conversations, verified.entries), (Vec::new(), 1, APPENDS));
        let backup = dir.path().join("backup");
        store.backup(&backup, |_, _| ()).unwrap();
        assert_eq!(lines(&Store::open(&format!("backup:{}", backup.display())).unwrap()), written());
        fs::remove_file(&backup).unwrap();
        drop(store);
        // Nothing is written by an opening that only reads.
        assert!(fs::read(path.join("journal")).unwrap() == before);
    }
    // Without the journal nothing is left: sled had no checkpoint yet.
    let without = dir.path().join("without");
    copy(&path, &without);
    fs::remove_file(without.join("journal")).unwrap();
    assert!(matches!(Store::open(&url(&without)), Err(Error::Corrupt { .. })));
    // It goes on where it was, and a store that is closed has nothing in its journal.
    Store::open(&url(&path)).unwrap().append("chat", &[Message::user("more")]).unwrap();
    fs::write(path.join("journal"), b"closed").unwrap();
    let store = Store::open(&url(&path)).unwrap();
    assert_eq!(store.health(), Health::default());
    assert_eq!(lines(&store).len() as u64, APPENDS + 1);
    store.append("chat", &[Message::user("once more")]).unwrap();
    assert_eq!(fs::metadata(path.join("journal")).unwrap().len(), BYTES);
}

/// Where the records are that the journal's file holds: in a new store all of them are in the first region.
fn records(path: &Path) -> Vec<u64> {
    let bytes = fs::read(path.join("journal")).unwrap();
    let places = (0..bytes.len()).step_by(ALIGNMENT as usize).map(|at| at as u64);
    let records: Vec<u64> = places.filter(|at| bytes[*at as usize..*at as usize + 32] != [0; 32]).collect();
    assert!(records.len() as u64 >= APPENDS);
    records
}

#[test]
fn a_damaged_record_is_reported_until_the_loss_is_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let killed = killed(&dir);
    let records = records(&killed);
    for with_watermark in [true, false] {
        for (number, at) in records[..records.len() - 2].iter().enumerate().skip(6).step_by(3) {
            let path = dir.path().join("damaged");
            let _ = fs::remove_dir_all(&path);
            copy(&killed, &path);
            if !with_watermark {
                fs::copy(dir.path().join(EARLY), path.join("watermark")).unwrap();
            }
            let file = File::options().read(true).write(true).open(path.join("journal")).unwrap();
            file.write_all_at(b"damage", at + 40).unwrap();
            let store = Store::open(&url(&path)).unwrap();
            let error = store.append("chat", &[Message::user("more")]).unwrap_err();
            assert!(matches!(&error, Error::Corrupt { detail, .. } if detail.contains("journal")), "{error}");
            drop(store);
            let store = read_only(&path);
            assert!(store.health().damage.iter().any(|detail| detail.contains("journal")), "{:?}", store.health());
            let left = lines(&store);
            assert!(left.len() < APPENDS as usize && left == written()[..left.len()], "{number}: {left:?}");
            drop(store);
            let store = StoreOptions::new().with_accept_loss(true).open(&url(&path)).unwrap();
            assert_eq!(lines(&store), left);
            store.append("chat", &[Message::user("after the loss")]).unwrap();
            drop(store);
            let store = Store::open(&url(&path)).unwrap();
            assert_eq!(store.health(), Health::default());
            assert_eq!(lines(&store).len(), left.len() + 1);
            assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
        }
    }
}

#[test]
fn an_older_program_is_kept_from_what_only_the_journal_has() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let fixture: PathBuf = [env!("CARGO_MANIFEST_DIR"), "tests/fixtures/format/v1/sled"].iter().collect();
    copy(&fixture, &path);
    let _ = fs::remove_file(path.join("blobs/empty"));
    let marker = || fs::read_to_string(path.join(MARKER)).unwrap();
    let before = marker();
    assert!(!before.contains("needs"));
    drop(read_only(&path));
    assert_eq!(marker(), before, "an opening that only reads");
    assert!(!path.join("journal").exists());
    let store = Store::open(&url(&path)).unwrap();
    store.append("chat", &[Message::user("hello")]).unwrap();
    assert_eq!(marker(), format!("{before}needs journal\n"), "before anything is in it alone");
    assert_eq!(fs::metadata(path.join("journal")).unwrap().len(), BYTES);
    drop(store);
    assert_eq!(lines(&Store::open(&url(&path)).unwrap()), ["hello"]);
    // A new store states it from the beginning.
    let new = dir.path().join("new");
    drop(Store::open(&url(&new)).unwrap());
    assert!(fs::read_to_string(new.join(MARKER)).unwrap().ends_with("\nneeds journal\n"));
}
