//! Erased bytes are in no file of a store that was written anew.

use std::fs;
use std::path::Path;

use conversation_store::model::Message;
use conversation_store::{Error, Store};

use crate::common::program::{PATIENCE, convo, run};

const SECRET: &str = "zq7xk9vw-zq7xk9vw-zq7xk9vw";

/// The files below a folder that hold the secret.
fn holding(path: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path).unwrap() {
        let entry = entry.unwrap().path();
        if entry.is_dir() {
            found.extend(holding(&entry));
        } else if fs::read(&entry).unwrap().windows(SECRET.len()).any(|window| window == SECRET.as_bytes()) {
            found.push(entry.display().to_string());
        }
    }
    found
}

#[test]
fn nothing_of_what_was_erased_is_in_the_files_of_a_store_that_was_written_anew() {
    let engines: &[&str] = if cfg!(feature = "fjall") { &["sled", "fjall"] } else { &["sled"] };
    for engine in engines {
        let dir = crate::common::tempdir().unwrap();
        let path = dir.path().join("store");
        let url = format!("{engine}:{}", path.display());
        let store = Store::open(&url).unwrap();
        for said in ["small ".to_owned(), "large ".repeat(30_000)] {
            store.append("redacted", &[Message::user(format!("{said}{SECRET}")), Message::user("kept")]).unwrap();
            store.append("deleted", &[Message::user(format!("{said}{SECRET}"))]).unwrap();
            store.append("kept", &[Message::user(said)]).unwrap();
        }
        store.fork_to("redacted", Some(3), "fork").unwrap();
        for message in [0, 2] {
            store.redact("redacted", message, None).unwrap();
        }
        store.delete("deleted").unwrap();
        let before = format!("{:?}", ["redacted", "fork", "kept"].map(|name| store.load_raw(name).unwrap()));
        let busy = Store::vacuum(&url, |_, _| ());
        assert!(matches!(busy, Err(Error::Busy(_))), "{busy:?}");
        store.close().unwrap();
        drop(store);
        if *engine == "sled" {
            assert_ne!(holding(&path), Vec::<String>::new(), "else this shows nothing");
        }
        let ended = run(convo(&["vacuum", "--store", &url]), PATIENCE);
        assert_eq!(ended.exit, Some(0), "{ended:?}");
        assert!(ended.json()["bytes_after"].as_u64() > Some(0), "{ended:?}");
        assert_eq!(holding(&path), Vec::<String>::new(), "{engine}");
        let store = Store::open(&url).unwrap();
        let after = format!("{:?}", ["redacted", "fork", "kept"].map(|name| store.load_raw(name).unwrap()));
        assert_eq!(after, before);
        assert_eq!(store.verify(|_, _| ()).unwrap().problems, []);
        store.append("kept", &[Message::user("more")]).unwrap();
    }
}

#[test]
fn what_has_no_files_of_its_own_is_not_written_anew() {
    let dir = crate::common::tempdir().unwrap();
    let backup = dir.path().join("backup");
    let store = Store::open("memory:").unwrap();
    store.append("chat", &[Message::user("hello")]).unwrap();
    store.backup(&backup, |_, _| ()).unwrap();
    for url in ["memory:", &format!("backup:{}", backup.display()), "http://127.0.0.1:9"] {
        let refused = Store::vacuum(url, |_, _| ());
        assert!(matches!(refused, Err(Error::InvalidInput(_))), "{url}: {refused:?}");
    }
    let missing = format!("sled:{}", dir.path().join("none").display());
    assert!(matches!(Store::vacuum(&missing, |_, _| ()), Err(Error::NotFound { .. })));
    // A copy of a damaged store is named.
    let url = format!("sled:{}", dir.path().join("store").display());
    Store::open(&url).unwrap().append("chat", &[Message::user("hello")]).unwrap();
    let copy = dir.path().join("store.damaged-1");
    fs::create_dir(&copy).unwrap();
    assert_eq!(Store::vacuum(&url, |_, _| ()).unwrap().set_aside, [copy]);
}
