//! Where in a request a message or a chunk was read from, in the notation of `check`: `messages[4].content[0]`.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use serde_json::Value;
use serde_json::value::RawValue;

use super::align::Reading;
use crate::history::{ReportLine, StoredMessage};
use crate::model::{Body, Role};
use crate::provider::read::fields::{Fields, array};
use crate::provider::target::Target;

/// Fields that an item is nothing without: they tell what the others are.
const HEADS: &[&str] = &["role", "type"];

/// Adds the places to the lines that name a message: paths into the request that the messages were read from. Linear in the
/// length of the request.
pub(super) fn place(lines: &mut [ReportLine], from: Target, request: &RawValue, messages: &[StoredMessage]) {
    let is_open = |line: &&mut ReportLine| line.place.is_none() && line.message_index.is_some();
    let mut open = lines.iter_mut().filter(is_open).peekable();
    if open.peek().is_none() {
        return;
    }
    let mut places = Places::of(from, request, messages);
    for line in open {
        let message = line.message_index.and_then(|index| usize::try_from(index).ok());
        let chunk = line.chunk_index.and_then(|index| usize::try_from(index).ok());
        line.place = message.and_then(|message| places.find(message, chunk));
    }
}

/// For each message that was read, the items that it was read from; `None` if from another field of the request.
pub(super) fn items_of(messages: &[StoredMessage], readings: &[Reading]) -> Vec<Option<Range<usize>>> {
    let chunks = |messages: &[StoredMessage]| messages.iter().map(|stored| stored.message.chunks.len()).sum::<usize>();
    let of_items: usize = readings.iter().map(|reading| reading.chunks).sum();
    let by_field = |first: &StoredMessage| first.message.role == Role::System && chunks(messages) > of_items;
    let first = usize::from(messages.first().is_some_and(by_field));
    let mut items = vec![None; first];
    if messages.len() - first == readings.len() {
        items.extend((0..readings.len()).map(|at| Some(at..at + 1)));
        return items;
    }
    // Several items may be one message, or one item several: their chunks stand in the same order.
    let (mut at, mut left) = (0, readings.first().map_or(0, |reading| reading.chunks));
    for stored in messages.iter().skip(first) {
        let start = at;
        let mut wanted = stored.message.chunks.len();
        while wanted > left && at + 1 < readings.len() {
            wanted -= left;
            at += 1;
            left = readings.get(at).map_or(0, |reading| reading.chunks);
        }
        left = left.saturating_sub(wanted);
        let end = at + 1;
        if left == 0 && end <= readings.len() {
            at = end;
            left = readings.get(at).map_or(0, |reading| reading.chunks);
        }
        items.push(Some(start..end));
    }
    items
}

/// A chunk: the position of its message, and its position in it.
type Site = (usize, usize);

struct Places<'a> {
    from: Target,
    messages: &'a [StoredMessage],
    items: Vec<&'a RawValue>,
    /// The field that holds what the system says.
    field: Option<(String, &'a RawValue)>,
    /// For each message, its items; `None` if it is the field's.
    ranges: Vec<Option<Range<usize>>>,
    /// For each item, its chunks, as far as they can be kept apart.
    chunks: Vec<Vec<Site>>,
    /// The places of the chunks of those items that were asked for.
    known: HashMap<Option<usize>, HashMap<Site, String>>,
}

impl<'a> Places<'a> {
    fn of(from: Target, request: &'a RawValue, messages: &'a [StoredMessage]) -> Self {
        let list = from.wire().messages;
        let fields = Fields::of(request).unwrap_or_default();
        let raw = if request.get().starts_with('[') { Some(request) } else { fields.peek(list) };
        let items = raw.and_then(array).unwrap_or_default();
        let readings: Vec<Reading> = items.iter().map(|item| Reading::of_item(from, item)).collect();
        let ranges = items_of(messages, &readings);
        let is_systems =
            |(name, value): &(String, &RawValue)| name != list && Reading::of_field(from, name, value).chunks > 0;
        let mut others = fields.pairs().into_iter().map(|(name, value)| (name.into_owned(), value));
        let field = if ranges.iter().any(Option::is_none) { others.find(is_systems) } else { None };
        let mut left: Vec<usize> = readings.iter().map(|reading| reading.chunks).collect();
        let mut chunks = vec![Vec::new(); items.len()];
        for (message, (stored, range)) in messages.iter().zip(&ranges).enumerate() {
            let Some(range) = range else { continue };
            let mut item = range.start;
            for chunk in 0..stored.message.chunks.len() {
                while range.len() > 1 && item + 1 < range.end && left.get(item).is_none_or(|left| *left == 0) {
                    item += 1;
                }
                if let Some(left) = left.get_mut(item) {
                    *left = left.saturating_sub(1);
                }
                if let Some(chunks) = chunks.get_mut(item) {
                    chunks.push((message, chunk));
                }
            }
        }
        Self { from, messages, items, field, ranges, chunks, known: HashMap::new() }
    }

    /// The place of a message, or of a chunk of it.
    fn find(&mut self, message: usize, chunk: Option<usize>) -> Option<String> {
        let range = self.ranges.get(message)?.clone();
        let site = (message, chunk.unwrap_or_default());
        let Some(range) = range else {
            let whole = self.field.as_ref().map(|(name, _)| name.clone());
            return chunk.and_then(|_| self.part(None, site)).or(whole);
        };
        let holds = |item: &usize| self.chunks.get(*item).is_some_and(|chunks| chunks.binary_search(&site).is_ok());
        let item = range.clone().find(holds).unwrap_or(range.start);
        let part = chunk.and_then(|_| self.part(Some(item), site));
        Some(part.unwrap_or_else(|| self.whole(item)))
    }

    fn whole(&self, item: usize) -> String {
        format!("{}[{item}]", self.from.wire().messages)
    }

    /// The part of an item, or of the field, that a chunk was read from.
    fn part(&mut self, item: Option<usize>, site: Site) -> Option<String> {
        if !self.known.contains_key(&item) {
            let parts = self.parts(item);
            self.known.insert(item, parts);
        }
        self.known.get(&item)?.get(&site).cloned()
    }

    /// Reads each part of an item alone: what gives an equal chunk is its place. Equal parts stand in the order of the chunks.
    fn parts(&self, item: Option<usize>) -> HashMap<Site, String> {
        let mut found: HashMap<u64, VecDeque<String>> = HashMap::new();
        let mut add = |place: String, keys: Vec<u64>| {
            keys.into_iter().for_each(|key| found.entry(key).or_default().push_back(place.clone()));
        };
        let list = self.from.wire().messages;
        let mut sites: Vec<Site> = Vec::new();
        if let Some(item) = item {
            let whole = self.whole(item);
            let fields = self.items.get(item).and_then(|item| Fields::of(item)).unwrap_or_default();
            let heads: Vec<String> =
                HEADS.iter().filter_map(|name| Some(member(name, fields.peek(name)?.get()))).collect();
            for (name, value) in fields.pairs().into_iter().filter(|(name, _)| !HEADS.contains(&name.as_ref())) {
                for (place, text) in elements(&name, value) {
                    let trial = [heads.as_slice(), &[member(&name, &text)]].concat().join(",");
                    add(format!("{whole}.{place}"), self.keys(&format!("{{{}:[{{{trial}}}]}}", Value::from(list))));
                }
            }
            sites.extend(self.chunks.get(item).into_iter().flatten());
        } else if let Some((name, value)) = &self.field {
            for (place, text) in elements(name, value) {
                add(place, self.keys(&format!("{{{}:[],{}}}", Value::from(list), member(name, &text))));
            }
            for (message, _) in self.ranges.iter().enumerate().filter(|(_, range)| range.is_none()) {
                let chunks = self.messages.get(message).map_or(0, |stored| stored.message.chunks.len());
                sites.extend((0..chunks).map(|chunk| (message, chunk)));
            }
        }
        let placed = sites.into_iter().filter_map(|site| {
            let body = &self.messages.get(site.0)?.message.chunks.get(site.1)?.body;
            Some((site, found.get_mut(&key(body))?.pop_front()?))
        });
        placed.collect()
    }

    /// What is read from a request of one part.
    fn keys(&self, request: &str) -> Vec<u64> {
        let read =
            Fields::read(request).ok().and_then(|mut fields| (self.from.wire().parse)(self.from, &mut fields).ok());
        let chunks = read.into_iter().flat_map(|parsed| parsed.messages).flat_map(|message| message.chunks);
        chunks.map(|chunk| key(&chunk.body)).collect()
    }
}

/// The parts of a field, each with its place in it and the field's value with that part alone: the items of an array, those of
/// the arrays in an object, or all of any other value.
fn elements(name: &str, value: &RawValue) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for (at, item) in array(value).unwrap_or_default().into_iter().enumerate() {
        found.push((format!("{name}[{at}]"), format!("[{item}]")));
    }
    for (inner, value) in Fields::of(value).unwrap_or_default().pairs() {
        for (at, item) in array(value).unwrap_or_default().into_iter().enumerate() {
            found.push((format!("{name}.{inner}[{at}]"), format!("{{{}}}", member(&inner, &format!("[{item}]")))));
        }
    }
    if found.is_empty() { vec![(name.to_owned(), value.get().to_owned())] } else { found }
}

fn member(name: &str, value: &str) -> String {
    format!("{}:{value}", Value::from(name))
}

fn key(body: &Body) -> u64 {
    let mut hash = DefaultHasher::new();
    format!("{body:?}").hash(&mut hash);
    hash.finish()
}
