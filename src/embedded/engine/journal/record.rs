//! One batch in the journal's file, byte by byte: `docs/format.md` has the table.

use super::super::contract::Batch;

/// A name without meaning: of a journal, or of one use of a region.
pub(super) type Id = [u8; 16];

/// A record begins at a multiple of this many bytes: no sector of a disk holds parts of two records.
pub(super) const ALIGNMENT: usize = 512;
/// epoch(16), number(8), length(4), checksum(4)
const HEADER_BYTES: usize = 32;
/// The header without its checksum.
const CHECKED_BYTES: usize = 28;

const REMOVED: u8 = 0;
const PUT: u8 = 1;
const REPLACED: u8 = 2;

/// A record that was read, and whose checksum fits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) epoch: Id,
    pub(super) number: u64,
    operations: &'a [u8],
}

/// An operation of a record.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Operation<'a> {
    pub(super) key: &'a [u8],
    /// Absent: the key is removed.
    pub(super) value: Option<&'a [u8]>,
    /// Whether the value before it may be large.
    pub(super) rewrites: bool,
}

/// The bytes that a batch takes in the file.
pub(super) fn bytes_of(batch: &Batch) -> usize {
    let operation = |(key, value): &(Vec<u8>, Option<Vec<u8>>)| {
        1 + 4 + key.len() + value.as_ref().map_or(0, |value| 4 + value.len())
    };
    (HEADER_BYTES + batch.ops.iter().map(operation).sum::<usize>()).next_multiple_of(ALIGNMENT)
}

/// The record of a batch, with zeros to its end. `rewrites`: a value that it replaces may be large.
pub(super) fn encode(journal: &Id, epoch: &Id, number: u64, batch: &Batch, rewrites: bool) -> Vec<u8> {
    let whole = bytes_of(batch);
    let mut bytes = Vec::with_capacity(whole);
    bytes.extend_from_slice(epoch);
    bytes.extend_from_slice(&number.to_be_bytes());
    bytes.resize(HEADER_BYTES, 0);
    for (key, value) in &batch.ops {
        let kind = if value.is_some() { PUT } else { REMOVED };
        bytes.push(if rewrites { kind | REPLACED } else { kind });
        [Some(key), value.as_ref()].into_iter().flatten().for_each(|part| {
            bytes.extend_from_slice(&length(part).to_be_bytes());
            bytes.extend_from_slice(part);
        });
    }
    let (header, operations) = bytes.split_at_mut(HEADER_BYTES);
    if let Some((before, end)) = header.split_at_mut_checked(CHECKED_BYTES - size_of::<u32>()) {
        let count = length(operations).to_be_bytes();
        let checksum = checksum(journal, &[before, &count, operations]).to_be_bytes();
        end.copy_from_slice(&[count, checksum].concat());
    }
    bytes.resize(whole, 0);
    bytes
}

/// A length. No record is larger than a region, so that it never saturates.
fn length(part: &[u8]) -> u32 {
    u32::try_from(part.len()).unwrap_or(u32::MAX)
}

/// Begins with the journal's own id, which nobody else knows: nothing that a batch holds passes as a record.
fn checksum(journal: &Id, parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(journal);
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize()
}

impl<'a> Record<'a> {
    /// The record at the beginning of these bytes, if it is one of this journal.
    pub(super) fn read(journal: &Id, bytes: &'a [u8]) -> Option<Self> {
        let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let (checked, stated) = header.split_last_chunk::<4>()?;
        let (epoch, numbers) = checked.split_first_chunk::<16>()?;
        let (number, length) = numbers.split_first_chunk::<8>()?;
        let length = u32::from_be_bytes(length.try_into().ok()?);
        let (operations, _) = rest.split_at_checked(length as usize)?;
        let is_whole = checksum(journal, &[checked, operations]) == u32::from_be_bytes(*stated);
        is_whole.then_some(Self { epoch: *epoch, number: u64::from_be_bytes(*number), operations })
    }

    /// The bytes that it takes in the file.
    pub(super) const fn bytes(&self) -> usize {
        (HEADER_BYTES + self.operations.len()).next_multiple_of(ALIGNMENT)
    }

    /// Its operations, in order. None: they make no sense, though the checksum fits.
    pub(super) fn operations(&self) -> Option<Vec<Operation<'a>>> {
        let mut operations = Vec::new();
        let mut rest = self.operations;
        while let Some((kind, after)) = rest.split_first() {
            let (key, after) = part(after)?;
            let (value, after) = match kind & !REPLACED {
                REMOVED => (None, after),
                PUT => part(after).map(|(value, after)| (Some(value), after))?,
                _ => return None,
            };
            operations.push(Operation { key, value, rewrites: kind & REPLACED != 0 });
            rest = after;
        }
        Some(operations)
    }
}

/// What would be the number of a record at the beginning of these bytes.
pub(super) fn number_of(bytes: &[u8]) -> Option<u64> {
    let (_, rest) = bytes.split_first_chunk::<16>()?;
    rest.split_first_chunk().map(|(number, _)| u64::from_be_bytes(*number))
}

/// A length, and as many bytes.
fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_be_bytes(*length) as usize)
}
