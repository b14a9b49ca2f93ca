//! Forks, deletions and redactions at once: those that share entries wait for one another, and for no other. Under every
//! order of their threads that a scheduler finds.

use std::ops::Range;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::super::{Embedded, Opening};
use super::schedules::{append, durable, open, spawn, texts, under_every_order};
use crate::embedded::engine::{Batch, Directory, Engine, Memory, Order, Visit};
use crate::embedded::recovery;
use crate::embedded::sync::{Condvar, Mutex};
use crate::error::{Error, Result};
use crate::log::{ForkAt, NewConversation};
use crate::model::{Name, Timestamp};
use crate::record::key;

/// The state of a gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Gate {
    #[default]
    Open,
    Closed,
    /// Closed, and somebody waits at it.
    Reached,
}

/// The conversation whose redaction comes to the gate.
const REDACTED: &str = "redacted";

/// An engine in memory with a gate before the idempotency records of one conversation: its redaction comes there when it
/// has read the message.
#[derive(Debug, Default)]
struct Gated {
    memory: Memory,
    gate: Mutex<Gate>,
    changed: Condvar,
}

impl Gated {
    fn set(&self, gate: Gate) {
        *self.gate.lock().unwrap_or_else(PoisonError::into_inner) = gate;
        self.changed.notify_all();
    }

    fn wait_while(&self, is: impl Fn(Gate) -> bool) {
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        while is(*gate) {
            gate = self.changed.wait(gate).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Engine for Gated {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.memory.get(key)
    }

    fn scan(&self, range: Range<&[u8]>, order: Order, visit: Visit<'_>) -> Result<()> {
        let is_gated = range.start == key::prefix(key::RECEIPT, Name::from(REDACTED).id());
        if is_gated && *self.gate.lock().unwrap_or_else(PoisonError::into_inner) != Gate::Open {
            self.set(Gate::Reached);
            self.wait_while(|gate| gate != Gate::Open);
        }
        self.memory.scan(range, order, visit)
    }

    fn write(&self, batch: Batch) -> Result<()> {
        self.memory.write(batch)
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn directory(&self) -> Option<&Directory> {
        None
    }
}

fn fork(log: &Embedded, parent: &str, child: &str) -> Result<()> {
    log.core().families.fork(&parent.into(), ForkAt::default(), &child.into())
}

fn delete(log: &Embedded, name: &str) -> Result<()> {
    log.core().families.delete(&name.into(), None)
}

fn redact(log: &Embedded, name: &str) -> Result<()> {
    log.core().families.redact(&name.into(), 0, None).map(drop)
}

/// That none of these shows what was redacted, and that nothing is wrong with the store.
fn assert_redacted(log: &Embedded, names: &[&str]) {
    for name in names {
        let Some(head) = log.core().catalogue.published_head(Name::from(*name).id()).unwrap() else { continue };
        assert_ne!(head.title.as_deref(), Some("secret"), "{name}");
        assert!(!texts(log, name).contains("secret"), "{name}");
    }
    assert_eq!(recovery::verify(log.core(), &mut |_, _| ()).unwrap().problems, []);
}

#[test]
fn a_fork_of_another_conversation_does_not_wait_for_a_redaction() {
    under_every_order(|| {
        let engine = Arc::new(Gated::default());
        let as_engine: Arc<dyn Engine> = Arc::clone(&engine) as Arc<dyn Engine>;
        let clock = Arc::new(|| Timestamp::from_micros(0));
        let log = Arc::new(Embedded::open(as_engine, clock, Duration::from_millis(20), Opening::default()).unwrap());
        for name in [REDACTED, "forked", "deleted"] {
            append(&log, name, "secret", &durable()).unwrap();
        }
        engine.set(Gate::Closed);
        let redaction = spawn(&log, |log| redact(log, REDACTED).unwrap());
        let child = spawn(&log, |log| fork(log, REDACTED, "child").unwrap());
        engine.wait_while(|gate| gate == Gate::Closed);
        // If one of these waited for the redaction, nobody could go on.
        fork(&log, "forked", "fork").unwrap();
        delete(&log, "deleted").unwrap();
        log.core().appender.create(&"created".into(), &NewConversation::new()).unwrap();
        engine.set(Gate::Open);
        redaction.join().unwrap();
        child.join().unwrap();
        assert_redacted(&log, &[REDACTED, "child"]);
    });
}

#[test]
fn what_shares_a_message_is_forked_and_deleted_before_its_redaction_or_after_it() {
    under_every_order(|| {
        let log = open(None);
        append(&log, "parent", "secret", &durable()).unwrap();
        fork(&log, "parent", "sibling").unwrap();
        fork(&log, "parent", "fork").unwrap();
        let done = [
            spawn(&log, |log| redact(log, "fork")),
            spawn(&log, |log| fork(log, "sibling", "child")),
            spawn(&log, |log| delete(log, "parent")),
            spawn(&log, |log| delete(log, "sibling")),
        ];
        let [redacted, forked, parent, sibling] = done.map(|thread| thread.join().unwrap());
        redacted.and(parent).and(sibling).unwrap();
        assert!(matches!(forked, Ok(()) | Err(Error::NotFound { .. })), "{forked:?}");
        assert_redacted(&log, &["sibling", "fork", "child"]);
        // With the last of them, all of it is gone.
        for name in ["fork", "child"] {
            let deleted = delete(&log, name);
            assert!(matches!(deleted, Ok(()) | Err(Error::NotFound { .. })), "{deleted:?}");
        }
        append(&log, "parent", "again", &durable()).unwrap();
    });
}

#[test]
fn forks_to_each_other_s_names_do_not_wait_for_each_other() {
    under_every_order(|| {
        let log = open(None);
        append(&log, "a", "text", &durable()).unwrap();
        append(&log, "b", "text", &durable()).unwrap();
        let there = spawn(&log, |log| fork(log, "a", "b"));
        let back = fork(&log, "b", "a");
        for forked in [there.join().unwrap(), back] {
            assert!(matches!(forked, Err(Error::NameTaken { .. })), "{forked:?}");
        }
    });
}

#[test]
fn a_name_that_is_deleted_and_used_again_is_forked_as_one_or_the_other() {
    under_every_order(|| {
        let log = open(None);
        append(&log, "root", "secret", &durable()).unwrap();
        append(&log, "name", "text", &durable()).unwrap();
        let again = spawn(&log, |log| {
            delete(log, "name").unwrap();
            let forked = fork(log, "root", "name");
            assert!(matches!(forked, Ok(()) | Err(Error::SharedByForks { .. })), "{forked:?}");
            redact(log, "root").unwrap();
        });
        let forked = fork(&log, "name", "child");
        again.join().unwrap();
        match forked {
            Ok(()) => assert_redacted(&log, &["child"]),
            Err(error) => assert!(matches!(error, Error::NotFound { .. }), "{error:?}"),
        }
        assert_redacted(&log, &["root", "name"]);
    });
}
