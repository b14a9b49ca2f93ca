//! The items of stored answers that an input names by their ids, or sends back.

use std::collections::HashMap;

use super::about::ResponseId;
use super::reach::Reach;
use crate::error::Error;
use crate::history::StoredMessage;
use crate::model::{Body, Chunk, ConversationId, Message, Metadata, Role};
use crate::server::app::Call;
use crate::server::openai::{Taken, given, messages, normal};
use crate::server::refusal::Refusal;

/// The answer whose items were asked for last: those of one answer come together.
#[derive(Debug, Default)]
pub(super) struct Referenced {
    answer: Option<ResponseId>,
    /// The answer as it is in memory, and on disk.
    found: Vec<Answer>,
}

#[derive(Debug)]
struct Answer {
    stored: StoredMessage,
    /// Its items: each by its id, with the positions of its chunks.
    items: HashMap<String, Vec<usize>>,
}

impl Referenced {
    /// The stored item of an id, as a message of its own.
    pub(super) fn find(&mut self, call: &Call, reach: &Reach, id: &str) -> Result<Option<Message>, Refusal> {
        let Some(answer) = ResponseId::of_answer(id) else { return Ok(None) };
        if self.answer != Some(answer) {
            self.found = read(call, reach, answer)?;
            self.answer = Some(answer);
        }
        let item = self.found.iter().find_map(|answer| Some((&answer.stored, answer.items.get(id)?)));
        Ok(item.map(|(stored, positions)| {
            let Message { role, chunks, metadata, .. } = stored.pick(positions.iter().copied()).message;
            let mut message = Message::new(role, chunks);
            message.metadata = Metadata { model: metadata.model, provider: metadata.provider, ..Metadata::default() };
            message
        }))
    }

    /// The stored item that an item of the input is: it has the id of an item of an answer, and says the same. A client that
    /// keeps the history itself sends what the model said without what only the model's provider reads.
    pub(super) fn find_same(&mut self, call: &Call, reach: &Reach, item: &Taken) -> Result<Option<Message>, Refusal> {
        let Some(id) = item.id.as_deref() else { return Ok(None) };
        let Some(stored) = self.find(call, reach, id)?.filter(|stored| stored.role == Role::Assistant) else {
            return Ok(None);
        };
        let items = normal(std::slice::from_ref(item), ConversationId::new(), None)?;
        let is_same = messages(&items).first().is_some_and(|given| said(given) == said(&stored));
        Ok(is_same.then_some(stored))
    }
}

fn read(call: &Call, reach: &Reach, answer: ResponseId) -> Result<Vec<Answer>, Refusal> {
    let mut found = Vec::new();
    for is_kept in [false, true] {
        let home = reach.home(call, answer.conversation, is_kept);
        let page = match home.store.messages(&home.name, answer.message, 1) {
            Ok(page) => page,
            Err(Error::NotFound { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        let Some(stored) = page.into_iter().find(|stored| stored.index == answer.message) else { continue };
        let count = stored.message.chunks.len();
        let positions: HashMap<u32, usize> = (0..count).map(|at| (stored.chunk_index(at), at)).collect();
        let mut items = HashMap::new();
        for item in given(&stored) {
            let chunks = item.chunks.iter().filter_map(|index| positions.get(index).copied());
            // An item without chunks is the whole message.
            let chunks = if item.chunks.is_empty() { (0..count).collect() } else { chunks.collect() };
            items.entry(item.id).or_insert(chunks);
        }
        found.push(Answer { stored, items });
    }
    Ok(found)
}

/// What a message says, but its thinking: a client has none of it, or a summary.
fn said(message: &Message) -> (String, Vec<(&str, &str, &str)>) {
    let text = message.chunks.iter().filter(|chunk| matches!(chunk.body, Body::Text { .. } | Body::Refusal { .. }));
    let calls = message.chunks.iter().filter_map(|chunk| match &chunk.body {
        Body::ToolCall { id, name, arguments, .. } => Some((&**id, &**name, &**arguments)),
        _ => None,
    });
    (text.map(Chunk::growing).collect(), calls.collect())
}
