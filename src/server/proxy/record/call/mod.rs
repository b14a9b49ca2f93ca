//! One call of a model, as it is stored: its request here, its answer in `answer`.

mod answer;

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::http::header::CONTENT_ENCODING;
use serde_json::Value;
use uuid::Uuid;

pub(super) use self::answer::Answer;
use super::around::{self, About, Rewritten};
use super::book::{self, Book, End, Entry, State};
use super::place::Found;
use super::plan::{Placed, Request};
use super::recorded;
use super::scope::{Around, Elsewhere, Scope};
use super::sent::Requests;
use super::turns::Turns;
use crate::error::Error;
use crate::model::{Body, Chunk, ConversationId, Json, Role};
use crate::provider::{Target, parse};
use crate::server::app::App;
use crate::server::body::values;
use crate::server::config::WithoutSession;
use crate::server::ledger::{Room, metered};
use crate::server::proxy::exchange::{Asked, Captured};
use crate::server::refusal::Refusal;
use crate::server::upstream::Coding;
use crate::store::Store;

/// A value of a request, and a byte of it, as it is parsed, compared and stored: a value is written with two bytes.
const VALUE: usize = 1_024;
const PARSED: usize = 4;
/// A request of Responses that asks nothing.
const NO_INPUT: &str = r#"{"input":[]}"#;
/// The most choices of one answer that are stored.
const CHOICES: u64 = 16;

/// Where the answer of a call goes.
#[derive(Debug)]
pub(super) enum Destination {
    /// After its request, which is stored.
    Request { placed: Box<Placed>, about: Json, choices: u64, is_background: bool },
    /// It is the answer of an earlier call, and goes in the place of what that has of it.
    Earlier(Box<Placed>),
    /// It is the answer of an earlier call that has all of it, or is not known.
    Fetched,
    /// Nothing of the call is stored but how it ended: this.
    Nowhere(State),
}

/// A call, and its request until that is stored.
#[derive(Debug)]
pub(super) struct Call {
    app: Arc<App>,
    /// What it reads of the store, and what of its answer waits to be stored.
    pub(super) room: Arc<Room>,
    /// The store, whose reads count as what this call holds.
    store: Store,
    asked: Asked,
    /// Why its request cannot be decoded.
    undecoded: Option<String>,
}

impl Call {
    pub(super) fn new(app: &Arc<App>, asked: Asked) -> Self {
        let room = Arc::new(app.ledger.room(&asked.caller.owner));
        let store = metered(&app.store, &room);
        Self { app: Arc::clone(app), room, store, asked, undecoded: None }
    }

    pub(super) fn owner(&self) -> &str {
        &self.asked.caller.owner
    }

    pub(super) fn exchange(&self) -> Uuid {
        self.asked.id
    }

    pub(super) fn upstream(&self) -> &str {
        &self.asked.upstream
    }

    pub(super) fn is_encoded(&self) -> bool {
        self.asked.headers.contains_key(CONTENT_ENCODING)
    }

    /// Decodes its request, if the client encoded it.
    pub(super) fn decode(&mut self) {
        let Captured::Whole(body) = &self.asked.body else { return };
        let name = self.asked.headers.get(CONTENT_ENCODING).map(|name| name.to_str().unwrap_or("?"));
        let decoded = match Coding::of(name) {
            Some(Coding::Plain) => return,
            Some(mut coding) => coding.decode(body, &self.room).map_err(|error| error.to_string()),
            None => Err(format!("content-encoding: {}", name.unwrap_or_default())),
        };
        match decoded {
            Ok(decoded) => self.asked.body = Captured::Whole(self.room.hold(decoded.into())),
            // There is no room for what it becomes.
            Err(_) if self.room.take_wanted().is_some() => self.leave_unread(),
            Err(error) => self.undecoded = Some(error),
        }
    }

    /// Bytes that its request takes while it is parsed.
    pub(super) fn parsing(&self) -> usize {
        let Captured::Whole(body) = &self.asked.body else { return 0 };
        values(body).saturating_mul(VALUE).saturating_add(body.len().saturating_mul(PARSED))
    }

    /// Its request is not read: there is no room for what that takes.
    pub(super) fn leave_unread(&mut self) {
        self.asked.body = Captured::TooLarge;
    }

    /// Finds the place of the request, and stores what of it is not stored. `None`: an answer that it may echo is still being
    /// stored.
    pub(super) fn place(&self, may_wait: bool) -> Result<Option<Destination>, Refusal> {
        let (app, owner) = (&self.app, self.owner());
        let book = Book::open(&self.store, &app.exchanges, owner)?;
        if let Some(response) = &self.asked.fetched {
            // Asked before the look into the book, which names a response at the end of its call.
            let has_others = app.exchanges.has_others(owner, self.exchange());
            let entry = book.response(response)?;
            let of_own = |entry: &Entry| book.own(entry.conversation);
            let runs = |entry: &Entry| app.exchanges.is_running(owner, entry.exchange);
            let may_come = may_wait && entry.as_ref().map_or(has_others, runs);
            if let Some(entry) = entry
                && recorded::awaited(&book, &of_own(&entry), entry.exchange)?.is_some()
            {
                let placed = Placed { entry, asked: [0; 16], first: 0, rewritten: Vec::new() };
                return Ok(Some(Destination::Earlier(Box::new(placed))));
            }
            return Ok((!may_come).then_some(Destination::Fetched));
        }
        let body = match &self.asked.body {
            Captured::Whole(body) => body.clone(),
            Captured::TooLarge => return self.leave_out(&book, State::TooLarge, None),
            Captured::Cut => return self.leave_out(&book, State::Cut, None),
        };
        if let Some(error) = &self.undecoded {
            return self.leave_out(&book, State::Unreadable, Some(error.clone()));
        }
        let text = String::from_utf8_lossy(&body);
        let request_value: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        let wire = self.asked.target.wire().name;
        // What a template or the provider has need not be asked again.
        let has = |field: &str| request_value.get(field).is_some_and(|value| !value.is_null());
        let is_elsewhere = ["prompt", "previous_response_id", "conversation"].into_iter().any(has);
        let lacks_input = is_elsewhere && !has("input") && wire == Target::OPENAI_RESPONSES.wire().name;
        let parsed = match parse(self.asked.target, if lacks_input { NO_INPUT } else { &text }) {
            Ok(parsed) => parsed,
            Err(error) => return self.leave_out(&book, State::Unreadable, Some(error.to_string())),
        };
        // Some wires have the model in the path.
        let model = request_value.get("model").and_then(Value::as_str).unwrap_or(&self.asked.path);
        let account = book.key.digest(self.asked.account.bytes());
        let around = Around { upstream: &self.asked.upstream, wire, model, account };
        let scope = Scope::of(&book.key, &around, &self.asked.headers, &request_value);
        let (is_named, without) = (scope.is_named(), self.asked.without_session);
        if !is_named && without == WithoutSession::None {
            return self.leave_out(&book, State::NoSession, None);
        }
        // What comes from other fields than the list of messages surrounds them.
        let listed = parsed.messages.into_iter().zip(&parsed.places);
        let listed = listed.filter(|(message, place)| place.items.is_some() || message.role != Role::System);
        let (messages, places): (Vec<_>, Vec<_>) = listed.unzip();
        let skips = if wire == "openai-chat" { skips_fields } else { skips_nothing };
        let before = match &scope.kept_elsewhere {
            Some(Elsewhere::Response(id)) => Some(id.clone()),
            Some(Elsewhere::Conversation) | None => None,
        };
        let template = request_value.get("prompt").filter(|_| lacks_input).map(Value::to_string);
        let elsewhere: Vec<String> = before.into_iter().chain(template).collect();
        let turns = Turns::of(&book.key, &elsewhere, !scope.is_named(), messages, skips);
        let request = Request {
            book: &book,
            turns: &turns,
            scope: &scope,
            exchange: self.exchange(),
            skips,
            may_wait,
            is_alone: !is_named && without == WithoutSession::New,
            exchanges: &app.exchanges,
            room: &self.room,
        };
        let found = {
            // Two requests of one scope do not look at the same time.
            let _alone = app.appending.alone(ConversationId::from_bytes(scope.digest));
            request.place()?
        };
        let Found::Placed(placed) = found else { return Ok(None) };
        let wanted =
            ["/n", "/generationConfig/candidateCount"].iter().find_map(|at| request_value.pointer(at)?.as_u64());
        let places = placed.rewritten.iter().filter_map(|at| places.get(*at));
        let items: BTreeSet<usize> = places.filter_map(|place| place.items.clone()).flatten().collect();
        Ok(Some(Destination::Request {
            about: self.about(&book, &text, &placed, &items)?,
            placed,
            choices: wanted.unwrap_or(1).clamp(1, CHOICES),
            is_background: request_value.get("background") == Some(&Value::Bool(true)),
        }))
    }

    fn leave_out(&self, book: &Book<'_>, state: State, error: Option<String>) -> Result<Option<Destination>, Refusal> {
        book.end(self.exchange(), &End { error, ..End::of(state) }, &[])?;
        Ok(Some(Destination::Nowhere(state)))
    }

    /// `rewritten`: positions of items in the request's list.
    fn about(
        &self,
        book: &Book<'_>,
        text: &str,
        placed: &Placed,
        rewritten: &BTreeSet<usize>,
    ) -> Result<Json, Refusal> {
        let entry = &placed.entry;
        let before = match entry.answer_before {
            None => None,
            Some(index) => {
                let stored = if_it_fits(book.message(&book.own(entry.conversation), index))?;
                stored.as_ref().and_then(About::of).map(|about| (index, about))
            }
        };
        let fields = Json::fields(text).unwrap_or_default();
        let before = before.as_ref();
        let mut about = About {
            exchange: self.exchange(),
            upstream: self.asked.upstream.clone(),
            wire: self.asked.target.to_string(),
            path: self.asked.path.clone(),
            query: self.asked.query.clone(),
            how: entry.how,
            request: book::hex::encode(&book.key.digest([text.as_bytes()])),
            request_bytes: text.len() as u64,
            rewritten: Rewritten::of(
                &book.key,
                &fields,
                rewritten,
                before.and_then(|(at, about)| Some((*at, about.rewritten.as_ref()?))),
            ),
            headers: around::headers(&self.asked.headers),
            fields: around::fields(&book.key, &fields, before.map(|(at, about)| (*at, &about.fields))),
            sent: None,
        };
        // Bytes that are no text were replaced in it.
        if matches!(&self.asked.body, Captured::Whole(body) if *body == text) {
            let room = self.app.ledger.room(&self.asked.caller.owner);
            let (name, recent) = (book.own(entry.conversation), Some(&self.app.exchanges.requests));
            let requests = Requests { book, name, room: &room, recent };
            let rewritten = about.rewritten.take();
            about.rewritten = rewritten.as_ref().map(Rewritten::positions);
            let before = before.map(|(at, about)| (*at, about));
            about.sent = if_it_fits(requests.keep(text, &fields, &about, before, placed))?;
            if about.sent.is_none() {
                about.rewritten = rewritten;
            }
        }
        Ok(book::json(&about)?)
    }
}

/// What is read to be compared. The request is stored already: without room, it is compared with nothing.
fn if_it_fits<T>(read: crate::error::Result<Option<T>>) -> crate::error::Result<Option<T>> {
    match read {
        Err(Error::Busy(_) | Error::LimitExceeded { .. }) => Ok(None),
        read => read,
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
