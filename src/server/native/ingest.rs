//! A provider's answer, stored while it arrives.

use axum::body::Body;
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;
use uuid::Uuid;

use super::parameters;
use crate::error::Error;
use crate::log::{AppendOptions, Receipt};
use crate::model::{FinishReason, Metadata, Name, Role};
use crate::provider::{Decoder, Event, Target};
use crate::server::app::{Call, Outcome, Streaming, ok};
use crate::server::auth::is_still;
use crate::server::body;
use crate::server::exchanges::Kind;
use crate::server::refusal::Refusal;
use crate::store::{Delivery, Store};

/// A byte that waits for the rest of its event: it is in a buffer that grows by doubling.
const WAITING: usize = 2;
/// A byte of an event that is taken: as it came, as JSON, as what that says, and as a record.
const TAKEN: usize = 6;

/// The response once the answer has ended.
#[derive(Serialize, JsonSchema)]
pub(super) struct Ingested {
    #[serde(flatten)]
    receipt: Receipt,
    /// Why the model stopped; `interrupted` if its bytes ended before it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    finish_reason: Option<String>,
}

/// The answer as it is stored.
struct Ingest {
    store: Store,
    name: Name,
    decoder: Decoder,
    known: Metadata,
    options: AppendOptions,
    /// Set once the answer has begun.
    delivery: Option<Delivery>,
    receipt: Option<Receipt>,
    reason: Option<FinishReason>,
    /// Whether its index was given.
    is_known: bool,
}

pub(super) fn ingest(call: Call, body: Body) -> Streaming {
    // The write continues when the client has gone: what arrived is stored, and the message is closed.
    Box::pin(async move {
        let writing = tokio::spawn(write(call, body));
        writing.await.unwrap_or_else(|_| Err(Refusal::internal("the server failed at this request; its log has more")))
    })
}

async fn write(call: Call, mut body: Body) -> Outcome {
    call.query.check(&["from", "provider", "model", "expect"])?;
    let room = call.app.streams.begin(&call.caller.key)?;
    let (app, caller) = (Arc::clone(&call.app), call.caller.clone());
    let begun = call.clone();
    let mut ingest = app.pool.run(move || Ingest::new(&begun).map(Box::new)).await?;
    let id = Uuid::now_v7();
    let (registered, mut stopped) = app.exchanges.begin(id, &caller.owner, Kind::Ingest);
    app.exchanges.placed(id, ingest.name.id());
    app.metrics.ingests.inc();
    let mut closing = app.closing.subscribe();
    let patience = app.config.limits.ingest_idle();
    let (mut bytes, mut broken) = (0_usize, None);
    loop {
        let piece = tokio::select! {
            biased;
            // It ends as if no more had come: what came is kept.
            _ = stopped.wait_for(|is_stopped| *is_stopped) => break,
            piece = body::next(&app, &mut body, patience) => piece,
            _ = closing.wait_for(|is_closing| *is_closing) => Err(Refusal::busy("the server ends")),
        };
        match piece {
            Ok(None) => break,
            Err(refusal) => {
                broken = Some(refusal);
                break;
            }
            Ok(Some(_)) if !is_still(&app, &caller) => {
                broken = Some(Refusal::new(401, "invalid_api_key", "This key was revoked, or has expired."));
                break;
            }
            Ok(Some(piece)) => {
                bytes += piece.len();
                if let Err(refusal) = call.room.wait((ingest.decoder.pending() + piece.len()) * TAKEN).await {
                    broken = Some(refusal);
                    break;
                }
                let pushed = app.pool.run(move || {
                    let result = ingest.push(&piece);
                    Ok((ingest, result))
                });
                let (back, result) = pushed.await.inspect_err(|_| _ = app.metrics.ingests.dec())?;
                ingest = back;
                if let Some(message) = ingest.begun() {
                    app.exchanges.writes(id, message);
                }
                call.room.keep(ingest.decoder.pending() * WAITING);
                if let Err(refusal) = result {
                    broken = Some(refusal);
                    break;
                }
            }
        }
    }
    app.metrics.body_bytes.inc_by(bytes as u64);
    app.metrics.ingests.dec();
    let is_broken = broken.is_some();
    let ended = app.pool.run(move || ingest.finish(bytes, is_broken)).await;
    drop((room, registered));
    // An error in the bytes counts before the way they ended.
    match broken {
        Some(refusal) => Err(refusal),
        None => ok(&ended?),
    }
}

impl Ingest {
    fn new(call: &Call) -> Result<Self, Refusal> {
        let target: Target = parameters::target(call, "from")?;
        let options = parameters::append(call)?;
        let text = |name| call.query.get(name).map(str::to_owned);
        let known = Metadata { provider: text("provider"), model: text("model"), ..Metadata::default() };
        Ok(Self {
            store: call.store().clone(),
            name: parameters::writable(call)?,
            decoder: Decoder::new(target),
            known,
            options,
            delivery: None,
            receipt: None,
            reason: None,
            is_known: false,
        })
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        let events = self.decoder.push(bytes)?;
        self.take(events)
    }

    /// The answer's index, once: when it has begun.
    fn begun(&mut self) -> Option<u64> {
        let message = self.delivery.as_ref()?.message_index().filter(|_| !self.is_known)?;
        self.is_known = true;
        Some(message)
    }

    fn take(&mut self, events: Vec<Event>) -> Result<(), Refusal> {
        for event in events {
            match &event {
                Event::Begin(said) if self.delivery.is_none() => self.begin(said)?,
                Event::Finish { reason, .. } => self.reason.clone_from(reason),
                _ => {}
            }
            if let Some(delivery) = &mut self.delivery {
                self.receipt = delivery.take(event)?.or(self.receipt.take());
            }
        }
        Ok(())
    }

    fn begin(&mut self, said: &Metadata) -> Result<(), Refusal> {
        let known = Metadata {
            provider: self.known.provider.clone().or_else(|| said.provider.clone()),
            model: self.known.model.clone().or_else(|| said.model.clone()),
            ..said.clone()
        };
        let begun = self.store.deliver(&self.name, Role::Assistant, &known, &self.options);
        self.delivery = Some(begun.map_err(|error| match error {
            error @ Error::BeingWritten { .. } => Refusal { retry_after: Some(1), ..error.into() },
            error => error.into(),
        })?);
        Ok(())
    }

    /// Stores the end. Bytes that hold no answer store nothing. `is_broken`: the bytes did not end as HTTP ends them.
    fn finish(mut self, bytes: usize, is_broken: bool) -> Result<Ingested, Refusal> {
        let Self { decoder, .. } = &mut self;
        let mut events = std::mem::replace(decoder, Decoder::new(Target::OPENAI_CHAT)).finish();
        if self.delivery.is_none() {
            return Err(no_answer(&events, bytes));
        }
        if is_broken && self.options.idempotency_key.is_some() {
            // More may have been on its way, and comes again.
            for event in &mut events {
                if let Event::Finish { reason, .. } = event {
                    *reason = Some(FinishReason::Interrupted);
                }
            }
        }
        self.take(events)?;
        let finish_reason = self.reason.as_ref().map(|reason| reason.as_str().to_owned());
        let receipt = self.receipt.ok_or_else(|| Refusal::internal("a decoder gave no end"))?;
        Ok(Ingested { receipt, finish_reason })
    }
}

/// Why nothing was stored.
fn no_answer(events: &[Event], bytes: usize) -> Refusal {
    let problem = events.iter().find_map(|event| match event {
        Event::Delta { chunk, .. } => match &chunk.body {
            crate::model::Body::Error { message, .. } => Some(message.clone()),
            _ => None,
        },
        _ => None,
    });
    let problem = problem.unwrap_or_else(|| format!("the body of {bytes} bytes ends before an answer begins"));
    Refusal::new(422, "no_answer", format!("{problem}; nothing was stored"))
}
