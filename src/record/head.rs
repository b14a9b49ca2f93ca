//! Small values of version 1: heads, receipts, and the store's own data.

use bincode::{Decode, Encode};

use super::{check_number, envelope};
use crate::error::Result;

/// The state of a conversation. All of it can be rebuilt from the records.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Head {
    /// The seq of the next entry.
    pub(crate) next_seq: u64,
    /// The index of the next message.
    pub(crate) next_message_index: u64,
    /// The seq of the last rewind; 0 if there is none.
    pub(crate) last_rewind: u64,
    /// Microseconds since 1970.
    pub(crate) created: i64,
    /// Microseconds since 1970; never goes back.
    pub(crate) last_activity: i64,
    pub(crate) key: Option<String>,
    /// The conversation that this one was forked from, and the last seq that is read through it.
    pub(crate) parent: Option<([u8; 16], u64)>,
    pub(crate) title: Option<String>,
    pub(crate) title_source: TitleSource,
    pub(crate) tags: Vec<String>,
}

impl Head {
    /// The head in the bytes under `key`.
    pub(crate) fn open(key: &[u8], bytes: &[u8]) -> Result<Self> {
        let what = "the head";
        let head: Self = envelope::open(what, key, bytes)?;
        check_number(what, head.next_seq)?;
        check_number(what, head.next_message_index)?;
        let first = head.parent.map_or(1, |(_, at_seq)| at_seq.saturating_add(1));
        if head.next_seq < first {
            return Err(envelope::corrupt(format!(
                "{what}: its next seq {} lies before its first {first}",
                head.next_seq
            )));
        }
        Ok(head)
    }

    /// Entries of its own: without those that it reads through its parent.
    pub(crate) fn entries(&self) -> u64 {
        let shared = self.parent.map_or(0, |(_, at_seq)| at_seq);
        self.next_seq.saturating_sub(shared.saturating_add(1))
    }
}

/// The last commit, and what all of them left: where damage takes something and leaves no trace, the sums tell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Commit {
    /// Counted from 1.
    pub(crate) number: u64,
    /// Conversations that there are.
    pub(crate) conversations: u64,
    /// Entries of their own.
    pub(crate) entries: u64,
}

impl Commit {
    /// Counts a change of a conversation's head.
    pub(crate) fn count(&mut self, before: Option<&Head>, after: Option<&Head>) {
        let moved = |sum: u64, before: u64, after: u64| sum.wrapping_sub(before).wrapping_add(after);
        self.conversations = moved(self.conversations, u64::from(before.is_some()), u64::from(after.is_some()));
        self.entries = moved(self.entries, before.map_or(0, Head::entries), after.map_or(0, Head::entries));
    }
}

/// Where a title comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub(crate) enum TitleSource {
    /// From no message yet.
    Pending,
    /// From the text of this message.
    Message(u64),
    /// From the caller.
    Caller,
}

/// What an append with an idempotency key was answered, and what it held.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Receipt {
    pub(crate) first_seq: u64,
    pub(crate) last_seq: u64,
    pub(crate) message_indexes: Vec<u64>,
    pub(crate) content_digest: [u8; 16],
}

/// The marker of a store.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct StoreInfo {
    pub(crate) store_id: [u8; 16],
    pub(crate) format_version: u32,
}

/// A conversation that was deleted: its head is gone, its records are being erased, or wait for the forks that read them.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Tombstone {
    /// The conversation that it was forked from, and the last seq that was read through it.
    pub(crate) parent: Option<([u8; 16], u64)>,
}

impl Tombstone {
    /// The tombstone in the bytes under `key`.
    pub(crate) fn open(key: &[u8], bytes: &[u8]) -> Result<Self> {
        let what = "a tombstone";
        let tombstone: Self = envelope::open(what, key, bytes)?;
        check_number(what, tombstone.parent.map_or(0, |(_, at_seq)| at_seq))?;
        Ok(tombstone)
    }
}
