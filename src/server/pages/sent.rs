//! Finds the places in a request that a conversation's report is about. A report names what is stored: messages and chunks.
//! The request is read back into messages, and its chunks are laid beside those that are stored.

use std::collections::{HashMap, HashSet};
use std::mem::{Discriminant, discriminant};

use super::json_lines::{Change, JsonLines, Mark};
use super::message::described;
use super::words::Cut;
use crate::history::{ReportLine, Rule, Severity, StoredMessage};
use crate::model::{Body, Chunk};
use crate::provider::{Parsed, Target, parse};

/// Bytes of what was left out.
const GONE: usize = 300;
/// The most chunks among which the one is looked for that was altered.
const NEAR: usize = 64;

/// A chunk that is stored: its message and its number there, and what it is.
struct Stored<'a> {
    place: (u64, u32),
    chunk: &'a Chunk,
    /// The chunk of the request that is the same.
    sent: Option<usize>,
}

/// A chunk of the request: where it is, and what it is.
struct Sent<'a> {
    place: String,
    chunk: &'a Chunk,
    is_stored: bool,
}

/// Marks what lines of a report changed, at its place in the request. `numbers`: of the notes of these lines, where they have
/// one.
pub(super) fn mark(
    request: &mut JsonLines,
    sent: (Target, &str),
    stored: &[StoredMessage],
    report: &[ReportLine],
    numbers: &HashMap<usize, usize>,
) {
    request.mark(marks(sent, stored, report, numbers));
}

/// The marks, each with its place, in the order of the lines.
fn marks(
    (target, json): (Target, &str),
    stored: &[StoredMessage],
    report: &[ReportLine],
    numbers: &HashMap<usize, usize>,
) -> Vec<(String, Mark)> {
    let changes =
        report.iter().enumerate().filter_map(|(at, line)| Some((line, Change::of(line)?, *numbers.get(&at)?)));
    let changes: Vec<_> = changes.collect();
    // What was rendered can be read; what cannot has no marks.
    let Some(parsed) = (!changes.is_empty()).then(|| parse(target, json).ok()).flatten() else { return Vec::new() };
    let lost = changes.iter().filter(|(_, change, _)| *change == Change::Removed);
    let lost = lost.filter_map(|(line, ..)| Some((line.message_index?, line.chunk_index?))).collect();
    let beside = Beside::new(stored, &parsed, &lost);
    let marks = changes.into_iter().filter_map(|(line, change, number)| {
        let (place, gone) = beside.find(line, change)?;
        Some((place.to_owned(), Mark { change, number, gone }))
    });
    marks.collect()
}

/// What is stored beside what is sent, both in their order.
struct Beside<'a> {
    stored: Vec<Stored<'a>>,
    sent: Vec<Sent<'a>>,
    /// For each chunk that is stored, and for the end: the chunk of the request that is the same as the last one before it.
    before: Vec<Option<usize>>,
    /// For each chunk that is stored: the chunk of the request that is the same as the first one after it.
    after: Vec<Option<usize>>,
}

impl<'a> Beside<'a> {
    /// `lost`: the chunks that are stored, and are not sent, or not all of each.
    fn new(stored: &'a [StoredMessage], parsed: &'a Parsed, lost: &HashSet<(u64, u32)>) -> Self {
        let chunks = |message: &'a StoredMessage| {
            let place = move |at| (message.index, message.chunk_index(at));
            (message.message.chunks.iter().enumerate()).map(move |(at, chunk)| Stored {
                place: place(at),
                chunk,
                sent: None,
            })
        };
        let mut stored: Vec<_> = stored.iter().flat_map(chunks).collect();
        let sent = parsed.messages.iter().zip(&parsed.places).flat_map(|(message, place)| {
            let sent = move |(at, chunk)| Some(Sent { place: place.chunk(at)?, chunk, is_stored: false });
            message.chunks.iter().enumerate().filter_map(sent)
        });
        let mut sent: Vec<_> = sent.collect();
        // The end of a conversation is sent, not always its beginning: of what is the same, the last ones belong together.
        let mut same: HashMap<_, Vec<usize>> = HashMap::new();
        sent.iter().enumerate().for_each(|(at, sent)| same.entry(key(sent.chunk)).or_default().push(at));
        for is_lost in [false, true] {
            for one in stored.iter_mut().rev().filter(|one| lost.contains(&one.place) == is_lost) {
                one.sent = same.get_mut(&key(one.chunk)).and_then(Vec::pop);
                if let Some(sent) = one.sent.and_then(|at| sent.get_mut(at)) {
                    sent.is_stored = true;
                }
            }
        }
        let mut last = 0;
        for one in &mut stored {
            let is_missing = one.sent.is_none() && !lost.contains(&one.place);
            if is_missing && is_said(one.chunk) {
                // Texts that stand one after another may be sent as one.
                one.sent = joined(&sent, last, words(one.chunk).trim());
            } else if is_missing {
                // Some wires have no ids, and some ids are not taken: calls and results keep their order.
                one.sent = next_alike(&sent, last, one.chunk);
                if let Some(sent) = one.sent.and_then(|at| sent.get_mut(at)) {
                    sent.is_stored = true;
                }
            }
            last = one.sent.unwrap_or(last);
        }
        // What comes before a chunk, and what comes before the next one.
        let passed = |last: &mut Option<usize>, one: Option<&Stored<'_>>| {
            let before = *last;
            *last = one.and_then(|one| one.sent).or(before);
            Some(before)
        };
        let mut after: Vec<_> = stored.iter().rev().map(Some).scan(None, passed).collect();
        after.reverse();
        let before = stored.iter().map(Some).chain([None]).scan(None, passed).collect();
        Self { stored, sent, before, after }
    }

    /// The place of a change. Of what was left out: what comes before it, and the text itself.
    fn find(&self, line: &'a ReportLine, change: Change) -> Option<(&str, Option<Cut>)> {
        if let Some(place) = &line.place {
            return Some((place, None));
        }
        let message = line.message_index?;
        let of_message = |at: &usize| self.stored.get(*at).is_some_and(|one| one.place.0 == message);
        let first = self.stored.partition_point(|one| one.place.0 < message);
        let at = match line.chunk_index {
            Some(chunk) => (first..self.stored.len())
                .take_while(of_message)
                .find(|at| self.stored.get(*at).is_some_and(|one| one.place.1 == chunk)),
            None => (first..self.stored.len()).take_while(of_message).find(|at| self.same(*at).is_some()),
        };
        // Of a chunk that is sent, something was removed that is not its text: citations.
        let is_sent = line.chunk_index.and(at).is_some_and(|at| self.same(at).is_some());
        if change == Change::Removed && !is_sent {
            let gone = line.chunk_index.and(at).and_then(|at| self.stored.get(at));
            let gone = gone.map(|one| Cut::new(&described(words(one.chunk)), GONE)).filter(|gone| !gone.is_empty());
            let before = self.before(at.unwrap_or(first)).map_or("", |before| &before.place);
            return Some((before, gone));
        }
        let at = at?;
        if matches!(line.rule, Rule::OutcomeUnknown | Rule::NotRun | Rule::PendingAnswered) {
            return self.result_of(at, line.tool_call_id.as_deref()).map(|sent| (sent.place.as_str(), None));
        }
        let sent = self.same(at).or_else(|| self.in_its_place(at));
        sent.map(|sent| (sent.place.as_str(), None))
    }

    /// The chunk of the request that is the same as one that is stored.
    fn same(&self, at: usize) -> Option<&Sent<'a>> {
        self.sent.get(self.stored.get(at)?.sent?)
    }

    /// The last chunk of the request that is the same as one that is stored before this one.
    fn before(&self, at: usize) -> Option<&Sent<'a>> {
        self.sent.get((*self.before.get(at)?)?)
    }

    /// The chunk of the request that is sent in the place of one that is stored: it has the same neighbours.
    fn in_its_place(&self, at: usize) -> Option<&Sent<'a>> {
        let chunk = self.stored.get(at)?.chunk;
        let begin = self.before.get(at).copied().flatten().map_or(0, |before| before + 1);
        let end = self.after.get(at).copied().flatten().unwrap_or(self.sent.len());
        let others = || self.sent.get(begin..end).unwrap_or_default().iter().filter(|sent| !sent.is_stored).take(NEAR);
        let text = words(chunk);
        let has_text = |sent: &&Sent<'_>| !text.is_empty() && words(sent.chunk).contains(text);
        let is_alike = |sent: &&Sent<'_>| discriminant(&sent.chunk.body) == discriminant(&chunk.body);
        others().find(has_text).or_else(|| others().find(is_alike)).or_else(|| others().next())
    }

    /// The result that was made for a call.
    fn result_of(&self, call: usize, id: Option<&str>) -> Option<&Sent<'a>> {
        let begin = self.stored.get(call).and_then(|one| one.sent).unwrap_or_default();
        let results = || {
            let made = self.sent.get(begin..).unwrap_or_default().iter().filter(|sent| !sent.is_stored);
            made.filter(|sent| matches!(sent.chunk.body, Body::ToolResult { .. })).take(NEAR)
        };
        let is_its = |sent: &&Sent<'_>| match &sent.chunk.body {
            Body::ToolResult { tool_call_id, .. } => Some(tool_call_id.as_str()) == id,
            _ => false,
        };
        results().find(is_its).or_else(|| results().next())
    }
}

/// Whether a chunk is text, of whatever kind.
const fn is_said(chunk: &Chunk) -> bool {
    matches!(chunk.body, Body::Text { .. } | Body::Thinking { .. } | Body::Refusal { .. })
}

/// The next chunk of the request that is nothing stored by itself, and has this text in it.
fn joined(sent: &[Sent<'_>], last: usize, text: &str) -> Option<usize> {
    let near = sent.iter().enumerate().skip(last).take(NEAR);
    let mut near = near.take_while(|(at, sent)| *at == last || !sent.is_stored);
    let has = |sent: &Sent<'_>| !sent.is_stored && is_said(sent.chunk) && words(sent.chunk).contains(text);
    if text.is_empty() { None } else { near.find(|(_, sent)| has(sent)).map(|(at, _)| at) }
}

/// The next chunk of the request that is nothing stored yet, and is a call or a result as this one.
fn next_alike(sent: &[Sent<'_>], last: usize, chunk: &Chunk) -> Option<usize> {
    let is_of_tool = matches!(chunk.body, Body::ToolCall { .. } | Body::ToolResult { .. });
    let is_alike = |sent: &Sent<'_>| !sent.is_stored && discriminant(&sent.chunk.body) == discriminant(&chunk.body);
    let mut near = sent.iter().enumerate().skip(last).take(NEAR).filter(|_| is_of_tool);
    near.find(|(_, sent)| is_alike(sent)).map(|(at, _)| at)
}

/// By what a chunk is known: calls and results by their ids, all else by its content.
fn key(chunk: &Chunk) -> (Discriminant<Body>, &str) {
    let known = match &chunk.body {
        Body::ToolCall { id, .. } => id,
        Body::ToolResult { tool_call_id, .. } => tool_call_id,
        _ => words(chunk),
    };
    (discriminant(&chunk.body), known)
}

/// What a chunk says, or holds.
fn words(chunk: &Chunk) -> &str {
    match &chunk.body {
        Body::Text { text, .. } | Body::Refusal { text } => text,
        Body::Thinking { text, signature, redacted } => match text.as_str() {
            "" => redacted.as_deref().or(signature.as_deref()).unwrap_or_default(),
            text => text,
        },
        Body::ToolCall { arguments, .. } => arguments,
        Body::ToolResult { output: crate::model::Output::Text(text), .. } => text,
        Body::ToolResult { .. } => "",
        Body::Image(image) => &image.url,
        Body::Audio(audio) => {
            let held = audio.data.as_deref().or(audio.url.as_deref()).or(audio.transcript.as_deref());
            held.unwrap_or_default()
        }
        Body::File(file) => file.data.as_deref().or(file.url.as_deref()).or(file.name.as_deref()).unwrap_or_default(),
        Body::Error { message, .. } => message,
        Body::Opaque { json, .. } => json.as_str(),
        Body::Unknown { kind } => kind,
    }
}

impl Change {
    /// What a line says was done, if the request shows it.
    fn of(line: &ReportLine) -> Option<Self> {
        match line.severity {
            Severity::Lost => Some(Self::Removed),
            Severity::Changed => Some(Self::Altered),
            Severity::Moved => Some(Self::Moved),
            Severity::Added => Some(Self::Added),
            Severity::Note => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Image, Message};
    use crate::provider::{PromptOptions, Thinking, render};
    use crate::store::Store;

    /// The marks of a conversation that is rendered: what was done, by which rule, where, and what was left out there.
    fn shown(target: Target, messages: &[Message], options: &PromptOptions) -> Vec<String> {
        let store = Store::open("memory:").unwrap();
        store.append("chat", messages).unwrap();
        let prompt = render(target, &store.load("chat").unwrap(), options).unwrap();
        let numbers = (0..prompt.report.len()).map(|at| (at, at)).collect();
        let stored = store.load_raw("chat").unwrap();
        let marks = marks((target, prompt.request.get()), &stored, &prompt.report, &numbers);
        let shown = marks.into_iter().map(|(place, Mark { change, number, gone })| {
            let gone = gone.map_or_else(String::new, |gone| format!(": {}", gone.text));
            format!("{} {} at {place}{gone}", change.as_str(), prompt.report[number].rule.name())
        });
        shown.collect()
    }

    fn call(id: &str, arguments: &str) -> Chunk {
        Chunk::tool_call(id, "look", arguments)
    }

    #[test]
    fn what_was_left_out_comes_after_what_is_sent_before_it() {
        let messages = [
            Message::user("hi"),
            Message::assistant([Chunk::thinking("why"), Chunk::text("hello")]),
            Message::user("ok"),
        ];
        let options = PromptOptions::new();
        let removed = |place| [format!("removed thinking_left_out at {place}: why")];
        assert_eq!(shown(Target::OPENAI_CHAT, &messages, &options), removed("messages[0].content"));
        assert_eq!(shown(Target::GEMINI, &messages, &options), removed("contents[0].parts[0]"));
        assert_eq!(shown(Target::ANTHROPIC, &messages, &options), removed("messages[0].content[0]"));
        // Nothing is before the first thing that is said.
        let [_, thought, last] = messages;
        assert_eq!(shown(Target::OPENAI_CHAT, &[thought, last], &options), removed(""));
    }

    #[test]
    fn thinking_in_tags_is_known_by_its_words() {
        let messages = [Message::user("hi"), Message::assistant([Chunk::thinking("why"), Chunk::text("hello")])];
        let tagged = PromptOptions::new().with_thinking(Thinking::Tagged);
        for target in [Target::OPENAI_CHAT, Target::ANTHROPIC] {
            let wanted = "altered thinking_tagged at messages[1].content[0]";
            assert_eq!(shown(target, &messages, &tagged).first().map(String::as_str), Some(wanted), "{target}");
        }
    }

    #[test]
    fn calls_and_results_are_known_by_their_ids_or_by_their_order() {
        let messages = [
            Message::user("hi"),
            Message::assistant([call("a", "{}"), call("b", "{")]),
            Message::tool("a", "first"),
            Message::user("ok"),
        ];
        let options = PromptOptions::new();
        let wanted = |repaired, made| {
            [format!("added outcome_unknown at {made}"), format!("altered arguments_repaired at {repaired}")]
        };
        let table = [
            (Target::OPENAI_CHAT, "messages[1].tool_calls[1]", "messages[3]"),
            (Target::ANTHROPIC, "messages[1].content[1]", "messages[2].content[1]"),
            // These have no ids.
            (Target::GEMINI, "contents[1].parts[1]", "contents[2].parts[1]"),
        ];
        for (target, repaired, made) in table {
            let shown = shown(target, &messages, &options);
            assert!(wanted(repaired, made).iter().all(|mark| shown.contains(mark)), "{target}: {shown:?}");
        }
    }

    #[test]
    fn what_was_moved_is_marked_where_it_is_now() {
        let options = PromptOptions::new();
        let messages = [
            Message::user("hi"),
            Message::assistant([call("a", "{}")]),
            Message::user("wait"),
            Message::tool("a", "done"),
        ];
        let moved = |place| [format!("moved result_moved at {place}")];
        assert_eq!(shown(Target::OPENAI_CHAT, &messages, &options), moved("messages[2]"));
        assert_eq!(shown(Target::ANTHROPIC, &messages, &options), moved("messages[2].content[0]"));
        let picture = Image { url: "https://example.org/a.png".to_owned(), ..Default::default() };
        let messages = [Message::user("draw"), Message::assistant([Chunk::from(Body::Image(picture))])];
        assert_eq!(shown(Target::OPENAI_CHAT, &messages, &options), ["moved media_moved at messages[2].content[1]"]);
    }

    #[test]
    fn a_text_that_is_sent_without_its_citations_is_not_left_out() {
        let cited = |text: &str| {
            let annotations =
                crate::model::Json::new(r#"[{"type":"url_citation","url":"https://example.org"}]"#).unwrap();
            Chunk::from(Body::Text { text: text.to_owned(), annotations: Some(annotations) })
        };
        let messages =
            [Message::user("hi"), Message::assistant([Chunk::text("one"), cited("two")]), Message::user("ok")];
        let options = PromptOptions::new();
        for (target, place) in
            [(Target::OPENAI_CHAT, "messages[1].content[1]"), (Target::GEMINI, "contents[1].parts[1]")]
        {
            assert_eq!(shown(target, &messages, &options), [format!("removed left_out at {place}")], "{target}");
        }
    }

    #[test]
    fn of_what_is_the_same_the_last_belong_together() {
        let messages = [
            Message::user("hi"),
            Message::assistant([Chunk::text("hello")]),
            Message::user("hi"),
            Message::assistant([Chunk::thinking("why"), Chunk::text("again?")]),
            Message::user("yes"),
        ];
        let removed = |place| format!("removed thinking_left_out at {place}: why");
        let all = shown(Target::OPENAI_CHAT, &messages, &PromptOptions::new());
        assert_eq!(all, [removed("messages[2].content")]);
        // The beginning is not sent.
        let newest = shown(Target::OPENAI_CHAT, &messages, &PromptOptions::new().with_last_turns(2));
        assert!(newest.contains(&removed("messages[0].content")), "{newest:?}");
    }
}
