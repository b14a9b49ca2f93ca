//! What the log keeps of a response beside its answer: what was asked, and where its input begins.
//!
//! It is the `native` data of the answer's message, of a wire that no provider has: no request ever holds it, and who erases the
//! message erases it.
//!
//! Ids that say where something is: nothing has to be looked up, and nothing is kept beside the log.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::history::StoredMessage;
use crate::model::{ConversationId, Extra, Json, Native, Role};

/// The wire of this native data.
const WIRE: &str = "convo-responses";
/// The field of an answer's `extra` that says how a response ended, where its finish reason does not.
const END: &str = "convo_response";

/// Fields that are the same in many requests.
const SHARED: [&str; 3] = ["tools", "instructions", "text"];
/// Less is stored again: it takes no more than to say where it is.
const LARGE: usize = 64;

fn is_large(value: &Value) -> bool {
    value.to_string().len() > LARGE
}

/// What was asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct About {
    /// The fields of the response that repeat the request.
    pub(super) fields: Map<String, Value>,
    /// Fields that an earlier answer of the conversation has as well, by its index: they are stored there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) same: BTreeMap<String, u64>,
    /// The index of the first message of its input; its own answer's if it has none.
    pub(super) input_from: u64,
    /// The upstream, the target whose wire it speaks, and the model as the upstream names it.
    pub(super) upstream: String,
    pub(super) target: String,
    pub(super) model: String,
    /// What was done to the history on its way, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) report: Vec<String>,
    /// The digest of the request, if it came with an idempotency key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<String>,
    /// Whether reasoning goes to the client in a form that it can give back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) gives_reasoning: bool,
}

/// How a response ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct End {
    /// Its client has cancelled it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_cancelled: bool,
    /// Why it failed, where no provider said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<String>,
}

impl About {
    /// What an answer's message says of its response; `None` if it is no response's.
    pub(super) fn of(stored: &StoredMessage) -> Option<Self> {
        if stored.message.role != Role::Assistant {
            return None;
        }
        Self::of_native(stored.message.metadata.native.as_ref())
    }

    fn of_native(native: Option<&Native>) -> Option<Self> {
        let native = native.filter(|native| native.wire == WIRE)?;
        serde_json::from_str(native.json.as_str()).ok()
    }

    /// Leaves what the history has already to where it is: tools are the same, turn after turn.
    pub(super) fn share(&mut self, history: &[StoredMessage]) {
        let Some((index, last)) = history.iter().rev().find_map(|stored| Some((stored.index, Self::of(stored)?)))
        else {
            return;
        };
        for name in SHARED {
            let origin = last.same.get(name).copied().unwrap_or(index);
            let at = history.binary_search_by_key(&origin, |stored| stored.index);
            let first = at.ok().and_then(|at| Self::of(history.get(at)?));
            let value = first.as_ref().and_then(|first| first.fields.get(name));
            if value.is_some_and(|value| self.fields.get(name) == Some(value) && is_large(value)) {
                self.same.insert(name.to_owned(), origin);
            }
        }
    }

    pub(super) fn to_native(&self) -> Option<Native> {
        let mut stored = self.clone();
        stored.fields.retain(|name, _| !self.same.contains_key(name));
        let json = Json::new(serde_json::to_string(&stored).ok()?).ok()?;
        Some(Native { wire: WIRE.to_owned(), json })
    }

    /// The conversation that the request named.
    pub(super) fn conversation(&self) -> Option<&str> {
        self.fields.get("conversation")?.get("id")?.as_str()
    }

    pub(super) fn is(&self, field: &str) -> bool {
        self.fields.get(field).and_then(Value::as_bool).unwrap_or_default()
    }
}

impl End {
    pub(super) fn of(extra: &Extra) -> Self {
        extra.get(END).and_then(|json| serde_json::from_str(json.as_str()).ok()).unwrap_or_default()
    }

    pub(super) fn put(&self, extra: &mut Extra) {
        if let Some(json) = serde_json::to_string(self).ok().and_then(|text| Json::new(text).ok()) {
            extra.push(END, json);
        }
    }
}

/// The prefix of the ids of responses.
const PREFIX: &str = "resp";
/// Digits of an id: a conversation's 32, a message's 12, a chunk's 4.
const DIGITS: usize = 48;

/// Where a response is: the answer's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ResponseId {
    pub(super) conversation: ConversationId,
    pub(super) message: u64,
}

impl fmt::Display for ResponseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.of_item(PREFIX, 0))
    }
}

impl ResponseId {
    /// The response of an id. A text that is no id of this server names none.
    pub(super) fn named(text: &str) -> Option<Self> {
        let (prefix, digits) = text.split_once('_')?;
        (prefix == PREFIX).then(|| place(digits).map(|(id, _)| id)).flatten()
    }

    /// The id of an item of the response, by its first chunk.
    pub(super) fn of_item(&self, prefix: &str, chunk: u32) -> String {
        let Self { conversation, message } = self;
        format!("{prefix}_{}{message:012x}{chunk:04x}", Uuid::from(*conversation).simple())
    }

    /// The answer that an item is of, by an id that this server gave.
    pub(super) fn of_answer(item: &str) -> Option<Self> {
        place(item.split_once('_')?.1).map(|(id, _)| id)
    }
}

fn place(digits: &str) -> Option<(ResponseId, u32)> {
    let is_id = digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (conversation, rest) = is_id.then(|| digits.split_at(32))?;
    let (message, chunk) = rest.split_at(12);
    let conversation = conversation.parse().ok()?;
    let message = u64::from_str_radix(message, 16).ok()?;
    Some((ResponseId { conversation, message }, u32::from_str_radix(chunk, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back() {
        let id = ResponseId { conversation: ConversationId::new(), message: 1_000_000 };
        assert_eq!(ResponseId::named(&id.to_string()), Some(id));
        assert_eq!(ResponseId::of_answer(&id.of_item("msg", 7)), Some(id));
        assert_eq!(id.to_string().len(), "resp_".len() + DIGITS);
        for text in ["", "resp_", "resp_1", &id.of_item("msg", 0), &format!("{id}0"), "resp_openresponses_missing_17"] {
            assert_eq!(ResponseId::named(text), None, "{text}");
        }
    }
}
