//! What every engine has to do, as one suite.

use std::ops::ControlFlow;

use super::{Batch, Engine, Order};

/// A new directory, and the URL of an engine in it.
#[cfg(any(feature = "fjall", feature = "sled"))]
pub(super) fn place(engine: &str) -> (tempfile::TempDir, super::Url) {
    let dir = tempfile::tempdir().unwrap();
    let url = super::Url::parse(&format!("{engine}:{}", dir.path().display())).unwrap();
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

    // Empty values, and values as large as a record's part.
    let mut batch = Batch::default();
    batch.put(b"empty".to_vec(), Vec::new());
    batch.put(b"large".to_vec(), vec![7; crate::record::PART_BYTES]);
    engine.write(batch).unwrap();
    engine.sync().unwrap();
    assert_eq!(engine.get(b"empty").unwrap().unwrap(), b"");
    assert_eq!(engine.get(b"large").unwrap().unwrap().len(), crate::record::PART_BYTES);

    // A visitor may call the engine.
    let visit = &mut |key: &[u8], value: &[u8]| {
        assert_eq!(engine.get(key).unwrap().unwrap(), value);
        ControlFlow::Continue(())
    };
    engine.scan(&first..&last, Order::Ascending, visit).unwrap();
}
