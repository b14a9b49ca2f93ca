//! Ids that say where something is: nothing has to be looked up, and nothing is kept beside the log.

use std::fmt;

use uuid::Uuid;

use crate::model::ConversationId;

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
