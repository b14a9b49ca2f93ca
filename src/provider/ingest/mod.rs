//! A provider's answer, whole or as it streams, to chunks.
//!
//! [`Decoder`] knows how bytes are framed; what the JSON in them says, the wire's own [`Decode`] knows. To add a wire: an
//! implementation of that, in the wire's folder, its row's `decode`, and its folder in `tests/fixtures/providers/`.

mod answer;
mod documents;
mod failure;
pub(super) mod fields;
mod framing;
mod halves;
mod sse;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use serde_json::value::RawValue;

use super::Target;
use crate::error::Result;
use crate::model::{Body, Chunk, FinishReason, Json, Message, Metadata};
pub(super) use answer::Answer;
use fields::Fields;
use framing::{Frame, Framing};
use halves::Halves;

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
pub(super) trait Decode: fmt::Debug + Send {
    /// Whose answers these are: the provider whose thinking is this target's own.
    fn provider(&self) -> &'static str;

    /// Takes an object: a whole answer, or an event of a stream, whose name may be empty. Takes the fields that it knows
    /// out of `fields`. False: it knows nothing of such an object. An `error` field may be left for the caller.
    fn take(&mut self, event: &str, fields: &mut Fields<'_>, answer: &mut Answer) -> bool;

    /// Says what was held back until the end.
    fn finish(&mut self, answer: &mut Answer);
}

/// Turns a provider's bytes into events: of a whole answer, of server-sent events, of lines of JSON. It finds out which.
///
/// It does no I/O: it is fed bytes, split anywhere, and holds at most what one event needs; more than 64 MiB is an error.
/// No bytes make it panic. What is no UTF-8, and lone surrogate escapes, become U+FFFD; a
/// pair of them that two deltas of one text share is one character.
///
/// What it does not know of an answer becomes a chunk of kind `opaque`. An error, in place of an answer or in the middle
/// of one, becomes an error chunk.
///
/// ```
/// use conversation_store::model::{Chunk, FinishReason};
/// use conversation_store::provider::{Decoder, Event, Target};
///
/// let mut decoder = Decoder::new(Target::OPENAI_CHAT);
/// let mut events = decoder.push(b"data: {\"choices\":[{\"delta\":{\"content\":\"Hel")?;
/// events.extend(decoder.push(b"lo\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")?);
/// events.extend(decoder.finish());
/// assert_eq!(events[1], Event::Delta { chunk_index: 0, chunk: Chunk::text("Hello") });
/// assert_eq!(events[2], Event::Finish { reason: Some(FinishReason::Stop), usage: None });
/// # Ok::<(), conversation_store::Error>(())
/// ```
#[derive(Debug)]
pub struct Decoder {
    framing: Framing,
    wire: Box<dyn Decode>,
    answer: Answer,
    halves: Halves,
    /// Text that is no JSON, since the last object.
    stray: String,
}

impl Decoder {
    /// For the answers of a target.
    #[must_use]
    pub fn new(target: Target) -> Self {
        let wire = (target.wire().decode)(target);
        let answer = Answer::new(wire.provider());
        Self { framing: Framing::default(), wire, answer, halves: Halves::default(), stray: String::new() }
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// `LimitExceeded` if more than 64 MiB wait for the rest of something.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>> {
        for frame in self.framing.push(bytes)? {
            self.frame(frame);
        }
        self.answer.take()
    }

    /// The bytes have ended. What was cut off in the middle of an event is dropped.
    #[must_use]
    pub fn finish(mut self) -> Vec<Event> {
        for frame in std::mem::take(&mut self.framing).finish() {
            self.frame(frame);
        }
        self.end_stray();
        for json in std::mem::take(&mut self.halves).finish() {
            self.frame(Frame::Object { name: String::new(), json });
        }
        self.wire.finish(&mut self.answer);
        self.answer.finish()
    }

    fn frame(&mut self, frame: Frame) {
        match frame {
            Frame::Done => self.answer.complete(),
            Frame::Stray(text) => {
                if self.stray.len() < framing::TOLD {
                    self.stray.push_str(&text);
                    self.stray.push('\n');
                }
            }
            Frame::Object { name, json } => {
                self.end_stray();
                let json = self.halves.join(&json);
                match serde_json::from_str(&json) {
                    Ok(object) => self.object(&name, object),
                    Err(error) => self.no_json(&format!("{error}: {}", framing::told(json.as_bytes()))),
                }
            }
        }
    }

    fn object(&mut self, event: &str, object: &RawValue) {
        let Some(mut fields) = Fields::of(object) else { return };
        let known = self.wire.take(event, &mut fields, &mut self.answer);
        let error = failure::take(event, &mut fields);
        let error = if known { error } else { error.or_else(|| failure::worded(&mut fields)) };
        match error {
            Some(error) => self.answer.fail(error),
            None if known => {}
            None => {
                let kind = fields.string("type").or_else(|| fields.string("object"));
                self.answer.keep(kind.as_deref().unwrap_or(event), object);
            }
        }
    }

    fn end_stray(&mut self) {
        let stray = std::mem::take(&mut self.stray);
        if !stray.is_empty() {
            self.no_json(stray.trim_end());
        }
    }

    fn no_json(&mut self, text: &str) {
        let message = format!("the answer holds what is no JSON: {text}");
        self.answer.fail(Body::Error { message, code: None });
    }
}

/// Decodes a whole answer, or a stream that was kept, to the message that it is.
///
/// ```
/// use conversation_store::model::{Chunk, FinishReason};
/// use conversation_store::provider::{Target, decode};
///
/// let body = br#"{"id":"chatcmpl-1","object":"chat.completion","model":"gpt-5","choices":[{"index":0,
///     "message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}]}"#;
/// let message = decode(Target::OPENAI_CHAT, body)?;
/// assert_eq!(message.chunks, [Chunk::text("Hello")]);
/// assert_eq!(message.finish_reason, Some(FinishReason::Stop));
/// assert_eq!(message.metadata.model.as_deref(), Some("gpt-5"));
/// # Ok::<(), conversation_store::Error>(())
/// ```
///
/// # Errors
/// As [`Decoder::push`]. That the answer is an error, or no answer at all, is no error: the message says so.
pub fn decode(target: Target, body: &[u8]) -> Result<Message> {
    let mut decoder = Decoder::new(target);
    let mut events = decoder.push(body)?;
    events.extend(decoder.finish());
    let mut message = Message::assistant([]);
    let mut chunks = BTreeMap::<u32, Chunk>::new();
    for event in events {
        match event {
            Event::Begin(metadata) => message.metadata = metadata,
            Event::Delta { chunk_index, chunk } => match chunks.entry(chunk_index) {
                Entry::Vacant(entry) => _ = entry.insert(chunk),
                Entry::Occupied(mut entry) => {
                    // A decoder says nothing twice: what it gives is what a writer takes.
                    let _ = entry.get_mut().push_fragment(chunk);
                }
            },
            Event::Finish { reason, usage } => (message.finish_reason, message.usage) = (reason, usage),
        }
    }
    message.chunks = chunks.into_values().collect();
    Ok(message)
}
