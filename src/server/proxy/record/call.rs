//! One call of a model, from its request to the end of its answer, as it is stored.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::header::CONTENT_ENCODING;
use axum::http::{HeaderMap, StatusCode};
use serde_json::Value;
use uuid::Uuid;

use super::around::{self, About, END_FIELD, FIELD, Rewritten};
use super::book::{self, Book, End, Entry, State};
use super::passed_over;
use super::place::Found;
use super::plan::{Placed, Request};
use super::recorded::{self, Awaited};
use super::scope::{Elsewhere, Scope};
use super::sent::Requests;
use super::turns::Turns;
use super::voice::{Place, Voice};
use crate::error::Error;
use crate::model::{Body, Chunk, ConversationId, FinishReason, Json, Name, Role};
use crate::provider::{Decoder, Event, Target, parse};
use crate::server::app::App;
use crate::server::body::values;
use crate::server::config::WithoutSession;
use crate::server::ledger::{Room, metered};
use crate::server::lines::RECORDED;
use crate::server::proxy::exchange::{Asked, Captured, Ended};
use crate::server::refusal::Refusal;
use crate::server::upstream::Coding;
use crate::store::Store;

/// A value of a request, and a byte of it, as it is parsed, compared and stored: a value is written with two bytes.
const VALUE: usize = 1_024;
const PARSED: usize = 4;
/// A byte of an answer that waits for the rest of its event; and one that is taken: as it came, as JSON, as what that says, and
/// as a record.
const WAITING: usize = 2;
const TAKEN: usize = 6;
/// The most bytes of an error's body that are read.
const ERROR_BYTES: usize = 64 * 1024;
/// The most bytes of an error's words that are kept in the book.
const WORDS: usize = 1_000;
/// How often a fetched answer is stored again, where something else was written at the same time.
const RACES: usize = 5;
/// The most choices of one answer that are stored.
const CHOICES: u64 = 16;

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
    /// What it reads of the store, and what of its answer waits to be stored.
    pub(super) room: Arc<Room>,
    /// The store, whose reads count as what this call holds.
    store: Store,
    asked: Asked,
    begun: Instant,
    placed: Option<Placed>,
    /// What has come of an answer that is fetched, if it is to be stored; and the seq that its message must follow.
    fetched: Option<Vec<u8>>,
    expected: Option<u64>,
    is_background: bool,
    /// How many choices the request wants.
    choices: u64,
    /// Why its request cannot be decoded.
    undecoded: Option<String>,
    /// Why nothing more is stored.
    unrecorded: Option<State>,
    about: Option<Json>,
    head: Option<Head>,
    coding: Coding,
    /// The choices of the answer; none of an error.
    voices: Vec<Voice>,
    /// The body of an error, or why there is no answer.
    error: Vec<u8>,
    no_answer: Option<String>,
    has_left: bool,
    /// There was no room for what came: nothing after it is stored.
    pub(super) is_full: bool,
    /// What a repair changed of the request.
    report: Vec<String>,
}

#[derive(Debug)]
struct Head {
    status: StatusCode,
    waited: Duration,
    request_id: Option<String>,
}

impl Call {
    pub(super) fn new(app: &Arc<App>, asked: Asked) -> Self {
        let room = Arc::new(app.ledger.room(&asked.caller.owner));
        Self {
            app: Arc::clone(app),
            store: metered(&app.store, &room),
            room,
            begun: Instant::now(),
            placed: None,
            fetched: None,
            expected: None,
            is_background: false,
            choices: 1,
            undecoded: None,
            unrecorded: None,
            about: None,
            head: None,
            coding: Coding::Plain,
            voices: Vec::new(),
            error: Vec::new(),
            no_answer: None,
            has_left: false,
            is_full: false,
            report: Vec::new(),
            asked,
        }
    }

    /// Where the request is stored.
    pub(super) fn conversation(&self) -> Option<ConversationId> {
        self.placed.as_ref().map(|placed| placed.entry.conversation)
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

    /// Why nothing of it is stored, if that is so.
    pub(super) const fn unrecorded(&self) -> Option<State> {
        self.unrecorded
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

    fn pending(&self) -> usize {
        self.fetched.as_ref().map_or(0, Vec::len) + self.voices.iter().map(Voice::pending).sum::<usize>()
    }

    /// What it holds while it takes so many bytes of the answer. Each choice has them.
    pub(super) fn taking(&self, bytes: usize) -> usize {
        let copies = self.voices.len() + usize::from(self.fetched.is_some());
        bytes.saturating_mul(copies).saturating_add(self.pending()).saturating_mul(TAKEN)
    }

    /// What it holds until more comes.
    pub(super) fn waiting(&self) -> usize {
        self.pending().saturating_mul(WAITING)
    }

    /// Finds the place of the request, and stores what of it is not stored.
    pub(super) fn place(&mut self, may_wait: bool) -> Result<Placing, Refusal> {
        let app = Arc::clone(&self.app);
        let owner = self.asked.caller.owner.clone();
        let store = self.store.clone();
        let book = Book::open(&store, &app.exchanges, &owner)?;
        if let Some(response) = &self.asked.fetched {
            // Asked before the look into the book, which names a response at the end of its call.
            let has_others = app.exchanges.has_others(&owner, self.exchange());
            let entry = book.response(response)?;
            let of_own = |entry: &Entry| book.own(entry.conversation);
            let runs = |entry: &Entry| app.exchanges.is_running(&owner, entry.exchange);
            let may_come = may_wait && entry.as_ref().map_or(has_others, runs);
            if let Some(entry) = entry
                && recorded::awaited(&book, &of_own(&entry), entry.exchange)?.is_some()
            {
                self.fetched = Some(Vec::new());
                self.placed = Some(Placed { entry, asked: [0; 16], first: 0, rewritten: Vec::new() });
            } else if may_come {
                return Ok(Placing::Wait);
            }
            return Ok(Placing::Done);
        }
        let body = match &self.asked.body {
            Captured::Whole(body) => body.clone(),
            Captured::TooLarge => return self.leave_out(&book, State::TooLarge, None),
            Captured::Cut => return self.leave_out(&book, State::Cut, None),
        };
        if let Some(error) = self.undecoded.take() {
            return self.leave_out(&book, State::Unreadable, Some(error));
        }
        let text = String::from_utf8_lossy(&body);
        let parsed = match parse(self.asked.target, &text) {
            Ok(parsed) => parsed,
            Err(error) => return self.leave_out(&book, State::Unreadable, Some(error.to_string())),
        };
        let request_value: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        let wire = self.asked.target.wire().name;
        // Some wires have the model in the path.
        let model = request_value.get("model").and_then(Value::as_str).unwrap_or(&self.asked.path);
        let scope = Scope::of(&book.key, &self.asked.upstream, wire, model, &self.asked.headers, &request_value);
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
            Some(Elsewhere::Response(id)) => Some(id.as_str()),
            Some(Elsewhere::Conversation) | None => None,
        };
        let turns = Turns::of(&book.key, before, !scope.is_named(), messages, skips);
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
            let _alone = self.app.appending.alone(ConversationId::from_bytes(scope.digest));
            request.place()?
        };
        let Found::Placed(placed) = found else { return Ok(Placing::Wait) };
        let wanted =
            ["/n", "/generationConfig/candidateCount"].iter().find_map(|at| request_value.pointer(at)?.as_u64());
        self.choices = wanted.unwrap_or(1).clamp(1, CHOICES);
        self.is_background = request_value.get("background") == Some(&Value::Bool(true));
        let places = placed.rewritten.iter().filter_map(|at| places.get(*at));
        let items: BTreeSet<usize> = places.filter_map(|place| place.items.clone()).flatten().collect();
        self.about = Some(self.about(&book, &text, &placed, &items)?);
        // It is stored: nobody has to hold it as long as the answer takes.
        self.asked.body = Captured::Cut;
        self.placed = Some(*placed);
        Ok(Placing::Done)
    }

    fn leave_out(&mut self, book: &Book<'_>, state: State, error: Option<String>) -> Result<Placing, Refusal> {
        self.unrecorded = Some(state);
        let end = End { error, ..End::of(state) };
        book.end(self.exchange(), &end, None)?;
        Ok(Placing::Done)
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
                let stored = book.message(&book.own(entry.conversation), index)?;
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
            about.sent = requests.keep(text, &fields, &about, before.map(|(at, about)| (*at, about)), placed)?;
            if about.sent.is_none() {
                about.rewritten = rewritten;
            }
        }
        Ok(book::json(&about)?)
    }

    /// Takes the answer's head.
    pub(super) fn head(&mut self, status: StatusCode, headers: &HeaderMap, waited: Duration) {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let request_id = ["request-id", "x-request-id", "x-amzn-requestid"].into_iter().find_map(text);
        match Coding::of(text("content-encoding").as_deref()) {
            Some(coding) => self.coding = coding,
            None => _ = self.unrecorded.get_or_insert(State::Unreadable),
        }
        if status.is_success() && self.asked.fetched.is_none() {
            // In the order of time they stand beside their call.
            let id = |choice: u64| Uuid::from_u128(self.exchange().as_u128().wrapping_add(choice.into()));
            let voice = |at| Voice::new(self.asked.target, at, id(at));
            let voice = |at| if self.is_background { voice(at).in_the_background() } else { voice(at) };
            self.voices = (0..self.choices).map(voice).collect();
        }
        self.head = Some(Head { status, waited, request_id });
    }

    /// The request was repaired.
    pub(super) fn repaired(&mut self, report: Vec<String>) {
        self.report = report;
    }

    /// There is no answer.
    pub(super) fn failed(&mut self, error: String) {
        self.no_answer = Some(error);
    }

    /// The client has gone.
    pub(super) const fn left(&mut self) {
        self.has_left = true;
    }

    /// The store failed: nothing more is stored.
    pub(super) fn store_failed(&mut self) {
        self.unrecorded = Some(State::StoreFailed);
        self.voices.iter_mut().for_each(Voice::drop_rest);
    }

    /// There is no room for what comes: what is whole until now is stored.
    pub(super) const fn stop_taking(&mut self) {
        self.is_full = true;
    }

    /// Takes a piece of the answer.
    pub(super) fn take(&mut self, piece: &[u8]) -> Result<(), Refusal> {
        if self.unrecorded.is_some() || self.is_full {
            return Ok(());
        }
        let Ok(piece) = self.coding.decode(piece, &self.room) else {
            self.unrecorded = Some(State::Unreadable);
            self.voices.iter_mut().for_each(Voice::drop_rest);
            return Ok(());
        };
        // It may be much more than it was.
        if self.room.reach(self.taking(piece.len())).is_err() {
            self.stop_taking();
            return Ok(());
        }
        if self.asked.fetched.is_some() {
            self.fetched.iter_mut().for_each(|fetched| fetched.extend_from_slice(&piece));
            return Ok(());
        }
        if self.voices.is_empty() {
            let left = ERROR_BYTES.saturating_sub(self.error.len());
            self.error.extend_from_slice(piece.get(..left.min(piece.len())).unwrap_or_default());
            return Ok(());
        }
        self.speak(|voice, place| voice.take(&piece, place))
    }

    /// Lets each choice take what comes, and notes in the book which further ones begin.
    fn speak(&mut self, take: impl Fn(&mut Voice, &mut Place<'_>) -> Result<bool, Refusal>) -> Result<(), Refusal> {
        let Some(placed) = &self.placed else { return Ok(()) };
        let (mut voices, mut about) = (std::mem::take(&mut self.voices), self.about.take());
        let name = Name::from(placed.entry.conversation).with_owner(&*self.asked.caller.owner);
        let mut outcome = Ok(());
        for (choice, voice) in voices.iter_mut().enumerate() {
            let of_choice = || book::json(&serde_json::json!({ "exchange": self.exchange(), "choice": choice })).ok();
            let mut of_request = || Some((FIELD, if choice == 0 { about.take() } else { of_choice() }?));
            let mut place = Place {
                store: &self.store,
                name: name.clone(),
                secrets: &self.asked.secrets,
                about: &mut of_request,
                expected: self.expected,
                end: &|| Some((END_FIELD, self.end().ok()?)),
            };
            let taken = take(voice, &mut place);
            if let (Ok(true), Some(message)) = (&taken, voice.message) {
                self.app.exchanges.writes(self.exchange(), message);
            }
            let noted = match taken {
                Ok(true) if choice > 0 => self.note_choice(placed, voice.id),
                taken => taken.map(drop),
            };
            outcome = outcome.and(noted);
        }
        (self.voices, self.about) = (voices, about);
        outcome
    }

    fn note_choice(&self, placed: &Placed, id: Uuid) -> Result<(), Refusal> {
        let book = Book::open(&self.store, &self.app.exchanges, &self.asked.caller.owner)?;
        let entry = Entry { exchange: id, ..placed.entry.clone() };
        Ok(book.write(&placed.asked, &entry, None)?)
    }

    /// What is known at the answer's end.
    fn end(&self) -> crate::error::Result<Json> {
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let head = self.head.as_ref();
        let mut end = serde_json::json!({
            "status": head.map(|head| head.status.as_u16()),
            "request_id": head.and_then(|head| head.request_id.as_deref()),
            "waited_ms": head.map(|head| milliseconds(head.waited)),
            "total_ms": milliseconds(self.begun.elapsed()),
            "delivered": !self.has_left,
        });
        if let Some(fields) = end.as_object_mut() {
            if !self.report.is_empty() {
                fields.insert("repaired".to_owned(), Value::from(self.report.clone()));
            }
            if self.asked.fetched.is_some() {
                fields.insert(recorded::FIELD.to_owned(), Value::Bool(true));
            }
        }
        book::json(&end)
    }

    /// Stores the end, and logs it: what has become of the call; `None` if it gets an answer that is not stored.
    pub(super) fn finish(mut self, ended: Ended, is_behind: bool, is_stopped: bool) -> Result<Option<State>, Refusal> {
        let state = match self.asked.fetched {
            Some(_) => match self.end_fetched()? {
                Some(state) => state,
                None => return Ok(None),
            },
            None => self.end_with(ended, is_behind, is_stopped)?,
        };
        let (first, entry) = (self.voices.first(), self.placed.as_ref().map(|placed| &placed.entry));
        let tokens = first.and_then(|voice| voice.tokens);
        tracing::info!(
            exchange = %self.exchange(),
            state = state.as_str(),
            how = entry.map(|entry| entry.how.as_str()),
            conversation = entry.map(|entry| tracing::field::display(entry.conversation)),
            upstream = self.asked.upstream,
            model = first.and_then(|voice| voice.model.as_deref()),
            input_tokens = tokens.map(|tokens| tokens.input),
            output_tokens = tokens.map(|tokens| tokens.output),
            milliseconds = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            "{RECORDED}"
        );
        Ok(Some(state))
    }

    /// Stores an answer that was fetched in the place of what is stored of it, if it has ended.
    fn end_fetched(&mut self) -> Result<Option<State>, Refusal> {
        let (Some(placed), Some(fetched)) = (self.placed.clone(), self.fetched.take()) else { return Ok(None) };
        let Some(response) = recorded::ended(&fetched) else { return Ok(None) };
        // From here on it is the call that was to be answered.
        self.asked.id = placed.entry.exchange;
        let (app, store, owner) = (Arc::clone(&self.app), self.store.clone(), self.asked.caller.owner.clone());
        let book = Book::open(&store, &app.exchanges, &owner)?;
        let name = book.own(placed.entry.conversation);
        // Several clients may get it at one time.
        let _alone = app.appending.alone(placed.entry.conversation);
        for _ in 0..RACES {
            let Some(Awaited { earlier, .. }) = recorded::awaited(&book, &name, self.exchange())? else {
                return Ok(None);
            };
            match store.remove(&name, earlier.index, None) {
                Ok(_) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            let Some(Awaited { last_seq, about, .. }) = recorded::awaited(&book, &name, self.exchange())? else {
                return Ok(None);
            };
            self.about = about.map(|about| book::json(&about)).transpose()?;
            self.expected = Some(last_seq);
            self.voices = vec![Voice::new(self.asked.target, 0, self.exchange())];
            match self.speak(|voice, place| voice.take(response.as_bytes(), place)) {
                // Something was written meanwhile: perhaps this answer, by another server.
                Err(refusal) if refusal.code == Some("stale_head") => {}
                taken => {
                    taken?;
                    return self.end_with(Ended::Whole, false, false).map(Some);
                }
            }
        }
        Ok(None)
    }

    fn end_with(&mut self, ended: Ended, is_behind: bool, is_stopped: bool) -> Result<State, Refusal> {
        self.has_left |= ended == Ended::ClientGone;
        if self.unrecorded.is_none()
            && let Err(refusal) = self.speak(|voice, place| voice.finish(is_behind, place))
        {
            self.store_failed();
            self.note(State::StoreFailed)?;
            return Err(refusal);
        }
        let status = self.head.as_ref().map(|head| head.status);
        let first = self.voices.first();
        let state = match (self.unrecorded, status) {
            (Some(known @ (State::TooLarge | State::Cut | State::NoSession)), _) => return Ok(known),
            (Some(unrecorded), _) => unrecorded,
            (None, Some(status)) if !status.is_success() => State::Failed,
            (None, _) if is_behind => State::TooFast,
            (None, None) if is_stopped => State::Stopped,
            (None, None) => State::Failed,
            (None, Some(_)) => match first.and_then(|voice| voice.reason.as_ref()) {
                Some(FinishReason::Error) => State::Failed,
                Some(FinishReason::Interrupted) if is_stopped => State::Stopped,
                Some(FinishReason::Interrupted) => State::Cut,
                reason if recorded::is_queued(reason) => State::Queued,
                _ if first.is_none_or(|voice| voice.message.is_none()) => State::Cut,
                _ => State::Complete,
            },
        };
        if state != State::Complete || self.has_left {
            // That it stays shown is no reason not to note the end.
            if let Err(refusal) = self.hide_if_passed_over() {
                tracing::warn!(exchange = %self.exchange(), error = %refusal.message, "an answer is shown beside another one");
            }
        }
        self.note(state)?;
        Ok(state)
    }

    fn hide_if_passed_over(&self) -> Result<(), Refusal> {
        let is_stored = self.voices.iter().any(|voice| voice.message.is_some());
        let Some(placed) = self.placed.as_ref().filter(|_| is_stored && self.asked.fetched.is_none()) else {
            return Ok(());
        };
        // What is placed meanwhile sees the end of this answer, or is seen here.
        let _alone = self.app.appending.alone(ConversationId::from_bytes(placed.entry.scope));
        let book = Book::open(&self.store, &self.app.exchanges, &self.asked.caller.owner)?;
        passed_over::hide(&book, &self.store, placed, self.exchange(), &self.voices)
    }

    fn note(&self, state: State) -> Result<(), Refusal> {
        let book = Book::open(&self.store, &self.app.exchanges, &self.asked.caller.owner)?;
        let first = self.voices.first();
        if let Some(placed) = self.placed.as_ref().filter(|_| !self.error.is_empty()) {
            match book.note_words(self.exchange(), placed.entry.conversation, self.words()) {
                // That it failed may still fit.
                Err(Error::LimitExceeded { .. }) => {}
                noted => noted?,
            }
        }
        let end = End {
            state,
            status: self.head.as_ref().map(|head| head.status.as_u16()),
            error: self.no_answer.clone(),
            message: first.and_then(|voice| voice.message),
        };
        // Only this wire's requests name answers.
        let is_named = self.placed.is_some() && self.asked.target.wire().name == Target::OPENAI_RESPONSES.wire().name;
        let response = first.filter(|_| is_named).and_then(|voice| voice.response.as_deref());
        book.end(self.exchange(), &end, response)?;
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
        let mut words = said.unwrap_or_else(|| String::from_utf8_lossy(&self.error).into_owned());
        self.asked.secrets.take_out(&mut words);
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
