//! A record: header, origin, entries.

use std::collections::BTreeSet;

use bincode::{Decode, Encode};

use super::digest::digest;
use super::encode::{Body, HEADER_BYTES};
use super::envelope::{
    CONFIG, MAX_NUMBER, VERSION, check_number, check_version, checksum, corrupt, decode, decode_entry, newer, short,
};
use super::head::Parent;
use super::key;
use super::v1::{self, Begin, ChunkLine, Finish, Interrupt, Meta, Redact, Remove, Rewind, Summary};
use crate::error::{Error, Result};
use crate::model::ConversationId;

const FLAG_ORIGIN: u8 = 1;
const FLAG_CUT: u8 = 2;
const FLAG_DELETED: u8 = 4;
/// Who does not know one of these flags does not know what the record says; any other is a hint.
const FLAGS_NEEDED: u8 = 0b1110_0000;
const LENGTH_BYTES: usize = 4;

/// What all entries of a record share.
#[derive(Debug, Clone)]
pub(crate) struct Header {
    /// Microseconds since 1970: when the append was queued.
    pub(crate) time: i64,
    /// The index to which the entries' message indexes are relative.
    pub(crate) base: u64,
    /// The index of the next message after this append.
    pub(crate) next_message_index: u64,
    /// The number of the commit that wrote it first. Of two records of one place it decides which is meant.
    pub(crate) commit: u64,
    /// Whether entries after the last one were erased that belonged to its message.
    pub(crate) cut: bool,
    /// Whether its conversation was deleted, and it stays for the forks that read it. In the first record only.
    pub(crate) deleted: bool,
    /// Present in a conversation's first record.
    pub(crate) origin: Option<Origin>,
}

/// Where a conversation comes from.
#[derive(Debug, Clone, Encode, Decode)]
pub(crate) struct Origin {
    pub(crate) owner: String,
    pub(crate) key: Option<String>,
    pub(crate) incarnation: u64,
    /// Microseconds since 1970.
    pub(crate) created: i64,
    pub(crate) parent: Option<Parent>,
    /// The seq of the last rewind or removal in the parent that counts here; 0 if there is none.
    pub(crate) last_hide: u64,
    /// The seq of the last meta entry in the parent that counts here; 0 if there is none.
    pub(crate) last_meta: u64,
    /// The index of the first message of its own.
    pub(crate) first_message_index: u64,
}

/// Key and value of a record.
pub(crate) fn seal_record(
    conversation: ConversationId,
    first_seq: u64,
    header: &Header,
    body: Body,
) -> Result<(Vec<u8>, Vec<u8>)> {
    let mut bytes = body.into_bytes();
    let mut flags = if header.cut { FLAG_CUT } else { 0 } | if header.deleted { FLAG_DELETED } else { 0 };
    if let Some(origin) = &header.origin {
        flags |= FLAG_ORIGIN;
        let encoded = bincode::encode_to_vec(origin, CONFIG)
            .map_err(|error| Error::InvalidInput(format!("cannot be encoded: {error}")))?;
        let length = u32::try_from(encoded.len()).map_err(|error| Error::InvalidInput(error.to_string()))?;
        bytes.splice(HEADER_BYTES..HEADER_BYTES, length.to_be_bytes().into_iter().chain(encoded));
    }
    let mut start = Vec::with_capacity(HEADER_BYTES);
    start.extend_from_slice(&[VERSION, flags, 0, 0, 0, 0]);
    start.extend_from_slice(&header.time.to_be_bytes());
    start.extend_from_slice(&header.base.to_be_bytes());
    start.extend_from_slice(&header.next_message_index.to_be_bytes());
    start.extend_from_slice(&header.commit.to_be_bytes());
    // A body always has the room for its header in front.
    bytes.iter_mut().zip(start).for_each(|(place, byte)| *place = byte);
    let record_key = key::record(conversation, first_seq);
    let sum = record_checksum(&record_key, &bytes);
    if let Some(place) = bytes.get_mut(2..6) {
        place.copy_from_slice(&sum.to_be_bytes());
    }
    Ok((record_key, bytes))
}

fn record_checksum(key: &[u8], bytes: &[u8]) -> u32 {
    checksum(key, &[bytes.get(..2).unwrap_or_default(), bytes.get(6..).unwrap_or_default()])
}

/// A record, checked; its entries are decoded one by one.
#[derive(Debug)]
pub(crate) struct Record<'a> {
    pub(crate) first_seq: u64,
    pub(crate) header: Header,
    entries: &'a [u8],
}

/// One entry as it is stored.
#[derive(Debug)]
pub(crate) enum Line<'a> {
    Chunk(ChunkLine<'a>),
    Begin(Begin<'a>),
    Finish(Finish<'a>),
    Meta(Meta<'a>),
    Rewind(Rewind),
    Summary(Summary<'a>),
    Redact(Redact),
    Interrupt(Interrupt),
    Remove(Remove),
    /// A kind that this version does not know, and may pass over: it has a seq, and nothing else is known.
    Unknown(u8),
}

/// Fails on a record that is not after the seq before its conversation's first.
pub(super) fn check_first_seq(first_seq: u64, before: u64) -> Result<()> {
    if first_seq > before {
        return Ok(());
    }
    Err(corrupt(format!("a record: its first seq {first_seq} is before its conversation's")))
}

impl<'a> Record<'a> {
    /// A record whose parts were checked.
    #[cfg(feature = "postgres")]
    pub(super) const fn new(first_seq: u64, header: Header, entries: &'a [u8]) -> Self {
        Self { first_seq, header, entries }
    }

    /// Checks a record.
    pub(crate) fn open(conversation: ConversationId, first_seq: u64, bytes: &'a [u8]) -> Result<Self> {
        Self::open_inner(conversation, first_seq, bytes).map_err(|error| at(error, conversation, first_seq))
    }

    fn open_inner(conversation: ConversationId, first_seq: u64, bytes: &'a [u8]) -> Result<Self> {
        const WHAT: &str = "a record";
        check_version(WHAT, bytes)?;
        let (header, mut rest) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or_else(|| short(WHAT))?;
        let [_, flags, c0, c1, c2, c3, fields @ ..] = header;
        if u32::from_be_bytes([*c0, *c1, *c2, *c3]) != record_checksum(&key::record(conversation, first_seq), bytes) {
            return Err(corrupt(format!("{WHAT}: the checksum does not match")));
        }
        if flags & FLAGS_NEEDED != 0 {
            return Err(newer(format!("{WHAT} with the flags {flags:#010b}")));
        }
        let number = |at: usize| {
            let bytes = fields.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
            u64::from_be_bytes(bytes)
        };
        let (time, base, next_message_index) = (number(0).cast_signed(), number(8), number(16));
        let commit = number(24);
        [first_seq, base, next_message_index, commit].into_iter().try_for_each(|number| check_number(WHAT, number))?;
        let mut origin: Option<Origin> = None;
        if flags & FLAG_ORIGIN != 0 {
            let (encoded, after) = length_prefixed(rest).ok_or_else(|| short(WHAT))?;
            origin = Some(decode(WHAT, encoded)?);
            rest = after;
        }
        let parent = origin.as_ref().and_then(|origin| origin.parent);
        check_first_seq(first_seq, parent.map_or(0, |parent| parent.at_seq))?;
        Ok(Self {
            first_seq,
            header: Header {
                time,
                base,
                next_message_index,
                commit,
                cut: flags & FLAG_CUT != 0,
                deleted: flags & FLAG_DELETED != 0,
                origin,
            },
            entries: rest,
        })
    }

    /// The entries with their seqs, in order. Ends after the first one that cannot be decoded.
    pub(crate) fn lines(&self) -> impl Iterator<Item = Result<(u64, Line<'a>)>> + use<'a> {
        let (mut rest, mut seq) = (self.entries, self.first_seq);
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let Some((entry, after)) = length_prefixed(rest) else {
                rest = &[];
                return Some(Err(short("an entry")));
            };
            rest = after;
            let line = Line::decode(entry).map(|line| (seq, line));
            if line.is_err() {
                rest = &[];
            }
            seq += 1;
            Some(line)
        })
    }

    /// The entries as they are stored, with their seqs.
    pub(crate) fn raw_entries(&self) -> impl Iterator<Item = (u64, &'a [u8])> + use<'a> {
        let (mut rest, first_seq) = (self.entries, self.first_seq);
        let entries = std::iter::from_fn(move || {
            let (entry, after) = length_prefixed(rest)?;
            rest = after;
            Some(entry)
        });
        (first_seq..).zip(entries)
    }

    /// The bytes of all entries.
    pub(crate) const fn content(&self) -> &'a [u8] {
        self.entries
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> u64 {
        let (mut rest, mut count) = (self.entries, 0);
        while let Some((_, after)) = length_prefixed(rest) {
            (rest, count) = (after, count + 1);
        }
        count
    }

    /// The keys that the index of item ids has for it, up to `last`.
    pub(crate) fn item_keys(&self, id: ConversationId, last: u64, keys: &mut BTreeSet<Vec<u8>>) {
        for (seq, line) in self.lines().filter_map(Result::ok).filter(|(seq, _)| *seq <= last) {
            let (of_chunk, header) = match &line {
                Line::Chunk(line) => (line.id, line.header.as_ref()),
                Line::Begin(begin) => (None, Some(&begin.header)),
                Line::Finish(finish) => (None, Some(&finish.header)),
                _ => (None, None),
            };
            let items = of_chunk.into_iter().chain(header.and_then(|header| header.id));
            keys.extend(items.map(|item| key::item(id, &digest(item.as_bytes()), seq)));
        }
    }

    /// A message index of an entry of this record.
    pub(crate) fn message_index(&self, relative: u64) -> u64 {
        self.header.base.saturating_add(relative).min(MAX_NUMBER)
    }
}

impl<'a> Line<'a> {
    #[inline]
    fn decode(entry: &'a [u8]) -> Result<Self> {
        let (kind, body) = entry.split_first().ok_or_else(|| short("an entry"))?;
        Ok(match *kind {
            v1::CHUNK => Self::Chunk(decode_entry("a chunk", body)?),
            v1::BEGIN => Self::Begin(decode_entry("a begin entry", body)?),
            v1::FINISH => Self::Finish(decode_entry("a finish entry", body)?),
            v1::META => Self::Meta(decode_entry("a meta entry", body)?),
            v1::REWIND => Self::Rewind(decode_entry("a rewind entry", body)?),
            v1::SUMMARY => Self::Summary(decode_entry("a summary entry", body)?),
            v1::REDACT => Self::Redact(decode_entry("a redact entry", body)?),
            v1::INTERRUPT => Self::Interrupt(decode_entry("an interrupt entry", body)?),
            v1::REMOVE => Self::Remove(decode_entry("a remove entry", body)?),
            kind if kind >= v1::NEEDED => return Err(newer(format!("an entry of kind {kind}"))),
            kind => Self::Unknown(kind),
        })
    }
}

fn length_prefixed(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH_BYTES>()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
}

/// Damage with its place: the record that begins with a seq.
pub(crate) fn at(error: Error, conversation: ConversationId, first_seq: u64) -> Error {
    match error {
        Error::Corrupt { detail, .. } => {
            Error::Corrupt { conversation: Some(conversation.into()), seq: Some(first_seq), detail }
        }
        other => other,
    }
}
