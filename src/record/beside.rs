//! Records whose header and origin stand beside their entries, in columns of a table.

use super::encode::Body;
use super::envelope::{VERSION, check_version, checksum, corrupt, short};
use super::key;
use super::split::{Header, Record, at, check_first_seq};
use crate::error::Result;
use crate::model::ConversationId;

/// version, checksum(4)
const START_BYTES: usize = 5;

/// The value of entries: version, checksum, entries. The checksum covers the conversation too, but not their place in it.
pub(crate) fn seal_entries(conversation: ConversationId, body: &Body) -> Vec<u8> {
    let sum = checksum(&key::prefix(key::RECORD, conversation), &[body.content()]);
    let mut bytes = Vec::with_capacity(START_BYTES + body.content().len());
    bytes.push(VERSION);
    bytes.extend_from_slice(&sum.to_be_bytes());
    bytes.extend_from_slice(body.content());
    bytes
}

impl<'a> Record<'a> {
    /// The record of a header and the value of its entries, checked.
    pub(crate) fn beside(
        conversation: ConversationId,
        first_seq: u64,
        header: Header,
        bytes: &'a [u8],
    ) -> Result<Self> {
        const WHAT: &str = "a record";
        let checked = || {
            check_version(WHAT, bytes)?;
            let (stored, entries) =
                bytes.get(1..).and_then(<[u8]>::split_first_chunk::<4>).ok_or_else(|| short(WHAT))?;
            if u32::from_be_bytes(*stored) != checksum(&key::prefix(key::RECORD, conversation), &[entries]) {
                return Err(corrupt(format!("{WHAT}: the checksum does not match")));
            }
            check_first_seq(first_seq, 0).map(|()| entries)
        };
        let entries = checked().map_err(|error| at(error, conversation, first_seq))?;
        Ok(Self::new(first_seq, header, entries))
    }
}
