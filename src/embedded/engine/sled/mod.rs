//! sled 0.34.7. Its flush is no fsync: `docs/durability.md` has what was measured, and why each line here is needed.

mod handle;
mod steps;
mod tree;

use std::fs::File;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;

use super::contract::{Batch, Engine, Operation, Visit, VisitKeys};
use super::directory::Directory;
use super::url::{Url, cache_bytes, syncs};
use crate::error::{Error, Result};
use crate::log::Order;
use handle::LOG;
use steps::Steps;
use tree::{Cutter, Sled, alone};

const NAME: &str = "sled";
const DEFAULT_CACHE_BYTES: u64 = 64 * 1024 * 1024;

pub(super) fn open(path: &Path, url: &Url) -> Result<Arc<dyn Engine>> {
    url.check_options(&["cache_mb", "sync"])?;
    let syncs = syncs(url)?;
    let cache = url.option("cache_mb").map(cache_bytes).transpose()?.unwrap_or(DEFAULT_CACHE_BYTES);
    let mut directory = Directory::take(path, NAME, url.restores(), handle::is_sleds)?;
    let handle = handle::open(&mut directory, cache)?;
    let log_path = path.join(LOG);
    let log = File::options().read(true).write(true).open(&log_path);
    let log = log.map_err(Error::io(format!("open {}", log_path.display())))?;
    directory.sync()?;
    Ok(Arc::new(Sled::new(handle, log, syncs, directory)))
}

impl Engine for Sled {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let Some(stored) = self.call("read", |tree| tree.get(key))? else { return Ok(None) };
        self.weigh(key, stored.len())?;
        if !tree::is_cut(&stored) {
            return Ok(Some(stored.to_vec()));
        }
        let Some((value, length)) = self.join(key)? else { return Ok(None) };
        if value.len() == length {
            return Ok(Some(value));
        }
        let detail = format!("a large value is torn: {} of its {length} bytes are there", value.len());
        Err(Error::Corrupt { conversation: None, seq: None, detail })
    }

    fn scan(&self, range: Range<&[u8]>, order: Order, visit: Visit<'_>) -> Result<()> {
        self.walk(range, order, &mut |key, stored| {
            if !tree::is_cut(stored) {
                return Ok(visit(key, stored));
            }
            // It may have been removed since it was read.
            Ok(self.join(key)?.map_or(ControlFlow::Continue(()), |(value, _)| visit(key, &value)))
        })
    }

    fn keys(&self, range: Range<&[u8]>, order: Order, visit: VisitKeys<'_>) -> Result<()> {
        self.walk(range, order, &mut |key, stored| {
            let length = tree::first(stored).map_or(stored.len(), |(length, _)| length);
            Ok(visit(key, length))
        })
    }

    fn write(&self, batch: Batch) -> Result<()> {
        let mut cutter = Cutter::default();
        for (key, value) in batch.ops {
            cutter.add(key, value, Vec::new())?;
        }
        self.apply(cutter)
    }

    fn rewrite(&self, batch: Batch) -> Result<()> {
        let mut cutter = Cutter::default();
        for (key, value) in batch.ops {
            let mut old = Vec::new();
            self.pieces(&key, 0, &mut |piece_key, _| {
                old.push(piece_key);
                Ok(())
            })?;
            cutter.add(key, value, old)?;
        }
        let _alone: Vec<_> = self.reading.iter().map(alone).collect();
        self.apply(cutter)
    }

    fn sync(&self) -> Result<()> {
        self.flush()
    }

    fn give(&self, operations: &mut dyn Iterator<Item = Operation<'_>>, last: (Vec<u8>, Vec<u8>)) -> Result<()> {
        let mut steps = Steps::new(self);
        for operation in operations {
            steps.take(operation)?;
        }
        steps.end(last)
    }

    fn directory(&self) -> Option<&Directory> {
        Some(&self.directory)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::super::conformance;
    use super::super::contract::RESERVED;
    use super::*;

    #[test]
    fn conforms() {
        let (dir, url) = conformance::place(NAME);
        conformance::run_within(open(dir.path(), &url).unwrap());
    }

    /// An engine with a value of many pieces, opened directly.
    fn with_a_large_value(dir: &Path) -> Sled {
        let mut directory = Directory::take(dir, NAME, false, handle::is_sleds).unwrap();
        let handle = handle::open(&mut directory, DEFAULT_CACHE_BYTES).unwrap();
        let log = File::open(dir.join(LOG)).unwrap();
        let engine = Sled::new(handle, log, false, directory);
        let mut batch = Batch::default();
        batch.put(b"large".to_vec(), vec![7; 100_000]);
        batch.put(b"next".to_vec(), vec![8]);
        engine.write(batch).unwrap();
        engine
    }

    fn pieces(engine: &Sled) -> Vec<sled::IVec> {
        engine.call("read", |tree| tree.scan_prefix([RESERVED]).keys().collect()).unwrap()
    }

    #[test]
    fn nothing_is_left_of_what_was_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let engine = with_a_large_value(dir.path());
        for (length, count) in [(100_000, 6), (20_000, 1), (16_384, 0), (16_385, 1), (16_379, 0), (90_000, 5)] {
            let mut batch = Batch::default();
            batch.put(b"large".to_vec(), vec![1; 200_000]);
            batch.put(b"large".to_vec(), vec![9; length]);
            engine.rewrite(batch).unwrap();
            assert_eq!(pieces(&engine).len(), count, "{length}");
        }
        let mut batch = Batch::default();
        batch.put(b"other".to_vec(), vec![1; 200_000]);
        batch.remove(b"other".to_vec());
        batch.remove(b"large".to_vec());
        engine.rewrite(batch).unwrap();
        assert_eq!(pieces(&engine), [b""; 0]);
        // No value of sled's is larger than it should be.
        engine.write(Batch { ops: vec![(b"large".to_vec(), Some(vec![1; 200_000]))] }).unwrap();
        let values: Vec<sled::IVec> = engine.call("read", |tree| tree.iter().values().collect()).unwrap();
        assert!(values.iter().all(|value| value.len() <= tree::PIECE_BYTES));
    }

    #[test]
    fn a_large_value_takes_as_much_room_as_it_has_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let engine = with_a_large_value(dir.path());
        let room = |engine: &Sled| engine.join(b"large").unwrap().unwrap().0.capacity();
        let piece = tree::PIECE_BYTES;
        for length in [piece + 1, 2 * piece - 5, 2 * piece - 4, 9 * piece - 5, 9 * piece - 4, 1_500_000] {
            let mut batch = Batch::default();
            batch.put(b"large".to_vec(), vec![9; length]);
            engine.rewrite(batch).unwrap();
            assert_eq!(room(&engine), length);
        }
        // Its length is damaged.
        for length in [4_000_000, u32::MAX] {
            let first = [&[u8::MAX][..], &length.to_be_bytes(), &[9; 100]].concat();
            engine.call("test", |tree| tree.insert(b"large", first)).unwrap();
            assert!(room(&engine) < 3_000_000);
        }
    }

    #[test]
    fn a_piece_that_is_missing_or_too_many_is_corruption() {
        let seen = |engine: &Sled| {
            let mut lengths = Vec::new();
            let visit = &mut |_: &[u8], value: &[u8]| {
                lengths.push(value.len());
                ControlFlow::Continue(())
            };
            engine.scan(&[]..&[u8::MAX], Order::Ascending, visit).unwrap();
            lengths
        };
        let torn = |engine: &Sled| match engine.get(b"large") {
            Err(Error::Corrupt { detail, .. }) => detail,
            other => panic!("{other:?}"),
        };
        let dir = tempfile::tempdir().unwrap();
        let engine = with_a_large_value(dir.path());
        let keys = pieces(&engine);
        for key in &keys {
            let piece = engine.call("test", |tree| tree.remove(key)).unwrap().unwrap();
            let left = 100_000 - piece.len();
            assert_eq!(torn(&engine), format!("a large value is torn: {left} of its 100000 bytes are there"));
            // A scan continues.
            assert_eq!(seen(&engine), [left, 1]);
            engine.call("test", |tree| tree.insert(key, piece)).unwrap();
        }
        assert_eq!(engine.get(b"large").unwrap().unwrap(), vec![7; 100_000]);
        let mut more = keys.last().unwrap().to_vec();
        *more.last_mut().unwrap() += 1;
        engine.call("test", |tree| tree.insert(more, &[7])).unwrap();
        assert_eq!(torn(&engine), "a large value is torn: 100001 of its 100000 bytes are there");
        // A damaged length claims no memory.
        for stored in [&[0xff, 0xff, 0xff, 0xff, 0xff, 7][..], &[0xff, 0, 0, 0, 0], &[0xff, 0]] {
            engine.call("test", |tree| tree.insert("large", stored)).unwrap();
            assert!(torn(&engine).starts_with("a large value is torn"));
        }
    }

    #[test]
    fn the_engines_own_keys_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let engine = with_a_large_value(dir.path());
        let mut batch = Batch::default();
        batch.put(vec![RESERVED, 1], Vec::new());
        assert!(matches!(engine.write(batch), Err(Error::InvalidInput(_))));
    }

    #[test]
    fn a_cut_off_snapshot_does_not_keep_a_store_from_opening() {
        let (dir, url) = conformance::place(NAME);
        drop(open(dir.path(), &url).unwrap());
        fs::write(dir.path().join("snap.0000000000000001.generating"), b"cut off").unwrap();
        drop(open(dir.path(), &url).unwrap());
    }

    #[test]
    fn settings_that_a_crash_left_torn_do_not_keep_a_store_from_opening() {
        let (dir, url) = conformance::place(NAME);
        drop(open(dir.path(), &url).unwrap());
        let settings = dir.path().join("conf");
        let whole = fs::read(&settings).unwrap();
        for length in [0, 8, 9, 30, 59, whole.len() - 1] {
            fs::write(&settings, &whole[..length]).unwrap();
            drop(open(dir.path(), &url).unwrap());
            assert_eq!(fs::read(&settings).unwrap(), whole);
        }
    }

    #[test]
    fn sleds_own_lock_is_waited_for() {
        let (dir, url) = conformance::place(NAME);
        drop(open(dir.path(), &url).unwrap());
        let log = File::open(dir.path().join("db")).unwrap();
        while log.try_lock().is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::scope(|scope| {
            let opening = scope.spawn(|| open(dir.path(), &url).map(drop));
            std::thread::sleep(Duration::from_millis(50));
            assert!(!opening.is_finished());
            log.unlock().unwrap();
            opening.join().unwrap().unwrap();
        });
    }
}
