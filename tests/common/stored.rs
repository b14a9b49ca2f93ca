//! Messages as if they had come out of a log.

use conversation_store::model::Message;
use conversation_store::{MessageState, StoredMessage};

/// A message of this index, appended on its own.
pub(crate) fn stored(index: u64, state: MessageState, message: Message) -> StoredMessage {
    let chunk_indexes = (0..).take(message.chunks.len()).collect();
    StoredMessage { index, state, first_seq: index + 1, last_seq: index + 1, chunk_indexes, message }
}

/// A whole log.
pub(crate) fn log(messages: impl IntoIterator<Item = Message>) -> Vec<StoredMessage> {
    (0..).zip(messages).map(|(index, message)| stored(index, MessageState::Complete, message)).collect()
}
