//! What the engine keeps of the journal before it, under a key of its own.

use super::super::contract::{Batch, Engine, JOURNAL_KEY};
use super::record::Id;
use crate::error::Result;

const VERSION: u8 = 1;
/// version(1), id(16), number(8), closed(1), checksum(4)
const BYTES: usize = 30;

/// Which journal an engine has, and how much of it the engine's data contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) journal: Id,
    /// The number of the last record that the engine's data contains.
    pub(super) number: u64,
    /// Whether the journal had no further records when this was written.
    pub(super) closed: bool,
}

impl Note {
    /// The engine's note, if there is one that can be read.
    pub(super) fn read(engine: &dyn Engine) -> Result<Option<Self>> {
        Ok(engine.get(JOURNAL_KEY)?.and_then(|bytes| Self::decode(&bytes)))
    }

    /// Writes it after everything that was written before, and makes it survive a power cut.
    pub(super) fn write(&self, engine: &dyn Engine) -> Result<()> {
        self.write_with(Batch::default(), engine)
    }

    /// As [`Note::write`], at the end of a batch.
    pub(super) fn write_with(&self, mut batch: Batch, engine: &dyn Engine) -> Result<()> {
        batch.put(JOURNAL_KEY.to_vec(), self.encode());
        engine.write(batch)?;
        engine.sync()
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.push(VERSION);
        bytes.extend_from_slice(&self.journal);
        bytes.extend_from_slice(&self.number.to_be_bytes());
        bytes.push(self.closed.into());
        bytes.extend_from_slice(&checksum(&bytes).to_be_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (fields, stated) = bytes.split_last_chunk::<4>()?;
        if bytes.len() != BYTES || checksum(fields) != u32::from_be_bytes(*stated) {
            return None;
        }
        let (&[VERSION], fields) = fields.split_first_chunk::<1>()? else { return None };
        let (journal, fields) = fields.split_first_chunk::<16>()?;
        let (number, closed) = fields.split_first_chunk::<8>()?;
        Some(Self { journal: *journal, number: u64::from_be_bytes(*number), closed: closed == [1] })
    }
}

fn checksum(fields: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(JOURNAL_KEY);
    hasher.update(fields);
    hasher.finalize()
}
