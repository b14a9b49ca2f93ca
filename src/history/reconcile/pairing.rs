//! Which result answers which call.
//!
//! One pass in the order of the log, so that what is appended later never changes what was paired before: ids repeat
//! across turns, and a global map from id to result would mix the turns up.

use std::collections::{HashMap, VecDeque};

use super::super::group::{MessageState, StoredMessage};
use crate::model::{Body, Chunk, Role};

/// A chunk's place: position of its message, position in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Site {
    pub(crate) message: usize,
    pub(crate) chunk: usize,
}

/// All calls of assistant messages with their results, and the results that have no call of their own.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    answers: HashMap<Site, Site>,
    /// Results for calls that were answered before.
    pub(crate) duplicates: Vec<Site>,
    /// Results without a call.
    pub(crate) orphans: Vec<Site>,
}

#[derive(Debug, Default)]
struct Id {
    /// Whether there was a call.
    called: bool,
    /// Calls without a result, in order.
    open: Vec<Site>,
    /// Results that came before any call.
    early: VecDeque<Site>,
}

impl Calls {
    pub(crate) fn pair(messages: &[StoredMessage]) -> Self {
        let mut calls = Self::default();
        let mut ids: HashMap<&str, Id> = HashMap::new();
        for (message, stored) in messages.iter().enumerate() {
            for (chunk, content) in stored.message.chunks.iter().enumerate() {
                let site = Site { message, chunk };
                match &content.body {
                    Body::ToolCall { id, name, .. } if stored.message.role == Role::Assistant => {
                        let known = ids.entry(id).or_default();
                        known.called = true;
                        match take_early(&mut known.early, messages, name) {
                            Some(result) => _ = calls.answers.insert(site, result),
                            None => known.open.push(site),
                        }
                    }
                    Body::ToolResult { tool_call_id, name, .. } => {
                        let known = ids.entry(tool_call_id).or_default();
                        let call = match stored.state {
                            MessageState::Synthetic => take_own(&mut known.open, messages, stored),
                            _ => take_inline(&mut known.open, messages, message)
                                .or_else(|| take_nearest(&mut known.open, messages, name.as_deref())),
                        };
                        match call {
                            Some(call) => _ = calls.answers.insert(call, site),
                            None if known.called => calls.duplicates.push(site),
                            None => known.early.push_back(site),
                        }
                    }
                    _ => {}
                }
            }
        }
        calls.orphans = ids.into_values().flat_map(|id| id.early).collect();
        calls.orphans.sort_unstable();
        calls
    }

    /// The result of a call.
    pub(crate) fn result(&self, call: Site) -> Option<Site> {
        self.answers.get(&call).copied()
    }

    /// Whether a result stands before the call that it answers.
    pub(crate) fn has_early_result(&self) -> bool {
        self.answers.iter().any(|(call, result)| result < call)
    }

    /// The calls that results answer, by the results.
    pub(crate) fn into_calls(self) -> HashMap<Site, Site> {
        self.answers.into_iter().map(|(call, result)| (result, call)).collect()
    }

    /// All results that answer a call.
    pub(crate) fn results(&self) -> impl Iterator<Item = Site> {
        self.answers.values().copied()
    }
}

/// The call that a made answer was made for.
fn take_own(open: &mut Vec<Site>, messages: &[StoredMessage], answer: &StoredMessage) -> Option<Site> {
    let own = open.iter().position(|call| {
        let asked = messages.get(call.message);
        asked.is_some_and(|asked| (asked.index, asked.chunk_index(call.chunk)) == (answer.index, answer.chunk_index(0)))
    });
    own.map(|at| open.remove(at))
}

/// The call that the provider ran itself, in the message that holds the result too.
fn take_inline(open: &mut Vec<Site>, messages: &[StoredMessage], message: usize) -> Option<Site> {
    let chunks = &messages.get(message)?.message.chunks;
    let is_servers = |chunk: &Chunk| matches!(chunk.body, Body::ToolCall { server: true, .. });
    let inline = open.iter().position(|call| call.message == message && chunks.get(call.chunk).is_some_and(is_servers));
    inline.map(|at| open.remove(at))
}

/// The nearest message's first open call: one message may hold several calls of one id, answered in order, unless the
/// result names the tool of one of them.
fn take_nearest(open: &mut Vec<Site>, messages: &[StoredMessage], name: Option<&str>) -> Option<Site> {
    let nearest = open.last()?.message;
    let first = open.iter().rposition(|call| call.message != nearest).map_or(0, |before| before + 1);
    let is_named = |call: &Site| name.is_some_and(|name| name_at(messages, *call) == Some(name));
    let named = open.iter().skip(first).position(is_named).unwrap_or_default();
    Some(open.remove(first + named))
}

/// The first result that came before its call, unless another names the call's tool.
fn take_early(early: &mut VecDeque<Site>, messages: &[StoredMessage], name: &str) -> Option<Site> {
    let named = early.iter().position(|result| name_at(messages, *result) == Some(name));
    early.remove(named.unwrap_or_default())
}

/// The tool that a call or a result names.
fn name_at(messages: &[StoredMessage], site: Site) -> Option<&str> {
    match &messages.get(site.message)?.message.chunks.get(site.chunk)?.body {
        Body::ToolCall { name, .. } => Some(name),
        Body::ToolResult { name, .. } => name.as_deref(),
        _ => None,
    }
}
