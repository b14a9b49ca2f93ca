//! What a directory has to be for a store to be opened in it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use conversation_store::model::{Chunk, Message, Metadata, Role};
use conversation_store::{Error, MessageState, Store};

/// Set for a copy of this program that only holds a store.
const HOLD: &str = "CONVO_TEST_HOLD";

fn url(path: &Path) -> String {
    format!("sled:{}", path.display())
}

/// The error of opening a store here.
fn refused(path: &Path) -> Error {
    Store::open(&url(path)).map(|_| ()).unwrap_err()
}

/// Not a test by itself: what the other process does in those below. It is killed while it holds the store.
#[test]
fn the_other_process() {
    let Some(path) = std::env::var_os(HOLD) else { return };
    let store = Store::open(&url(Path::new(&path))).unwrap();
    let mut writer = store.begin("chat", Role::Assistant, Metadata::default()).unwrap();
    writer.push(0, Chunk::text("cut o")).unwrap();
    store.sync().unwrap();
    println!("\nholding");
    std::io::stdout().flush().unwrap();
    // Until the other end is closed.
    let _ = std::io::stdin().read_line(&mut String::new());
}

#[test]
fn one_process_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "directory::the_other_process", "--nocapture"])
        .env(HOLD, dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "holding"), "the other process does not hold the store");
    let error = refused(dir.path());
    assert!(matches!(&error, Error::Busy(text) if text.contains(&other.id().to_string())), "{error:?}");
    other.kill().unwrap();
    other.wait().unwrap();
    // What was durable is there, and nobody goes on with it.
    let store = Store::open(&url(dir.path())).unwrap();
    let messages = store.load_raw("chat").unwrap();
    let [stored] = messages.as_slice() else { panic!("{messages:?}") };
    assert_eq!((stored.state, &stored.message.chunks), (MessageState::Interrupted, &vec![Chunk::text("cut o")]));
}

#[test]
fn one_opening_at_a_time() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&url(dir.path())).unwrap();
    assert!(matches!(refused(dir.path()), Error::Busy(_)));
    let clone = store.clone();
    drop(store);
    assert!(matches!(refused(dir.path()), Error::Busy(_)), "a clone keeps it open");
    drop(clone);
    Store::open(&url(dir.path())).unwrap();
}

#[test]
fn what_is_no_store_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("thesis");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("chapter-1.txt"), "It was").unwrap();
    assert!(matches!(refused(&path), Error::InvalidInput(text) if text.contains("chapter-1.txt")));
    assert_eq!(fs::read_dir(&path).unwrap().count(), 1);
    assert!(matches!(refused(&path.join("chapter-1.txt")), Error::InvalidInput(_)));
    for url in ["", "sled", "sled:", "floppy:a", "memory:x", "sled:x?cache_mb=0", "sled:x?what=1"] {
        assert!(matches!(Store::open(url), Err(Error::InvalidInput(_))), "{url}");
    }
}

#[test]
fn the_marker_tells_whose_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    Store::open(&url(&path)).unwrap().append("chat", &[Message::user("a")]).unwrap();
    let marker = path.join("CONVERSATION-STORE");
    let text = fs::read_to_string(&marker).unwrap();
    assert!(text.starts_with("conversation-store\nformat 1\nengine sled\nstore "), "{text}");
    let with = |from: &str, to: &str| {
        fs::write(&marker, text.replace(from, to)).unwrap();
        refused(&path)
    };
    assert!(matches!(with("format 1", "format 2"), Error::UnsupportedVersion { found: 2, supported: 1, .. }));
    let needs = with("engine sled", "engine sled\nneeds what comes later");
    assert!(matches!(&needs, Error::UnsupportedVersion { found: 2, supported: 1, .. }));
    assert!(needs.to_string().contains("which needs \"what comes later\", has format version 2"), "{needs}");
    assert!(matches!(with("format 1", "format one"), Error::Corrupt { .. }));
    assert!(matches!(with("engine sled", "engine fjall"), Error::InvalidInput(text) if text.contains("fjall:")));
    assert!(matches!(with("conversation-store\n", "another program\n"), Error::InvalidInput(_)));
    // As a crash may leave it, or where it is damaged and was removed: the engine's own data tells.
    for removed in [false, true] {
        if removed {
            fs::remove_file(&marker).unwrap()
        } else {
            fs::write(&marker, "").unwrap()
        }
        assert_eq!(Store::open(&url(&path)).unwrap().load("chat").unwrap().messages().len(), 1);
        assert_eq!(fs::read_to_string(&marker).unwrap(), text);
    }
}

#[test]
fn a_store_that_is_empty_and_was_not_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    Store::open(&url(&path)).unwrap().append("chat", &[Message::user("a")]).unwrap();
    for entry in fs::read_dir(&path).unwrap() {
        let file = entry.unwrap().path();
        if file.file_name().is_some_and(|name| name != "CONVERSATION-STORE") {
            if file.is_dir() { fs::remove_dir_all(file).unwrap() } else { fs::remove_file(file).unwrap() }
        }
    }
    assert!(matches!(refused(&path), Error::Corrupt { .. }));
}

/// A folder of that name is removed only if a creation by fjall left it.
#[cfg(feature = "fjall")]
#[test]
fn a_folder_that_fjall_did_not_make_stays() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, url) = (dir.path().join("fjall"), format!("fjall:{}", dir.path().display()));
    fs::create_dir_all(folder.join("keyspaces")).unwrap();
    fs::write(folder.join("lock"), b"").unwrap();
    fs::write(folder.join("0.jnl"), b"journal").unwrap();
    fs::write(folder.join("notes"), b"mine").unwrap();
    let error = Store::open(&url).map(|_| ()).unwrap_err();
    assert!(matches!(&error, Error::InvalidInput(text) if text.contains("notes")), "{error}");
    assert_eq!(fs::read(folder.join("notes")).unwrap(), b"mine");
    fs::rename(folder.join("notes"), folder.join("keyspaces").join("notes")).unwrap();
    Store::open(&url).map(|_| ()).unwrap_err();
    assert_eq!(fs::read(folder.join("keyspaces").join("notes")).unwrap(), b"mine");
    assert_eq!(fs::read(folder.join("0.jnl")).unwrap(), b"journal", "nothing goes before it is known that all may go");
    fs::remove_file(folder.join("keyspaces").join("notes")).unwrap();
    Store::open(&url).unwrap().append("chat", &[Message::user("a")]).unwrap();
}
