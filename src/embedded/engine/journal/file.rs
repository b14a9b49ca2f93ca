//! The journal's file: two regions, filled with zeros when it is made, then written over for ever. A batch is one record in
//! it: `docs/format.md` has the table. The operations of a batch that is larger than a region are in a file of their own. An
//! opening reads from both what the engine does not have yet.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::super::contract::{Batch, LARGE_BYTES, Operation};
use super::super::directory::Directory;
use super::checkpoint::{Id, Note};
use super::layer::Layer;
use crate::error::{Error, Result};

/// The file's name in the store's directory.
const NAME: &str = "journal";
/// The name of the file with the operations of one large batch.
const LARGE: &str = "journal.large";
/// How much a region takes; a multiple of [`PIECE`].
pub(super) const REGION_BYTES: usize = 2 * 1024 * 1024;
/// Bytes of one write when the file is made.
const PIECE: usize = 64 * 1024;

/// What the file holds, if it is as long as two regions of so many bytes.
pub(super) fn read(directory: &Directory, region_bytes: usize) -> Result<Option<Vec<u8>>> {
    let path = directory.path().join(NAME);
    let mut bytes = Vec::new();
    let read = File::open(&path).and_then(|file| file.take(2 * region_bytes as u64).read_to_end(&mut bytes));
    match read {
        Ok(length) => Ok((length == 2 * region_bytes).then_some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(format!("read {}", path.display()))(error)),
    }
}

/// Whether the file is there, as long as two regions of so many bytes.
pub(super) fn is_whole(directory: &Directory, region_bytes: usize) -> bool {
    let path = directory.path().join(NAME);
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() >= 2 * region_bytes as u64)
}

/// The file, open.
#[derive(Debug)]
pub(super) struct Regions {
    file: File,
    /// How much each of the two takes.
    pub(super) bytes: usize,
}

impl Regions {
    pub(super) fn open(directory: &Directory, bytes: usize) -> Result<Self> {
        let path = directory.path().join(NAME);
        let open = File::options().read(true).write(true).open(&path);
        open.map(|file| Self { file, bytes }).map_err(Error::io(format!("open {}", path.display())))
    }

    /// Makes the file, durably: a write into it changes nothing but its content, and a sync writes nothing else. None: the
    /// disk has no room for it.
    pub(super) fn make(directory: &Directory, bytes: usize) -> Result<Option<Self>> {
        let path = directory.path().join(NAME);
        match zeros(&path, 2 * bytes) {
            Ok(file) => {
                directory.sync()?;
                Ok(Some(Self { file, bytes }))
            }
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                fs::remove_file(&path).map_err(Error::io(format!("remove {}", path.display())))?;
                Ok(None)
            }
            Err(error) => Err(Error::io(format!("make {}", path.display()))(error)),
        }
    }

    pub(super) fn write(&mut self, region: usize, at: usize, bytes: &[u8]) -> Result<()> {
        let place = (region * self.bytes + at) as u64;
        let write = self.file.seek(SeekFrom::Start(place)).and_then(|_| self.file.write_all(bytes));
        write.map_err(Error::io("write to the journal"))
    }

    /// Writes what the file holds once more, and syncs: what was read from it may have been in the system's memory alone,
    /// also after a sync that failed.
    pub(super) fn write_again(&mut self) -> Result<()> {
        let mut bytes = Vec::new();
        let read = self.file.rewind().and_then(|()| self.file.read_to_end(&mut bytes));
        read.map_err(Error::io("read the journal"))?;
        self.write(0, 0, &bytes)?;
        self.sync()
    }

    pub(super) fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(Error::io("sync the journal"))
    }
}

/// What the file of a large batch holds; nothing if there is none.
pub(super) fn read_large(directory: &Directory) -> Result<Vec<u8>> {
    let path = directory.path().join(LARGE);
    match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read.map_err(Error::io(format!("read {}", path.display()))),
    }
}

/// Writes the operations of a large batch to their file, durably, and gives the record that refers to it. The engine has
/// what the file held before.
pub(super) fn write_large(
    directory: &Directory,
    [journal, epoch]: [&Id; 2],
    number: u64,
    batch: &Batch,
    rewrites: bool,
) -> Result<Vec<u8>> {
    let path = directory.path().join(LARGE);
    let (mut length, mut hasher) = (0_u64, hasher(journal, number));
    let mut write = || {
        let mut file = io::BufWriter::with_capacity(PIECE, File::create(&path)?);
        each_part(batch, rewrites, &mut |part| {
            length += part.len() as u64;
            hasher.update(part);
            file.write_all(part)
        })?;
        file.into_inner()?.sync_all()
    };
    let written = write().map_err(Error::io(format!("write {}", path.display())));
    if written.is_err() {
        // A full disk has better uses for its room.
        remove_large(directory);
    }
    written.and_then(|()| directory.sync())?;
    let operation = [&[ELSEWHERE][..], &length.to_be_bytes(), &hasher.finalize().to_be_bytes()].concat();
    Ok(record(journal, epoch, number, |bytes| bytes.extend_from_slice(&operation)))
}

/// As [`Regions::write_again`], for the file of a large batch, if there is one.
pub(super) fn write_large_again(directory: &Directory) -> Result<()> {
    let bytes = read_large(directory)?;
    if bytes.is_empty() {
        return Ok(());
    }
    let path = directory.path().join(LARGE);
    let write = || {
        let mut file = File::options().write(true).open(&path)?;
        file.write_all(&bytes)?;
        file.sync_data()
    };
    write().map_err(Error::io(format!("write {}", path.display())))
}

/// Removes the file of a large batch, if there is one: the engine has what it holds. One that stays is removed or written
/// over later.
pub(super) fn remove_large(directory: &Directory) {
    let _ = fs::remove_file(directory.path().join(LARGE));
}

fn zeros(path: &Path, bytes: usize) -> io::Result<File> {
    let mut file = File::options().create(true).truncate(true).read(true).write(true).open(path)?;
    let piece = vec![0; PIECE.min(bytes)];
    for _ in 0..bytes / piece.len().max(1) {
        file.write_all(&piece)?;
    }
    file.sync_all()?;
    Ok(file)
}

/// A record begins at a multiple of this many bytes: no sector of a disk holds parts of two records.
pub(super) const ALIGNMENT: usize = 512;
/// epoch(16), number(8), length(4), checksum(4)
const HEADER_BYTES: usize = 32;
/// The header without its checksum.
const CHECKED_BYTES: usize = 28;

const REMOVED: u8 = 0;
const PUT: u8 = 1;
const REPLACED: u8 = 2;
/// The only operation of a record: the operations are those in the file of a large batch. length(8), checksum(4)
const ELSEWHERE: u8 = 4;

/// A record that was read, and whose checksum fits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) epoch: Id,
    pub(super) number: u64,
    operations: &'a [u8],
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
    record(journal, epoch, number, |bytes| {
        let _ = each_part::<()>(batch, rewrites, &mut |part| {
            bytes.extend_from_slice(part);
            Ok(())
        });
    })
}

/// The operations of a batch, as they are stored, part by part.
fn each_part<E>(batch: &Batch, rewrites: bool, put: &mut dyn FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    for (key, value) in &batch.ops {
        let kind = if value.is_some() { PUT } else { REMOVED };
        put(&[if rewrites { kind | REPLACED } else { kind }])?;
        for part in [Some(key), value.as_ref()].into_iter().flatten() {
            put(&length(part).to_be_bytes())?;
            put(part)?;
        }
    }
    Ok(())
}

/// A record with the operations that `put` appends, with zeros to its end.
fn record(journal: &Id, epoch: &Id, number: u64, put: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(epoch);
    bytes.extend_from_slice(&number.to_be_bytes());
    bytes.resize(HEADER_BYTES, 0);
    put(&mut bytes);
    let (header, operations) = bytes.split_at_mut(HEADER_BYTES);
    if let Some((before, end)) = header.split_at_mut_checked(CHECKED_BYTES - size_of::<u32>()) {
        let count = length(operations).to_be_bytes();
        let checksum = checksum(journal, &[before, &count, operations]).to_be_bytes();
        end.copy_from_slice(&[count, checksum].concat());
    }
    bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
    bytes
}

/// Of the operations in the file of a large batch. It begins with the journal's id, as [`checksum`].
fn hasher(journal: &Id, number: u64) -> crc32fast::Hasher {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(journal);
    hasher.update(&number.to_be_bytes());
    hasher
}

/// A length: no record is larger than a region, and no value longer than what was checked, so that it never saturates.
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

    /// Its operations, in order. `large`: what the file of a large batch holds. None: they make no sense, though the checksum
    /// fits, or they are not in that file.
    pub(super) fn operations(&self, journal: &Id, large: &'a [u8]) -> Option<Vec<Operation<'a>>> {
        let Some(place) = self.operations.strip_prefix(&[ELSEWHERE]) else { return operations(self.operations) };
        let (length, stated) = place.split_first_chunk::<8>()?;
        let mut hasher = hasher(journal, self.number);
        hasher.update(large);
        let is_whole = u64::from_be_bytes(*length) == large.len() as u64 && hasher.finalize().to_be_bytes() == stated;
        if is_whole { operations(large) } else { None }
    }
}

fn operations(mut rest: &[u8]) -> Option<Vec<Operation<'_>>> {
    let mut operations = Vec::new();
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

/// What would be the number of a record at the beginning of these bytes.
fn number_of(bytes: &[u8]) -> Option<u64> {
    let (_, rest) = bytes.split_first_chunk::<16>()?;
    rest.split_first_chunk().map(|(number, _)| u64::from_be_bytes(*number))
}

/// A length, and as many bytes.
fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_be_bytes(*length) as usize)
}

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

/// The highest number of a record that the chain of a region does not reach and the engine does not have. Only damage
/// leaves one that is later than the chain: a record is written after the one before it is durable. The chain may be of an
/// earlier use of the region, if the first record of this one is lost, so any epoch counts.
fn beyond(note: &Note, region: &[u8], end: usize) -> Option<u64> {
    // The number excludes most of what is no record.
    let most = note.number.saturating_add(2 * (region.len() / ALIGNMENT) as u64);
    let may_be = |bytes: &[u8]| number_of(bytes).is_some_and(|number| number > note.number && number <= most);
    let places = (end..region.len()).step_by(ALIGNMENT).filter_map(|at| region.get(at..));
    let found = places.filter(|bytes| may_be(bytes)).filter_map(|bytes| Record::read(&note.journal, bytes));
    found.map(|record| record.number).max()
}

/// Reads both regions, and the file of a large batch.
pub(super) fn replay(note: &Note, regions: [&[u8]; 2], large: &[u8]) -> Replay {
    let mut found = Replay { number: note.number, ..Replay::default() };
    let mut next = note.number.saturating_add(1);
    let mut chains = regions.map(|region| {
        let (records, end) = chain(&note.journal, region);
        let beyond = beyond(note, region, end);
        (records, beyond)
    });
    chains.sort_by_key(|(records, _)| records.first().map(|first| first.number));
    for (records, beyond) in &chains {
        for record in records {
            found.number = found.number.max(record.number);
            if record.number != next {
                continue;
            }
            let Some(operations) = record.operations(&note.journal, large) else { continue };
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
