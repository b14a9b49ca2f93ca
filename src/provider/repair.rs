//! A request that is refused, to one that is accepted.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::value::RawValue;

use super::declarations::declared;
use super::ingest::fields::{Fields, array};
use super::kept::Kept;
use super::parse::{Readable, Request};
use super::{Prompt, PromptOptions, Target, Tool, render};
use crate::error::Result;
use crate::history::Conversation;
use crate::history::{MessageState, StoredMessage};
use crate::history::{ReportLine, Rule};
use crate::model::Message;
use crate::model::json_text;

/// Reads a request of one wire, and writes it as a target takes it: the messages in it are reconciled and rendered as if
/// they came from a store.
///
/// Where both are of the same wire, what else the request holds (model, tools, temperature) stays byte for byte, but for
/// indentation and what the target would refuse. Between wires only the tools go along, as the target declares them, unless the options
/// name others: a model's name and its parameters mean nothing elsewhere and are left out, and so are tools that only one
/// provider has. All of it is in the report, in this order: what could not be read as it stands; what was wrong with the
/// conversation; what the target does not take; what became of the other fields. Message indexes are positions in the
/// list of the given request's messages.
///
/// The request need not be refused. One that is in order comes back with the same messages, and the report names the
/// fields that the target's renderer does not write.
///
/// ```
/// use conversation_store::provider::{PromptOptions, Target, repair};
///
/// let request = r#"{"model": "gpt-5", "messages": [
///     {"role": "user", "content": "What time is it?"},
///     {"role": "assistant", "content": null, "tool_calls": [
///         {"id": "call_1", "type": "function", "function": {"name": "clock", "arguments": "{}"}}]},
///     {"role": "user", "content": "Well?"}]}"#;
/// let repaired = repair(Target::OPENAI_CHAT, Target::OPENAI_CHAT, request, &PromptOptions::new())?;
/// assert!(repaired.request.get().starts_with(r#"{"model":"gpt-5","messages":[{"role":"user""#));
/// assert!(repaired.request.get().contains(r#"{"role":"tool","tool_call_id":"call_1","content":"Interrupted"#));
/// assert_eq!(repaired.report[0].tool_call_id.as_deref(), Some("call_1"));
/// # Ok::<(), conversation_store::Error>(())
/// ```
///
/// # Errors
/// As [`super::parse`] and [`super::render`].
pub fn repair(from: Target, target: Target, request: &str, options: &PromptOptions) -> Result<Prompt> {
    let text = Readable::of(request);
    let Request { names, parsed, mut rest } = Request::read(from, &text)?;
    let crosses = from.wire().name != target.wire().name;
    let (options, lost) = if crosses { crossing(&mut rest, options) } else { (Cow::Borrowed(options), Vec::new()) };
    let messages: Vec<StoredMessage> = (0..).zip(parsed.messages).map(|(at, message)| stored(at, message)).collect();
    let prompt = render(target, &Conversation::new(messages.clone()), &options)?;
    let mut report = parsed.notes;
    report.extend(prompt.report);
    report.extend(left_out(unknown_fields(&messages), &prompt.request));
    if crosses {
        report.extend(lost);
        report.extend(rest.names().map(|name| {
            ReportLine::new(Rule::LeftOut, format!("`{name}` is of {from}: what {target} takes for it is not known"))
        }));
        return Ok(Prompt { request: prompt.request, report });
    }
    let mut kept = Kept::new(&names, rest, &prompt.request);
    let request = kept.accepted(target, &mut report)?;
    // What is kept may be indented; a prompt is one line.
    let is_line = !request.get().contains(['\n', '\r']);
    let line = if is_line { None } else { RawValue::from_string(json_text::compact(request.get())).ok() };
    Ok(Prompt { request: line.unwrap_or(request), report })
}

/// The options with the request's tools, unless they have their own, and lines for what stays behind.
fn crossing<'a>(rest: &mut Fields<'_>, options: &'a PromptOptions) -> (Cow<'a, PromptOptions>, Vec<ReportLine>) {
    let found = rest.peek("tools").filter(|_| options.tools.is_empty()).and_then(declared);
    let Some(found) = found else { return (Cow::Borrowed(options), Vec::new()) };
    rest.take("tools");
    let (mut tools, mut lost) = (Vec::<Tool>::new(), Vec::new());
    for (place, tool) in found {
        let tool = tool.and_then(|tool| {
            let is_known = tools.iter().any(|other| other.name == tool.name);
            if is_known { Err("another one has its name") } else { Ok(tool) }
        });
        match tool {
            Ok(tool) => tools.push(tool),
            Err(problem) => {
                let detail = format!("`tools{place}` cannot be declared on another wire: {problem}");
                lost.push(ReportLine::new(Rule::LeftOut, detail));
            }
        }
    }
    (Cow::Owned(options.clone().with_tools(tools)), lost)
}

/// A message as if it had come out of a log.
fn stored(index: u64, message: Message) -> StoredMessage {
    let chunk_indexes = (0..).take(message.chunks.len()).collect();
    let seq = index + 1;
    StoredMessage { index, state: MessageState::Complete, first_seq: seq, last_seq: seq, chunk_indexes, message }
}

/// A field that is not known, and the line that it gets if it does not reach the prompt.
struct Unknown<'a> {
    name: &'a str,
    value: &'a str,
    line: ReportLine,
}

/// The unknown fields of messages and chunks.
fn unknown_fields(messages: &[StoredMessage]) -> Vec<Unknown<'_>> {
    let mut unknown = Vec::new();
    for stored in messages {
        let detail = |name| format!("the field `{name}` is not known and was left out");
        unknown.extend(stored.message.metadata.extra.iter().map(|(name, json)| Unknown {
            name,
            value: json.as_str(),
            line: ReportLine::message(Rule::LeftOut, stored, detail(name)),
        }));
        for (at, chunk) in stored.message.chunks.iter().enumerate() {
            unknown.extend(chunk.extra.iter().map(|(name, json)| Unknown {
                name,
                value: json.as_str(),
                line: ReportLine::chunk(Rule::LeftOut, stored, at, detail(name)),
            }));
        }
    }
    unknown
}

/// Lines for those unknown fields that are nowhere in the request.
fn left_out(unknown: Vec<Unknown<'_>>, request: &RawValue) -> Vec<ReportLine> {
    let mut written = HashSet::new();
    if !unknown.is_empty() {
        collect(request, &mut written);
    }
    let lost = unknown.into_iter().filter(|unknown| !written.contains(&(Cow::Borrowed(unknown.name), unknown.value)));
    lost.map(|unknown| unknown.line).collect()
}

/// All fields of all objects. How deep a request is nested, its renderer and [`Json::MAX_DEPTH`](crate::model::Json)
/// limit.
fn collect<'a>(value: &'a RawValue, written: &mut HashSet<(Cow<'a, str>, &'a str)>) {
    for (name, field) in Fields::of(value).unwrap_or_default().pairs() {
        collect(field, written);
        written.insert((name, field.get()));
    }
    if value.get().starts_with('[') {
        array(value).unwrap_or_default().into_iter().for_each(|item| collect(item, written));
    }
}
