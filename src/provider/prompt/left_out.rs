//! What the log has and a prompt does not, option by option.
//!
//! The summary in place of what it covers.
//!
//! Prompts without images, for models that see none: words stand where they stood.
//!
//! Prompts whose results of tools are no longer than the options allow: the beginning stays, a line states the rest.
//!
//! Rounds of tools that are over: a call and its answer, after which the user has spoken.
//!
//! They may be sent as something else than calls and answers. Whether a round is over depends on what follows it, so a prompt
//! changes from there on when the user speaks.
//!
//! Prompts with the thinking of the last turns only.
//!
//! Thinking is left out in steps of as many turns as stay at least, so that a prompt changes once in so many turns, not with
//! each of them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::options::{FinishedTools, PromptOptions, Thinking};
use super::window::blocks::UserTurns;
use super::window::limits::Measure;
use crate::history::report::{Fact, Thought};
use crate::history::{Calls, Conversation, MessageState, ReportLine, Rule, Site, StoredMessage, Summary, speaks};
use crate::json;
use crate::model::{Body, Chunk, Message, Output, Part, PartBody, Role};
use crate::provider::target::Target;
use crate::provider::text::is_blank;

/// What comes before a summary in a prompt.
const HEADING: &str = "Summary of the conversation up to here:";

/// The messages of a prompt: a summary, said by the user, where the first message was that it covers. System messages
/// stay, and a result goes where its call goes.
pub(crate) fn summarized<'a>(conversation: &'a Conversation, report: &mut Vec<ReportLine>) -> Cow<'a, [StoredMessage]> {
    let messages = conversation.messages();
    let Some(summary) = conversation.summary() else { return Cow::Borrowed(messages) };
    let through = summary.through;
    let calls = Calls::pair(messages).into_calls();
    let is_covered = |stored: &StoredMessage| stored.index <= through && stored.message.role != Role::System;
    let mut standing = Some(message(summary));
    let mut out = Vec::new();
    for (message, stored) in messages.iter().enumerate() {
        let goes = |chunk: usize| {
            let call = calls.get(&Site { message, chunk }).and_then(|call| messages.get(call.message));
            is_covered(call.unwrap_or(stored))
        };
        let left = stored.select(|chunk| !goes(chunk));
        if left.message.chunks.len() < stored.message.chunks.len() || stored.index > through {
            out.extend(standing.take());
        }
        if stored.index > through {
            for chunk in (0..stored.message.chunks.len()).filter(|chunk| goes(*chunk)) {
                report.push(ReportLine::chunk(Fact::CallSummarized, stored, chunk));
            }
        }
        if !left.message.chunks.is_empty() {
            out.push(left);
        }
    }
    out.extend(standing);
    let line = ReportLine::new(Fact::Summarized { seq: summary.seq });
    report.push(ReportLine { message_index: Some(through), ..line });
    Cow::Owned(out)
}

fn message(summary: &Summary) -> StoredMessage {
    let Summary { seq, through, text } = summary;
    StoredMessage {
        index: *through,
        state: MessageState::Synthetic,
        first_seq: *seq,
        last_seq: *seq,
        chunk_indexes: vec![0],
        message: Message::user(format!("{HEADING}\n\n{text}")),
    }
}

/// The text in the place of an image.
const LEFT_OUT: &str = "[image left out: the model takes none]";

/// The messages without their images.
pub(crate) fn without_images<'a>(
    messages: Cow<'a, [StoredMessage]>,
    report: &mut Vec<ReportLine>,
) -> Cow<'a, [StoredMessage]> {
    if !messages.iter().any(|stored| stored.message.chunks.iter().any(|chunk| holds_image(&chunk.body))) {
        return messages;
    }
    let mut messages = messages.into_owned();
    for stored in &mut messages {
        for at in 0..stored.message.chunks.len() {
            let Some(chunk) = stored.message.chunks.get_mut(at).filter(|chunk| holds_image(&chunk.body)) else {
                continue;
            };
            chunk.native = None;
            match &mut chunk.body {
                Body::ToolResult { output: Output::Parts(parts), .. } => {
                    for part in parts.iter_mut().filter(|part| matches!(part.body, PartBody::Image(_))) {
                        part.body = PartBody::Text { text: LEFT_OUT.to_owned() };
                    }
                }
                body => *body = Body::Text { text: LEFT_OUT.to_owned(), annotations: None },
            }
            report.push(ReportLine::chunk(Fact::ImageOmitted, stored, at));
        }
    }
    Cow::Owned(messages)
}

fn holds_image(body: &Body) -> bool {
    match body {
        Body::Image(_) => true,
        Body::ToolResult { output: Output::Parts(parts), .. } => {
            parts.iter().any(|part| matches!(part.body, PartBody::Image(_)))
        }
        _ => false,
    }
}

/// The messages with results of at most that many bytes of text. What a provider's own tool gave, in the block that it
/// came as, stays whole: the provider takes it back unchanged only.
pub(crate) fn shortened<'a>(
    messages: Cow<'a, [StoredMessage]>,
    most: u64,
    report: &mut Vec<ReportLine>,
) -> Cow<'a, [StoredMessage]> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let is_long = |stored: &StoredMessage, chunk: &Chunk| {
        // The text in place of a result that has not come is the same before the conversation holds it.
        size(chunk).is_some_and(|size| size > most)
            && stored.state != MessageState::Synthetic
            && (stored.message.role != Role::Assistant || chunk.native.is_none())
    };
    let has_long = |stored: &StoredMessage| stored.message.chunks.iter().any(|chunk| is_long(stored, chunk));
    if !messages.iter().any(has_long) {
        return messages;
    }
    let mut messages = messages.into_owned();
    for stored in messages.iter_mut().filter(|stored| has_long(stored)) {
        for at in 0..stored.message.chunks.len() {
            let Some(chunk) = stored.message.chunks.get(at).filter(|chunk| is_long(stored, chunk)) else { continue };
            let fact = Fact::ResultShortened { bytes: size(chunk).unwrap_or_default(), most };
            report.push(ReportLine::chunk(fact, stored, at));
            if let Some(chunk) = stored.message.chunks.get_mut(at) {
                shorten(chunk, most);
            }
        }
    }
    Cow::Owned(messages)
}

/// Bytes of text in a result. `None` of what is none.
fn size(chunk: &Chunk) -> Option<usize> {
    match &chunk.body {
        Body::ToolResult { output: Output::Text(text), .. } => Some(text.len()),
        Body::ToolResult { output: Output::Parts(parts), .. } => {
            Some(parts.iter().filter_map(|part| text_of(&part.body)).map(str::len).sum())
        }
        _ => None,
    }
}

fn text_of(part: &PartBody) -> Option<&str> {
    match part {
        PartBody::Text { text } => Some(text),
        PartBody::Json { json } => Some(json.as_str()),
        _ => None,
    }
}

/// Keeps the first bytes of a result, and all that is no text.
fn shorten(chunk: &mut Chunk, most: usize) {
    chunk.native = None;
    let Body::ToolResult { output, .. } = &mut chunk.body else { return };
    match output {
        Output::Text(text) => *text = beginning(text, most, text.len()),
        Output::Parts(parts) => {
            let all: usize = parts.iter().filter_map(|part| text_of(&part.body)).map(str::len).sum();
            let mut left = Some(most);
            parts.retain_mut(|part| {
                let Some(text) = text_of(&part.body) else { return true };
                match left {
                    Some(rest) if text.len() <= rest => left = Some(rest - text.len()),
                    Some(rest) => {
                        part.body = PartBody::Text { text: beginning(text, rest, all - (most - rest)) };
                        left = None;
                    }
                    // The line is in the part before.
                    None => return false,
                }
                true
            });
        }
    }
}

/// The first bytes, up to the end of a character, and how many of the `all` are left out.
fn beginning(text: &str, most: usize, all: usize) -> String {
    let kept = text.get(..json::boundary(text, most)).unwrap_or_default();
    let line = if kept.is_empty() || kept.ends_with('\n') { "" } else { "\n" };
    format!("{kept}{line}[{} more bytes left out]", all - kept.len())
}

/// The messages with their finished rounds as the options want them, each in its place: of some nothing is left.
pub(crate) fn without_rounds(
    target: Target,
    messages: &[StoredMessage],
    options: &PromptOptions,
    report: &mut Vec<ReportLine>,
) -> Vec<StoredMessage> {
    let rounds = Rounds::find(target, messages, options);
    messages.iter().enumerate().map(|(at, stored)| rounds.tell(at, stored, messages, report)).collect()
}

struct Rounds {
    flatten: bool,
    /// Whether the thinking of a message goes with its calls.
    with_thinking: bool,
    calls: HashSet<Site>,
    /// Results, and the calls that they answer.
    results: HashMap<Site, Site>,
}

impl Rounds {
    fn find(target: Target, messages: &[StoredMessage], options: &PromptOptions) -> Self {
        let measure = Measure::new(target, options);
        let is_users =
            |stored: &StoredMessage| stored.message.role == Role::User && speaks(stored) && measure.sends(stored);
        let end = messages.iter().rposition(is_users).unwrap_or_default();
        let paired = Calls::pair(messages);
        let sites = messages.iter().take(end).enumerate().flat_map(|(message, stored)| {
            let calls = stored.message.chunks.iter().enumerate().filter(|(_, chunk)| is_callers(chunk));
            calls.map(move |(chunk, _)| Site { message, chunk })
        });
        let results = sites.filter_map(|call| Some((paired.result(call)?, call)));
        let results: HashMap<_, _> = results.filter(|(result, _)| result.message < end).collect();
        Self {
            flatten: options.finished_tools == FinishedTools::Flatten,
            with_thinking: options.thinking == Thinking::Native,
            calls: results.values().copied().collect(),
            results,
        }
    }

    /// A message without what belongs to finished rounds; flattened, with the results as text in their place.
    fn tell(
        &self,
        at: usize,
        stored: &StoredMessage,
        messages: &[StoredMessage],
        report: &mut Vec<ReportLine>,
    ) -> StoredMessage {
        let mut left = stored.select(|_| false);
        let has_calls = (0..stored.message.chunks.len()).any(|chunk| self.calls.contains(&Site { message: at, chunk }));
        for (chunk, content) in stored.message.chunks.iter().enumerate() {
            let site = Site { message: at, chunk };
            let call = self.results.get(&site);
            let mut keep = |content: Chunk| {
                left.chunk_indexes.push(stored.chunk_index(chunk));
                left.message.chunks.push(content);
            };
            match &content.body {
                Body::ToolCall { id, .. } if self.calls.contains(&site) => {
                    report.push(self.line(stored, chunk).with_tool_call_id(id));
                }
                Body::ToolResult { tool_call_id, output, is_error, .. } if call.is_some() => {
                    report.push(self.line(stored, chunk).with_tool_call_id(tool_call_id));
                    if self.flatten {
                        let asked = call.and_then(|call| messages.get(call.message)?.message.chunks.get(call.chunk));
                        record(asked, output, is_error.unwrap_or_default()).into_iter().for_each(keep);
                    }
                }
                Body::Thinking { text, .. } if has_calls && self.with_thinking => {
                    report.push(ReportLine::chunk(
                        Fact::ThinkingRemoved { why: Thought::WithCalls, text },
                        stored,
                        chunk,
                    ));
                }
                _ => keep(content.clone()),
            }
        }
        let has_result = left.message.chunks.iter().any(|chunk| matches!(chunk.body, Body::ToolResult { .. }));
        if left.message.role == Role::Tool && !has_result {
            left.message.role = Role::User;
        }
        left
    }

    fn line(&self, stored: &StoredMessage, chunk: usize) -> ReportLine {
        let fact = if self.flatten { Fact::RoundAsText } else { Fact::RoundRemoved };
        ReportLine::chunk(fact, stored, chunk)
    }
}

/// Whether it is a call of one of the caller's own tools.
fn is_callers(chunk: &Chunk) -> bool {
    matches!(chunk.body, Body::ToolCall { server: false, .. })
}

/// What was called, and what it gave.
fn record(call: Option<&Chunk>, output: &Output, is_error: bool) -> Vec<Chunk> {
    let Some(Body::ToolCall { name, arguments, .. }) = call.map(|call| &call.body) else { return Vec::new() };
    let gave = if is_error { "failed" } else { "gave" };
    let called = |what: &str| Chunk::text(format!("The tool {name} was called with {arguments} and {gave}{what}"));
    match output {
        Output::Text(text) if is_blank(text) => vec![called(" no output.")],
        Output::Text(text) => vec![called(&format!(":\n\n{text}"))],
        Output::Parts(parts) if parts.is_empty() => vec![called(" no output.")],
        Output::Parts(parts) => std::iter::once(called(":")).chain(parts.iter().map(chunk)).collect(),
    }
}

fn chunk(part: &Part) -> Chunk {
    let body = match &part.body {
        PartBody::Text { text } => Body::Text { text: text.clone(), annotations: None },
        PartBody::Json { json } => Body::Text { text: json.as_str().to_owned(), annotations: None },
        PartBody::Image(image) => Body::Image(image.clone()),
        PartBody::Audio(audio) => Body::Audio(audio.clone()),
        PartBody::File(file) => Body::File(file.clone()),
        PartBody::Unknown { kind } => Body::Unknown { kind: kind.clone() },
    };
    body.into()
}

/// Thinking that was left out: the indexes of its message and chunk in the log.
pub(crate) type Forgotten = HashSet<(u64, u32)>;

/// The messages as they are sent, without the thinking of the turns that are older. `messages` are the same, place by place,
/// as they were before. Thinking without a word or a signature stays in its place: each wire has its own way to do without.
pub(crate) fn without_thinking<'a>(
    target: Target,
    messages: &[StoredMessage],
    sent: Cow<'a, [StoredMessage]>,
    options: &PromptOptions,
    report: &mut Vec<ReportLine>,
) -> (Cow<'a, [StoredMessage]>, Forgotten) {
    let mut forgotten = Forgotten::new();
    let Some(turns) = options.thinking_turns else { return (sent, forgotten) };
    let measure = Measure::new(target, options);
    let end = end(messages, turns, |stored| measure.sends(stored));
    let older = sent.get(..end).unwrap_or_default();
    if !older.iter().any(|stored| stored.message.chunks.iter().any(|chunk| is_thinking(&chunk.body))) {
        return (sent, forgotten);
    }
    let mut sent = sent.into_owned();
    for stored in sent.iter_mut().take(end) {
        for at in 0..stored.message.chunks.len() {
            let Some(chunk) = stored.message.chunks.get_mut(at).filter(|chunk| is_thinking(&chunk.body)) else {
                continue;
            };
            chunk.body = Body::Thinking { text: String::new(), signature: None, redacted: None };
            chunk.native = None;
            forgotten.insert((stored.index, stored.chunk_index(at)));
            let fact = Fact::ThinkingRemoved { why: Thought::OlderTurn, text: "" };
            report.push(ReportLine::chunk(fact, stored, at));
        }
    }
    (Cow::Owned(sent), forgotten)
}

/// Takes the lines of thinking out that is not there any more: it has one.
pub(crate) fn without_lines(report: &mut Vec<ReportLine>, forgotten: &Forgotten) {
    let is_forgotten =
        |line: &ReportLine| line.message_index.zip(line.chunk_index).is_some_and(|place| forgotten.contains(&place));
    report.retain(|line| line.rule != Rule::ThinkingLeftOut || !is_forgotten(line));
}

/// Thinking, also where it is a block of a provider's own.
fn is_thinking(body: &Body) -> bool {
    match body {
        Body::Thinking { .. } => true,
        Body::Opaque { kind, .. } => ["reasoning", "thinking"].iter().any(|begin| kind.starts_with(begin)),
        _ => false,
    }
}

/// Where the turns begin whose thinking stays.
fn end(messages: &[StoredMessage], turns: u64, is_sent: impl Fn(&StoredMessage) -> bool) -> usize {
    if turns == 0 {
        return messages.len();
    }
    let all = UserTurns::of(messages, is_sent);
    let counts = all.user_turn_counts();
    let spare = counts.iter().sum::<u64>().saturating_sub(turns);
    let older = spare - spare % turns;
    let mut before = 0;
    for (turn, count) in all.ranges().iter().zip(counts) {
        if before + count > older {
            return turn.start;
        }
        before += count;
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Json;

    #[test]
    fn the_beginning_stays_and_the_rest_is_counted() {
        let table = [
            ("abcdef", 6, "abcdef"),
            ("abcdef", 4, "abcd\n[2 more bytes left out]"),
            ("abcdef", 0, "[6 more bytes left out]"),
            ("ab\ncd", 3, "ab\n[2 more bytes left out]"),
            ("aäb", 2, "a\n[3 more bytes left out]"),
        ];
        for (text, most, wanted) in table {
            let mut chunk = Chunk::tool_result("1", text);
            if size(&chunk).is_some_and(|size| size > most) {
                shorten(&mut chunk, most);
            }
            assert_eq!(chunk, Chunk::tool_result("1", wanted), "{text} {most}");
        }
    }

    #[test]
    fn parts_are_counted_together() {
        let text = |text: &str| PartBody::Text { text: text.to_owned() }.into();
        let json = PartBody::Json { json: Json::new(r#"{"a":1}"#).unwrap() }.into();
        let parts = vec![text("abc"), json, text("def")];
        let result = |parts| Body::ToolResult {
            tool_call_id: "1".to_owned(),
            name: None,
            output: Output::Parts(parts),
            is_error: None,
        };
        let mut chunk = Chunk::from(result(parts));
        shorten(&mut chunk, 5);
        assert_eq!(chunk.body, result(vec![text("abc"), text("{\"\n[8 more bytes left out]")]));
    }
}
