//! Small values of version 1: heads, receipts, and the store's own data; and where the indexes of conversations list a head.

use std::ops::RangeBounds;
use std::sync::LazyLock;

use bincode::de::read::Reader;
use bincode::de::{BorrowDecoder, Decoder};
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{BorrowDecode, Decode, Encode};

use super::envelope::{self, check_number};
use super::key;
use super::key::digest;
use crate::error::Result;
use crate::model::ConversationId;

/// The digest of the empty owner: that of most conversations where owners are not used, and asked for with each append.
static NO_OWNER: LazyLock<[u8; 16]> = LazyLock::new(|| digest(b""));

/// The state of a conversation. All of it can be rebuilt from the records.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Head {
    /// The seq of the next entry.
    pub(crate) next_seq: u64,
    /// The index of the next message.
    pub(crate) next_message_index: u64,
    /// The seq of the last rewind or removal; 0 if there is none.
    pub(crate) last_hide: u64,
    /// The seq of the last meta entry; 0 if there is none.
    pub(crate) last_meta: u64,
    /// Microseconds since 1970.
    pub(crate) created: i64,
    /// Microseconds since 1970; never goes back.
    pub(crate) last_activity: i64,
    /// The number of the last commit before the conversation was made, then bits of no meaning: it distinguishes this conversation
    /// from one of the same id before or after it, and from older records.
    pub(crate) incarnation: u64,
    pub(crate) owner: String,
    pub(crate) key: Option<String>,
    pub(crate) parent: Option<Parent>,
    pub(crate) title: Option<String>,
    pub(crate) title_source: TitleSource,
    pub(crate) tags: Vec<String>,
    /// Messages that were begun, and neither finished nor interrupted, in order of their index.
    pub(crate) open: Vec<u64>,
    /// Messages that were interrupted and that no later message follows yet, in order of their index.
    pub(crate) interrupted: Vec<u64>,
    /// How far its place in the list is from its last activity.
    pub(crate) lag: Lag,
}

/// Microseconds between a conversation's place in the list and its last activity. It is the last field of a head, and
/// stored only if it is not 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lag(pub(crate) u64);

impl Encode for Lag {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        if self.0 == 0 { Ok(()) } else { self.0.encode(encoder) }
    }
}

impl<C> Decode<C> for Lag {
    fn decode<D: Decoder<Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let is_there = decoder.reader().peek_read(1).is_some();
        if is_there { u64::decode(decoder).map(Self) } else { Ok(Self(0)) }
    }
}

impl<'a, C> BorrowDecode<'a, C> for Lag {
    fn borrow_decode<D: BorrowDecoder<'a, Context = C>>(decoder: &mut D) -> Result<Self, DecodeError> {
        Self::decode(decoder)
    }
}

/// The conversation that another one was forked from, and what stood there: the fork reads these entries and no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Parent {
    pub(crate) conversation: [u8; 16],
    /// The last seq that is read through it; 0 if nothing is.
    pub(crate) at_seq: u64,
    /// Its incarnation.
    pub(crate) incarnation: u64,
    /// The commit of the record that holds `at_seq`; 0 if nothing is read.
    pub(crate) commit: u64,
}

impl Parent {
    pub(crate) const fn id(&self) -> ConversationId {
        ConversationId::from_bytes(self.conversation)
    }
}

/// What a parent keeps of a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub(crate) struct ForkPoint {
    /// The last seq that the fork reads through the parent.
    pub(crate) at_seq: u64,
    /// The parent's incarnation.
    pub(crate) parent: u64,
    /// The fork's incarnation.
    pub(crate) child: u64,
}

impl ForkPoint {
    /// The fork point in the bytes under `key`.
    pub(crate) fn open(key: &[u8], bytes: &[u8]) -> Result<Self> {
        let what = "a fork point";
        let point: Self = envelope::open(what, key, bytes)?;
        check_number(what, point.at_seq).map(|()| point)
    }
}

impl Head {
    /// The head of a conversation that is made now, before its first entry.
    pub(crate) fn new(owner: &str, key: Option<&str>, now: i64, incarnation: u64) -> Self {
        Self {
            next_seq: 1,
            next_message_index: 0,
            last_hide: 0,
            last_meta: 0,
            created: now,
            last_activity: now,
            incarnation,
            owner: owner.to_owned(),
            key: key.map(str::to_owned),
            parent: None,
            title: None,
            title_source: TitleSource::Pending,
            tags: Vec::new(),
            open: Vec::new(),
            interrupted: Vec::new(),
            lag: Lag::default(),
        }
    }

    /// The head in the bytes under `key`.
    pub(crate) fn open(key: &[u8], bytes: &[u8]) -> Result<Self> {
        let what = "the head";
        let head: Self = envelope::open(what, key, bytes)?;
        check_number(what, head.next_seq)?;
        check_number(what, head.next_message_index)?;
        let first = head.first_seq();
        if head.next_seq < first {
            return Err(envelope::corrupt(format!(
                "{what}: its next seq {} is before its first {first}",
                head.next_seq
            )));
        }
        Ok(head)
    }

    /// When it was active at its place in the list: microseconds since 1970.
    pub(crate) const fn listed(&self) -> i64 {
        self.last_activity.saturating_sub_unsigned(self.lag.0)
    }

    /// About how many bytes it takes.
    pub(crate) fn size(&self) -> usize {
        let texts = self.key.iter().chain(&self.title).chain(&self.tags).chain([&self.owner]);
        let unfinished = self.open.len() + self.interrupted.len();
        size_of::<Self>() + texts.map(String::len).sum::<usize>() + unfinished * size_of::<u64>()
    }

    /// Notes that a message which was begun is finished.
    pub(crate) fn close(&mut self, message: u64) {
        self.open.retain(|open| *open != message);
    }

    /// Notes that a message which was begun takes no more. Its end may have come just before.
    pub(crate) fn interrupt(&mut self, message: u64) {
        self.close(message);
        // A later message may follow it already.
        if message + 1 == self.next_message_index && !self.interrupted.contains(&message) {
            self.interrupted.push(message);
        }
    }

    /// Forgets unfinished messages that are hidden now.
    pub(crate) fn forget_unfinished(&mut self, messages: impl RangeBounds<u64>) {
        self.open.retain(|open| !messages.contains(open));
        self.interrupted.retain(|interrupted| !messages.contains(interrupted));
    }

    /// The digest of its owner, as keys have it.
    pub(crate) fn owner_digest(&self) -> [u8; 16] {
        owner_digest(&self.owner)
    }

    /// Entries of its own: without those that it reads through its parent.
    pub(crate) fn entries(&self) -> u64 {
        self.next_seq.saturating_sub(self.first_seq())
    }

    /// The seq of its first entry: without those that it reads through its parent.
    pub(crate) fn first_seq(&self) -> u64 {
        first_seq(self.parent)
    }
}

/// The digest of an owner, as keys have it.
pub(crate) fn owner_digest(owner: &str) -> [u8; 16] {
    if owner.is_empty() { *NO_OWNER } else { digest(owner.as_bytes()) }
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
    /// The index of its first message.
    pub(crate) first_message_index: u64,
    /// How many messages it has.
    pub(crate) messages: u64,
    pub(crate) content_digest: [u8; 16],
}

impl Receipt {
    /// The index of each message, in order.
    pub(crate) fn message_indexes(&self) -> Vec<u64> {
        (self.first_message_index..self.first_message_index.saturating_add(self.messages)).collect()
    }
}

/// The marker of a store.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct StoreInfo {
    pub(crate) store_id: [u8; 16],
    pub(crate) format_version: u32,
}

/// What a store was known to have lost when it was backed up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Lost {
    /// The newest commit that was acknowledged; 0 if none is known to be missing.
    pub(crate) acknowledged: u64,
    /// Why nobody can tell what is missing.
    pub(crate) unknown: Option<String>,
}

/// A conversation that was deleted: its head is gone, its records are being erased, or wait for the forks that read them.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) struct Tombstone {
    pub(crate) parent: Option<Parent>,
    pub(crate) incarnation: u64,
}

/// The seq of the first entry of a conversation with this parent.
fn first_seq(parent: Option<Parent>) -> u64 {
    parent.map_or(0, |parent| parent.at_seq).saturating_add(1)
}

impl Tombstone {
    /// The tombstone in the bytes under `key`.
    pub(crate) fn open(key: &[u8], bytes: &[u8]) -> Result<Self> {
        let what = "a tombstone";
        let tombstone: Self = envelope::open(what, key, bytes)?;
        check_number(what, tombstone.first_seq())?;
        Ok(tombstone)
    }

    /// The seq of the first entry that was its own.
    pub(crate) fn first_seq(&self) -> u64 {
        first_seq(self.parent)
    }
}

/// Where the indexes of conversations list one: in the list of its owner, under its tags, among those with unfinished
/// messages, among those whose place in the list is not that of their last activity.
pub(crate) fn index_keys(id: ConversationId, head: &Head) -> Vec<Vec<u8>> {
    let owner = head.owner_digest();
    let mut keys = vec![key::index(&owner, listed_micros(head.listed()), id)];
    keys.extend(head.tags.iter().map(|tag| key::tag(&owner, &digest(tag.as_bytes()), id)));
    if is_unfinished(head) {
        keys.push(key::unfinished(id));
    }
    if head.lag != Lag::default() {
        keys.push(key::lagging(id));
    }
    keys
}

/// A time in the list: 0 for those before 1970.
pub(crate) fn listed_micros(micros: i64) -> u64 {
    u64::try_from(micros).unwrap_or(0)
}

/// Whether it has messages that are not finished, as the index counts them.
pub(crate) fn is_unfinished(head: &Head) -> bool {
    !head.open.is_empty() || !head.interrupted.is_empty()
}
