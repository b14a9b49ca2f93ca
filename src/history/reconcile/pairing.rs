//! Which result answers which call.
//!
//! One pass in the order of the log, so that what is appended later never changes what was paired before: ids repeat
//! across turns, and a global map from id to result would mix the turns up. Its cost is linear in the number of calls and
//! results, also where all of them have one id.
//!
//! Calls that wait for a result, or results that wait for a call: in order, and by the tool that they name.

use std::collections::{HashMap, HashSet, VecDeque};

use super::placeholder::is_placeholder;
use super::site::{BySite, Site};
use crate::history::group::{MessageState, StoredMessage};
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

/// Places in the order of the log. What was paired is skipped when it is met, so that each place is looked at a few times
/// only, however many wait.
#[derive(Debug, Default)]
pub(super) struct Waiting<'a> {
    sites: Vec<Site>,
    /// Before this one, all are gone.
    first: usize,
    /// Before this one, no call of the provider's own waits.
    server: usize,
    /// By the tool that they name, from the first time on that the order does not decide.
    named: Option<HashMap<&'a str, VecDeque<Site>>>,
}

impl<'a> Waiting<'a> {
    /// Adds a place after all others.
    pub(super) fn push(&mut self, site: Site, messages: &'a [StoredMessage]) {
        self.sites.push(site);
        if let Some(named) = &mut self.named {
            add(named, site, messages);
        }
    }

    /// The position of the last one's message.
    pub(super) fn message(&self) -> Option<usize> {
        self.sites.last().map(|site| site.message)
    }

    /// The first that is not gone.
    pub(super) fn first(&mut self, is_gone: impl Fn(Site) -> bool) -> Option<Site> {
        while let Some(site) = self.sites.get(self.first) {
            if !is_gone(*site) {
                return Some(*site);
            }
            self.first += 1;
        }
        None
    }

    /// The first that is not gone and names the tool; if none does, the first.
    pub(super) fn find(
        &mut self,
        name: Option<&str>,
        messages: &'a [StoredMessage],
        is_gone: impl Fn(Site) -> bool,
    ) -> Option<Site> {
        let first = self.first(&is_gone)?;
        let Some(name) = name.filter(|name| name_at(messages, first) != Some(name)) else { return Some(first) };
        let waiting = self.sites.get(self.first..).unwrap_or_default();
        let named = self.named.get_or_insert_with(|| {
            let mut named = HashMap::new();
            waiting.iter().for_each(|site| add(&mut named, *site, messages));
            named
        });
        let Some(queue) = named.get_mut(name) else { return Some(first) };
        while queue.front().is_some_and(|site| is_gone(*site)) {
            queue.pop_front();
        }
        Some(queue.front().copied().unwrap_or(first))
    }

    /// The first call that is not gone and that the provider runs itself.
    pub(super) fn server(&mut self, messages: &[StoredMessage], is_gone: impl Fn(Site) -> bool) -> Option<Site> {
        while let Some(site) = self.sites.get(self.server) {
            if is_servers(messages, *site) && !is_gone(*site) {
                return Some(*site);
            }
            self.server += 1;
        }
        None
    }

    fn into_sites(self) -> Vec<Site> {
        self.sites
    }
}

fn add<'a>(named: &mut HashMap<&'a str, VecDeque<Site>>, site: Site, messages: &'a [StoredMessage]) {
    if let Some(name) = name_at(messages, site) {
        named.entry(name).or_default().push_back(site);
    }
}

fn body(messages: &[StoredMessage], site: Site) -> Option<&Body> {
    messages.get(site.message)?.message.chunks.get(site.chunk).map(|chunk| &chunk.body)
}

/// The tool that a call or a result names.
fn name_at(messages: &[StoredMessage], site: Site) -> Option<&str> {
    match body(messages, site)? {
        Body::ToolCall { name, .. } => Some(name),
        Body::ToolResult { name, .. } => name.as_deref(),
        _ => None,
    }
}

fn is_servers(messages: &[StoredMessage], site: Site) -> bool {
    matches!(body(messages, site), Some(Body::ToolCall { server: true, .. }))
}
