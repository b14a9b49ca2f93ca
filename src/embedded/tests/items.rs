//! The index of item ids can be derived again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::super::{Embedded, Opening};
use crate::embedded::engine::{Batch, Engine, Memory};
use crate::embedded::{recovery, stored};
use crate::log::AppendOptions;
use crate::model::{Chunk, Message, Name, Timestamp};
use crate::record::key;

#[test]
fn an_index_that_is_damaged_is_told_and_made_anew() {
    let engine: Arc<dyn Engine> = Arc::new(Memory::default());
    let clock = Arc::new(|| Timestamp::from_micros(0));
    let log = Embedded::open(Arc::clone(&engine), clock, Duration::from_secs(3600), Opening::default()).unwrap();
    let (core, name) = (log.core(), Name::from("chat"));
    let said = Message::assistant(["a", "b"].map(|id| Chunk { id: Some(id.to_owned()), ..Chunk::text(id) }));
    core.appender.append(&name, &[said], &AppendOptions::new()).unwrap();
    let id = name.id();
    let keys = stored::item_keys(&*engine, id, u64::MAX).unwrap();
    assert_eq!(keys.len(), 2);
    let problems = |log: &Embedded| -> Vec<String> {
        let verified = recovery::verify(log.core(), &mut |_, _| ()).unwrap();
        verified.problems.into_iter().map(|problem| problem.detail).collect()
    };
    assert_eq!(problems(&log), Vec::<String>::new());

    let mut batch = Batch::default();
    batch.remove(keys.first().unwrap().clone());
    batch.put(key::item(id, &[7; 16], 2), Vec::new());
    batch.put(key::item(Name::from("nobody").id(), &[7; 16], 1), Vec::new());
    engine.write(batch).unwrap();
    let wanted =
        ["the index of its item ids is not what its entries give", "it is in the index of item ids, but has no head"];
    assert_eq!(problems(&log), wanted);

    recovery::rebuild_all(&*engine, true).unwrap();
    assert_eq!(problems(&log), Vec::<String>::new());
    assert_eq!(stored::item_keys(&*engine, id, u64::MAX).unwrap(), keys);
    assert_eq!(stored::item_keys(&*engine, Name::from("nobody").id(), u64::MAX).unwrap(), BTreeSet::new());
}
