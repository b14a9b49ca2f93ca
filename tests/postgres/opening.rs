//! What opening says of a database.

use conversation_store::model::Message;
use conversation_store::{Error, Store, StoreOptions};

use crate::common::postgres::schema;

#[test]
fn a_schema_is_made_once_and_its_version_counts() {
    let Some(server) = crate::running() else { return };
    let url = server.url();
    let existing = StoreOptions::new().with_create(false);
    assert!(matches!(existing.open(&url), Err(Error::NotFound { .. })));
    assert!(matches!(StoreOptions::new().with_read_only(true).open(&url), Err(Error::NotFound { .. })));
    // Several programs open it at once for the first time.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| Store::open(&url).unwrap().append("chat", &[Message::user("a")]).unwrap());
        }
    });
    assert_eq!(existing.open(&url).unwrap().load("chat").unwrap().messages().len(), 4);
    let set = |version: i32| server.run(&format!("UPDATE {}.cs_schema SET version = {version}", schema(&url))).unwrap();
    set(0);
    let older = Store::open(&url).unwrap_err();
    assert!(matches!(&older, Error::InvalidInput(said) if said.contains("version 0")), "{older}");
    set(1);
    assert_eq!(Store::open(&url).unwrap().load("chat").unwrap().messages().len(), 4);
}

#[test]
fn a_store_that_is_opened_to_read_writes_nothing() {
    let Some(server) = crate::running() else { return };
    let url = server.url();
    Store::open(&url).unwrap().append("chat", &[Message::user("a")]).unwrap();
    let store = StoreOptions::new().with_read_only(true).open(&url).unwrap();
    assert_eq!(store.load("chat").unwrap().messages().len(), 1);
    let writes = [
        store.append("chat", &[Message::user("b")]).map(|_| ()),
        store.rewind("chat", 0).map(|_| ()),
        store.fork_to("chat", None, "fork"),
        store.redact("chat", 0, None).map(|_| ()),
        store.delete("chat"),
    ];
    for write in writes {
        assert!(matches!(write, Err(Error::ReadOnly)), "{write:?}");
    }
}

#[test]
fn settings_that_break_the_promise_are_reported() {
    let Some(server) = crate::running() else { return };
    let url = server.url();
    let warnings = |url: &str| Store::open(url).unwrap().health().warnings;
    // The tests' server does not sync.
    let usual = warnings(&url);
    assert!(usual.len() == 1 && usual[0].starts_with("fsync is off"), "{usual:?}");
    let off = warnings(&url.replace("options=-c", "options=-csynchronous_commit%3Doff%20-c"));
    assert!(off.len() == 2 && off[0].starts_with("synchronous_commit is off"), "{off:?}");
}

#[test]
fn what_cannot_be_reached_is_reported_without_the_password() {
    for (url, is_it) in [
        (
            "postgres://ada:secret@127.0.0.1:1/d?timeout_seconds=1",
            (|error| matches!(error, Error::Io { .. })) as fn(&Error) -> bool,
        ),
        ("postgres://ada:secret@127.0.0.1:1/d?timeout_seconds=x", |error| matches!(error, Error::InvalidInput(_))),
        ("postgres://ada:secret@[::/d", |error| matches!(error, Error::InvalidInput(_))),
    ] {
        let error = Store::open(url).unwrap_err();
        assert!(is_it(&error) && !format!("{error} {error:?}").contains("secret"), "{url}: {error}");
    }
    let Some(server) = crate::running() else { return };
    let store = Store::open(&server.url().replace("postgres@", "postgres:secret@")).unwrap();
    assert!(!format!("{store:?}").contains("secret"), "{store:?}");
    let nowhere = server.url().replace("/postgres?", "/nowhere?").replace("postgres@", "postgres:secret@");
    let error = Store::open(&nowhere).unwrap_err();
    assert!(matches!(error, Error::Io { .. }) && !format!("{error} {error:?}").contains("secret"), "{error}");
}

/// Calls block, and yet may be made on a thread of a runtime: on one that serves, by mistake too.
#[test]
fn calls_may_be_made_within_a_runtime() {
    let Some(server) = crate::running() else { return };
    let url = server.url();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::open(&url).unwrap();
        store.append("chat", &[Message::user("a")]).unwrap();
        let clone = store.clone();
        tokio::task::spawn_blocking(move || clone.append("chat", &[Message::user("b")]).unwrap()).await.unwrap();
        assert_eq!(store.load("chat").unwrap().messages().len(), 2);
        drop(store);
    });
}
