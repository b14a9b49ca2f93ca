//! An answer as it is decoded: its events, what a wire makes of its JSON, and what both have to keep in mind.

use std::collections::HashMap;
use std::fmt;

use serde_json::value::RawValue;

use super::framing::{PENDING, too_large};
use crate::error::Result;
use crate::json::fields::{Fields, is_empty};
use crate::model::extra::json;
use crate::model::{Body, Chunk, FinishReason, Json, Metadata};

/// The answer that a decoder writes: it keeps the order of events, whatever order a provider says things in.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    provider: &'static str,
    reasons: &'static [(&'static str, FinishReason)],
    events: Vec<Event>,
    begun: bool,
    next_chunk: u32,
    /// The choice that is taken, where an answer has several.
    choice: u64,
    reason: Option<FinishReason>,
    usage: Option<Json>,
    failed: bool,
    /// The provider has said that this is all.
    complete: bool,
    /// Bytes that a decoder holds back.
    held: usize,
    /// Fields that no other place was found for.
    unknown: Vec<(String, Vec<Json>)>,
    /// Where each of them is.
    unknown_at: HashMap<String, usize>,
}

impl Answer {
    /// Of this provider, on a wire with these words of its own for why a model stops.
    pub(crate) fn new(provider: &'static str, reasons: &'static [(&'static str, FinishReason)]) -> Self {
        Self { provider, reasons, ..Self::default() }
    }

    /// As this one, but of another choice.
    #[cfg(feature = "server")]
    pub(crate) const fn of_choice(mut self, choice: u64) -> Self {
        self.choice = choice;
        self
    }

    /// Whether a choice of this index is the one that is taken. One without an index is the first.
    pub(crate) fn takes(&self, choice: Option<u64>) -> bool {
        choice.unwrap_or_default() == self.choice
    }

    /// What is known of the message as a whole. The first time counts; anything that comes before it is said after it.
    pub(crate) fn begin(&mut self, metadata: Metadata) {
        if !std::mem::replace(&mut self.begun, true) {
            let provider = metadata.provider.or_else(|| Some(self.provider.to_owned()));
            self.events.push(Event::Begin(Metadata { provider, ..metadata }));
        }
    }

    /// Whether the message has begun.
    pub(crate) const fn has_begun(&self) -> bool {
        self.begun
    }

    /// The index of a new chunk. Indexes follow the order in which they are asked for.
    pub(crate) fn new_chunk(&mut self) -> u32 {
        let index = self.next_chunk;
        self.next_chunk = index.saturating_add(1);
        index
    }

    /// A piece of a chunk.
    pub(crate) fn delta(&mut self, chunk_index: u32, chunk: impl Into<Chunk>) {
        self.begin(Metadata::default());
        self.events.push(Event::Delta { chunk_index, chunk: chunk.into() });
    }

    /// A chunk that comes whole.
    pub(crate) fn chunk(&mut self, chunk: impl Into<Chunk>) {
        let index = self.new_chunk();
        self.delta(index, chunk);
    }

    /// The generation failed. What comes after it is taken all the same.
    pub(crate) fn fail(&mut self, error: Body) {
        self.failed = true;
        self.chunk(error);
    }

    /// Why the model stopped, in the provider's word. The last word counts.
    pub(crate) fn stop(&mut self, word: &str) {
        let known = self.reasons.iter().find(|(known, _)| *known == word).map(|(_, reason)| reason.clone());
        self.reason = known.or_else(|| FinishReason::given(word)).or(self.reason.take());
    }

    /// Token counts. The last ones count: some providers count on while they stream.
    pub(crate) fn usage(&mut self, usage: &RawValue) {
        self.usage = json(usage).or(self.usage.take());
    }

    /// The provider has said that this is all.
    pub(crate) const fn complete(&mut self) {
        self.complete = true;
    }

    /// Notes that so many bytes are kept until the end.
    pub(crate) const fn hold(&mut self, bytes: usize) {
        self.held = self.held.saturating_add(bytes);
    }

    /// Keeps a field that no other place was found for: it becomes an opaque chunk at the end. Of a stream, all its
    /// values: arrays and strings joined, others as an array.
    pub(crate) fn keep(&mut self, name: &str, raw: &RawValue) {
        let Some(value) = json(raw).filter(|_| !is_empty(raw)) else { return };
        let at = self.unknown_at.get(name).copied().unwrap_or_else(|| {
            self.unknown_at.insert(name.to_owned(), self.unknown.len());
            self.unknown.push((name.to_owned(), Vec::new()));
            self.unknown.len() - 1
        });
        if let Some((_, values)) = self.unknown.get_mut(at)
            && values.last() != Some(&value)
        {
            self.held = self.held.saturating_add(value.as_str().len());
            values.push(value);
        }
    }

    /// What was found since the last time.
    pub(crate) fn take(&mut self) -> Result<Vec<Event>> {
        if self.held > PENDING {
            return Err(too_large("what an answer's end waits for"));
        }
        Ok(std::mem::take(&mut self.events))
    }

    /// The end.
    pub(crate) fn finish(mut self) -> Vec<Event> {
        self.begin(Metadata::default());
        for (kind, values) in std::mem::take(&mut self.unknown) {
            if let Some(json) = joined(values) {
                self.chunk(Body::Opaque { provider: self.provider.to_owned(), kind, json });
            }
        }
        let reason = match self.reason {
            _ if self.failed => Some(FinishReason::Error),
            None if !self.complete => Some(FinishReason::Interrupted),
            reason => reason,
        };
        self.events.push(Event::Finish { reason, usage: self.usage });
        self.events
    }
}

/// The values of a field that came in pieces, as one.
fn joined(mut values: Vec<Json>) -> Option<Json> {
    if values.len() < 2 {
        return values.pop();
    }
    let strings: Option<Vec<String>> = values.iter().map(|value| serde_json::from_str(value.as_str()).ok()).collect();
    if let Some(strings) = strings {
        return Json::new(serde_json::to_string(&strings.concat()).unwrap_or_default()).ok();
    }
    let array = |value: &Json| value.as_str().strip_prefix('[')?.strip_suffix(']').map(str::to_owned);
    let items: Option<Vec<String>> = values.iter().map(array).collect();
    let items = items.unwrap_or_else(|| values.iter().map(ToString::to_string).collect());
    Json::new(format!("[{}]", items.join(","))).ok()
}

/// What a provider's bytes say.
///
/// An answer is one [`Event::Begin`], any number of deltas, and, once the bytes have ended, one [`Event::Finish`].
/// [`MessageWriter::ingest`](crate::MessageWriter::ingest) takes them as they are.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// What is known of the message as a whole: model, provider, the provider's id; other fields in `extra`.
    Begin(Metadata),
    /// A piece of a chunk, or a whole one: what [`MessageWriter::push`](crate::MessageWriter::push) takes.
    Delta {
        /// The chunk's index in the message, in order of first appearance.
        chunk_index: u32,
        /// The piece.
        chunk: Chunk,
    },
    /// The end.
    Finish {
        /// Why the model stopped: `error` if an error came; `interrupted` if the bytes ended before the answer did.
        reason: Option<FinishReason>,
        /// Token counts, as the provider wrote them.
        usage: Option<Json>,
    },
}

/// What a wire's JSON says.
pub(crate) trait Decode: fmt::Debug + Send {
    /// Takes an object: a whole answer, or an event of a stream, whose name may be empty. Takes the fields that it knows
    /// out of `fields`. False: it knows nothing of such an object. An `error` field may be left for the caller.
    fn take(&mut self, event: &str, fields: &mut Fields<'_>, answer: &mut Answer) -> bool;

    /// Says what was held back until the end.
    fn finish(&mut self, answer: &mut Answer);
}
