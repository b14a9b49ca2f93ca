//! A response on its way: the upstream's answer is stored as it comes. Clients that follow it read the log.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use axum::extract::Request;
use axum::http::Response;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::sync::watch;
use tokio::time::timeout;

use super::about::{End, ResponseId};
use super::following::Unkept;
use super::item::prefix;
use super::models::At;
use crate::model::{Body, Chunk, FinishReason, Metadata};
use crate::provider::{Decoder, Event};
use crate::server::app::App;
use crate::server::exchanges::Registered;
use crate::server::ledger::Room;
use crate::server::proxy::Secrets;
use crate::server::refusal::Refusal;
use crate::server::room::Stream;
use crate::store::MessageWriter;

/// A byte of an answer: as it came, as JSON, as what that says, and as a record.
const TAKEN: usize = 6;
/// One that waits for the rest of its event: what holds it grows by doubling.
const WAITING: usize = 2;
/// One of an answer that is in memory until nobody needs it.
const KEPT: usize = 3;

/// What a run needs of its server.
#[derive(Debug)]
pub(super) struct Running {
    /// The ids of the calls before the answer.
    pub(super) called: HashSet<String>,
    pub(super) app: Arc<App>,
    pub(super) at: At,
    /// The keys that the upstream is asked with.
    pub(super) secrets: Arc<Secrets>,
    pub(super) room: Arc<Room>,
    /// What that holds already.
    pub(super) held: usize,
    /// Where the answer goes, if it is not stored.
    pub(super) unkept: Option<Arc<Unkept>>,
    pub(super) stopped: watch::Receiver<bool>,
    pub(super) _stream: Stream,
    pub(super) registered: Registered,
}

/// The answer as it is stored.
struct Answer {
    decoder: Decoder,
    writer: MessageWriter,
    ids: Ids,
    said: Metadata,
    secrets: Arc<Secrets>,
}

/// How the upstream's bytes ended.
enum Ended {
    Whole,
    Stopped,
    /// Why, in words.
    Cut(String),
}

impl Running {
    /// Asks the upstream, and stores its answer: for a response that has begun already.
    pub(super) async fn ask(self, request: Request, writer: MessageWriter, id: ResponseId) {
        let mut stopped = self.stopped.clone();
        let sent = tokio::select! {
            biased;
            sent = self.at.send(request) => Some(sent),
            _ = stopped.wait_for(|is| *is) => None,
        };
        match sent {
            Some(Ok(answer)) => self.store(answer, writer, id).await,
            Some(Err(refusal)) => {
                let answer = Answer::new(&self, writer, id);
                // The upstream's own code; without one, its status.
                let own = refusal.details.get("code").and_then(serde_json::Value::as_str).map(str::to_owned);
                let code = own.unwrap_or_else(|| refusal.status.to_string());
                let chunk = Chunk::from(Body::Error { message: refusal.message, code: Some(code) });
                let events = vec![
                    Event::Delta { chunk_index: 0, chunk },
                    Event::Finish { reason: Some(FinishReason::Error), usage: None },
                ];
                self.end(answer, events, End::default()).await;
            }
            None => {
                let end = End { is_cancelled: true, ..End::default() };
                let events = vec![Event::Finish { reason: Some(FinishReason::Interrupted), usage: None }];
                let answer = Answer::new(&self, writer, id);
                self.end(answer, events, end).await;
            }
        }
    }

    /// Stores an answer to its end.
    pub(super) async fn store(self, from: Response<Incoming>, writer: MessageWriter, id: ResponseId) {
        let mut answer = Answer::new(&self, writer, id);
        let mut from = from.into_body();
        let (patience, mut stopped) = (self.at.upstream.set.idle(), self.stopped.clone());
        let mut over = self.app.over.subscribe();
        let mut bytes = 0;
        let ended = loop {
            let frame = tokio::select! {
                biased;
                _ = stopped.wait_for(|is| *is) => break Ended::Stopped,
                frame = timeout(patience, from.frame()) => frame,
                _ = over.wait_for(|is_over| *is_over) => break Ended::Cut("the server ends".to_owned()),
            };
            let piece = match frame {
                Ok(None) => break Ended::Whole,
                Ok(Some(Ok(frame))) => match frame.into_data() {
                    Ok(piece) => piece,
                    Err(_) => continue,
                },
                Ok(Some(Err(error))) => break Ended::Cut(format!("the upstream's answer was cut: {error}")),
                Err(_) => break Ended::Cut(format!("the upstream sent nothing for {} seconds", patience.as_secs())),
            };
            let held = self.held + if self.unkept.is_some() { bytes * KEPT } else { 0 };
            bytes += piece.len();
            if let Err(refusal) = self.room.wait(held + (answer.decoder.pending() + piece.len()) * TAKEN).await {
                break Ended::Cut(refusal.message);
            }
            let pushed = self.app.pool.run(move || {
                let result = answer.push(&piece);
                Ok((answer, result))
            });
            // The writer is dropped, and its message interrupted.
            let Ok((back, result)) = pushed.await else { return };
            answer = back;
            self.room.keep(held + answer.decoder.pending() * WAITING);
            if let Err(refusal) = result {
                tracing::warn!(error = refusal.message, "an answer cannot be stored");
                return;
            }
        };
        let decoder = std::mem::replace(&mut answer.decoder, Decoder::new(self.at.target));
        let events = match &ended {
            // What is cut off in the middle of an event is no end.
            Ended::Whole | Ended::Cut(_) => decoder.finish(),
            Ended::Stopped => {
                let is_cut = |event: Event| match event {
                    Event::Finish { usage, .. } => Event::Finish { reason: Some(FinishReason::Interrupted), usage },
                    event => event,
                };
                decoder.finish().into_iter().map(is_cut).collect()
            }
        };
        let end = match ended {
            Ended::Whole => End::default(),
            Ended::Stopped => End { is_cancelled: true, ..End::default() },
            Ended::Cut(why) => End { failure: Some(why), ..End::default() },
        };
        self.end(answer, events, end).await;
    }

    async fn end(self, answer: Answer, events: Vec<Event>, end: End) {
        self.registered.leave();
        let stored = self.app.pool.run(move || answer.end(events, &end)).await;
        if let Err(refusal) = stored {
            tracing::warn!(error = refusal.message, "the end of an answer cannot be stored");
        }
    }
}

impl Answer {
    fn new(of: &Running, writer: MessageWriter, id: ResponseId) -> Self {
        let ids = Ids {
            id,
            begun: HashSet::new(),
            items: HashMap::new(),
            called: of.called.clone(),
            renamed: HashSet::new(),
        };
        let (decoder, said, secrets) = (Decoder::new(of.at.target), Metadata::default(), Arc::clone(&of.secrets));
        Self { decoder, writer, ids, said, secrets }
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        let events = self.decoder.push(bytes)?;
        self.take(events)
    }

    fn take(&mut self, events: Vec<Event>) -> Result<(), Refusal> {
        for event in events {
            match event {
                Event::Begin(said) => self.said = said,
                Event::Delta { chunk_index, chunk } => {
                    let mut chunk = self.ids.of(chunk_index, chunk);
                    self.secrets.take_out_of(&mut chunk.body);
                    self.writer.push(chunk_index, chunk)?;
                }
                Event::Finish { .. } => {}
            }
        }
        Ok(())
    }

    fn end(mut self, events: Vec<Event>, end: &End) -> Result<(), Refusal> {
        let (finish, deltas): (Vec<_>, Vec<_>) =
            events.into_iter().partition(|event| matches!(event, Event::Finish { .. }));
        self.take(deltas)?;
        let mut said = std::mem::take(&mut self.said);
        end.put(&mut said.extra);
        // The answer of this server is no message of the provider's.
        self.writer.ingest(std::iter::once(Event::Begin(said)).chain(finish))?;
        Ok(())
    }
}

/// The ids of the answer's items: this server's own. Those of the provider stay where its items are kept as they came.
struct Ids {
    id: ResponseId,
    begun: HashSet<u32>,
    /// By the provider's: parts of one item share it.
    items: HashMap<String, String>,
    /// The ids of the calls so far.
    called: HashSet<String>,
    /// The calls that have an id of this server.
    renamed: HashSet<u32>,
}

impl Ids {
    fn of(&mut self, index: u32, mut chunk: Chunk) -> Chunk {
        let given = chunk.id.take();
        let is_new = self.begun.insert(index);
        if let Body::ToolCall { id, name, server: false, .. } = &mut chunk.body {
            self.name_call(index, is_new, name, id);
        }
        if !is_new {
            return chunk;
        }
        let fresh = || self.id.of_item(prefix(&chunk.body), index);
        chunk.id = Some(match given {
            Some(given) => self.items.entry(given).or_insert_with(fresh).clone(),
            None => fresh(),
        });
        chunk
    }

    /// Gives a call an id of its own, where its provider gave none or that of another call: clients know calls by their ids.
    fn name_call(&mut self, index: u32, is_new: bool, name: &str, id: &mut String) {
        // Without an id, a call of Gemini goes by its function's name.
        let is_shared = id.is_empty() || *id == *name || self.called.contains(id.as_str());
        if self.renamed.contains(&index) {
            id.clear();
        } else if is_new && is_shared && !name.is_empty() {
            *id = self.id.of_item("call", index);
            self.renamed.insert(index);
        } else if !id.is_empty() {
            self.called.insert(id.clone());
        }
    }
}
