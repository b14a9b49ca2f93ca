use conversation_store::model::Message;
use conversation_store::{MessageState, StoredMessage};

use super::super::text::count;

/// How a line differs from the store, if it does. A line without a time has the time of its append.
pub(super) fn difference(stored: &StoredMessage, line: &Message) -> Option<String> {
    if stored.state != MessageState::Complete {
        return Some(format!("the stored message is {}, not complete", stored.state.as_str()));
    }
    let said = &stored.message;
    if said.role != line.role {
        return Some(format!("role is {} in the store, {} in the line", said.role, line.role));
    }
    let chunks = said.chunks.iter().zip(&line.chunks).position(|(stored, line)| stored != line);
    if let Some(chunk) = chunks {
        return Some(format!("chunks[{chunk}] differs"));
    }
    if said.chunks.len() != line.chunks.len() {
        return Some(format!("{} in the store, {} in the line", count(said.chunks.len(), "chunk"), line.chunks.len()));
    }
    if said.finish_reason != line.finish_reason {
        return Some("finish_reason differs".to_owned());
    }
    if said.usage != line.usage {
        return Some("usage differs".to_owned());
    }
    let mut metadata = said.metadata.clone();
    if line.metadata.created_at.is_none() {
        metadata.created_at = None;
    }
    if metadata.created_at != line.metadata.created_at {
        return Some("created_at differs".to_owned());
    }
    (metadata != line.metadata).then(|| "model, provider, ids or further fields differ".to_owned())
}
