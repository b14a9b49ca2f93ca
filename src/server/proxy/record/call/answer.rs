//! The answer of a call, as it comes, and its end.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use serde_json::Value;
use uuid::Uuid;

use super::{Call, Destination};
use crate::error::Error;
use crate::model::{Body, Chunk, ConversationId, FinishReason, Json, Name};
use crate::provider::{Decoder, Event, Target};
use crate::server::ledger::Room;
use crate::server::lines::RECORDED;
use crate::server::proxy::exchange::{Captured, Ended};
use crate::server::proxy::record::around::{END_FIELD, FIELD};
use crate::server::proxy::record::book::{self, Book, End, Entry, FoundBy, State};
use crate::server::proxy::record::passed_over;
use crate::server::proxy::record::plan::Placed;
use crate::server::proxy::record::recorded::{self, Awaited};
use crate::server::proxy::record::voice::{Place, Voice};
use crate::server::proxy::wires;
use crate::server::refusal::Refusal;
use crate::server::upstream::Coding;

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

/// A call whose request is stored, or left out, and its answer.
#[derive(Debug)]
pub(crate) struct Answer {
    call: Call,
    placed: Option<Placed>,
    /// What has come of an answer that is fetched, if it is to be stored; and the seq that its message must follow.
    fetched: Option<Vec<u8>>,
    expected: Option<u64>,
    is_background: bool,
    /// How many choices the request wants.
    choices: u64,
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
    is_full: bool,
    /// What a repair changed of the request.
    report: Vec<String>,
}

#[derive(Debug)]
struct Head {
    status: StatusCode,
    waited: Duration,
    request_id: Option<String>,
}

impl Answer {
    /// Before anything of it has come.
    pub(crate) fn of(mut call: Call, destination: Destination) -> Self {
        // It is stored, or never will be: nobody has to hold it as long as the answer takes.
        call.asked.body = Captured::Cut;
        let mut answer = Self {
            call,
            placed: None,
            fetched: None,
            expected: None,
            is_background: false,
            choices: 1,
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
        };
        match destination {
            Destination::Request { placed, about, choices, is_background } => {
                (answer.placed, answer.about) = (Some(*placed), Some(about));
                (answer.choices, answer.is_background) = (choices, is_background);
            }
            Destination::Earlier(placed) => (answer.placed, answer.fetched) = (Some(*placed), Some(Vec::new())),
            Destination::Fetched => {}
            Destination::Nowhere(state) => answer.unrecorded = Some(state),
        }
        answer
    }

    /// Whether its request is stored, or why it is not.
    pub(crate) fn kept(&self) -> Result<(), State> {
        self.placed.as_ref().map(drop).ok_or_else(|| self.unrecorded.unwrap_or(State::StoreFailed))
    }

    /// What waits to be stored, and what is read for it.
    pub(crate) fn room(&self) -> Arc<Room> {
        Arc::clone(&self.call.room)
    }

    /// Whether there was no room for what came: nothing after it is stored.
    pub(crate) const fn is_full(&self) -> bool {
        self.is_full
    }

    fn pending(&self) -> usize {
        self.fetched.as_ref().map_or(0, Vec::len) + self.voices.iter().map(Voice::pending).sum::<usize>()
    }

    /// What it holds while it takes so many bytes of the answer. Each choice has them.
    pub(crate) fn taking(&self, bytes: usize) -> usize {
        let copies = self.voices.len() + usize::from(self.fetched.is_some());
        bytes.saturating_mul(copies).saturating_add(self.pending()).saturating_mul(TAKEN)
    }

    /// What it holds until more comes.
    pub(crate) fn waiting(&self) -> usize {
        self.pending().saturating_mul(WAITING)
    }

    /// Takes the answer's head.
    pub(crate) fn head(&mut self, status: StatusCode, headers: &HeaderMap, waited: Duration) {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let request_id = ["request-id", "x-request-id", "x-amzn-requestid"].into_iter().find_map(text);
        match Coding::of(text("content-encoding").as_deref()) {
            Some(coding) => self.coding = coding,
            None => _ = self.unrecorded.get_or_insert(State::Unreadable),
        }
        if status.is_success() && self.call.asked.fetched.is_none() {
            // In the order of time they stand beside their call.
            let id = |choice: u64| Uuid::from_u128(self.call.exchange().as_u128().wrapping_add(choice.into()));
            let voice = |at| Voice::new(self.call.asked.target, at, id(at));
            let voice = |at| if self.is_background { voice(at).in_the_background() } else { voice(at) };
            self.voices = (0..self.choices).map(voice).collect();
        }
        self.head = Some(Head { status, waited, request_id });
    }

    /// The request was repaired.
    pub(crate) fn repaired(&mut self, report: Vec<String>) {
        self.report = report;
    }

    /// There is no answer.
    pub(crate) fn failed(&mut self, error: String) {
        self.no_answer = Some(error);
    }

    /// The client has gone.
    pub(crate) const fn left(&mut self) {
        self.has_left = true;
    }

    /// The store failed: nothing more is stored.
    pub(crate) fn store_failed(&mut self) {
        self.unrecorded = Some(State::StoreFailed);
        self.voices.iter_mut().for_each(Voice::drop_rest);
    }

    /// There is no room for what comes: what is whole until now is stored.
    pub(crate) const fn stop_taking(&mut self) {
        self.is_full = true;
    }

    /// Takes a piece of the answer.
    pub(crate) fn take(&mut self, piece: &[u8]) -> Result<(), Refusal> {
        if self.unrecorded.is_some() || self.is_full {
            return Ok(());
        }
        let Ok(piece) = self.coding.decode(piece, &self.call.room) else {
            self.unrecorded = Some(State::Unreadable);
            self.voices.iter_mut().for_each(Voice::drop_rest);
            return Ok(());
        };
        // It may be much more than it was.
        if self.call.room.reach(self.taking(piece.len())).is_err() {
            self.stop_taking();
            return Ok(());
        }
        if self.call.asked.fetched.is_some() {
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
        let name = Name::from(placed.entry.conversation).with_owner(&*self.call.asked.caller.owner);
        let model = wires::model(&self.call.asked.path);
        let mut outcome = Ok(());
        for (choice, voice) in voices.iter_mut().enumerate() {
            let of_choice =
                || book::json(&serde_json::json!({ "exchange": self.call.exchange(), "choice": choice })).ok();
            let mut of_request = || Some((FIELD, if choice == 0 { about.take() } else { of_choice() }?));
            let mut place = Place {
                store: &self.call.store,
                name: name.clone(),
                secrets: &self.call.asked.secrets,
                model: &model,
                about: &mut of_request,
                // Who stops the answer at once knows by it that this server writes it.
                begun: &|message| self.call.app.exchanges.writes(self.call.exchange(), message),
                expected: self.expected,
                end: &|| Some((END_FIELD, self.end().ok()?)),
            };
            let taken = take(voice, &mut place);
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
        let book = Book::open(&self.call.store, &self.call.app.exchanges, &self.call.asked.caller.owner)?;
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
            "total_ms": milliseconds(self.call.asked.begun.elapsed()),
            "delivered": !self.has_left,
        });
        if let Some(fields) = end.as_object_mut() {
            if !self.report.is_empty() {
                fields.insert("repaired".to_owned(), Value::from(self.report.clone()));
            }
            if self.call.asked.fetched.is_some() {
                fields.insert(recorded::FIELD.to_owned(), Value::Bool(true));
            }
        }
        book::json(&end)
    }

    /// Stores the end, and logs it: what has become of the call; `None` if it gets an answer that is not stored.
    pub(crate) fn finish(mut self, ended: Ended, is_behind: bool, is_stopped: bool) -> Result<Option<State>, Refusal> {
        let state = match self.call.asked.fetched {
            Some(_) => match self.end_fetched()? {
                Some(state) => state,
                None => return Ok(None),
            },
            None => self.end_with(ended, is_behind, is_stopped)?,
        };
        let (first, entry) = (self.voices.first(), self.placed.as_ref().map(|placed| &placed.entry));
        let tokens = first.and_then(|voice| voice.tokens);
        tracing::info!(
            exchange = %self.call.exchange(),
            state = state.as_str(),
            how = entry.map(|entry| entry.how.as_str()),
            conversation = entry.map(|entry| tracing::field::display(entry.conversation)),
            upstream = self.call.asked.upstream,
            model = first.and_then(|voice| voice.model.as_deref()),
            input_tokens = tokens.map(|tokens| tokens.input),
            output_tokens = tokens.map(|tokens| tokens.output),
            milliseconds = u64::try_from(self.call.asked.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            "{RECORDED}"
        );
        Ok(Some(state))
    }

    /// Stores an answer that was fetched in the place of what is stored of it, if it has ended.
    fn end_fetched(&mut self) -> Result<Option<State>, Refusal> {
        let (Some(placed), Some(fetched)) = (self.placed.clone(), self.fetched.take()) else { return Ok(None) };
        let Some(response) = recorded::ended(&fetched) else { return Ok(None) };
        // From here on it is the call that was to be answered.
        self.call.asked.id = placed.entry.exchange;
        let (app, store, owner) =
            (Arc::clone(&self.call.app), self.call.store.clone(), self.call.asked.caller.owner.clone());
        let book = Book::open(&store, &app.exchanges, &owner)?;
        let name = book.own(placed.entry.conversation);
        // Several clients may get it at one time.
        let _alone = app.appending.alone(placed.entry.conversation);
        for _ in 0..RACES {
            let Some(Awaited { earlier, .. }) = recorded::awaited(&book, &name, self.call.exchange())? else {
                return Ok(None);
            };
            match store.remove(&name, earlier.index, None) {
                Ok(_) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            let Some(Awaited { last_seq, about, .. }) = recorded::awaited(&book, &name, self.call.exchange())? else {
                return Ok(None);
            };
            self.about = about.map(|about| book::json(&about)).transpose()?;
            self.expected = Some(last_seq);
            self.voices = vec![Voice::new(self.call.asked.target, 0, self.call.exchange())];
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
            (Some(State::Cut), Some(status)) if !status.is_success() => {
                self.no_answer = Some("the upstream answered before the whole request had come".to_owned());
                State::Failed
            }
            // It was noted, with the reason, when the request was left out.
            (Some(known), _) if self.placed.is_none() => return Ok(known),
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
                tracing::warn!(exchange = %self.call.exchange(), error = %refusal.message, "an answer is shown beside another one");
            }
        }
        self.note(state)?;
        Ok(state)
    }

    fn hide_if_passed_over(&self) -> Result<(), Refusal> {
        let is_stored = self.voices.iter().any(|voice| voice.message.is_some());
        let Some(placed) = self.placed.as_ref().filter(|_| is_stored && self.call.asked.fetched.is_none()) else {
            return Ok(());
        };
        // What is placed meanwhile sees the end of this answer, or is seen here.
        let _alone = self.call.app.appending.alone(ConversationId::from_bytes(placed.entry.scope));
        let book = Book::open(&self.call.store, &self.call.app.exchanges, &self.call.asked.caller.owner)?;
        passed_over::hide(&book, &self.call.store, placed, self.call.exchange(), &self.voices)
    }

    fn note(&self, state: State) -> Result<(), Refusal> {
        let book = Book::open(&self.call.store, &self.call.app.exchanges, &self.call.asked.caller.owner)?;
        let first = self.voices.first();
        if let Some(placed) = self.placed.as_ref().filter(|_| !self.error.is_empty()) {
            match book.note_words(self.call.exchange(), placed.entry.conversation, self.words()) {
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
        let is_named =
            self.placed.is_some() && self.call.asked.target.wire().name == Target::OPENAI_RESPONSES.wire().name;
        let response = first.filter(|_| is_named).and_then(|voice| voice.response.as_deref());
        let is_answered = self.voices.iter().any(|voice| voice.message.is_some());
        let unanswered = self.placed.as_ref().filter(|_| !is_answered).map(|placed| placed.entry.conversation);
        let asked = self.placed.as_ref().map(|placed| &placed.asked);
        let called = first.and_then(|voice| voice.called.as_deref()).zip(asked);
        let found_by = response.map(FoundBy::Response).into_iter();
        let found_by = found_by.chain(called.map(|(id, asked)| FoundBy::Call { asked, id }));
        let found_by: Vec<_> = found_by.chain(unanswered.map(FoundBy::Unanswered)).collect();
        book.end(self.call.exchange(), &end, &found_by)?;
        Ok(())
    }

    /// The words of an error in place of an answer.
    fn words(&self) -> String {
        let mut decoder = Decoder::new(self.call.asked.target);
        let mut events = decoder.push(&self.error).unwrap_or_default();
        events.extend(decoder.finish());
        let said = events.into_iter().find_map(|event| match event {
            Event::Delta { chunk: Chunk { body: Body::Error { message, .. }, .. }, .. } => Some(message),
            _ => None,
        });
        let mut words = said.unwrap_or_else(|| String::from_utf8_lossy(&self.error).into_owned());
        self.call.asked.secrets.take_out(&mut words);
        words.chars().take(WORDS).collect()
    }
}
