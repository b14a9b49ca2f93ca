//! A record: header, origin, entries; and the records that are written again: the only two reasons are that content has to be
//! forgotten, and that a deleted conversation's tail goes while forks still read what is before it.

use std::collections::BTreeSet;

use bincode::{Decode, Encode};

use super::encode::{Body, HEADER_BYTES};
use super::envelope::{
    CONFIG, MAX_NUMBER, Text, VERSION, check_number, check_version, checksum, corrupt, decode, decode_entry, newer,
    short,
};
use super::head::Parent;
use super::key::{self, digest};
use super::v1::{self, Begin, ChunkLine, Content, Finish, Interrupt, Meta, Output, Redact, Remove, Rewind, Summary};
use crate::error::{Error, Result};
use crate::json;
use crate::model::{ConversationId, FinishReason};

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

/// version, checksum(4)
#[cfg(feature = "postgres")]
const START_BYTES: usize = 5;

/// The value of entries: version, checksum, entries. The checksum covers the conversation too, but not their place in it.
#[cfg(feature = "postgres")]
pub(crate) fn seal_entries(conversation: ConversationId, body: &Body) -> Vec<u8> {
    let sum = checksum(&key::prefix(key::RECORD, conversation), &[body.content()]);
    let mut bytes = Vec::with_capacity(START_BYTES + body.content().len());
    bytes.push(VERSION);
    bytes.extend_from_slice(&sum.to_be_bytes());
    bytes.extend_from_slice(body.content());
    bytes
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
fn check_first_seq(first_seq: u64, before: u64) -> Result<()> {
    if first_seq > before {
        return Ok(());
    }
    Err(corrupt(format!("a record: its first seq {first_seq} is before its conversation's")))
}

impl<'a> Record<'a> {
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

    /// The record of a header that is in columns of a table, and the value of its entries, checked.
    #[cfg(feature = "postgres")]
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
        Ok(Self { first_seq, header, entries })
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

/// Puts and removals that replace a record.
pub(crate) type Replacement = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// What takes the place of content that was forgotten.
pub(crate) const REDACTED: &str = "[redacted]";

impl Body {
    /// The entries of a record.
    pub(crate) fn of(record: &Record<'_>) -> Result<Self> {
        let mut body = Self::new();
        record.raw_entries().try_for_each(|(_, entry)| body.raw(entry)).map(|()| body)
    }
}

/// The record without its entries above `last`: its header and entries.
pub(crate) fn truncate(record: &Record<'_>, last: u64, next_message_index: u64) -> Result<(Header, Body)> {
    let mut body = Body::new();
    let (mut before, mut after) = (None, None);
    for ((seq, entry), line) in record.raw_entries().zip(record.lines()) {
        let message = match line? {
            (_, Line::Chunk(line)) => Some(line.message),
            _ => None,
        };
        if seq <= last {
            body.raw(entry)?;
            before = message;
        } else if seq == last + 1 {
            after = message;
        }
    }
    let cut = before.is_some() && before == after;
    Ok((Header { next_message_index, cut, ..record.header.clone() }, body))
}

/// The first record of a conversation that was deleted and that forks still read: its key and value.
pub(crate) fn mark_deleted(conversation: ConversationId, record: &Record<'_>) -> Result<(Vec<u8>, Vec<u8>)> {
    let header = Header { deleted: true, ..record.header.clone() };
    seal_record(conversation, record.first_seq, &header, Body::of(record)?)
}

/// Whether a record holds nothing of a message, or of one chunk of it, that a redaction takes. Arguments as for [`redact`].
pub(crate) fn is_redacted(
    record: &Record<'_>,
    message: u64,
    chunk: Option<u32>,
    last: u64,
    first: &mut dyn FnMut(u32) -> bool,
) -> Result<bool> {
    let body = redact(record, message, chunk, last, first)?;
    Ok(body.is_none_or(|body| body.content() == record.content()))
}

/// The entries of a record without the content of a message, or of one chunk of it. `first` answers whether the first
/// fragment of a chunk index was seen before. Entries above `last` are not read. `None` if the record has nothing of it.
pub(crate) fn redact(
    record: &Record<'_>,
    message: u64,
    chunk: Option<u32>,
    last: u64,
    first: &mut dyn FnMut(u32) -> bool,
) -> Result<Option<Body>> {
    // After a fork point, the index means another message, unless the fork cut this one in two.
    let mut lines = record.lines().filter_map(Result::ok).take_while(|(seq, _)| *seq <= last);
    if !lines.any(|(_, mut line)| forget(record, &mut line, message, chunk, &mut |_| true)) {
        return Ok(None);
    }
    let mut body = Body::new();
    for ((_, entry), line) in record.raw_entries().zip(record.lines()) {
        let (_, mut line) = line?;
        if !forget(record, &mut line, message, chunk, first) {
            body.raw(entry)?;
            continue;
        }
        match &line {
            Line::Chunk(line) => body.line(line)?,
            Line::Begin(begin) => body.begin_line(begin)?,
            Line::Finish(finish) => body.finish_line(finish)?,
            _ => body.raw(entry)?,
        }
    }
    Ok(Some(body))
}

/// What a redaction takes from an entry. False if the entry has nothing of it.
fn forget(
    record: &Record<'_>,
    line: &mut Line<'_>,
    message: u64,
    chunk: Option<u32>,
    first: &mut dyn FnMut(u32) -> bool,
) -> bool {
    let is_it = |relative: u64| record.message_index(relative) == message;
    match line {
        Line::Chunk(line) if is_it(line.message) => {
            let is_of = chunk.is_none_or(|chunk| chunk == line.chunk);
            if is_of {
                forget_chunk(line, first(line.chunk));
            }
            // A text that stays may have the provider's whole item, of several texts.
            let quotes =
                line.native.is_some() && matches!(line.content, Content::Text { .. } | Content::Refusal { .. });
            if quotes {
                line.native = None;
            }
            line.header.as_mut().is_some_and(|header| forget_header(header, chunk)) || is_of || quotes
        }
        Line::Begin(begin) if is_it(begin.message) => forget_header(&mut begin.header, chunk),
        Line::Finish(finish) if is_it(finish.message) => forget_header(&mut finish.header, chunk),
        _ => false,
    }
}

/// What is known about a message may quote any chunk of it: what says something goes. Ids, names and times stay; with one
/// chunk, token counts too. False if it has nothing of a chunk; a whole message is always of it.
fn forget_header(header: &mut v1::Header<'_>, chunk: Option<u32>) -> bool {
    let v1::Header {
        finish_reason,
        usage,
        native,
        extra,
        model: _,
        provider: _,
        created_at: _,
        turn_id: _,
        step_id: _,
        id: _,
    } = header;
    let words = finish_reason
        .filter(|words| *words != REDACTED && matches!(FinishReason::from(*words), FinishReason::Other(_)));
    let spoken = usage.filter(|usage| chunk.is_none() || json::has_words(usage));
    let is_of = chunk.is_none() || words.is_some() || spoken.is_some() || native.is_some() || extra.is_some();
    (*native, *extra) = (None, None);
    if words.is_some() {
        *finish_reason = Some(REDACTED);
    }
    if spoken.is_some() {
        *usage = None;
    }
    is_of
}

/// Role, index, ids and tool name stay; everything that was said goes.
fn forget_chunk(line: &mut ChunkLine<'_>, is_first: bool) {
    let ChunkLine { content, native, extra, message: _, chunk: _, role: _, header: _, id: _ } = line;
    (*native, *extra) = (None, None);
    // Later fragments are appended to the first one.
    let text = if is_first { REDACTED } else { "" };
    *content = match &*content {
        Content::Text { .. } => Content::Text { text: Text(text), annotations: None },
        Content::Refusal { .. } => Content::Refusal { text: Text(text) },
        Content::Thinking { .. } => Content::Thinking { text: Text(""), signature: None, redacted: None },
        Content::ToolCall { id, name, server, .. } => Content::ToolCall {
            id,
            name,
            arguments: Text(if is_first { "{}" } else { "" }),
            signature: None,
            server: *server,
        },
        Content::ToolResult { tool_call_id, name, is_error, .. } => {
            Content::ToolResult { tool_call_id, name: *name, output: Output::Text(Text(REDACTED)), is_error: *is_error }
        }
        Content::Image(_) | Content::Audio(_) | Content::File(_) | Content::Error { .. } | Content::Opaque { .. } => {
            Content::Text { text: Text(REDACTED), annotations: None }
        }
        Content::Unknown { kind } => Content::Unknown { kind },
    };
}
