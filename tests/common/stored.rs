//! Messages as if they had come out of a log.

use conversation_store::model::Message;
use conversation_store::{MessageState, StoredMessage};

/// A message of this index, appended on its own.
pub(crate) fn stored(index: u64, state: MessageState, message: Message) -> StoredMessage {
    let mut stored = StoredMessage::new(index, state, message);
    (stored.first_seq, stored.last_seq) = (index + 1, index + 1);
    stored
}

/// A whole log.
pub(crate) fn log(messages: impl IntoIterator<Item = Message>) -> Vec<StoredMessage> {
    (0..).zip(messages).map(|(index, message)| stored(index, MessageState::Complete, message)).collect()
}
