//! Which result answers which call, for those who use a conversation.

use std::collections::HashMap;

use super::group::StoredMessage;
use super::reconcile::{Calls, Site};
use crate::model::{Body, Chunk, Role};

/// A call, or a result, in its message.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolChunk<'a> {
    /// The message that holds it. A result that reconcile made is in a message of the state `Synthetic`.
    pub message: &'a StoredMessage,
    /// Its index in the message, as the log has it.
    pub chunk_index: u32,
    /// The call or the result.
    pub chunk: &'a Chunk,
}

/// The calls of a conversation with their results: what [`Conversation::tool_calls`](crate::Conversation::tool_calls) gives.
#[derive(Debug)]
pub struct ToolCalls<'a> {
    messages: &'a [StoredMessage],
    /// All calls in order, with their results.
    calls: Vec<(Site, Option<Site>)>,
    /// Positions in `calls`, by the places of the calls in the log.
    by_call: HashMap<(u64, u32), usize>,
    /// The same, by the places of the results.
    by_result: HashMap<(u64, u32), usize>,
}

impl<'a> ToolCalls<'a> {
    pub(super) fn of(messages: &'a [StoredMessage]) -> Self {
        let paired = Calls::pair(messages);
        let mut found = Self { messages, calls: Vec::new(), by_call: HashMap::new(), by_result: HashMap::new() };
        for (message, stored) in
            messages.iter().enumerate().filter(|(_, stored)| stored.message.role == Role::Assistant)
        {
            for (chunk, content) in stored.message.chunks.iter().enumerate() {
                if !matches!(content.body, Body::ToolCall { .. }) {
                    continue;
                }
                let call = Site { message, chunk };
                let result = paired.result(call);
                let at = found.calls.len();
                found.by_call.insert((stored.index, stored.chunk_index(chunk)), at);
                if let Some(answer) = result.and_then(|result| found.at(result)) {
                    found.by_result.insert((answer.message.index, answer.chunk_index), at);
                }
                found.calls.push((call, result));
            }
        }
        found
    }

    /// All calls, in order, each with its result. Only a call that the provider runs itself, or that somebody may still
    /// answer, has none.
    pub fn iter(&self) -> impl Iterator<Item = (ToolChunk<'a>, Option<ToolChunk<'a>>)> {
        self.calls
            .iter()
            .filter_map(|(call, result)| Some((self.at(*call)?, result.and_then(|result| self.at(result)))))
    }

    /// The result of the call at a place in the log.
    #[must_use]
    pub fn result_of(&self, message_index: u64, chunk_index: u32) -> Option<ToolChunk<'a>> {
        let (_, result) = self.calls.get(*self.by_call.get(&(message_index, chunk_index))?)?;
        self.at((*result)?)
    }

    /// The call that the result at a place in the log answers. A result that reconcile made has the place of its call.
    #[must_use]
    pub fn call_of(&self, message_index: u64, chunk_index: u32) -> Option<ToolChunk<'a>> {
        let (call, _) = self.calls.get(*self.by_result.get(&(message_index, chunk_index))?)?;
        self.at(*call)
    }

    fn at(&self, site: Site) -> Option<ToolChunk<'a>> {
        let message = self.messages.get(site.message)?;
        let chunk = message.message.chunks.get(site.chunk)?;
        Some(ToolChunk { message, chunk_index: message.chunk_index(site.chunk), chunk })
    }
}
