//! What every engine must do, as one suite.

use std::ops::ControlFlow;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use super::{Batch, Engine, LARGE_BYTES, Order};

/// A new directory, and the URL of an engine in it.
pub(super) fn place(engine: &str) -> (tempfile::TempDir, super::url::Url) {
    let dir = tempfile::tempdir().unwrap();
    let url = super::table::parse(&format!("{engine}:{}", dir.path().display())).unwrap();
    (dir, url)
}

fn scan(engine: &dyn Engine, start: &[u8], end: &[u8], order: Order, limit: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    let visit = &mut |key: &[u8], value: &[u8]| {
        found.push((key.to_vec(), value.to_vec()));
        if found.len() == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    engine.scan(start..end, order, visit).unwrap();
    found
}

/// An engine that has not finished the suite by then hangs.
const PATIENCE: Duration = Duration::from_secs(180);

/// Runs the suite on an empty engine, in its own thread: a suite that hangs is a failure, not a test that never ends.
pub(super) fn run_within(engine: Arc<dyn Engine>) {
    let (done, waiting) = mpsc::channel();
    let running = thread::spawn(move || {
        run(&*engine);
        drop(engine);
        // After the timeout nobody receives this.
        let _ = done.send(());
    });
    if waiting.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("the engine hangs: its suite has not ended after {PATIENCE:?}");
    }
    running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

/// Runs the suite on an empty engine.
pub(crate) fn run(engine: &dyn Engine) {
    assert!(engine.get(b"a").unwrap().is_none());
    assert!(scan(engine, b"", b"\xff", Order::Ascending, usize::MAX).is_empty());

    let pairs: Vec<_> = (0..200_u32).map(|i| (i.to_be_bytes().to_vec(), vec![u8::try_from(i).unwrap(); 3])).collect();
    let mut batch = Batch::default();
    for (key, value) in &pairs {
        batch.put(key.clone(), value.clone());
    }
    engine.write(batch).unwrap();
    engine.sync().unwrap();
    let (first, last) = (0_u32.to_be_bytes(), 200_u32.to_be_bytes());
    assert_eq!(scan(engine, &first, &last, Order::Ascending, usize::MAX), pairs);
    assert_eq!(
        scan(engine, &first, &last, Order::Descending, usize::MAX),
        pairs.iter().rev().cloned().collect::<Vec<_>>()
    );
    assert_eq!(
        scan(engine, &first, &last, Order::Descending, 3),
        pairs.iter().rev().take(3).cloned().collect::<Vec<_>>()
    );
    let (start, end) = (70_u32.to_be_bytes(), 75_u32.to_be_bytes());
    assert_eq!(scan(engine, &start, &end, Order::Ascending, usize::MAX), pairs.get(70..75).unwrap());
    assert_eq!(scan(engine, &start, &end, Order::Descending, 1), pairs.get(74..75).unwrap());
    assert!(scan(engine, &end, &start, Order::Ascending, usize::MAX).is_empty());
    assert!(scan(engine, &start, &start, Order::Descending, usize::MAX).is_empty());

    // The last operation on a key wins; removing what is not there is no error.
    let mut batch = Batch::default();
    batch.put(b"k".to_vec(), b"1".to_vec());
    batch.put(b"k".to_vec(), b"2".to_vec());
    batch.put(b"gone".to_vec(), b"1".to_vec());
    batch.remove(b"gone".to_vec());
    batch.remove(b"never there".to_vec());
    engine.write(batch).unwrap();
    assert_eq!(engine.get(b"k").unwrap().unwrap(), b"2");
    assert!(engine.get(b"gone").unwrap().is_none());

    // An empty value.
    put(engine, &[(b"empty", &[])]);
    assert_eq!(engine.get(b"empty").unwrap().unwrap(), b"");

    // A visitor may call the engine.
    let visit = &mut |key: &[u8], value: &[u8]| {
        assert_eq!(engine.get(key).unwrap().unwrap(), value);
        ControlFlow::Continue(())
    };
    engine.scan(&first..&last, Order::Ascending, visit).unwrap();

    values_of_all_sizes(engine);
    large_values_that_are_replaced(engine);
    large_values_that_are_replaced_while_they_are_read(engine);
}

fn put(engine: &dyn Engine, pairs: &[(&[u8], &[u8])]) {
    let mut batch = Batch::default();
    pairs.iter().for_each(|(key, value)| batch.put(key.to_vec(), value.to_vec()));
    engine.write(batch).unwrap();
    engine.sync().unwrap();
}

/// This many bytes, of which no two pieces are alike.
fn noise(length: usize, seed: u8) -> Vec<u8> {
    let mut state = u32::from(seed) + 1;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// What a scan must show: as asked, in either order, and by its keys alone.
fn holds(engine: &dyn Engine, start: &[u8], end: &[u8], pairs: &[(Vec<u8>, Vec<u8>)]) {
    let backwards: Vec<_> = pairs.iter().rev().cloned().collect();
    assert!(scan(engine, start, end, Order::Ascending, usize::MAX) == pairs);
    assert!(scan(engine, start, end, Order::Descending, usize::MAX) == backwards);
    for (order, pairs) in [(Order::Ascending, pairs), (Order::Descending, &backwards)] {
        let mut lengths = Vec::new();
        let visit = &mut |key: &[u8], length| {
            lengths.push((key.to_vec(), length));
            ControlFlow::Continue(())
        };
        engine.keys(start..end, order, visit).unwrap();
        assert_eq!(lengths, pairs.iter().map(|(key, value)| (key.clone(), value.len())).collect::<Vec<_>>());
    }
    for (key, value) in pairs {
        assert!(engine.get(key).unwrap().as_ref() == Some(value));
    }
}

/// Values about as large as an engine may keep in one piece, or in two, and one of 1 MB; values that begin like an
/// engine's own marks; keys that begin with another key.
fn values_of_all_sizes(engine: &dyn Engine) {
    let mut values: Vec<Vec<u8>> = vec![vec![0xff], vec![0xff; 5], vec![0xff, 0, 0, 0, 9], vec![0xff; LARGE_BYTES]];
    let edges = [LARGE_BYTES, 2 * LARGE_BYTES, 3 * LARGE_BYTES, 1_000_000];
    values.extend(edges.into_iter().flat_map(|edge| (edge - 12..edge + 3).map(|length| noise(length, 1))));
    let mut pairs: Vec<_> = (0_u8..).map(|i| vec![b's', i]).zip(values).collect();
    let (key, value) = pairs.last().unwrap().clone();
    pairs.push(([&key[..], &[0, 0, 0, 0]].concat(), noise(100_000, 2)));
    pairs.push(([&key[..], &[0, 0, 0, 1]].concat(), value));
    put(engine, &pairs.iter().map(|(key, value)| (&key[..], &value[..])).collect::<Vec<_>>());
    holds(engine, b"s", b"t", &pairs);
    // The end of all keys, and what comes after it.
    assert_eq!(scan(engine, b"s", &[u8::MAX; 32], Order::Ascending, usize::MAX).len(), pairs.len());
    let mut batch = Batch::default();
    pairs.iter().for_each(|(key, _)| batch.remove(key.clone()));
    engine.rewrite(batch).unwrap();
    holds(engine, b"s", &[u8::MAX; 32], &[]);
}

fn large_values_that_are_replaced(engine: &dyn Engine) {
    let lengths = [100_000, 40_000, 3, 16_380, 300_000, 0, 20_000];
    let mut now = Vec::new();
    for (seed, length) in (0..).zip(lengths) {
        now = vec![(b"r1".to_vec(), noise(length, seed)), (b"r2".to_vec(), noise(LARGE_BYTES, seed))];
        let mut batch = Batch::default();
        // Of several values under one key in a batch the last one stays, and nothing of the others.
        batch.put(b"r1".to_vec(), noise(200_000, seed));
        batch.put(b"r3".to_vec(), noise(200_000, seed));
        batch.remove(b"r3".to_vec());
        now.iter().for_each(|(key, value)| batch.put(key.clone(), value.clone()));
        engine.rewrite(batch).unwrap();
        engine.sync().unwrap();
        holds(engine, b"r", b"s", &now);
    }
    let mut batch = Batch::default();
    now.iter().for_each(|(key, _)| batch.remove(key.clone()));
    engine.rewrite(batch).unwrap();
    holds(engine, b"r", b"s", &[]);
}

/// A reader sees the value that one batch wrote.
fn large_values_that_are_replaced_while_they_are_read(engine: &dyn Engine) {
    let uniform = |turn: u8| vec![turn; 200_000 + 16_000 * usize::from(turn % 3)];
    put(engine, &[(b"q", &uniform(0))]);
    thread::scope(|scope| {
        let writing = scope.spawn(|| {
            for turn in (0..=u8::MAX).chain(0..=u8::MAX) {
                let mut batch = Batch::default();
                match turn % 8 {
                    7 => batch.remove(b"q".to_vec()),
                    _ => batch.put(b"q".to_vec(), uniform(turn)),
                }
                engine.rewrite(batch).unwrap();
                // The log syncs after each batch; too much unsynced data can hang sled (`docs/durability.md`).
                if turn % 8 == 0 {
                    engine.sync().unwrap();
                }
            }
        });
        let check = |value: &[u8]| assert!(*value == uniform(value[0]), "of two batches");
        while !writing.is_finished() {
            for _ in 0..20 {
                engine.get(b"q").unwrap().iter().for_each(|value| check(value));
            }
            scan(engine, b"q", b"r", Order::Ascending, 1).iter().for_each(|(_, value)| check(value));
        }
    });
}
