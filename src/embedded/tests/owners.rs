//! Whose a conversation is when neither its head nor its first record states that.

use std::sync::Arc;
use std::time::Duration;

use super::super::{Embedded, Opening};
use super::forgetful::all;
use super::lost::take;
use crate::embedded::engine::{Batch, Engine, Memory};
use crate::error::Error;
use crate::log::AppendOptions;
use crate::model::{Message, Name, Timestamp};
use crate::record::key;

fn open(engine: &Arc<Memory>) -> Embedded {
    let engine: Arc<dyn Engine> = Arc::clone(engine) as Arc<dyn Engine>;
    Embedded::open(engine, Arc::new(Timestamp::now), Duration::from_secs(3600), Opening::default()).unwrap()
}

/// A store with a conversation that nothing identifies but, perhaps, the list.
fn unknown(name: &Name, is_listed: bool) -> Arc<Memory> {
    let engine = Arc::new(Memory::default());
    let log = open(&engine);
    log.core().appender.append(name, &[Message::user("text")], &AppendOptions::new()).unwrap();
    drop(log);
    let damaged = [key::head(name.id()), key::record(name.id(), 1)];
    engine.write(Batch { ops: damaged.map(|key| (key, Some(vec![1, 2, 3]))).into() }).unwrap();
    if !is_listed {
        take(&*engine, key::INDEX, name);
    }
    engine
}

#[test]
fn what_nothing_identifies_is_deleted_by_its_owner_or_without_one() {
    let named = Name::from("chat").with_owner("ada");
    // Its id is that of the key without an owner.
    let id_of_a_key = Name::from(Name::from("chat").id()).with_owner("ada");
    let by_id = Name::from(named.id());
    let [ada, eve] = ["ada", "eve"].map(|owner| by_id.clone().with_owner(owner));
    let (not_found, damaged) = (Some("not_found"), Some("corrupt"));
    let table = [
        (&named, true, &named, None),
        (&named, true, &by_id, None),
        (&named, true, &ada, None),
        (&named, true, &eve, not_found),
        (&named, false, &named, None),
        (&named, false, &by_id, None),
        // Nobody knows.
        (&named, false, &ada, damaged),
        (&named, false, &eve, damaged),
        (&id_of_a_key, true, &id_of_a_key, None),
        (&id_of_a_key, true, &Name::from("chat"), not_found),
    ];
    for (conversation, is_listed, name, error) in table {
        let engine = unknown(conversation, is_listed);
        let log = open(&engine);
        let before = all(&*engine);
        let deleted = log.core().families.delete(name, None);
        let shown = format!("{conversation:?}, listed: {is_listed}, {name:?}: {deleted:?}");
        assert_eq!(deleted.as_ref().err().map(Error::code), error, "{shown}");
        let is_left = engine.get(&key::record(conversation.id(), 1)).unwrap().is_some();
        assert_eq!(is_left, error.is_some(), "{shown}");
        assert!(error.is_none() || all(&*engine) == before, "{shown}");
        if error.is_none() {
            let again =
                log.core().appender.append(conversation, &[Message::user("again")], &AppendOptions::new()).unwrap();
            assert_eq!(again.first_seq, 1, "{shown}");
        }
    }
}
