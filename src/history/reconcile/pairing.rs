//! Which result answers which call.
//!
//! One pass in the order of the log, so that what is appended later never changes what was paired before: ids repeat
//! across turns, and a global map from id to result would mix the turns up. Its cost is linear in the number of calls and
//! results, also where all of them have one id.

use std::collections::{HashMap, HashSet, VecDeque};

use super::super::group::{MessageState, StoredMessage};
use super::placeholder::is_placeholder;
use super::site::{BySite, Site};
use super::waiting::Waiting;
use crate::model::{Body, Role};

/// All calls of assistant messages with their results, and the results that have no call of their own.
#[derive(Debug)]
pub(crate) struct Calls {
    /// The result of each call.
    answers: BySite<Option<Site>>,
    /// Results for calls that have another: a later one, or one that states that there is none where another came.
    pub(crate) duplicates: Vec<Site>,
    /// Results without a call.
    pub(crate) orphans: Vec<Site>,
}

/// The calls and results of one id.
#[derive(Debug, Default)]
struct Id<'a> {
    /// Whether there was a call.
    called: bool,
    /// Calls, by message. Those with a result leave when they are met.
    open: Vec<Waiting<'a>>,
    /// Results that came before any call.
    early: Waiting<'a>,
    /// The last message with calls.
    last: usize,
    /// Its calls whose result states that there is none, in the order of the results.
    unknown: VecDeque<Site>,
}

/// Calls by what a made answer knows of them: their id, the index of their message, and theirs in it.
type Own<'a> = HashMap<(&'a str, u64, u32), Waiting<'a>>;

impl Calls {
    pub(crate) fn pair(messages: &[StoredMessage]) -> Self {
        let mut calls = Self { answers: BySite::of(messages), duplicates: Vec::new(), orphans: Vec::new() };
        let mut ids: HashMap<&str, Id<'_>> = HashMap::new();
        let mut used = HashSet::new();
        // Few conversations hold answers that were made: this is filled when the first one comes.
        let mut own: Option<Own<'_>> = None;
        for (message, stored) in messages.iter().enumerate() {
            for (chunk, content) in stored.message.chunks.iter().enumerate() {
                let site = Site { message, chunk };
                match &content.body {
                    Body::ToolCall { id, name, .. } if stored.message.role == Role::Assistant => {
                        let known = ids.entry(id).or_default();
                        known.called = true;
                        if known.last != message {
                            known.last = message;
                            known.unknown.clear();
                        }
                        match known.early.find(Some(name), messages, |result| used.contains(&result)) {
                            Some(result) => {
                                used.insert(result);
                                calls.set(site, result);
                            }
                            None => {
                                known.wait(site, messages);
                                if let Some(own) = &mut own {
                                    own.entry((id, stored.index, stored.chunk_index(chunk)))
                                        .or_default()
                                        .push(site, messages);
                                }
                            }
                        }
                    }
                    Body::ToolResult { tool_call_id, name, .. } => {
                        let known = ids.entry(tool_call_id).or_default();
                        let is_answered = |call| calls.result(call).is_some();
                        let call = match stored.state {
                            MessageState::Synthetic => {
                                let own = own.get_or_insert_with(|| asked(messages, site));
                                let asked = own.get_mut(&(tool_call_id.as_str(), stored.index, stored.chunk_index(0)));
                                asked.and_then(|asked| asked.first(is_answered))
                            }
                            _ => known.answered(message, name.as_deref(), messages, is_answered),
                        };
                        match call {
                            Some(call) => {
                                calls.set(call, site);
                                let may_change = call.message == known.last && stored.state != MessageState::Synthetic;
                                if may_change && is_placeholder(content) {
                                    known.unknown.push_back(call);
                                }
                            }
                            None if known.called => {
                                let unknown = if is_placeholder(content) { None } else { known.unknown.pop_front() };
                                let before = unknown.and_then(|call| calls.set(call, site));
                                calls.duplicates.push(before.unwrap_or(site));
                            }
                            None => known.early.push(site, messages),
                        }
                    }
                    _ => {}
                }
            }
        }
        let early = ids.into_values().flat_map(|id| id.early.into_sites());
        calls.orphans = early.filter(|result| !used.contains(result)).collect();
        calls.orphans.sort_unstable();
        calls.duplicates.sort_unstable();
        calls
    }

    /// The result of a call.
    pub(crate) fn result(&self, call: Site) -> Option<Site> {
        self.answers.get(call).copied().flatten()
    }

    /// Sets the result of a call; returns the one that it had.
    fn set(&mut self, call: Site, result: Site) -> Option<Site> {
        self.answers.get_mut(call)?.replace(result)
    }

    /// Whether a result comes before the call that it answers.
    pub(crate) fn has_early_result(&self) -> bool {
        self.pairs().any(|(call, result)| result < call)
    }

    /// The calls that results answer, by the results.
    pub(crate) fn into_calls(self) -> HashMap<Site, Site> {
        self.pairs().map(|(call, result)| (result, call)).collect()
    }

    /// All calls that have a result, in order, with it.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (Site, Site)> {
        self.answers.iter().filter_map(|(call, result)| Some((call, (*result)?)))
    }
}

impl<'a> Id<'a> {
    /// A call waits for its result.
    fn wait(&mut self, call: Site, messages: &'a [StoredMessage]) {
        match self.open.last_mut().filter(|last| last.message() == Some(call.message)) {
            Some(last) => last.push(call, messages),
            None => {
                let mut open = Waiting::default();
                open.push(call, messages);
                self.open.push(open);
            }
        }
    }

    /// The call that a result in a message answers: one that the provider ran itself in the same message; else, of the
    /// nearest message with an open call, the first of those that the result names, or the first. One message may hold
    /// several calls of one id, answered in order.
    fn answered(
        &mut self,
        message: usize,
        name: Option<&str>,
        messages: &'a [StoredMessage],
        is_answered: impl Fn(Site) -> bool,
    ) -> Option<Site> {
        while self.open.last_mut().is_some_and(|last| last.first(&is_answered).is_none()) {
            self.open.pop();
        }
        let nearest = self.open.last_mut()?;
        let inline = if nearest.message() == Some(message) { nearest.server(messages, &is_answered) } else { None };
        inline.or_else(|| nearest.find(name, messages, is_answered))
    }
}

/// The calls before a place.
fn asked(messages: &[StoredMessage], end: Site) -> Own<'_> {
    let mut own = Own::new();
    for (message, stored) in messages.iter().enumerate().take(end.message + 1) {
        for (chunk, content) in stored.message.chunks.iter().enumerate() {
            let site = Site { message, chunk };
            if let Body::ToolCall { id, .. } = &content.body
                && stored.message.role == Role::Assistant
                && site < end
            {
                own.entry((id, stored.index, stored.chunk_index(chunk))).or_default().push(site, messages);
            }
        }
    }
    own
}

#[cfg(test)]
mod tests;
