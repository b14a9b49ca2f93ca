//! Results come directly after their call's message, in call order; calls that nobody will answer are answered.

use std::collections::HashSet;

use super::super::group::{MessageState, StoredMessage};
use super::super::report::{Fact, ReportLine, Rule};
use super::pairing::Calls;
use super::placeholder::{NOT_RUN, OUTCOME_UNKNOWN};
use super::removals::is_content;
use super::site::{BySite, Site};
use crate::model::{Body, Chunk, Message, Output, Role};

/// Pairs results with calls, and puts each result after its call.
pub(super) fn place_results(mut messages: Vec<StoredMessage>, report: &mut Vec<ReportLine>) -> Vec<StoredMessage> {
    let known: HashSet<(u64, u32)> = messages
        .iter()
        .filter(|stored| stored.state == MessageState::Synthetic)
        .flat_map(|stored| stored.chunk_indexes.iter().map(|chunk| (stored.index, *chunk)))
        .collect();
    messages.retain(|stored| stored.state != MessageState::Synthetic);
    let calls = Calls::pair(&messages);
    let mut placement = Placement::new(&messages, &calls, known, report);
    for position in 0..messages.len() {
        placement.place(position);
    }
    placement.report_moves();
    let placed = placement.out;
    let stays = |(position, placed): (usize, &Placed)| matches!(placed, Placed::Whole(of) if *of == position);
    if placed.len() == messages.len() && placed.iter().enumerate().all(stays) {
        return messages;
    }
    let mut messages: Vec<Option<StoredMessage>> = messages.into_iter().map(Some).collect();
    let moved = placed.into_iter().filter_map(|placed| match placed {
        Placed::Whole(position) => messages.get_mut(position)?.take(),
        Placed::Part(message, ..) | Placed::Made(message) => Some(*message),
    });
    moved.collect()
}

/// A message of the conversation as it comes out.
enum Placed {
    /// As it was, by its position. No message is in two places.
    Whole(usize),
    /// A part of the one at this position: the chunks at these.
    Part(Box<StoredMessage>, usize, Vec<usize>),
    /// An answer.
    Made(Box<StoredMessage>),
}

struct Placement<'a> {
    messages: &'a [StoredMessage],
    calls: &'a Calls,
    /// Chunks that leave their message: moved after a call, or out.
    taken: BySite<bool>,
    /// Messages that were placed whole, after a call.
    placed: Vec<bool>,
    /// Calls that were answered by an earlier run: their answer is no news.
    known: HashSet<(u64, u32)>,
    /// The position of the last message that ends what is pending.
    last_speaker: Option<usize>,
    report: &'a mut Vec<ReportLine>,
    /// Results that were taken out of their message.
    lifted: HashSet<Site>,
    out: Vec<Placed>,
}

impl<'a> Placement<'a> {
    fn new(
        messages: &'a [StoredMessage],
        calls: &'a Calls,
        known: HashSet<(u64, u32)>,
        report: &'a mut Vec<ReportLine>,
    ) -> Self {
        let mut taken = BySite::of(messages);
        let mut take = |site| {
            if let Some(taken) = taken.get_mut(site) {
                *taken = true;
            }
        };
        let outs = [(&calls.duplicates, Fact::ResultRepeated), (&calls.orphans, Fact::ResultUnpaired)];
        for (sites, fact) in outs {
            for site in sites {
                take(*site);
                if let Some((stored, id)) = result_at(messages, *site) {
                    report.push(ReportLine::chunk(fact.clone(), stored, site.chunk).with_tool_call_id(id));
                }
            }
        }
        calls.pairs().for_each(|(_, result)| take(result));
        let last_speaker = messages.iter().rposition(speaks);
        let placed = vec![false; messages.len()];
        Self { messages, calls, taken, placed, known, last_speaker, report, lifted: HashSet::new(), out: Vec::new() }
    }

    fn place(&mut self, position: usize) {
        let Some(stored) = self.messages.get(position).filter(|_| !self.is_placed(position)) else { return };
        let inline = self.inline_results(position, stored);
        let groups = self.groups(position, stored, &inline);
        let leaves =
            |chunk: &usize| self.is_taken(Site { message: position, chunk: *chunk }) && !inline.contains(chunk);
        let leaving: Vec<usize> = results_of(stored).filter(leaves).collect();
        if leaving.is_empty() {
            self.out.push(Placed::Whole(position));
        } else if leaving.len() < stored.message.chunks.len() {
            let stays = |chunk: &usize| leaving.binary_search(chunk).is_err();
            let kept: Vec<usize> = (0..stored.message.chunks.len()).filter(stays).collect();
            self.out.push(Placed::Part(Box::new(stored.pick(kept.iter().copied())), position, kept));
        }
        let mut expected = position + 1;
        let last = groups.len().saturating_sub(1);
        for (at, group) in groups.into_iter().enumerate() {
            match group {
                Group::Results(source, chunks) => self.place_group(source, &chunks, at == last, &mut expected),
                Group::Answer { chunk, rule, text } => self.answer(stored, chunk, rule, text),
            }
        }
    }

    /// What follows a message: the results of its calls in call order, neighbours from one message together.
    fn groups(&self, position: usize, stored: &StoredMessage, inline: &HashSet<usize>) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for (chunk, _) in calls_of(stored) {
            let call = Site { message: position, chunk };
            match self.calls.result(call) {
                Some(result) if result.message == position && inline.contains(&result.chunk) => {}
                Some(result) => match groups.last_mut() {
                    Some(Group::Results(source, chunks))
                        if *source == result.message && chunks.last().is_some_and(|last| *last < result.chunk) =>
                    {
                        chunks.push(result.chunk);
                    }
                    _ => groups.push(Group::Results(result.message, vec![result.chunk])),
                },
                None => groups.extend(self.answer_for(stored, position, chunk)),
            }
        }
        groups
    }

    /// The positions of results that may stay beside their call: the provider ran the tool within the message.
    fn inline_results(&self, position: usize, stored: &StoredMessage) -> HashSet<usize> {
        let server_calls =
            calls_of(stored).filter(|(_, chunk)| matches!(chunk.body, Body::ToolCall { server: true, .. }));
        server_calls
            .filter_map(|(chunk, _)| {
                let result = self.calls.result(Site { message: position, chunk })?;
                (result.message == position && result.chunk > chunk).then_some(result.chunk)
            })
            .collect()
    }

    fn answer_for(&self, stored: &StoredMessage, position: usize, chunk: usize) -> Option<Group> {
        let pending = self.last_speaker.is_none_or(|last| last <= position);
        if is_cut_off(stored, chunk) && !(pending && stored.state == MessageState::Streaming) {
            return Some(Group::Answer { chunk, rule: Rule::NotRun, text: NOT_RUN });
        }
        (!pending).then_some(Group::Answer { chunk, rule: Rule::OutcomeUnknown, text: OUTCOME_UNKNOWN })
    }

    fn place_group(&mut self, source: usize, chunks: &[usize], is_last: bool, expected: &mut usize) {
        let Some(stored) = self.messages.get(source) else { return };
        let all = stored.message.chunks.len();
        let stays = |chunk: usize| !self.is_taken(Site { message: source, chunk });
        let leads = chunks.iter().copied().eq(0..chunks.len());
        // A user message may open with the results and go on with what the user said.
        let may_open = is_last && matches!(stored.message.role, Role::User | Role::Tool);
        // The rest of a message is looked at once: only one group begins with its first chunk.
        let fits = || chunks.len() == all || may_open && (chunks.len()..all).all(stays);
        let in_place = source == *expected && leads && stored.message.role != Role::Assistant && fits();
        if in_place {
            *expected += 1;
            self.out.push(Placed::Whole(source));
        } else {
            self.lifted.extend(chunks.iter().map(|chunk| Site { message: source, chunk: *chunk }));
            let mut lifted = stored.pick(chunks.iter().copied());
            lifted.message.role = Role::Tool;
            self.out.push(Placed::Part(Box::new(lifted), source, chunks.to_vec()));
        }
        if in_place && let Some(placed) = self.placed.get_mut(source) {
            *placed = true;
        }
    }

    fn answer(&mut self, stored: &StoredMessage, chunk: usize, rule: Rule, text: &str) {
        let Some(Body::ToolCall { id, name, .. }) = stored.message.chunks.get(chunk).map(|chunk| &chunk.body) else {
            return;
        };
        let chunk_index = stored.chunk_index(chunk);
        if !self.known.contains(&(stored.index, chunk_index)) {
            let line = ReportLine::chunk(Fact::ResultMade { rule, text }, stored, chunk);
            self.report.push(line.with_tool_call_id(id));
        }
        let body = Body::ToolResult {
            tool_call_id: id.clone(),
            name: Some(name.clone()),
            output: Output::Text(text.to_owned()),
            is_error: Some(true),
        };
        self.out.push(Placed::Made(Box::new(StoredMessage {
            index: stored.index,
            state: MessageState::Synthetic,
            first_seq: stored.first_seq,
            last_seq: stored.last_seq,
            chunk_indexes: vec![chunk_index],
            message: Message::new(Role::Tool, [body.into()]),
        })));
    }

    /// Reports the results that stand elsewhere than before: something else changed sides with them.
    fn report_moves(&mut self) {
        if self.lifted.is_empty() {
            return;
        }
        let mut order: Vec<Site> = Vec::new();
        for placed in &self.out {
            let (message, chunks) = match placed {
                Placed::Whole(position) => {
                    let chunks = self.messages.get(*position).map_or(0, |stored| stored.message.chunks.len());
                    (*position, (0..chunks).collect())
                }
                Placed::Part(_, position, chunks) => (*position, chunks.clone()),
                Placed::Made(_) => continue,
            };
            order.extend(chunks.into_iter().map(|chunk| Site { message, chunk }));
        }
        // Before what it followed.
        let mut moved = HashSet::new();
        let mut least = None;
        for site in order.iter().rev() {
            if least.is_some_and(|least| least < *site) && self.lifted.contains(site) {
                moved.insert(*site);
            }
            least = Some(least.map_or(*site, |least: Site| least.min(*site)));
        }
        // Or after what it preceded.
        let mut most = None;
        for site in &order {
            if moved.contains(site) {
                continue;
            }
            if most.is_some_and(|most| most > *site) && self.lifted.contains(site) {
                moved.insert(*site);
            } else {
                most = Some(most.map_or(*site, |most: Site| most.max(*site)));
            }
        }
        for site in order.iter().filter(|site| moved.contains(site)) {
            if let Some((stored, id)) = result_at(self.messages, *site) {
                self.report.push(ReportLine::chunk(Fact::ResultMoved, stored, site.chunk).with_tool_call_id(id));
            }
        }
    }

    fn is_taken(&self, site: Site) -> bool {
        self.taken.get(site).copied().unwrap_or_default()
    }

    fn is_placed(&self, position: usize) -> bool {
        self.placed.get(position).copied().unwrap_or_default()
    }
}

/// What comes after a message with calls.
enum Group {
    /// Results, by the position of their message and theirs in it.
    Results(usize, Vec<usize>),
    /// An answer in place of a result.
    Answer { chunk: usize, rule: Rule, text: &'static str },
}

/// The calls of an assistant message, by position.
fn calls_of(stored: &StoredMessage) -> impl Iterator<Item = (usize, &Chunk)> {
    let chunks = if stored.message.role == Role::Assistant { stored.message.chunks.as_slice() } else { &[] };
    chunks.iter().enumerate().filter(|(_, chunk)| matches!(chunk.body, Body::ToolCall { .. }))
}

/// The results in a message, by position.
fn results_of(stored: &StoredMessage) -> impl Iterator<Item = usize> {
    let chunks = stored.message.chunks.iter().enumerate();
    chunks.filter(|(_, chunk)| matches!(chunk.body, Body::ToolResult { .. })).map(|(position, _)| position)
}

fn result_at(messages: &[StoredMessage], site: Site) -> Option<(&StoredMessage, &str)> {
    let stored = messages.get(site.message)?;
    match &stored.message.chunks.get(site.chunk)?.body {
        Body::ToolResult { tool_call_id, .. } => Some((stored, tool_call_id)),
        _ => None,
    }
}

/// Whether a message ends what is pending before it: somebody went on. Results alone, under whatever role, do not, nor does
/// what says nothing.
pub(crate) fn speaks(stored: &StoredMessage) -> bool {
    let says = |chunk: &Chunk| is_content(chunk) && !matches!(chunk.body, Body::ToolResult { .. });
    matches!(stored.message.role, Role::Assistant | Role::User) && stored.message.chunks.iter().any(says)
}

/// The position of the first message after which nobody went on: from there on, calls may still be running.
pub(crate) fn first_pending(messages: &[StoredMessage]) -> usize {
    messages.iter().rposition(speaks).unwrap_or_default()
}

/// Whether a call was cut off: the model did not end its message, and the last call's arguments are no JSON object.
pub(crate) fn is_cut_off(stored: &StoredMessage, chunk: usize) -> bool {
    let ended_early = stored.state == MessageState::Streaming
        || stored.message.finish_reason.as_ref().is_some_and(crate::model::FinishReason::is_cut_off);
    let Some(Body::ToolCall { arguments, .. }) = stored.message.chunks.get(chunk).map(|chunk| &chunk.body) else {
        return false;
    };
    // The next call is looked for, not the last one: all calls of a message are asked about.
    let after = stored.message.chunks.get(chunk + 1..).unwrap_or_default();
    let is_last = || !after.iter().any(|chunk| matches!(chunk.body, Body::ToolCall { .. }));
    ended_early && stored.message.role == Role::Assistant && is_last() && !crate::json::is_object(arguments)
}
