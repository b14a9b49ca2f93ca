//! Calls of models that passed through the proxy.

use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::parameters;
use crate::error::Error;
use crate::model::ConversationId;
use crate::server::app::{Call, Outcome, ok};
use crate::server::proxy::exchange;

pub(super) fn get(call: &Call, _: &[u8]) -> Outcome {
    let id = call.part("exchange");
    let none = || Error::NotFound { what: format!("exchange {id}") };
    let known = Uuid::try_parse(id).map_err(|_| none())?;
    let found = exchange(&call.app, call.store(), &call.caller.owner, known)?;
    ok(&found.ok_or_else(none)?)
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AnswersStopped")]
pub(super) struct Stopped {
    conversation: ConversationId,
    /// The exchanges whose answers were stopped.
    stopped: Vec<String>,
}

pub(super) fn stop(call: &Call, _: &[u8]) -> Outcome {
    let conversation = call.store().describe(parameters::name(call))?.id;
    let stopped = call.app.exchanges.stop(&call.caller.owner, conversation);
    ok(&Stopped { conversation, stopped: stopped.iter().map(Uuid::to_string).collect() })
}
