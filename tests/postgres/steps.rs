//! Backups and restores go on for as long as they get on, and end where a step of them is not answered.

use std::fs;
use std::io::ErrorKind;
use std::thread;
use std::time::Duration;

use conversation_store::model::Message;
use conversation_store::{Error, Store};

use crate::common::postgres::schema;
use crate::outcomes::through;
use crate::proxy::{Cut, Proxy};

const CONVERSATIONS: u64 = 30;

fn fill(store: &Store) {
    for at in 0..CONVERSATIONS {
        store.append(format!("chat {at}"), &[Message::user("hello")]).unwrap();
    }
}

fn io_kind(error: &Error) -> Option<ErrorKind> {
    if let Error::Io { source, .. } = error { Some(source.kind()) } else { None }
}

#[test]
fn a_step_that_is_not_answered_ends_a_backup_or_a_restore_without_effect() {
    let Some(server) = crate::running() else { return };
    let url = || server.url() + "&step_seconds=1";
    let (from, to) = (url(), url());
    let store = Store::open(&from).unwrap();
    fill(&store);
    let dir = crate::common::tempdir().unwrap();
    let file = dir.path().join("backup");
    let late = server.with_locked(&format!("{}.cs_key", schema(&from)), || store.backup(&file, |_, _| ()));
    assert_eq!(late.as_ref().err().and_then(io_kind), Some(ErrorKind::TimedOut), "{late:?}");
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
    // It may take longer than a step as a whole.
    store.backup(&file, |_, _| thread::sleep(Duration::from_millis(50))).unwrap();
    Store::open(&to).unwrap();
    let late = server.with_locked(&format!("{}.cs_record", schema(&to)), || Store::restore(&file, &to, |_, _| ()));
    assert_eq!(late.as_ref().err().and_then(io_kind), Some(ErrorKind::TimedOut), "{late:?}");
    let restored = Store::restore(&file, &to, |_, _| thread::sleep(Duration::from_millis(20))).unwrap();
    assert_eq!(restored.conversations, CONVERSATIONS);
    assert_eq!(Store::open(&to).unwrap().verify(|_, _| ()).unwrap().problems, []);
}

#[test]
fn what_a_lost_connection_means_for_a_restore_depends_on_whether_it_was_to_be_committed() {
    let Some(server) = crate::running() else { return };
    let proxy = Proxy::start(server.port);
    let dir = crate::common::tempdir().unwrap();
    let file = dir.path().join("backup");
    let store = Store::open("memory:").unwrap();
    fill(&store);
    store.backup(&file, |_, _| ()).unwrap();
    let url = through(&proxy, server);
    Store::open(&url).unwrap();
    proxy.cut(Cut::After, "INSERT INTO cs_record");
    let cut = Store::restore(&file, &url, |_, _| ());
    assert_eq!(cut.as_ref().err().and_then(io_kind), Some(ErrorKind::ConnectionAborted), "{cut:?}");
    proxy.cut(Cut::After, "COMMIT\0");
    let unknown = Store::restore(&file, &url, |_, _| ());
    assert!(matches!(unknown, Err(Error::OutcomeUnknown { .. })), "{unknown:?}");
    assert_eq!(proxy.cuts(), 2);
    // It was committed, as a look shows.
    assert_eq!(Store::open(&url).unwrap().load("chat 0").unwrap().messages().len(), 1);
    assert!(matches!(Store::restore(&file, &url, |_, _| ()), Err(Error::InvalidInput(_))));
}
