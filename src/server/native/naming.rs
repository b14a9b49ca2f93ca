//! The conversation that a path names.

use crate::model::{ConversationId, Name};
use crate::server::app::Call;
use crate::server::refusal::Refusal;

/// The caller's conversation: a UUID, an id of the OpenAI API, or a key.
pub(in crate::server) fn name(call: &Call) -> Name {
    named(call, call.part("conversation"))
}

fn named(call: &Call, text: &str) -> Name {
    let id = text.strip_prefix("conv_").filter(|digits| digits.len() == 32);
    match id.and_then(|digits| digits.parse::<ConversationId>().ok()) {
        Some(id) => call.own(id),
        None => call.own(text),
    }
}

/// The conversation to add to. A key creates one; an id names an existing one: a caller who could create a conversation
/// of any id could take the id of another owner's key.
pub(super) fn writable(call: &Call) -> Result<Name, Refusal> {
    let name = name(call);
    if name.key().is_none() {
        call.store().describe(&name)?;
    }
    Ok(name)
}

/// The name of a new conversation: of a key, or without one. No key looks like an id.
pub(super) fn new(call: &Call, key: Option<&str>) -> Result<Name, Refusal> {
    let Some(key) = key else { return Ok(call.own(ConversationId::new())) };
    let name = named(call, key);
    if key.is_empty() || name.key().is_none() {
        return Err(Refusal::value("key", "a key is any text except a UUID or the id of a conversation"));
    }
    Ok(name)
}
