//! Entries with one item id: who wants the last of them reads no others.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::super::{Embedded, Opening};
use crate::embedded::engine::{Batch, Directory, Engine, Memory, Order, Visit};
use crate::error::Result;
use crate::log::{AppendOptions, Changes, ForkAt, Log};
use crate::model::{Chunk, Message, Name, Timestamp};
use crate::record::key;

/// Counts the item ids that are read.
#[derive(Debug, Default)]
struct Counted {
    memory: Memory,
    read: AtomicUsize,
}

impl Engine for Counted {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.memory.get(key)
    }

    fn scan(&self, range: Range<&[u8]>, order: Order, visit: Visit<'_>) -> Result<()> {
        self.memory.scan(range, order, &mut |key, value| {
            self.read.fetch_add(usize::from(key.first() == Some(&key::ITEM)), Ordering::Relaxed);
            visit(key, value)
        })
    }

    fn write(&self, batch: Batch) -> Result<()> {
        self.memory.write(batch)
    }

    fn sync(&self) -> Result<()> {
        self.memory.sync()
    }

    fn directory(&self) -> Option<&Directory> {
        None
    }
}

#[test]
fn the_last_entries_with_an_id_are_found_without_the_others() {
    let engine = Arc::new(Counted::default());
    let clock = Arc::new(|| Timestamp::from_micros(0));
    let log = Embedded::open(Arc::clone(&engine) as _, clock, Duration::ZERO, Opening::default()).unwrap();
    let (chat, fork) = (Name::from("chat"), Name::from("fork"));
    let said = Message::assistant([Chunk { id: Some("item".to_owned()), ..Chunk::text("again") }]);
    let say =
        |name: &Name| log.append(name, std::slice::from_ref(&said), &Changes::new(), &AppendOptions::new()).unwrap();
    (0..1_000).for_each(|_| drop(say(&chat)));
    Log::fork(&log, &chat, ForkAt { seq: Some(600), time: None }, &fork).unwrap();
    say(&fork);

    let found = |name: &Name, most: usize| {
        let view = log.view(name).unwrap().unwrap();
        let before = engine.read.load(Ordering::Relaxed);
        let seqs = log.item_seqs(&view, "item", most).unwrap();
        (seqs, engine.read.load(Ordering::Relaxed) - before)
    };
    assert_eq!(found(&chat, 3), (vec![998, 999, 1_000], 3));
    assert_eq!(found(&fork, 3), (vec![599, 600, 601], 3));
    assert_eq!(found(&fork, 1), (vec![601], 1));
    assert_eq!(found(&fork, 0), (vec![], 0));
    assert_eq!(found(&fork, usize::MAX).0, (1..=601).collect::<Vec<u64>>());
    assert_eq!(found(&chat, usize::MAX).0, (1..=1_000).collect::<Vec<u64>>());
}
