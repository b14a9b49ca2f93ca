//! What the model says in one choice of an answer, and its message in the store.

use uuid::Uuid;

use super::meaning::is_random;
use super::recorded::is_queued;
use crate::log::{AppendOptions, ExpectedHead};
use crate::model::{Body, FinishReason, Json, Metadata, Name, Role};
use crate::provider::{Decoder, Event, Target, TokenCounts};
use crate::server::proxy::exchange::Secrets;
use crate::server::refusal::Refusal;
use crate::store::{Begun, MessageWriter, QUEUED, Store};

/// A choice. Most answers have one.
#[derive(Debug)]
pub(super) struct Voice {
    /// What its message is found by: the exchange, or for a further choice an id of its own.
    pub(super) id: Uuid,
    decoder: Option<Decoder>,
    writer: Option<MessageWriter>,
    /// What the provider says of the message as a whole: it is stored with the end.
    said: Option<Metadata>,
    /// The provider's id of the answer.
    pub(super) response: Option<String>,
    /// The message, by its index.
    pub(super) message: Option<u64>,
    pub(super) reason: Option<FinishReason>,
    /// The model, as the provider names it.
    pub(super) model: Option<String>,
    /// The first call of a tool whose id is no other's.
    pub(super) called: Option<String>,
    pub(super) tokens: Option<TokenCounts>,
    /// Whether the provider may make it in the background: then an answer without words is one.
    may_be_queued: bool,
    /// Whether it is the first choice: what the whole call has taken is counted with that one.
    is_first: bool,
}

/// Where a choice is stored.
pub(super) struct Place<'a> {
    pub(super) store: &'a Store,
    pub(super) name: Name,
    pub(super) secrets: &'a Secrets,
    /// The model, if its answers do not name it.
    pub(super) model: &'a Option<String>,
    /// What is known of the request: a field of the message.
    pub(super) about: &'a mut dyn FnMut() -> Option<(&'static str, Json)>,
    /// Called with the index of the message when the message begins.
    pub(super) begun: &'a dyn Fn(u64),
    /// The conversation's last seq, if nothing may have been written since.
    pub(super) expected: Option<u64>,
    /// What is known at the end.
    pub(super) end: &'a dyn Fn() -> Option<(&'static str, Json)>,
}

impl Voice {
    pub(super) fn new(target: Target, choice: u64, id: Uuid) -> Self {
        let decoder = Some(Decoder::of_choice(target, choice));
        Self {
            id,
            decoder,
            writer: None,
            said: None,
            response: None,
            message: None,
            reason: None,
            model: None,
            called: None,
            tokens: None,
            may_be_queued: false,
            is_first: choice == 0,
        }
    }

    pub(super) fn in_the_background(self) -> Self {
        Self { may_be_queued: true, ..self }
    }

    /// Takes bytes of the answer: whether its message began with them.
    pub(super) fn take(&mut self, bytes: &[u8], place: &mut Place<'_>) -> Result<bool, Refusal> {
        let Some(decoder) = &mut self.decoder else { return Ok(false) };
        let events = decoder.push(bytes)?;
        self.store(events, place)
    }

    /// Takes the end of the bytes. `is_part`: some of them were left out.
    pub(super) fn finish(&mut self, is_part: bool, place: &mut Place<'_>) -> Result<bool, Refusal> {
        let Some(decoder) = self.decoder.take() else { return Ok(false) };
        let mut events = decoder.finish();
        for event in &mut events {
            if let Event::Finish { reason, usage } = event {
                usage.take_if(|_| !self.is_first);
                self.tokens = usage.as_ref().and_then(TokenCounts::of);
                if is_part {
                    *reason = Some(FinishReason::Interrupted);
                } else if self.may_be_queued && self.message.is_none() && self.response.is_some() {
                    *reason = Some(FinishReason::Other(QUEUED.to_owned()));
                }
                self.reason.clone_from(reason);
            }
        }
        self.store(events, place)
    }

    /// Bytes that wait for the rest of their event.
    pub(super) fn pending(&self) -> usize {
        self.decoder.as_ref().map_or(0, Decoder::pending)
    }

    /// Nothing more is stored.
    pub(super) fn drop_rest(&mut self) {
        self.decoder = None;
        self.writer = None;
    }

    fn store(&mut self, events: Vec<Event>, place: &mut Place<'_>) -> Result<bool, Refusal> {
        let mut begins = false;
        for event in events {
            match event {
                // A message begins with its first word. One that has ended without any begins with its end.
                Event::Begin(mut metadata) => {
                    metadata.model = metadata.model.or_else(|| place.model.clone());
                    self.response.clone_from(&metadata.id);
                    self.model.clone_from(&metadata.model);
                    self.said = Some(metadata);
                }
                Event::Delta { chunk_index, mut chunk } => {
                    place.secrets.take_out_of(&mut chunk.body);
                    if let Body::ToolCall { id, name, .. } = &chunk.body
                        && self.called.is_none()
                        && is_random(id, name)
                    {
                        self.called = Some(id.clone());
                    }
                    if self.message.is_none() {
                        self.begin(place)?;
                        begins = true;
                    }
                    if let Some(writer) = &mut self.writer {
                        writer.push(chunk_index, chunk)?;
                    }
                }
                finish @ Event::Finish { .. } => {
                    if is_queued(self.reason.as_ref()) || self.is_empty() {
                        self.begin(place)?;
                        begins = true;
                    }
                    if let Some(mut writer) = self.writer.take() {
                        let mut said = self.said.take().unwrap_or_default();
                        if let Some((name, end)) = (place.end)() {
                            said.extra.push(name, end);
                        }
                        writer.ingest([Event::Begin(said), finish])?;
                    }
                }
            }
        }
        Ok(begins)
    }

    /// Whether the answer has ended as answers do, and nothing was said.
    fn is_empty(&self) -> bool {
        let has_ended = |reason: &FinishReason| !matches!(reason, FinishReason::Interrupted | FinishReason::Error);
        self.is_first && self.message.is_none() && self.reason.as_ref().is_some_and(has_ended)
    }

    fn begin(&mut self, place: &mut Place<'_>) -> Result<(), Refusal> {
        let said = self.said.as_ref();
        let mut metadata = Metadata {
            model: said.map_or_else(|| place.model.clone(), |said| said.model.clone()),
            provider: said.and_then(|said| said.provider.clone()),
            // What the answer is found by: the provider's own id comes with the end.
            id: Some(self.id.to_string()),
            ..Metadata::default()
        };
        if let Some((name, about)) = (place.about)() {
            metadata.extra.push(name, about);
        }
        let mut options = AppendOptions::new();
        if let Some(seq) = place.expected {
            options = options.with_expected(ExpectedHead::At(seq));
        }
        match place.store.begin_with(&place.name, Role::Assistant, metadata, &options)? {
            Begun::Writer(writer) => {
                (place.begun)(writer.message_index());
                self.message = Some(writer.message_index());
                self.writer = Some(writer);
                Ok(())
            }
            Begun::Duplicate(_) => Err(Refusal::internal("a begin without a key was answered as a repetition")),
        }
    }
}
