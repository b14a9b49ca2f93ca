//! In which order rows are locked: two writes that concern several conversations never wait for each other.

use std::thread::scope;

use conversation_store::model::{Message, Name};
use conversation_store::{Error, Store};

use crate::cluster::until;
use crate::common::postgres::{Server, schema};

type Write = fn(&Store, &str) -> Result<(), Error>;

/// Two writes that lock the same rows, given a fork of the conversation `parent`. Whether the parent is deleted before.
const PAIRS: [(&str, Write, Write, bool); 5] = [
    ("a title that is given back", redact_fork, |store, fork| store.set_title(fork, None).map(drop), false),
    ("a removal", redact_parent, |store, fork| store.remove(fork, 0, None).map(drop), false),
    ("a deletion", redact_other, |store, fork| store.delete(fork), true),
    ("a fork of the fork", redact_fork, |store, fork| store.fork_to(fork, None, "fork of the fork"), false),
    ("another redaction", redact_parent, |store, fork| store.redact(fork, 1, None).map(drop), false),
];

fn redact_fork(store: &Store, fork: &str) -> Result<(), Error> {
    store.redact(fork, 0, None).map(drop)
}

fn redact_parent(store: &Store, _: &str) -> Result<(), Error> {
    store.redact("parent", 0, None).map(drop)
}

fn redact_other(store: &Store, _: &str) -> Result<(), Error> {
    store.redact("other fork", 0, None).map(drop)
}

#[test]
fn writes_that_lock_several_rows_lock_them_in_one_order() {
    if crate::running().is_none() {
        return;
    }
    let server = Server::start(&[]).unwrap();
    for (what, first, second, is_deleted) in PAIRS {
        for is_fork_first in [false, true] {
            for (one, other) in [(first, second), (second, first)] {
                let url = server.url();
                let store = Store::open(&url).unwrap();
                store.append("parent", &[Message::user("first"), Message::user("second")]).unwrap();
                let parent = Name::from("parent").id();
                let is_first = |fork: &String| (Name::from(fork.as_str()).id() < parent) == is_fork_first;
                let fork = (0..).map(|at| format!("fork {at}")).find(is_first).unwrap();
                store.fork_to("parent", None, fork.as_str()).unwrap();
                if what == PAIRS[0].0 {
                    store.set_title(fork.as_str(), Some("its own")).unwrap();
                }
                if is_deleted {
                    store.fork_to("parent", None, "other fork").unwrap();
                    store.delete("parent").unwrap();
                }
                let held = format!("SELECT FROM {}.cs_conversation WHERE key = 'parent' FOR UPDATE", schema(&url));
                let waiting = |count: &str| {
                    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
                    server.value(waiting).unwrap().as_deref() == Some(count)
                };
                scope(|scope| {
                    // Both have what they lock before the parent, when it is let go. One that does not need it ends before.
                    let (one, other) = server.within(&held, || {
                        let one = scope.spawn(|| one(&store, &fork));
                        until(what, || waiting("1") || one.is_finished());
                        let other = scope.spawn(|| other(&store, &fork));
                        until(what, || waiting("2") || one.is_finished() || other.is_finished());
                        (one, other)
                    });
                    let done = (one.join().unwrap(), other.join().unwrap());
                    assert!(matches!(done, (Ok(()), Ok(()))), "{what}, {is_fork_first}: {done:?}");
                });
                assert_eq!(store.verify(|_, _| ()).unwrap().problems, [], "{what}");
            }
        }
    }
    // A connection that ends has told what it counted. A deadlock would be tried again without a word.
    let stores =
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
    until("the stores are closed", || server.value(stores).unwrap().as_deref() == Some("0"));
    let deadlocks = server.value("SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'").unwrap();
    assert_eq!(deadlocks.as_deref(), Some("0"));
}
