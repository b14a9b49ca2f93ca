//! Calls of models that passed through the proxy.

use axum::http::{HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::parameters;
use crate::error::Error;
use crate::model::ConversationId;
use crate::server::app::{Call, Outcome, ok, reply};
use crate::server::proxy::exchange;
use crate::server::stops;

pub(super) fn get(call: &Call, _: &[u8]) -> Outcome {
    let id = call.part("exchange");
    let none = || Error::NotFound { what: format!("exchange {id}") };
    let known = Uuid::try_parse(id).map_err(|_| none())?;
    let found = exchange(&call.app, call.store(), &call.caller.owner, known)?;
    ok(&found.ok_or_else(none)?)
}

/// The request of a call: what of it is not as it came is said in headers.
pub(super) fn request(call: &Call, _: &[u8]) -> Outcome {
    let id = call.part("exchange");
    let known = Uuid::try_parse(id).map_err(|_| Error::NotFound { what: format!("exchange {id}") })?;
    let sent = crate::server::proxy::request(call.store(), &call.room, &call.caller.owner, known)?;
    let mut answer = reply(200, "application/json", sent.bytes);
    if let Some(fields) = HeaderValue::from_str(&sent.replaced.join(", ")).ok().filter(|fields| !fields.is_empty()) {
        answer.headers_mut().insert(HeaderName::from_static("x-convo-replaced"), fields);
    }
    if !sent.repaired.is_empty() {
        let lines = HeaderValue::from(sent.repaired.len());
        answer.headers_mut().insert(HeaderName::from_static("x-convo-report"), lines);
    }
    Ok(answer)
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AnswersStopped")]
pub(super) struct Stopped {
    conversation: ConversationId,
    /// The exchanges whose answers were stopped.
    stopped: Vec<String>,
    /// How many answers were ingested, and were stopped.
    ingests: usize,
    /// How many responses of models at upstreams were stopped.
    responses: usize,
    /// The messages that are written elsewhere, by their indexes: other servers of the store were asked to stop them.
    elsewhere: Vec<u64>,
}

pub(super) fn stop(call: &Call, _: &[u8]) -> Outcome {
    let conversation = call.store().describe(parameters::name(call))?.id;
    let stopped = stops::stop(&call.app, call.store(), &call.caller.owner, &call.own(conversation))?;
    let exchanges = stopped.exchanges.iter().map(Uuid::to_string).collect();
    let crate::server::stops::Stopped { ingests, responses, elsewhere, .. } = stopped;
    ok(&Stopped { conversation, stopped: exchanges, ingests, responses, elsewhere })
}
