//! A request taken apart: the runs of the model's messages, each with the digest of all before it.

use std::collections::{HashMap, HashSet, VecDeque};

use super::meaning::{self, Digest, Evidence, Key, Meaning, Running};
use crate::model::{Body, Chunk, Message, Role};

/// The most runs of one request that are looked up, and the most parts of what follows the last one.
const LOOKED_UP: usize = 512;
const PARTS: usize = 64;

/// Where in a conversation a request may go on.
#[derive(Debug)]
pub(super) struct Turns {
    pub(super) messages: Vec<Message>,
    /// How many of them, at the beginning, are the system's, and are not compared: they surround the others.
    pub(super) system: usize,
    /// The model's runs, in order.
    pub(super) runs: Vec<Run>,
    /// Of all that is not the model's at the end.
    pub(super) asked: Digest,
    /// Of the calls' ids before the answer.
    pub(super) calls: Digest,
    /// Of the ids that the client gave its own messages, if it gave some.
    pub(super) items: Option<Digest>,
    /// The places before the end of what follows the last run: the number of messages that are whole before it, and the number of
    /// chunks of the next one.
    pub(super) parts: Vec<Part>,
}

/// Messages of the model that nothing parts.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) first: usize,
    /// The message after it.
    pub(super) end: usize,
    /// Of all before it.
    pub(super) before: Digest,
    /// Of the ids of the calls before it.
    pub(super) calls: Digest,
    /// Whether a run before it is nobody else's by chance.
    pub(super) is_evident_before: bool,
}

#[derive(Debug)]
pub(super) struct Part {
    pub(super) messages: usize,
    pub(super) chunks: usize,
    pub(super) digest: Digest,
}

impl Turns {
    /// `elsewhere`: what of the request the provider has, by its names: the answer before it, a template. `surrounds`: whether what
    /// the system says at the beginning is not compared.
    pub(super) fn of(
        key: &Key,
        elsewhere: &[String],
        surrounds: bool,
        messages: Vec<Message>,
        skips: fn(Role, &Chunk) -> bool,
    ) -> Self {
        let system =
            messages.iter().position(|message| message.role != Role::System).filter(|_| surrounds).unwrap_or(0);
        let mut running = key.running();
        for name in elsewhere {
            running.say(Role::Assistant, &Meaning::Reference(name.clone()), None);
        }
        let (mut ids, mut is_evident) = (key.running(), false);
        let (mut runs, mut parts) = (Vec::new(), Vec::new());
        let is_clients = |message: &&Message| !is_models(message);
        let given = messages.iter().filter(is_clients).filter_map(|message| message.metadata.id.as_deref());
        let given: Vec<&[u8]> = given.map(str::as_bytes).collect();
        let items = (!given.is_empty()).then(|| key.digest(given));
        let mut at = system;
        while let Some(message) = messages.get(at) {
            let is_models = is_models(message);
            let end = messages.iter().skip(at).position(|next| self::is_models(next) != is_models);
            let end = end.map_or(messages.len(), |count| at + count);
            let part = messages.get(at..end).unwrap_or_default();
            if is_models {
                let (before, calls) = (running.digest(), ids.digest());
                runs.push(Run { first: at, end, before, calls, is_evident_before: is_evident });
                is_evident |= Evidence::of(chunks(part).map(|(_, chunk)| chunk)).is_enough;
                for chunk in chunks(part).map(|(_, chunk)| chunk).filter(|chunk| !skips(Role::Assistant, chunk)) {
                    if let Some(meaning) = meaning::of_model(chunk) {
                        running.say(Role::Assistant, &meaning, None);
                        if let Meaning::Call { id, .. } = meaning {
                            ids.say(Role::User, &Meaning::Reference(id.to_owned()), None);
                        }
                    }
                }
            } else {
                let calls = runs.last().and_then(|run: &Run| messages.get(run.first..run.end)).unwrap_or_default();
                let is_last = end == messages.len() || is_at_end(&messages, end);
                parts = say_given(&mut running, part, calls, at, is_last);
            }
            at = end;
        }
        let trailing = runs.last().filter(|run| run.end == messages.len());
        let asked = trailing.map_or_else(|| running.digest(), |run| run.before);
        let calls = trailing.map_or_else(|| ids.digest(), |run| run.calls);
        Self { messages, system, runs, asked, calls, items, parts }
    }

    /// What the model said at the end of the request, if it said something: what it is to go on with.
    pub(super) fn trailing(&self) -> Option<&Run> {
        self.runs.last().filter(|run| run.end == self.messages.len())
    }

    /// The runs that are looked up, the last one first.
    pub(super) fn looked_up(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().rev().take(LOOKED_UP)
    }

    pub(super) fn run_messages(&self, run: &Run) -> &[Message] {
        self.messages.get(run.first..run.end).unwrap_or_default()
    }
}

/// Whether only the model speaks from there on.
fn is_at_end(messages: &[Message], from: usize) -> bool {
    messages.iter().skip(from).all(is_models)
}

/// Whether the model said a message. References to its items stand between those of the client.
fn is_models(message: &Message) -> bool {
    let is_reference = |chunk: &Chunk| matches!(&chunk.body, Body::Opaque { kind, .. } if kind == "item_reference");
    message.role == Role::Assistant || !message.chunks.is_empty() && message.chunks.iter().all(is_reference)
}

fn chunks(messages: &[Message]) -> impl Iterator<Item = (Role, &Chunk)> {
    messages.iter().flat_map(|message| message.chunks.iter().map(|chunk| (message.role, chunk)))
}

/// Takes what is given to the model between two runs. Results come first, in the order of their calls: clients send them as tools
/// end. Gives the places within it, if it is the end of the request.
fn say_given(running: &mut Running, messages: &[Message], calls: &[Message], first: usize, is_last: bool) -> Vec<Part> {
    let mut open = Open::of(chunks(calls).filter_map(|(_, chunk)| call(chunk)));
    let given: Vec<Meaning<'_>> = chunks(messages).filter_map(|(_, chunk)| meaning::of(chunk)).collect();
    let (mut results, mut known) = (Vec::new(), HashSet::new());
    for result in &given {
        let Meaning::Result { id, name, .. } = result else { continue };
        // Some clients send one twice after they were started again.
        if known.contains(result) {
            continue;
        }
        let position = open.take(id, *name);
        if !id.is_empty() && position.is_some_and(|at| open.id(at) == Some(id)) {
            known.insert(result);
        }
        results.push((position, result));
    }
    results.sort_by_key(|(position, _)| position.unwrap_or(usize::MAX));
    let has_results = !results.is_empty();
    for (position, result) in results {
        running.say(Role::User, result, position);
    }
    let mut parts = Vec::new();
    if has_results && is_last {
        let whole = messages.iter().take_while(|message| message.chunks.iter().all(is_result)).count();
        let chunks =
            messages.get(whole).map_or(0, |next| next.chunks.iter().take_while(|chunk| is_result(chunk)).count());
        parts.push(Part { messages: first + whole, chunks, digest: running.digest() });
    }
    for (at, message) in messages.iter().enumerate() {
        for (chunk_at, chunk) in message.chunks.iter().enumerate() {
            let Some(meaning) = meaning::of(chunk).filter(|meaning| !matches!(meaning, Meaning::Result { .. })) else {
                continue;
            };
            running.say(message.role, &meaning, None);
            if is_last {
                let is_whole = chunk_at + 1 == message.chunks.len();
                let (messages, chunks) = if is_whole { (first + at + 1, 0) } else { (first + at, chunk_at + 1) };
                parts.push(Part { messages, chunks, digest: running.digest() });
            }
        }
    }
    // The last of them is all that is asked.
    parts.pop();
    let early = parts.len().saturating_sub(PARTS);
    parts.drain(..early);
    parts
}

/// Calls that no result has answered yet.
struct Open<'a> {
    calls: Vec<(&'a str, &'a str)>,
    /// Their positions, by id and by name, in order; with some that were answered.
    by_id: HashMap<&'a str, VecDeque<usize>>,
    by_name: HashMap<&'a str, VecDeque<usize>>,
    taken: Vec<bool>,
}

impl<'a> Open<'a> {
    /// Of the ids and names of calls.
    fn of(calls: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let calls: Vec<_> = calls.collect();
        let (mut by_id, mut by_name) = (HashMap::new(), HashMap::new());
        for (at, (id, name)) in calls.iter().enumerate() {
            if !id.is_empty() {
                by_id.entry(*id).or_insert_with(VecDeque::new).push_back(at);
            }
            by_name.entry(*name).or_insert_with(VecDeque::new).push_back(at);
        }
        Self { taken: vec![false; calls.len()], calls, by_id, by_name }
    }

    fn id(&self, at: usize) -> Option<&'a str> {
        self.calls.get(at).map(|(id, _)| *id)
    }

    /// The first one of an id, else of a name.
    fn take(&mut self, id: &str, name: Option<&str>) -> Option<usize> {
        let Self { by_id, by_name, taken, .. } = self;
        let mut first = |positions: Option<&mut VecDeque<usize>>| {
            let positions = positions?;
            while let Some(at) = positions.pop_front() {
                if let Some(taken) = taken.get_mut(at).filter(|taken| !**taken) {
                    *taken = true;
                    return Some(at);
                }
            }
            None
        };
        first(by_id.get_mut(id)).or_else(|| first(name.and_then(|name| by_name.get_mut(name))))
    }
}

pub(super) fn is_result(chunk: &Chunk) -> bool {
    matches!(chunk.body, Body::ToolResult { .. })
}

fn call(chunk: &Chunk) -> Option<(&str, &str)> {
    match &chunk.body {
        Body::ToolCall { id, name, server: false, .. } => Some((id, name)),
        _ => None,
    }
}
