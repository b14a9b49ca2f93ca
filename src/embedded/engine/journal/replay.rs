//! What of the journal the engine does not have yet.

use super::super::contract::{Batch, LARGE_BYTES};
use super::layer::Layer;
use super::note::Note;
use super::record::{ALIGNMENT, Id, Operation, Record, number_of};

/// What the journal holds after a note of the engine's.
#[derive(Debug, Default)]
pub(super) struct Replay {
    pub(super) layer: Layer,
    /// The highest number of all records. No record after this opening may have it again.
    pub(super) number: u64,
    /// Why records that were acknowledged are missing.
    pub(super) damage: Option<String>,
}

/// The records at the beginning of a region, each with the number after the one before it, and where they end.
fn chain<'a>(journal: &Id, region: &'a [u8]) -> (Vec<Record<'a>>, usize) {
    let (mut records, mut end): (Vec<Record<'a>>, usize) = (Vec::new(), 0);
    while let Some(record) = region.get(end..).and_then(|rest| Record::read(journal, rest)) {
        let follows =
            |last: &Record<'_>| record.epoch == last.epoch && record.number.checked_sub(1) == Some(last.number);
        if !records.last().is_none_or(follows) {
            break;
        }
        end += record.bytes();
        records.push(record);
    }
    (records, end)
}

/// The highest number of a record that the chain of a region does not reach. Only damage leaves one that is later than
/// the chain: a record is written after the one before it is durable.
fn beyond(note: &Note, region: &[u8], records: &[Record<'_>], end: usize) -> Option<u64> {
    let epoch = records.first().map(|first| first.epoch);
    // Without the chain's first record its epoch is unknown: the number excludes most of what is no record.
    let most = note.number.saturating_add(2 * (region.len() / ALIGNMENT) as u64);
    let may_be = |bytes: &[u8]| match &epoch {
        Some(epoch) => bytes.starts_with(epoch),
        None => number_of(bytes).is_some_and(|number| number > note.number && number <= most),
    };
    let places = (end..region.len()).step_by(ALIGNMENT).filter_map(|at| region.get(at..));
    let found = places.filter(|bytes| may_be(bytes)).filter_map(|bytes| Record::read(&note.journal, bytes));
    found.map(|record| record.number).max()
}

/// Reads both regions.
pub(super) fn replay(note: &Note, regions: [&[u8]; 2]) -> Replay {
    let mut found = Replay { number: note.number, ..Replay::default() };
    let mut next = note.number.saturating_add(1);
    let mut chains = regions.map(|region| {
        let (records, end) = chain(&note.journal, region);
        let beyond = beyond(note, region, &records, end);
        (records, beyond)
    });
    chains.sort_by_key(|(records, _)| records.first().map(|first| first.number));
    for (records, beyond) in &chains {
        for record in records {
            found.number = found.number.max(record.number);
            if record.number != next {
                continue;
            }
            let Some(operations) = record.operations() else { continue };
            found.layer.apply_all(operations);
            next = next.saturating_add(1);
        }
        found.number = found.number.max(beyond.unwrap_or(0));
    }
    if found.number >= next {
        let last = found.number;
        found.damage =
            Some(format!("record {next} of its journal is damaged or missing, and there are later ones, up to {last}"));
    }
    found
}

impl Layer {
    fn apply_all(&self, operations: Vec<Operation<'_>>) {
        for Operation { key, value, rewrites } in operations {
            // A checkpoint that was cut off may have given a large value to the engine.
            let rewrites = rewrites || value.is_some_and(|value| value.len() > LARGE_BYTES);
            self.apply(Batch { ops: vec![(key.to_vec(), value.map(<[u8]>::to_vec))] }, rewrites);
        }
    }
}
