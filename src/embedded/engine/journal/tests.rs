//! The journal before each engine, and before one that forgets what it did not sync.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;

use super::super::contract::Operation;
use super::super::memory::Memory;
use super::super::{conformance, table};
use super::file::{ALIGNMENT, Record, encode, replay};
use super::layer::Layer;
use super::*;

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

const JOURNAL: Id = [7; 16];

/// Also with regions so small that many batches are too large for one, and most of the others begin a new one.
#[test]
fn conforms() {
    for row in table::ENGINES.iter().filter(|row| row.name != "backup") {
        for region_bytes in [1024, 64 * 1024, REGION_BYTES] {
            let (dir, url) = conformance::place(row.name);
            let engine = (row.open)(dir.path(), &url).unwrap();
            conformance::run_within(before_with(engine, true, region_bytes).unwrap());
        }
    }
}

/// An engine in a directory that has after a power cut what was synced.
#[derive(Debug)]
struct Forgetful {
    now: Memory,
    synced: Mutex<(Pairs, Vec<Batch>)>,
    /// Whether it takes and gives nothing more.
    fails: AtomicBool,
    directory: Directory,
}

impl Forgetful {
    fn new(path: &Path, pairs: Pairs) -> Arc<Self> {
        let directory = Directory::take(path, "sled", false, |_| true).unwrap();
        let now = Memory::default();
        now.write(Batch { ops: pairs.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect() })
            .unwrap();
        Arc::new(Self { now, synced: Mutex::new((pairs, Vec::new())), fails: AtomicBool::new(false), directory })
    }

    fn check(&self) -> Result<()> {
        let error = || Error::io("use the disk")(std::io::Error::other("it is gone"));
        if self.fails.load(Ordering::Acquire) { Err(error()) } else { Ok(()) }
    }

    fn synced(&self) -> Pairs {
        self.synced.lock().unwrap().0.clone()
    }
}

fn apply(pairs: &mut Pairs, batch: &Batch) {
    for (key, value) in &batch.ops {
        match value {
            Some(value) => pairs.insert(key.clone(), value.clone()),
            None => pairs.remove(key),
        };
    }
}

fn copied(batch: &Batch) -> Batch {
    Batch { ops: batch.ops.clone() }
}

impl Engine for Forgetful {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.check()?;
        self.now.get(key)
    }

    fn scan(&self, range: Range<&[u8]>, order: Order, visit: Visit<'_>) -> Result<()> {
        self.now.scan(range, order, visit)
    }

    fn write(&self, batch: Batch) -> Result<()> {
        self.check()?;
        self.synced.lock().unwrap().1.push(copied(&batch));
        self.now.write(batch)
    }

    fn sync(&self) -> Result<()> {
        let (pairs, unsynced) = &mut *self.synced.lock().unwrap();
        std::mem::take(unsynced).iter().for_each(|batch| apply(pairs, batch));
        Ok(())
    }

    /// Each operation in two steps, and each step may be the last one before a power cut.
    fn give(&self, operations: &mut dyn Iterator<Item = Operation<'_>>, last: (Vec<u8>, Vec<u8>)) -> Result<()> {
        let put = |key: &[u8], value: Option<&[u8]>| {
            self.write(Batch { ops: vec![(key.to_vec(), value.map(<[u8]>::to_vec))] })?;
            self.sync()
        };
        for Operation { key, value, .. } in operations {
            put(key, value.and_then(|value| value.get(..value.len() / 2)))?;
            put(key, value)?;
        }
        put(&last.0, Some(&last.1))
    }

    fn directory(&self) -> Option<&Directory> {
        Some(&self.directory)
    }
}

/// All that an engine shows, in ascending order, which must be the descending one reversed.
fn all(engine: &dyn Engine) -> Pairs {
    let collect = |order| {
        let mut pairs = Vec::new();
        let visit = &mut |key: &[u8], value: &[u8]| {
            pairs.push((key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        };
        engine.scan(&[]..&[u8::MAX; 8], order, visit).unwrap();
        pairs
    };
    let (ascending, mut descending) = (collect(Order::Ascending), collect(Order::Descending));
    descending.reverse();
    assert_eq!(ascending, descending);
    let pairs: Pairs = ascending.into_iter().collect();
    pairs.iter().for_each(|(key, value)| assert_eq!(engine.get(key).unwrap().as_ref(), Some(value)));
    pairs
}

fn batches() -> impl Strategy<Value = Vec<Batch>> {
    let key = (0_u8..40).prop_map(|key| vec![b'k', key]);
    let value = prop_oneof![3 => (0..60_usize).boxed(), 1 => (400..700_usize).boxed()];
    let operation = (key, prop::option::weighted(0.8, (any::<u8>(), value)));
    let operation = operation.prop_map(|(key, value)| (key, value.map(|(byte, length)| vec![byte; length])));
    let batch = prop::collection::vec(operation, 1..6).prop_map(|ops| Batch { ops });
    prop::collection::vec(batch, 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// After a power cut at any batch, with the last record torn or not, what was synced is there and nothing is there in
    /// part; then it goes on. Regions hold few records, so that each boundary is met.
    #[test]
    fn what_was_synced_survives_at_any_batch(
        batches in batches(),
        cuts in prop::collection::vec((0..80_usize, 0..4096_usize, any::<bool>()), 1..6),
        region_bytes in prop::sample::select(vec![1024_usize, 2048, 8192]),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let mut inner = Forgetful::new(&dir.path().join("0"), Pairs::new());
        let mut engine = before_with(Arc::clone(&inner) as Arc<dyn Engine>, true, region_bytes).unwrap();
        let mut model = Pairs::new();
        let mut generation = 0;
        for (at, batch) in batches.iter().enumerate() {
            let cut = cuts.iter().find(|(cut, ..)| *cut == at);
            let earlier = model.clone();
            engine.write(copied(batch)).unwrap();
            apply(&mut model, batch);
            prop_assert_eq!(&all(&*engine), &model);
            if cut.is_none_or(|(.., synced)| *synced) {
                engine.sync().unwrap();
            }
            let Some((_, torn_at, synced)) = cut else { continue };
            // What is removed once the engine has it first, then the engine: a checkpoint may be made meanwhile.
            let path = dir.path().join(generation.to_string());
            let large = fs::read(path.join("journal.large"));
            let pairs = inner.synced();
            let mut file = fs::read(path.join("journal")).unwrap_or_default();
            generation += 1;
            let next = dir.path().join(generation.to_string());
            fs::create_dir(&next).unwrap();
            if !synced {
                tear(&mut file, *torn_at, &pairs);
            }
            fs::write(next.join("journal"), &file).unwrap();
            let _ = large.map(|large| fs::write(next.join("journal.large"), large));
            let after = Forgetful::new(&next, pairs);
            let reopened = before_with(Arc::clone(&after) as Arc<dyn Engine>, true, region_bytes).unwrap();
            prop_assert_eq!(reopened.damage(), None);
            let found = all(&*reopened);
            prop_assert!(found == model || (!synced && found == earlier), "{found:?}, neither {model:?} nor {earlier:?}");
            model = found;
            (engine, inner) = (reopened, after);
        }
        // Closing gives the engine everything, if anything was written since the opening.
        let mut batch = Batch::default();
        batch.put(vec![b'k', 99], Vec::new());
        apply(&mut model, &batch);
        engine.write(batch).unwrap();
        drop(engine);
        prop_assert_eq!(inner.synced().into_iter().filter(|(key, _)| key[0] != RESERVED).collect::<Pairs>(), model);
    }
}

#[test]
fn a_checkpoint_that_fails_ends_writing() {
    let (dir, region_bytes) = (tempfile::tempdir().unwrap(), 1024);
    let inner = Forgetful::new(dir.path(), Pairs::new());
    let engine = before_with(Arc::clone(&inner) as Arc<dyn Engine>, true, region_bytes).unwrap();
    let write = |at: u8| {
        let mut batch = Batch::default();
        batch.put(vec![b'k', at], vec![at; 300]);
        engine.write(batch).and_then(|()| engine.sync())
    };
    write(0).unwrap();
    write(1).unwrap();
    assert_eq!(engine.failure(), None);
    inner.fails.store(true, Ordering::Release);
    // The next one begins the other region, so that the engine gets what is in this one.
    write(2).unwrap();
    while engine.failure().is_none() {
        std::thread::yield_now();
    }
    assert!(engine.failure().unwrap().contains("it is gone"));
    assert!(matches!(write(3), Err(Error::Io { .. })));
    for at in 0..3 {
        assert_eq!(engine.get(&[b'k', at]).unwrap(), Some(vec![at; 300]), "what was acknowledged is there");
    }
    assert!(matches!(engine.get(b"what only the engine has"), Err(Error::Poisoned { .. })));
    let synced = inner.synced();
    drop((engine, inner));
    let reopened = before_with(Forgetful::new(dir.path(), synced), true, region_bytes).unwrap();
    assert_eq!(reopened.damage(), None);
    assert_eq!(all(&*reopened).len(), 3, "it is there after the next opening, too");
}

/// A batch of one value.
fn put(engine: &dyn Engine, key: &[u8]) -> Result<()> {
    let mut batch = Batch::default();
    batch.put(key.to_vec(), vec![7; 300]);
    engine.write(batch).and_then(|()| engine.sync())
}

/// A batch that is larger than a region is in a file of its own until the engine has it: whole, or not at all.
#[test]
fn a_large_batch_is_whole_after_a_power_cut_or_not_there() {
    let region_bytes = 1024;
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    let inner = Forgetful::new(&place("0"), Pairs::new());
    let engine = before_with(Arc::clone(&inner) as Arc<dyn Engine>, true, region_bytes).unwrap();
    put(&*engine, b"before").unwrap();
    let mut batch = Batch::default();
    batch.ops.extend((0..9).map(|key| (vec![b'k', key], Some(vec![key; 700]))));
    batch.remove(b"before".to_vec());
    engine.write(copied(&batch)).unwrap();
    let (pairs, journal, large) = (inner.synced(), fs::read(place("0/journal")), fs::read(place("0/journal.large")));
    let (journal, large) = (journal.unwrap(), large.unwrap());
    let after = |name: &str, journal: &[u8], large: Option<&[u8]>| {
        fs::create_dir(place(name)).unwrap();
        fs::write(place(name).join("journal"), journal).unwrap();
        large.inspect(|large| fs::write(place(name).join("journal.large"), large).unwrap());
        before_with(Forgetful::new(&place(name), pairs.clone()), true, region_bytes).unwrap()
    };
    let engines = (after("whole", &journal, Some(&large)), after("none", &journal, None));
    assert_eq!((engines.0.damage(), all(&*engines.0).len()), (None, 9));
    assert!(engines.1.damage().unwrap().contains("damaged or missing"), "the file is gone");
    for at in [0, large.len() / 2, large.len() - 1] {
        let mut damaged = large.clone();
        damaged[at] ^= 1;
        for (name, bytes) in [("flipped", &damaged[..]), ("short", &large[..at])] {
            let engine = after(&format!("{name} {at}"), &journal, Some(bytes));
            assert!(engine.damage().unwrap().contains("damaged or missing"), "{name} at {at}");
            assert_eq!(all(&*engine).len(), 1, "{name} at {at}: what was before it");
        }
    }
    // It goes on, and the file goes once the engine has what it holds.
    put(&*engines.0, b"after").unwrap();
    assert!(!place("whole/journal.large").exists());
    engine.sync().unwrap();
    drop(engine);
    assert!(!place("0/journal.large").exists());
    assert_eq!(inner.synced().keys().filter(|key| key[0] == b'k').count(), 9);
    // The record itself was torn: what was before it is there, and nothing is missed.
    let mut torn = journal.clone();
    tear(&mut torn, 40, &pairs);
    let engine = after("torn", &torn, Some(&large));
    assert_eq!((engine.damage(), all(&*engine).len()), (None, 1));
}

/// The engine writes about as much for what is replaced or removed, and what comes next waits for that: a region holds
/// little of it, however small the records are.
#[test]
fn the_engine_gets_what_removes_much_before_a_region_is_full() {
    let dir = tempfile::tempdir().unwrap();
    let key = |at: u8| vec![b'k', at];
    let large = vec![7; REPLACED_BYTES / 2 + 1];
    let inner = Forgetful::new(dir.path(), (0..3).map(|at| (key(at), large.clone())).collect());
    let engine = before_with(Arc::clone(&inner) as Arc<dyn Engine>, true, 64 * 1024).unwrap();
    for at in 0..3 {
        let mut batch = Batch::default();
        batch.remove(key(at));
        engine.rewrite(batch).unwrap();
    }
    // The second began the other region, and the third waited until the engine had the first.
    assert!(!inner.synced().contains_key(&key(0)) && inner.synced().contains_key(&key(2)));
}

/// The engine lost what it noted when it was opened again: its data is that of the last closing.
#[test]
fn a_journal_is_not_read_by_an_engine_that_was_closed_before_it() {
    // Two batches a region.
    let (dir, region_bytes) = (tempfile::tempdir().unwrap(), 1024);
    let opened = |pairs: Pairs| {
        let inner = Forgetful::new(dir.path(), pairs);
        (before_with(Arc::clone(&inner) as Arc<dyn Engine>, true, region_bytes).unwrap(), inner)
    };
    let (engine, inner) = opened(Pairs::new());
    put(&*engine, b"before").unwrap();
    drop(engine);
    let closed = inner.synced();
    drop(inner);
    let (engine, inner) = opened(closed.clone());
    for number in 0..4 {
        put(&*engine, &[b'k', number]).unwrap();
    }
    // Cut off: it does not close.
    inner.fails.store(true, Ordering::Release);
    drop((engine, inner));
    let (engine, inner) = opened(closed);
    assert_eq!((engine.damage(), all(&*engine).len()), (None, 1));
    put(&*engine, b"after").unwrap();
    inner.fails.store(true, Ordering::Release);
    let synced = inner.synced();
    drop((engine, inner));
    let (engine, _inner) = opened(synced);
    assert_eq!((engine.damage(), all(&*engine).len()), (None, 2));
}

#[test]
fn the_engines_own_keys_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let engine = before_with(Forgetful::new(dir.path(), Pairs::new()), true, 1024).unwrap();
    let refused = put(&*engine, &[RESERVED, 1]).unwrap_err();
    assert!(matches!(refused, Error::InvalidInput(_)), "{refused}");
    put(&*engine, b"another").unwrap();
    assert_eq!(all(&*engine).len(), 1);
}

/// Loses the end of the last record, as a power cut may: nobody synced it.
fn tear(file: &mut [u8], torn_at: usize, pairs: &Pairs) {
    let Some(note) = pairs.get(super::super::contract::JOURNAL_KEY) else { return };
    let journal: Id = note[1..17].try_into().unwrap();
    let places = (0..file.len()).step_by(ALIGNMENT);
    let last = places.filter_map(|at| Some((Record::read(&journal, &file[at..])?.number, at))).max();
    let Some((_, at)) = last else { return };
    let bytes = Record::read(&journal, &file[at..]).unwrap().bytes();
    file[at + torn_at % bytes..at + bytes].fill(0);
}

/// A region with records of one batch each, and where each ends.
fn region(epoch: Id, first: u64, count: u64) -> (Vec<u8>, Vec<usize>) {
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    for number in first..first + count {
        let mut batch = Batch::default();
        batch.put(vec![b'n', number as u8], vec![number as u8; 40 * number as usize % 700]);
        batch.put(b"last".to_vec(), vec![number as u8]);
        batch.remove(vec![b'n', number as u8 - 1]);
        bytes.extend(encode(&JOURNAL, &epoch, number, &batch, number % 2 == 0));
        ends.push(bytes.len());
    }
    bytes.resize(16 * 1024, 0);
    (bytes, ends)
}

fn last(layer: &Layer) -> Option<u8> {
    layer.read().get(&b"last"[..]).map(|last| last.value.as_ref().unwrap()[0])
}

const NOTE: Note = Note { journal: JOURNAL, number: 4, closed: false };

#[test]
fn replay_begins_after_the_note_and_ends_with_the_last_record() {
    let ((first, _), (second, _)) = (region([1; 16], 1, 6), region([2; 16], 7, 4));
    for regions in [[&first, &second], [&second, &first]] {
        let found = replay(&NOTE, regions.map(|region| &region[..]), &[]);
        assert_eq!((last(&found.layer), found.number, &found.damage), (Some(10), 10, &None));
        // What came before the note is not in it.
        assert!(found.layer.read().get(&[b'n', 3][..]).is_none());
    }
    let found = replay(&Note { number: 10, ..NOTE }, [&first, &second], &[]);
    assert_eq!((last(&found.layer), found.number), (None, 10));
    let found = replay(&Note { number: 6, ..NOTE }, [&first, &second], &[]);
    assert_eq!((last(&found.layer), found.number), (Some(10), 10));
    let found = replay(&Note { journal: [8; 16], ..NOTE }, [&first, &second], &[]);
    assert_eq!((last(&found.layer), found.damage, found.number), (None, None, 4), "another store's journal");
}

/// The record that holds a byte.
fn at(byte: usize, ends: &[usize], first: u64) -> u64 {
    first + ends.iter().filter(|end| **end <= byte).count() as u64
}

#[test]
fn a_tail_torn_at_any_byte_ends_the_replay() {
    let (whole, ends) = region([1; 16], 5, 8);
    let stale = region([9; 16], 1, 4).0;
    for byte in *ends.iter().nth_back(1).unwrap()..*ends.last().unwrap() {
        for junk in [&[][..], &stale] {
            let mut torn = whole.clone();
            torn[byte..].fill(0);
            let rest = junk.get(byte..).unwrap_or_default();
            torn[byte..byte + rest.len()].copy_from_slice(rest);
            let found = replay(&NOTE, [&torn, &vec![0; torn.len()]], &[]);
            let expected = if torn == whole { 12 } else { 11 };
            // The padding after the last byte of a record is no part of it.
            let is_padding = last(&found.layer) == Some(12) && whole[byte..ends[7]].iter().all(|byte| *byte == 0);
            assert!(last(&found.layer) == Some(expected) || is_padding, "torn at {byte}");
            assert_eq!(found.damage, None, "torn at {byte}");
        }
    }
}

#[test]
fn damage_at_any_byte_ends_the_replay_and_is_reported() {
    let (whole, ends) = region([1; 16], 5, 8);
    let (other, _) = region([2; 16], 13, 2);
    let end = *ends.last().unwrap();
    for byte in 0..end {
        let mut damaged = whole.clone();
        damaged[byte] ^= 0x40;
        let hit = at(byte, &ends, 5);
        for (second, is_alone) in [(vec![0; whole.len()], true), (other.clone(), false)] {
            let found = replay(&NOTE, [&damaged, &second], &[]);
            let all = if is_alone { 12 } else { 14 };
            if last(&found.layer) == Some(all) {
                // Padding.
                assert_eq!(whole[byte], 0);
                assert_eq!(found.damage, None);
                continue;
            }
            assert_eq!(last(&found.layer), Some(hit as u8 - 1).filter(|last| *last > 4), "{byte}");
            // The last record of all may have been torn by a power cut.
            assert_eq!(found.damage.is_some(), !(is_alone && hit == 12), "{byte}: {found:?}");
            assert!(found.damage.is_none() || found.number == u64::from(all), "{byte}: {found:?}");
        }
    }
}

#[test]
fn a_region_that_is_gone_is_damage() {
    let ((first, _), (second, _)) = (region([1; 16], 5, 3), region([2; 16], 8, 3));
    let found = replay(&NOTE, [&vec![0; first.len()], &second], &[]);
    assert_eq!((last(&found.layer), found.number), (None, 10));
    assert!(found.damage.unwrap().contains("record 5"));
}

/// The write of one sector is lost: what an earlier use of the region left there is a whole record.
#[test]
fn a_record_of_an_earlier_use_hides_nothing() {
    let ((mut lost, ends), (stale, _)) = (region([1; 16], 5, 8), region([9; 16], 1, 4));
    assert_eq!(ends[0], ALIGNMENT);
    lost[..ALIGNMENT].copy_from_slice(&stale[..ALIGNMENT]);
    let (before, after) = (region([2; 16], 3, 2).0, vec![0; lost.len()]);
    for other in [&before, &after] {
        for regions in [[&lost, other], [other, &lost]] {
            let found = replay(&NOTE, regions.map(|region| &region[..]), &[]);
            assert_eq!((last(&found.layer), found.number), (None, 12));
            assert!(found.damage.unwrap().contains("record 5 of its journal is damaged or missing"));
        }
    }
    // Nobody misses what the engine has.
    let found = replay(&Note { number: 12, ..NOTE }, [&lost, &after], &[]);
    assert_eq!((found.damage, found.number), (None, 12));
}

#[test]
fn what_a_batch_holds_is_no_record() {
    // A value that has a record in it, where one could begin, left over from an earlier use of the region.
    let inside = encode(&JOURNAL, &[1; 16], 6, &Batch { ops: vec![(b"last".to_vec(), Some(vec![66]))] }, false);
    for epoch in [[1; 16], [3; 16]] {
        let mut stale = vec![0; ALIGNMENT];
        stale.extend_from_slice(&inside);
        let (newer, ends) = region(epoch, 5, 1);
        stale.resize(newer.len(), 0);
        stale[..ends[0]].copy_from_slice(&newer[..ends[0]]);
        let found = replay(&NOTE, [&stale, &vec![0; stale.len()]], &[]);
        // Nobody knows the epoch beforehand, nor the journal's id: with both it would be a record.
        assert_eq!(last(&found.layer), Some(if epoch == [1; 16] { 66 } else { 5 }));
    }
}

proptest! {
    /// Nothing that is no record is taken for one, and what a record holds is read without a panic.
    #[test]
    fn any_bytes_are_replayed(bytes in prop::collection::vec(any::<u8>(), 0..4096), number in any::<u64>()) {
        let note = Note { number, ..NOTE };
        let (first, second) = bytes.split_at(bytes.len() / 2);
        let found = replay(&note, [first, second], &[]);
        prop_assert!(found.layer.is_empty() && found.damage.is_none());
    }

    #[test]
    fn any_operations_are_read(bytes in prop::collection::vec(0..9_u8, 0..200)) {
        // A key that is as long as needed, and then whatever there is.
        let batch = Batch { ops: vec![(bytes.clone(), None)] };
        let mut record = encode(&JOURNAL, &[1; 16], 5, &batch, false);
        // Without the kind and the length of the key.
        record.drain(32..37);
        record[24..28].copy_from_slice(&(bytes.len() as u32).to_be_bytes());
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&JOURNAL);
        hasher.update(&record[..28]);
        hasher.update(&bytes);
        record[28..32].copy_from_slice(&hasher.finalize().to_be_bytes());
        let read = Record::read(&JOURNAL, &record).unwrap();
        let found = replay(&NOTE, [&record, &[]], &[]);
        prop_assert_eq!(found.damage.is_some(), read.operations(&JOURNAL, &[]).is_none());
        prop_assert!(found.number == 5);
    }
}
