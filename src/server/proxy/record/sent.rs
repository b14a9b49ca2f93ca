//! The request of an answer, byte for byte.
//!
//! An answer's message says how its request differs from what is stored besides: the request of the answer before it, the fields
//! around the messages, and the messages that were stored since that answer. So the request of a long session costs some hundred
//! bytes. The difference is sealed with a key that is made of all that it is a difference from: when one of these messages is
//! redacted, nobody can read any more what the requests quote of it.
//!
//! How bytes differ from others: what of them is there, and what is new.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::ops::Range;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::around::{self, About, Replaced, Sent};
use super::book::{Book, hex};
use super::meaning::{Digest, Key};
use super::plan::Placed;
use crate::error::Result;
use crate::history::{MessageState, StoredMessage};
use crate::log::reading::PageSize;
use crate::model::{Body, Chunk, Name, Output, Part, PartBody};
use crate::record::REDACTED;
use crate::server::exchanges::{Known, Recent};
use crate::server::ledger::Room;

/// Messages, and bytes of them, of one read.
const PAGE: PageSize = PageSize { limit: 256, bytes: 4 * 1024 * 1024, shows_hidden: true };
/// How many times a request's length is held while it is compared or read: it, those before it, and where its parts are found.
const HELD: usize = 5;

/// A conversation whose requests are kept and read.
pub(super) struct Requests<'a> {
    pub(super) book: &'a Book<'a>,
    pub(super) name: Name,
    /// What this takes of the memory that requests may hold.
    pub(super) room: &'a Room,
    /// Nothing that was redacted is shown from there.
    pub(super) recent: Option<&'a Recent>,
}

impl Requests<'_> {
    /// Keeps the request of a call that was placed. `None` if that cannot be done: a message that it is compared with was redacted,
    /// or there is no room to compare it. Without room for what is read, it fails as a read does.
    pub(super) fn keep(
        &self,
        text: &str,
        fields: &[(String, &RawValue)],
        about: &About,
        before: Option<(u64, &About)>,
        placed: &Placed,
    ) -> Result<Option<Sent>> {
        let entry = &placed.entry;
        let known = match before {
            Some((_, before)) if before.sent.is_some() => match self.read(before)? {
                None => return Ok(None),
                known => known,
            },
            _ => None,
        };
        let since = known.as_ref().and(before).map(|(index, _)| index);
        let until = entry.kept.iter().map(|index| index.saturating_add(1)).fold(entry.from, u64::max);
        let from = if since.is_none() { placed.first } else { 0 };
        let mut sent = Sent { since, from, until, without: Vec::new(), replaced: None, bytes: String::new() };
        let messages = self.messages(sent.messages())?;
        // The client sends again what was redacted here.
        if !are_whole(&messages, &sent.messages()) {
            return Ok(None);
        }
        let is_open = |stored: &&StoredMessage| stored.state == MessageState::Streaming;
        sent.without = messages.iter().filter(is_open).map(|stored| stored.index).collect();
        let (bytes, replaced) = cleaned(&self.book.key, text, fields);
        let Some((dictionary, secret)) = self.source(about, &sent, &messages, known.as_ref(), bytes.len()) else {
            return Ok(None);
        };
        if !replaced.is_empty() {
            let digest = hex::encode(&self.book.key.digest([bytes.as_slice()]));
            sent.replaced = Some(Replaced { fields: replaced, digest });
        }
        let difference = sealed(&self.book.key, &secret, about.exchange, encode(&dictionary, &bytes));
        sent.bytes = BASE64_STANDARD_NO_PAD.encode(difference);
        if let Some(recent) = self.recent {
            recent.keep(about.exchange, Known { bytes: Arc::new(bytes), secret });
        }
        Ok(Some(sent))
    }

    /// The request of an answer. `None` if it cannot be given any more.
    pub(super) fn read(&self, about: &About) -> Result<Option<Known>> {
        let mut chain = vec![about.clone()];
        let mut known = None;
        while let Some(last) = chain.last() {
            known = self.recent.and_then(|recent| recent.find(last.exchange));
            if known.is_some() {
                chain.pop();
                break;
            }
            let Some(sent) = &last.sent else { return Ok(None) };
            let Some(since) = sent.since else { break };
            // Each differs from an earlier one.
            if chain
                .iter()
                .rev()
                .nth(1)
                .and_then(|after| after.sent.as_ref()?.since)
                .is_some_and(|after| after <= since)
            {
                return Ok(None);
            }
            let before = self.book.message(&self.name, since)?;
            let Some(before) = before.and_then(|stored| About::of(&stored)) else { return Ok(None) };
            chain.push(before);
        }
        while let Some(about) = chain.pop() {
            known = self.next(&about, known.as_ref())?;
            if known.is_none() {
                return Ok(None);
            }
        }
        Ok(known)
    }

    /// The request of an answer, by the one before.
    fn next(&self, about: &About, before: Option<&Known>) -> Result<Option<Known>> {
        let Some(sent) = &about.sent else { return Ok(None) };
        let messages = self.messages(sent.messages())?;
        let length = usize::try_from(about.request_bytes).unwrap_or(usize::MAX);
        let Some((dictionary, secret)) = self.source(about, sent, &messages, before, length) else { return Ok(None) };
        let Ok(difference) = BASE64_STANDARD_NO_PAD.decode(&sent.bytes) else { return Ok(None) };
        let difference = sealed(&self.book.key, &secret, about.exchange, difference);
        let bytes = decode(&dictionary, &difference, length.saturating_mul(2).saturating_add(1024 * 1024));
        let digest = sent.replaced.as_ref().map_or(&about.request, |replaced| &replaced.digest);
        let is_right = |bytes: &Vec<u8>| hex::encode(&self.book.key.digest([bytes.as_slice()])) == *digest;
        Ok(bytes.filter(is_right).map(|bytes| Known { bytes: Arc::new(bytes), secret }))
    }

    /// What a request is compared with, and its secret.
    fn source(
        &self,
        about: &About,
        sent: &Sent,
        messages: &[StoredMessage],
        before: Option<&Known>,
        length: usize,
    ) -> Option<(Vec<u8>, Digest)> {
        let mut new = Vec::new();
        about.fields.values().filter_map(around::Field::is).for_each(|is| new.extend_from_slice(is.as_bytes()));
        let rewritten = about.rewritten.iter().flat_map(around::Rewritten::items);
        rewritten.for_each(|item| new.extend_from_slice(item.as_bytes()));
        let stored = messages.iter().filter(|stored| !sent.without.contains(&stored.index));
        stored.flat_map(|stored| &stored.message.chunks).for_each(|chunk| words(chunk, &mut new));
        let old = before.map_or(&[][..], |before| &before.bytes);
        self.room.reach((old.len() + new.len() + length).saturating_mul(HELD)).ok()?;
        let secret = self.book.key.digest([before.map_or(&[][..], |before| &before.secret), &new]);
        Some(([old, &new].concat(), secret))
    }

    fn messages(&self, range: Range<u64>) -> Result<Vec<StoredMessage>> {
        let (mut messages, mut next) = (Vec::new(), Some(range.start));
        while let Some(from) = next.filter(|from| *from < range.end) {
            let (page, after) = self.book.store.page(&self.name, from, PAGE)?;
            messages.extend(page);
            next = after;
        }
        messages.retain(|stored| range.contains(&stored.index));
        Ok(messages)
    }
}

/// Whether none of them was redacted, as far as that can be seen.
fn are_whole(messages: &[StoredMessage], range: &Range<u64>) -> bool {
    let is_whole = |chunk: &Chunk| {
        let mut said = Vec::new();
        words(chunk, &mut said);
        !String::from_utf8_lossy(&said).contains(&format!("\"{REDACTED}\""))
    };
    let mut chunks = messages.iter().flat_map(|stored| &stored.message.chunks);
    messages.iter().map(|stored| stored.index).eq(range.clone()) && chunks.all(is_whole)
}

/// A request in which keys and personal ids are replaced, and the fields that had some.
fn cleaned(key: &Key, text: &str, fields: &[(String, &RawValue)]) -> (Vec<u8>, Vec<String>) {
    let (mut bytes, mut replaced, mut at) = (Vec::with_capacity(text.len()), Vec::new(), 0);
    for (name, raw) in fields {
        let clean = around::without_secrets(key, name, raw);
        let clean = clean.as_deref().map_or("null", RawValue::get);
        if clean == raw.get() {
            continue;
        }
        // A field is a part of the text.
        let place = raw.get().as_ptr().addr().saturating_sub(text.as_ptr().addr());
        bytes.extend_from_slice(text.as_bytes().get(at..place).unwrap_or_default());
        bytes.extend_from_slice(clean.as_bytes());
        at = place + raw.get().len();
        replaced.push(name.clone());
    }
    bytes.extend_from_slice(text.as_bytes().get(at..).unwrap_or_default());
    (bytes, replaced)
}

/// Seals bytes, or opens what was sealed.
fn sealed(key: &Key, secret: &Digest, exchange: Uuid, mut bytes: Vec<u8>) -> Vec<u8> {
    for (number, block) in bytes.chunks_mut(size_of::<Digest>()).enumerate() {
        let mask = key.digest([b"sealed", secret.as_slice(), exchange.as_bytes(), &(number as u64).to_be_bytes()]);
        block.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
    }
    bytes
}

/// What of a chunk is in a request. It may not change: what was kept could not be read any more.
fn words(chunk: &Chunk, to: &mut Vec<u8>) {
    let mut say = |text: &str| to.extend_from_slice(serde_json::to_string(text).unwrap_or_default().as_bytes());
    match &chunk.body {
        Body::Text { text, .. } | Body::Refusal { text } => say(text),
        Body::Thinking { text, signature, redacted } => {
            say(text);
            [signature, redacted].into_iter().flatten().for_each(|text| say(text));
        }
        Body::ToolCall { id, name, arguments, signature, .. } => {
            [id, name, arguments].into_iter().chain(signature).for_each(|text| say(text));
            to.extend_from_slice(arguments.as_bytes());
        }
        Body::ToolResult { tool_call_id, output, .. } => {
            say(tool_call_id);
            match output {
                Output::Text(text) => say(text),
                Output::Parts(parts) => parts.iter().for_each(|part| part_words(part, &mut say)),
            }
        }
        Body::Image(image) => say(&image.url),
        Body::Audio(audio) => [&audio.url, &audio.data].into_iter().flatten().for_each(|text| say(text)),
        Body::File(file) => [&file.name, &file.url, &file.data].into_iter().flatten().for_each(|text| say(text)),
        Body::Opaque { json, .. } => to.extend_from_slice(json.as_str().as_bytes()),
        Body::Error { .. } | Body::Unknown { .. } => {}
    }
    if let Some(native) = &chunk.native {
        to.extend_from_slice(native.json.as_str().as_bytes());
    }
}

fn part_words(part: &Part, say: &mut impl FnMut(&str)) {
    match &part.body {
        PartBody::Text { text } => say(text),
        PartBody::Image(image) => say(&image.url),
        PartBody::Audio(audio) => [&audio.url, &audio.data].into_iter().flatten().for_each(|text| say(text)),
        PartBody::File(file) => [&file.name, &file.url, &file.data].into_iter().flatten().for_each(|text| say(text)),
        PartBody::Json { json } => say(json.as_str()),
        PartBody::Unknown { .. } => {}
    }
}

/// The bytes by which a place is found.
const KEY: usize = 16;
/// The fewest bytes that are taken from where the last ones ended.
const NEXT: usize = 6;
/// The most places that are known.
const PLACES: usize = 1 << 18;

/// How bytes differ from a dictionary.
fn encode(dictionary: &[u8], bytes: &[u8]) -> Vec<u8> {
    let places = places(dictionary);
    let mut steps = Steps::default();
    let (mut at, mut new) = (0, 0);
    while at < bytes.len() {
        let rest = bytes.get(at..).unwrap_or_default();
        let next = (steps.expected, alike(dictionary, steps.expected, rest));
        let found = if next.1 >= NEXT.max(KEY) || at == new && next.1 >= NEXT {
            next
        } else {
            let place = rest.first_chunk::<KEY>().and_then(|key| places.get(key)).copied();
            place.map_or((0, 0), |place| (place, alike(dictionary, place, rest)))
        };
        let (mut place, mut length) = found;
        if length == 0 {
            at += 1;
            continue;
        }
        // What comes before it may be alike, too.
        while at > new && place > 0 && dictionary.get(place - 1) == bytes.get(at - 1) {
            (place, at, length) = (place - 1, at - 1, length + 1);
        }
        steps.copy(bytes.get(new..at).unwrap_or_default(), place, length);
        at += length;
        new = at;
    }
    steps.end(bytes.get(new..).unwrap_or_default())
}

/// The bytes again; `None` if they were compared with another dictionary, or are more than so many.
fn decode(dictionary: &[u8], delta: &[u8], most: usize) -> Option<Vec<u8>> {
    let mut steps = Vec::new();
    DeflateDecoder::new(delta).take(most.saturating_mul(2) as u64).read_to_end(&mut steps).ok()?;
    let (mut bytes, mut steps, mut expected) = (Vec::new(), steps.as_slice(), 0_usize);
    while !steps.is_empty() {
        let length = usize::try_from(take(&mut steps)?).ok()?;
        let (new, rest) = steps.split_at_checked(length)?;
        bytes.extend_from_slice(new);
        steps = rest;
        if steps.is_empty() || bytes.len() > most {
            break;
        }
        let moved = take(&mut steps)?;
        let length = usize::try_from(take(&mut steps)?).ok()?;
        let moved = i64::try_from(moved >> 1).ok()? ^ -i64::try_from(moved & 1).ok()?;
        let place = expected.checked_add_signed(isize::try_from(moved).ok()?)?;
        expected = place.checked_add(length)?;
        bytes.extend_from_slice(dictionary.get(place..expected)?);
        if bytes.len() > most {
            break;
        }
    }
    Some(bytes).filter(|bytes| bytes.len() <= most)
}

/// Where bytes of the dictionary are found: all of a short one, and of a long one some.
fn places(dictionary: &[u8]) -> HashMap<&[u8; KEY], usize> {
    let step = KEY.max(dictionary.len() / PLACES);
    let keys = (0..dictionary.len()).step_by(step);
    // The first of equal ones counts.
    keys.rev().filter_map(|at| Some((dictionary.get(at..)?.first_chunk()?, at))).collect()
}

/// How many bytes are the same.
fn alike(dictionary: &[u8], place: usize, bytes: &[u8]) -> usize {
    let there = dictionary.get(place..).unwrap_or_default();
    there.iter().zip(bytes).take_while(|(was, is)| was == is).count()
}

/// New bytes and copies in turn.
#[derive(Default)]
struct Steps {
    written: Vec<u8>,
    /// Where the last copy ended.
    expected: usize,
}

impl Steps {
    fn copy(&mut self, new: &[u8], place: usize, length: usize) {
        self.add(new);
        let moved = i64::try_from(place).unwrap_or(i64::MAX) - i64::try_from(self.expected).unwrap_or(i64::MAX);
        // The sign is the last bit.
        self.number((moved.unsigned_abs() << 1).saturating_sub(u64::from(moved < 0)));
        self.number(length as u64);
        self.expected = place + length;
    }

    fn add(&mut self, new: &[u8]) {
        self.number(new.len() as u64);
        self.written.extend_from_slice(new);
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.written.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.written.push(number as u8);
    }

    fn end(mut self, new: &[u8]) -> Vec<u8> {
        if !new.is_empty() {
            self.add(new);
        }
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        // Nothing that is written into memory fails.
        let _ = encoder.write_all(&self.written);
        encoder.finish().unwrap_or_default()
    }
}

/// Takes a number off.
fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_what_is_there_costs_little() {
        let long: Vec<u8> = (0..50_000_u32).flat_map(|n| (n.wrapping_mul(2_654_435_761) >> 7).to_be_bytes()).collect();
        let mut changed = long.clone();
        changed.splice(70_001..70_050, *b"inserted");
        changed.drain(10_003..10_020);
        changed.extend_from_slice(b"at the end");
        let moved = [&long[100_000..], b"-", &long[..100_000]].concat();
        let table: [(&[u8], &[u8], usize); 9] = [
            (b"", b"", 4),
            (b"", b"abc", 8),
            (b"abc", b"", 4),
            (&long, &long, 16),
            (&long, &changed, 64),
            (&long, &moved, 32),
            (&changed, &long, 128),
            (b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", &[b'a'; 5_000], 600),
            (b"x", &[0xff; 100], 32),
        ];
        for (number, (dictionary, bytes, most)) in table.into_iter().enumerate() {
            let delta = encode(dictionary, bytes);
            assert!(delta.len() <= most, "{number}: {}", delta.len());
            assert_eq!(decode(dictionary, &delta, bytes.len()).as_deref(), Some(bytes), "{number}");
            if !bytes.is_empty() {
                assert_eq!(decode(dictionary, &delta, bytes.len() - 1), None, "{number}");
            }
        }
        assert_eq!(decode(&long[..1_000], &encode(&long, &moved), moved.len()), None);
    }
}
