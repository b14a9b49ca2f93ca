//! A provider's answer, whole or as it streams, to chunks.
//!
//! [`Decoder`] knows how bytes are framed. The wire's own [`Decode`] knows what the JSON in them says. To add a wire: an
//! implementation of that, in the wire's folder, its row's `decode`, and its folder in `tests/fixtures/providers/`.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde_json::value::RawValue;

use super::answer::{Answer, Decode, Event};
use super::framing::{Frame, Framing};
use super::surrogates::SplitPairs;
use super::{forms, framing};
use crate::error::Result;
use crate::json::fields::Fields;
use crate::model::{Body, Chunk, Message};
use crate::provider::WIRES;
use crate::provider::target::{Target, Wire};

/// Turns a provider's bytes into events: of a whole answer, of server-sent events, of lines of JSON. It finds out which.
///
/// It does no I/O: it is fed bytes, split anywhere, and holds at most what one event needs; more than 64 MiB is an error.
/// No bytes make it panic. Invalid UTF-8 and lone surrogate escapes become U+FFFD. If two deltas of one text have one
/// half of a pair each, the pair becomes one character.
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
    pairs: SplitPairs,
    /// Text that is no JSON, since the last object.
    stray: String,
    target: Target,
    /// Whose answer it is, once an object has shown it.
    whose: Option<&'static Wire>,
}

impl Decoder {
    /// For the answers of a target.
    #[must_use]
    pub fn new(target: Target) -> Self {
        let wire = target.wire();
        let provider = (wire.provider)(target);
        Self {
            framing: Framing::default(),
            wire: (wire.decode)(provider),
            answer: Answer::new(provider, wire.reasons),
            pairs: SplitPairs::new(&wire.growing),
            stray: String::new(),
            target,
            whose: None,
        }
    }

    /// As [`Decoder::new`], for one choice of answers that may have several.
    #[cfg(feature = "server")]
    pub(crate) fn of_choice(target: Target, choice: u64) -> Self {
        let mut decoder = Self::new(target);
        decoder.answer = decoder.answer.of_choice(choice);
        decoder
    }

    /// The wire that the answer is of, if that is clearly another one than the decoder's: its events are then not worth
    /// keeping. Known once the first object of the answer was pushed.
    ///
    /// ```
    /// use conversation_store::provider::{Decoder, Target};
    ///
    /// let mut decoder = Decoder::new(Target::OPENAI_CHAT);
    /// decoder.push(b"data: {\"type\":\"message_start\",\"message\":{\"content\":[]}}\n\n")?;
    /// assert_eq!(decoder.other_wire().map(|wire| wire.name), Some("anthropic"));
    /// # Ok::<(), conversation_store::Error>(())
    /// ```
    #[must_use]
    pub fn other_wire(&self) -> Option<&'static Wire> {
        self.whose.filter(|wire| wire.name != self.target.wire().name)
    }

    /// How many bytes wait for the rest of their event.
    #[cfg(feature = "server")]
    pub(crate) fn pending(&self) -> usize {
        self.framing.pending()
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
        let rest: Vec<_> = self.pairs.take_rest().collect();
        for json in rest {
            self.frame(Frame::Object { name: String::new(), json });
        }
        self.wire.finish(&mut self.answer);
        self.answer.finish()
    }

    fn frame(&mut self, frame: Frame) {
        match frame {
            Frame::Done => self.answer.complete(),
            Frame::Stray(text) => {
                if self.stray.len() < framing::REPORTED {
                    self.stray.push_str(&text);
                    self.stray.push('\n');
                }
            }
            Frame::Object { name, json } => {
                self.end_stray();
                let json = self.pairs.join(&json);
                match serde_json::from_str(&json) {
                    Ok(object) => self.object(&name, object),
                    Err(error) => self.no_json(&format!("{error}: {}", framing::beginning(json.as_bytes()))),
                }
            }
        }
    }

    fn object(&mut self, event: &str, object: &RawValue) {
        let Some(mut fields) = Fields::of(object) else { return };
        if self.whose.is_none() {
            // Its own wire comes first: what servers add to it may look like another's.
            let wires = std::iter::once(self.target.wire()).chain(WIRES.iter().copied());
            self.whose = wires.into_iter().find(|wire| (wire.is_of_answer)(event, &fields));
        }
        let known = self.wire.take(event, &mut fields, &mut self.answer);
        let error = forms::take(event, &mut fields);
        let error = if known { error } else { error.or_else(|| forms::worded(&mut fields)) };
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

/// The provider whose thinking is a target's own.
#[cfg(feature = "server")]
pub(crate) fn provider_of(target: Target) -> &'static str {
    (target.wire().provider)(target)
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
/// As [`Decoder::push`]. An answer that is an error, or no answer at all, is not an error here: the message says so.
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
