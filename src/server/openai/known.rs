//! A conversation as the API names it and writes it.

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Error;
use crate::log::ListItem;
use crate::model::{ConversationId, Json, Name};
use crate::server::app::{Call, Outcome, ok};
use crate::server::refusal::Refusal;
use crate::server::schemas::Object;

/// The prefix of the ids of conversations.
const PREFIX: &str = "conv_";

/// A conversation, as the API writes it.
#[derive(Serialize, JsonSchema)]
pub(super) struct Conversation {
    pub(super) id: String,
    #[schemars(extend("const" = "conversation"))]
    object: &'static str,
    created_at: i64,
    #[schemars(with = "Object")]
    metadata: Json,
}

pub(crate) fn shown(id: ConversationId) -> String {
    format!("{PREFIX}{}", uuid::Uuid::from(id).simple())
}

/// The conversation with an id. A text that is no id names nothing.
pub(crate) fn named(text: &str) -> Option<ConversationId> {
    let digits = text.strip_prefix(PREFIX).filter(|digits| digits.len() == 32)?;
    digits.parse().ok()
}

pub(crate) fn not_found(text: &str) -> Refusal {
    Refusal::new(404, None, format!("Conversation with id '{text}' not found."))
}

/// The caller's conversation of an id, of a UUID, or of a key.
pub(crate) fn own(call: &Call, text: &str) -> Name {
    named(text).map_or_else(|| call.own(text), |id| call.own(id))
}

/// The caller's conversation that the path names.
pub(super) fn name(call: &Call) -> Name {
    own(call, call.part("conversation"))
}

/// The store's description of a conversation; a missing conversation is OpenAI's own error.
pub(super) fn found<T>(call: &Call, result: crate::Result<T>) -> Result<T, Refusal> {
    result.map_err(|error| match error {
        Error::NotFound { .. } => not_found(call.part("conversation")),
        error => error.into(),
    })
}

/// Why a conversation was not made. Its name comes from its key: that has made another one, or one whose forks are left.
pub(super) fn reused(call: &Call, error: Error) -> Refusal {
    let Ok(Some(key)) = call.idempotency_key() else { return error.into() };
    match error {
        Error::NameTaken { conversation, .. } | Error::KeyReused { conversation, .. } => {
            Error::KeyReused { conversation, key: key.to_owned() }.into()
        }
        Error::SharedByForks { .. } => {
            let message = format!(
                "The conversation of the idempotency key {key} was deleted, but forks still read its first entries: use \
                 another key, or delete the forks."
            );
            Refusal { message, ..error.into() }
        }
        error => error.into(),
    }
}

pub(super) fn get(call: &Call, _: &[u8]) -> Outcome {
    let name = name(call);
    ok(&conversation(call, &found(call, call.store().describe(&name))?)?)
}

pub(super) fn conversation(call: &Call, item: &ListItem) -> Result<Conversation, Refusal> {
    let metadata = call.store().metadata(call.own(item.id))?;
    let metadata = metadata.or_else(|| Json::new("{}").ok()).ok_or_else(|| Refusal::internal("no metadata"))?;
    let created_at = item.created_at.as_micros().div_euclid(1_000_000);
    Ok(Conversation { id: shown(item.id), object: "conversation", created_at, metadata })
}
