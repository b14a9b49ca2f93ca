//! One call of a model, from its request to the end of its answer, as it is stored.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, StatusCode};
use serde_json::Value;
use uuid::Uuid;

use super::around::{self, About};
use super::book::{self, Book, End, State};
use super::place::{FIELD, Found, Placed, Request};
use super::scope::Scope;
use super::turns::Turns;
use crate::log::AppendOptions;
use crate::log::reading::PageSize;
use crate::model::{Body, Chunk, ConversationId, FinishReason, Json, Metadata, Role};
use crate::provider::{Decoder, Event, parse};
use crate::server::app::App;
use crate::server::proxy::exchange::{Asked, Captured, Ended};
use crate::server::refusal::Refusal;
use crate::store::{Begun, MessageWriter};

/// The most bytes of an error's body that are read.
const ERROR_BYTES: usize = 64 * 1024;
/// The most bytes of an error's words that are kept in the book.
const WORDS: usize = 1_000;
/// The field of an answer's metadata that says how the call ended.
const END_FIELD: &str = "convo_end";

/// What came of looking for a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placing {
    Done,
    /// An answer that the request may echo is still being stored.
    Wait,
}

#[derive(Debug)]
pub(super) struct Call {
    app: Arc<App>,
    asked: Asked,
    begun: Instant,
    placed: Option<Placed>,
    /// Why nothing more is stored.
    unrecorded: Option<State>,
    about: Option<Json>,
    head: Option<Head>,
    decoder: Option<Decoder>,
    writer: Option<MessageWriter>,
    /// What the provider says of the message as a whole: it is stored with the end.
    said: Option<Metadata>,
    /// The body of an error.
    error: Vec<u8>,
    has_left: bool,
    message: Option<u64>,
}

#[derive(Debug)]
struct Head {
    status: StatusCode,
    waited: Duration,
    request_id: Option<String>,
    is_encoded: bool,
}

impl Call {
    pub(super) fn new(app: &Arc<App>, asked: Asked) -> Self {
        Self {
            app: Arc::clone(app),
            begun: Instant::now(),
            placed: None,
            unrecorded: None,
            about: None,
            head: None,
            decoder: None,
            writer: None,
            said: None,
            error: Vec::new(),
            has_left: false,
            message: None,
            asked,
        }
    }

    pub(super) fn is_placed(&self) -> bool {
        self.placed.is_some()
    }

    fn exchange(&self) -> Uuid {
        self.asked.id
    }

    /// Finds the place of the request, and stores what of it is not stored.
    pub(super) fn place(&mut self, may_wait: bool) -> Result<Placing, Refusal> {
        let app = Arc::clone(&self.app);
        let owner = self.asked.caller.owner.clone();
        let book = Book::open(&app.store, &owner)?;
        let body = match &self.asked.body {
            Captured::Whole(body) => body.clone(),
            Captured::TooLarge => return self.leave_out(&book, State::TooLarge, None),
            Captured::Cut => return self.leave_out(&book, State::Cut, None),
        };
        let text = String::from_utf8_lossy(&body);
        let parsed = match parse(self.asked.target, &text) {
            Ok(parsed) => parsed,
            Err(error) => return self.leave_out(&book, State::Unreadable, Some(error.to_string())),
        };
        let request: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        let wire = self.asked.target.wire().name;
        let scope = Scope::of(&book.key, &self.asked.upstream, wire, &self.asked.headers, &request);
        // What comes from other fields than the list of messages surrounds them.
        let listed = parsed.messages.into_iter().zip(&parsed.places);
        let listed = listed.filter(|(message, place)| place.items.is_some() || message.role != Role::System);
        let skips = if wire == "openai-chat" { skips_fields } else { skips_nothing };
        let turns = Turns::of(&book.key, listed.map(|(message, _)| message).collect(), skips);
        let request = Request { book: &book, turns: &turns, scope: &scope, exchange: self.exchange(), skips, may_wait };
        let found = {
            // Two requests of one scope do not look at the same time.
            let _alone = self.app.appending.alone(ConversationId::from_bytes(scope.digest));
            request.place()?
        };
        let Found::Placed(placed) = found else { return Ok(Placing::Wait) };
        self.about = Some(self.about(&book, &text, &placed)?);
        self.placed = Some(*placed);
        Ok(Placing::Done)
    }

    fn leave_out(&mut self, book: &Book<'_>, state: State, error: Option<String>) -> Result<Placing, Refusal> {
        self.unrecorded = Some(state);
        let end = End { state, status: None, error, conversation: None, message: None };
        book.end(self.exchange(), &end, None, None)?;
        Ok(Placing::Done)
    }

    fn about(&self, book: &Book<'_>, text: &str, placed: &Placed) -> Result<Json, Refusal> {
        let entry = &placed.entry;
        let before = match entry.answer_before {
            None => None,
            Some(index) => {
                let size = PageSize { limit: 1, bytes: 0, shows_hidden: true };
                let (messages, _) = book.store.page(&book.own(entry.conversation), index, size)?;
                let stored = messages.into_iter().find(|stored| stored.index == index);
                let about = stored.and_then(|stored| stored.message.metadata.extra.get(FIELD).cloned());
                about.and_then(|about| serde_json::from_str::<About>(about.as_str()).ok()).map(|about| (index, about))
            }
        };
        let fields = Json::fields(text).unwrap_or_default();
        let messages = fields.iter().find(|(name, _)| ["messages", "input", "contents"].contains(&name.as_str()));
        let about = About {
            exchange: self.exchange(),
            upstream: self.asked.upstream.clone(),
            wire: self.asked.target.to_string(),
            path: self.asked.path.clone(),
            query: self.asked.query.clone(),
            how: placed.how.as_str().to_owned(),
            request: book::hex::encode(&book.key.digest([text.as_bytes()])),
            request_bytes: text.len() as u64,
            rewritten: messages.filter(|_| placed.is_rewritten).map(|(_, raw)| (*raw).to_owned()),
            headers: around::headers(&self.asked.headers),
            fields: around::fields(&book.key, &fields, before.as_ref().map(|(at, about)| (*at, &about.fields))),
        };
        Ok(book::json(&about)?)
    }

    /// Takes the answer's head.
    pub(super) fn head(&mut self, status: StatusCode, headers: &HeaderMap, waited: Duration) {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let request_id = ["request-id", "x-request-id", "x-amzn-requestid"].into_iter().find_map(text);
        let is_encoded = text("content-encoding").is_some_and(|encoding| encoding != "identity");
        if is_encoded && status.is_success() {
            self.unrecorded.get_or_insert(State::Unreadable);
        } else if status.is_success() {
            self.decoder = Some(Decoder::new(self.asked.target));
        }
        self.head = Some(Head { status, waited, request_id, is_encoded });
    }

    /// The client has gone.
    pub(super) const fn left(&mut self) {
        self.has_left = true;
    }

    /// The store failed: nothing more is stored.
    pub(super) fn store_failed(&mut self) {
        self.unrecorded = Some(State::StoreFailed);
        self.decoder = None;
        self.writer = None;
    }

    /// Takes a piece of the answer.
    pub(super) fn take(&mut self, piece: &[u8]) -> Result<(), Refusal> {
        if self.unrecorded.is_some() {
            return Ok(());
        }
        let Some(decoder) = &mut self.decoder else {
            if self.head.as_ref().is_some_and(|head| head.is_encoded) {
                return Ok(());
            }
            let left = ERROR_BYTES.saturating_sub(self.error.len());
            self.error.extend_from_slice(piece.get(..left.min(piece.len())).unwrap_or_default());
            return Ok(());
        };
        let events = decoder.push(piece)?;
        self.store(events)
    }

    fn store(&mut self, events: Vec<Event>) -> Result<(), Refusal> {
        for event in events {
            match event {
                // A message begins with its first word: an answer without any is none.
                Event::Begin(metadata) => self.said = Some(metadata),
                Event::Delta { chunk_index, chunk } => {
                    self.begin()?;
                    if let Some(writer) = &mut self.writer {
                        writer.push(chunk_index, chunk)?;
                    }
                }
                finish @ Event::Finish { .. } => {
                    if let Some(mut writer) = self.writer.take() {
                        let said = self.said.take().unwrap_or_default();
                        writer.ingest([Event::Begin(self.end_of(said)), finish])?;
                    }
                }
            }
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<(), Refusal> {
        let Some(placed) = self.placed.as_ref().filter(|_| self.message.is_none()) else { return Ok(()) };
        let book = Book::open(&self.app.store, &self.asked.caller.owner)?;
        let said = self.said.as_ref();
        let mut metadata = Metadata {
            model: said.and_then(|said| said.model.clone()),
            provider: said.and_then(|said| said.provider.clone()),
            // What the answer is found by: the provider's own id comes with the end.
            id: Some(self.exchange().to_string()),
            ..Metadata::default()
        };
        if let Some(about) = self.about.take() {
            metadata.extra.push(FIELD, about);
        }
        let name = book.own(placed.entry.conversation);
        match self.app.store.begin_with(&name, Role::Assistant, metadata, &AppendOptions::new())? {
            Begun::Writer(writer) => {
                self.message = Some(writer.message_index());
                self.writer = Some(writer);
                Ok(())
            }
            Begun::Duplicate(_) => Err(Refusal::internal("a begin without a key was answered as a repetition")),
        }
    }

    /// What is known at the answer's end.
    fn end_of(&self, mut said: Metadata) -> Metadata {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let head = self.head.as_ref();
        let end = serde_json::json!({
            "status": head.map(|head| head.status.as_u16()),
            "request_id": head.and_then(|head| head.request_id.as_deref()),
            "waited_ms": head.map(|head| milliseconds(head.waited)),
            "total_ms": milliseconds(self.begun.elapsed()),
            "delivered": !self.has_left,
        });
        if let Ok(end) = book::json(&end) {
            said.extra.push(END_FIELD, end);
        }
        said
    }

    /// Stores the end.
    pub(super) fn finish(mut self, ended: Ended, is_behind: bool) -> Result<(), Refusal> {
        self.has_left |= ended == Ended::ClientGone;
        let response = self.said.as_ref().and_then(|said| said.id.clone());
        let mut reason = None;
        if let Some(decoder) = self.decoder.take().filter(|_| self.unrecorded.is_none()) {
            let mut events = decoder.finish();
            for event in &mut events {
                if let Event::Finish { reason: said, .. } = event {
                    if is_behind {
                        *said = Some(FinishReason::Interrupted);
                    }
                    reason.clone_from(said);
                }
            }
            if let Err(refusal) = self.store(events) {
                self.store_failed();
                self.note(State::StoreFailed, None, response.as_deref())?;
                return Err(refusal);
            }
        }
        let status = self.head.as_ref().map(|head| head.status);
        let state = match (self.unrecorded, status) {
            (Some(State::TooLarge | State::Cut), _) => return Ok(()),
            (Some(unrecorded), _) => unrecorded,
            (None, Some(status)) if !status.is_success() => State::Failed,
            (None, _) if is_behind => State::Behind,
            (None, None) => State::Failed,
            (None, Some(_)) => match reason {
                Some(FinishReason::Error) => State::Failed,
                Some(FinishReason::Interrupted) => State::Cut,
                _ if self.message.is_none() => State::Cut,
                _ => State::Complete,
            },
        };
        let words = (!self.error.is_empty()).then(|| self.words());
        self.note(state, words, response.as_deref())
    }

    fn note(&self, state: State, error: Option<String>, response: Option<&str>) -> Result<(), Refusal> {
        let book = Book::open(&self.app.store, &self.asked.caller.owner)?;
        let end = End {
            state,
            status: self.head.as_ref().map(|head| head.status.as_u16()),
            error,
            conversation: self.placed.as_ref().map(|placed| placed.entry.conversation),
            message: self.message,
        };
        book.end(self.exchange(), &end, response, self.placed.as_ref().map(|placed| &placed.entry))?;
        Ok(())
    }

    /// The words of an error in place of an answer.
    fn words(&self) -> String {
        let mut decoder = Decoder::new(self.asked.target);
        let mut events = decoder.push(&self.error).unwrap_or_default();
        events.extend(decoder.finish());
        let said = events.into_iter().find_map(|event| match event {
            Event::Delta { chunk: Chunk { body: Body::Error { message, .. }, .. }, .. } => Some(message),
            _ => None,
        });
        let words = said.unwrap_or_else(|| String::from_utf8_lossy(&self.error).into_owned());
        words.chars().take(WORDS).collect()
    }
}

/// On most wires what is unknown is a block of its own.
const fn skips_nothing(_: Role, _: &Chunk) -> bool {
    false
}

/// In a chat, an unknown field of the model's message is a chunk: clients leave out and add such fields.
fn skips_fields(role: Role, chunk: &Chunk) -> bool {
    role == Role::Assistant && matches!(chunk.body, Body::Opaque { .. })
}
