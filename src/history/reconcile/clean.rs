//! Finds out whether no rule has anything to do. It looks at each message once, without a table of ids.

use super::super::group::{MessageState, StoredMessage};
use super::removals::is_content;
use crate::model::{Body, Chunk, Role};

/// The most calls of one message whose ids are compared with each other here.
const MOST_CALLS: usize = 16;

/// Whether the messages come out as they are. True only if each message has content and no error, and the results of its
/// calls come directly after it, in the order of the calls. Else the rules decide.
pub(super) fn is_clean(messages: &[StoredMessage]) -> bool {
    let mut rest = messages;
    while let Some((stored, after)) = rest.split_first() {
        match after_results(stored, after) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    true
}

/// What comes after a message and the results of its calls. None: a rule may have something to do.
fn after_results<'a>(stored: &StoredMessage, mut after: &'a [StoredMessage]) -> Option<&'a [StoredMessage]> {
    let chunks = stored.message.chunks.as_slice();
    if !says_something(stored) || chunks.iter().any(|chunk| result_id(chunk).is_some()) {
        return None;
    }
    if stored.message.role != Role::Assistant {
        return Some(after);
    }
    let mut calls = chunks.iter().filter_map(call_id);
    if !are_distinct(calls.clone()) {
        return None;
    }
    let mut next = calls.next();
    while next.is_some() {
        let (results, rest) = after.split_first()?;
        let mut chunks = results.message.chunks.iter().peekable();
        while let Some(id) = chunks.next_if(|chunk| result_id(chunk).is_some()).and_then(result_id) {
            if next != Some(id) {
                return None;
            }
            next = calls.next();
        }
        // The message that has the last results may go on after them.
        let goes_on = chunks.peek().is_some();
        let may_go_on = next.is_none() && matches!(results.message.role, Role::User | Role::Tool);
        if results.message.role == Role::Assistant
            || !says_something(results)
            || goes_on && !may_go_on
            || chunks.any(|chunk| result_id(chunk).is_some())
        {
            return None;
        }
        after = rest;
    }
    Some(after)
}

fn says_something(stored: &StoredMessage) -> bool {
    let chunks = &stored.message.chunks;
    stored.state != MessageState::Synthetic
        && chunks.iter().any(is_content)
        && !chunks.iter().any(|chunk| matches!(chunk.body, Body::Error { .. }))
}

fn are_distinct<'a>(ids: impl Iterator<Item = &'a str> + Clone) -> bool {
    let repeats = |at: usize, id: &str| ids.clone().take(at).any(|before| before == id);
    ids.clone().nth(MOST_CALLS).is_none() && !ids.clone().enumerate().any(|(at, id)| repeats(at, id))
}

fn call_id(chunk: &Chunk) -> Option<&str> {
    match &chunk.body {
        Body::ToolCall { id, .. } => Some(id),
        _ => None,
    }
}

fn result_id(chunk: &Chunk) -> Option<&str> {
    match &chunk.body {
        Body::ToolResult { tool_call_id, .. } => Some(tool_call_id),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
