//! Results that do not say which call they answer: those of the open calls before them.

use std::collections::{HashMap, HashSet};
use std::mem;

use super::parsed::Parsed;
use crate::history::ReportLine;
use crate::history::report::Fact;
use crate::model::{Body, Chunk, Message, Role};

/// Where a chunk is: the message, and the chunk in it.
type Site = (usize, usize);

/// The calls of a message, and the results up to the next message with calls.
#[derive(Default)]
struct Turn {
    calls: Vec<Site>,
    results: Vec<Site>,
}

/// Gives each result without an id the id of a call of the message before it that has no result: that of the tool that it
/// names; if it names none, the next. The same where the calls are without ids, and the results are not. Where there are more
/// such results than open calls, nobody knows which of them answer, and they stay as they are.
pub(crate) fn answer_open_calls(parsed: &mut Parsed) {
    let lacks_id = |chunk: &Chunk| match &chunk.body {
        Body::ToolCall { id, .. } => id.is_empty(),
        Body::ToolResult { tool_call_id, .. } => tool_call_id.is_empty(),
        _ => false,
    };
    if !parsed.messages.iter().flat_map(|message| &message.chunks).any(lacks_id) {
        return;
    }
    let turns = turns(&parsed.messages);
    let counts = Counts::of(&parsed.messages);
    let given: Vec<(Site, String)> = turns.into_iter().flat_map(|turn| turn.given(&parsed.messages, &counts)).collect();
    for ((message, chunk), id) in given {
        let index = u64::try_from(message).ok();
        let line = ReportLine { message_index: index, ..ReportLine::new(Fact::ResultGiven { id: &id }) };
        parsed.notes.push(line.with_tool_call_id(&id));
        let chunks = parsed.messages.get_mut(message).map(|message| &mut message.chunks);
        if let Some(Body::ToolResult { tool_call_id, .. }) =
            chunks.and_then(|chunks| chunks.get_mut(chunk)).map(|chunk| &mut chunk.body)
        {
            *tool_call_id = id;
        }
    }
}

fn turns(messages: &[Message]) -> Vec<Turn> {
    let (mut turns, mut turn) = (Vec::new(), Turn::default());
    for (at, message) in messages.iter().enumerate() {
        let sites = |is: fn(&Body) -> bool| {
            let chunks = message.chunks.iter().enumerate().filter(move |(_, chunk)| is(&chunk.body));
            chunks.map(move |(chunk, _)| (at, chunk))
        };
        let mut calls = sites(|body| matches!(body, Body::ToolCall { .. })).peekable();
        let results = sites(|body| matches!(body, Body::ToolResult { .. }));
        if message.role == Role::Assistant {
            // What the provider ran itself is in the message of its call.
            if calls.peek().is_some() {
                turns.push(mem::replace(&mut turn, Turn { calls: calls.collect(), results: Vec::new() }));
            }
        } else {
            turn.results.extend(results);
        }
    }
    turns.push(turn);
    turns
}

/// How many calls and results of each id there are.
#[derive(Default)]
struct Counts<'a> {
    calls: HashMap<&'a str, usize>,
    results: HashMap<&'a str, usize>,
}

impl<'a> Counts<'a> {
    fn of(messages: &'a [Message]) -> Self {
        let mut counts = Self::default();
        for chunk in messages.iter().flat_map(|message| &message.chunks) {
            match &chunk.body {
                Body::ToolCall { id, .. } => *counts.calls.entry(id).or_default() += 1,
                Body::ToolResult { tool_call_id, .. } => *counts.results.entry(tool_call_id).or_default() += 1,
                _ => {}
            }
        }
        counts
    }

    /// Whether a call of this id has no result, here or later.
    fn is_open(&self, id: &str) -> bool {
        self.calls.get(id) > self.results.get(id)
    }
}

impl Turn {
    fn given(self, messages: &[Message], counts: &Counts<'_>) -> Vec<(Site, String)> {
        let body = |(message, chunk): &Site| Some(&messages.get(*message)?.chunks.get(*chunk)?.body);
        let call = |site: &Site| match body(site) {
            Some(Body::ToolCall { id, name, server: false, .. }) => Some((id.as_str(), name.as_str())),
            _ => None,
        };
        let result = |site: &Site| match body(site) {
            Some(Body::ToolResult { tool_call_id, name, .. }) => {
                Some((tool_call_id.as_str(), name.as_deref().unwrap_or_default()))
            }
            _ => None,
        };
        let mut answered: HashMap<&str, usize> = HashMap::new();
        for (id, _) in self.results.iter().filter_map(result) {
            *answered.entry(id).or_default() += 1;
        }
        let mut open = Vec::new();
        for (id, name) in self.calls.iter().filter_map(call) {
            match answered.get_mut(id).filter(|left| **left > 0) {
                Some(left) => *left -= 1,
                None if counts.is_open(id) => open.push((id, name)),
                None => {}
            }
        }
        // Either side may be without ids.
        let calls_have_ids = !counts.calls.contains_key("");
        open.retain(|(id, _)| calls_have_ids || id.is_empty());
        let is_lost = |id: &str| id.is_empty() == calls_have_ids && !counts.calls.contains_key(id);
        let results = self.results.iter().filter_map(|site| Some((*site, result(site)?)));
        let lost: Vec<(Site, &str)> =
            results.filter(|(_, (id, _))| is_lost(id)).map(|(site, (_, name))| (site, name)).collect();
        if lost.len() > open.len() {
            return Vec::new();
        }
        let mut named: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, (_, name)) in open.iter().enumerate().rev() {
            named.entry(name).or_default().push(at);
        }
        let by_name: Vec<Option<usize>> = lost.iter().map(|(_, name)| named.get_mut(name)?.pop()).collect();
        let taken: HashSet<usize> = by_name.iter().flatten().copied().collect();
        let mut rest = (0..open.len()).filter(|at| !taken.contains(at));
        let pair = |((site, name), at): (&(Site, &str), Option<usize>)| {
            let next = || if name.is_empty() { rest.next() } else { None };
            let (id, _) = open.get(at.or_else(next)?)?;
            Some((*site, (*id).to_owned()))
        };
        lost.iter().zip(by_name).filter_map(pair).collect()
    }
}
