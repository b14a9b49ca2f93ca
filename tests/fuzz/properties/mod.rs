//! What holds for all bytes. One file for each fuzz target; it fails by panicking.
//!
//! An input is what the file says that it is, nothing beside it, so that a finding can be read and written by hand.

pub mod answer;
pub mod backup;
pub mod prompt;
pub mod request;
pub mod store;
pub mod transcript;

use conversation_store::model::Message;
use conversation_store::{MessageState, StoredMessage};

/// A property, by the name of its fuzz target and of the folders of its inputs.
pub struct Property {
    /// The target.
    pub name: &'static str,
    /// Panics unless the property holds for the bytes.
    pub holds: fn(&[u8]),
}

/// All of them.
pub const ALL: &[Property] = &[
    Property { name: "answer", holds: answer::holds },
    Property { name: "backup", holds: backup::holds },
    Property { name: "prompt", holds: prompt::holds },
    Property { name: "request", holds: request::holds },
    Property { name: "store", holds: store::holds },
    Property { name: "transcript", holds: transcript::holds },
];

/// Messages as if they had come out of a log.
fn stored(messages: Vec<Message>) -> Vec<StoredMessage> {
    let stored = messages.into_iter().enumerate().map(|(at, message)| {
        let (index, seq) = (at as u64, at as u64 + 1);
        let chunk_indexes = (0..).take(message.chunks.len()).collect();
        StoredMessage { index, state: MessageState::Complete, first_seq: seq, last_seq: seq, chunk_indexes, message }
    });
    stored.collect()
}
