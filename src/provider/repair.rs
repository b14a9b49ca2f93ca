//! A request that is refused, to one that is accepted.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use super::declarations::declared;
use super::ingest::fields::{Fields, array, is_empty};
use super::parse::{Readable, Request};
use super::{Finding, Level, Prompt, PromptOptions, Target, Tool, check, render};
use crate::conversation::Conversation;
use crate::error::{Error, Result};
use crate::group::{MessageState, StoredMessage};
use crate::json;
use crate::model::Message;
use crate::reconcile::{ReportLine, Rule};

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
    let line = if is_line { None } else { RawValue::from_string(json::compact(request.get())).ok() };
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

/// The fields of the request that is made.
struct Kept<'a>(Vec<Field<'a>>);

struct Field<'a> {
    name: String,
    value: Value<'a>,
    /// Whether it is of the given request; else it was rendered.
    given: bool,
    /// What was rendered in its place.
    rendered: Option<&'a RawValue>,
}

enum Value<'a> {
    Whole(&'a RawValue),
    /// An array, of which items were left out.
    Items(Vec<&'a RawValue>),
}

impl<'a> Kept<'a> {
    /// The fields in the order of the given request: what was rendered stands where it stood, or at the end.
    fn new(names: &[String], rest: Fields<'a>, rendered: &'a RawValue) -> Self {
        let mut rendered = Fields::of(rendered).unwrap_or_default().pairs();
        let rest = rest.pairs();
        let mut fields: Vec<Field<'a>> = Vec::new();
        for name in names {
            let given = rest.iter().rfind(|(field, _)| field == name).map(|(_, raw)| *raw);
            let made = rendered.iter().position(|(field, _)| field == name);
            let rendered = made.map(|made| rendered.remove(made).1);
            let (value, given) = match (given, rendered) {
                (Some(value), None) => (value, true),
                (Some(value), Some(_)) if !is_empty(value) => (value, true),
                (_, Some(rendered)) => (rendered, false),
                (None, None) => continue,
            };
            if !fields.iter().any(|field| field.name == *name) {
                fields.push(Field { name: name.clone(), value: Value::Whole(value), given, rendered });
            }
        }
        for (name, value) in rendered {
            let name = name.into_owned();
            if !fields.iter().any(|field| field.name == name) {
                fields.push(Field { name, value: Value::Whole(value), given: false, rendered: None });
            }
        }
        Self(fields)
    }

    /// The request, without what the target would refuse of the given fields.
    fn accepted(&mut self, target: Target, report: &mut Vec<ReportLine>) -> Result<Box<RawValue>> {
        loop {
            let request = self.written()?;
            let refused = refused(target, &request);
            let Some(first) = refused.first() else { return Ok(request) };
            // Each turn leaves something out, so there is an end.
            let left_out = match refused.iter().find_map(|finding| Some((self.place(finding)?, finding))) {
                Some(((at, item), finding)) => Some((self.leave_out(at, item), finding)),
                None => self.cause(target, first)?.map(|at| (self.leave_out(at, None), first)),
            };
            let Some((left_out, finding)) = left_out else { return Ok(request) };
            let detail =
                format!("`{left_out}` was left out, the target refuses it: {}: {}", finding.rule, finding.problem);
            report.push(ReportLine::new(Rule::LeftOut, detail));
        }
    }

    fn written(&self) -> Result<Box<RawValue>> {
        to_raw_value(self).map_err(|error| Error::InvalidInput(format!("it cannot be written: {error}")))
    }

    /// The given field that a finding is about, and the item of it.
    fn place(&self, finding: &Finding) -> Option<(usize, Option<usize>)> {
        let end = finding.place.find(['.', '[']).unwrap_or(finding.place.len());
        let (name, rest) = finding.place.split_at_checked(end)?;
        let at = self.0.iter().position(|field| field.given && field.name == name)?;
        let item = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')?.0.parse::<usize>().ok());
        Some((at, item))
    }

    /// The given field that makes the target refuse what was rendered: thinking is switched on, say, and the thinking of the
    /// conversation could not be kept.
    fn cause(&mut self, target: Target, finding: &Finding) -> Result<Option<usize>> {
        for at in 0..self.0.len() {
            if self.0.get(at).is_some_and(|field| field.given) {
                let field = self.0.remove(at);
                let request = self.written()?;
                self.0.insert(at, field);
                if !refused(target, &request).contains(finding) {
                    return Ok(Some(at));
                }
            }
        }
        Ok(None)
    }

    /// Leaves out an item of an array, or a field. Tells which.
    fn leave_out(&mut self, at: usize, item: Option<usize>) -> String {
        let Some(field) = self.0.get_mut(at) else { return String::new() };
        let name = field.name.clone();
        match item.filter(|item| field.value.remove(*item)) {
            Some(item) => return format!("{name}[{item}]"),
            None => match field.rendered {
                Some(rendered) => (field.value, field.given) = (Value::Whole(rendered), false),
                None => _ = self.0.remove(at),
            },
        }
        name
    }
}

/// What the target refuses a request for.
fn refused(target: Target, request: &RawValue) -> Vec<Finding> {
    let mut findings = check(target, request.get()).unwrap_or_default();
    findings.retain(|finding| finding.level == Level::Hard);
    findings
}

impl Value<'_> {
    /// Removes an item, if this is an array of several.
    fn remove(&mut self, item: usize) -> bool {
        let mut items = match self {
            Self::Whole(raw) => array(raw).unwrap_or_default(),
            Self::Items(items) => std::mem::take(items),
        };
        if items.len() < 2 || item >= items.len() {
            return false;
        }
        items.remove(item);
        *self = Self::Items(items);
        true
    }
}

impl Serialize for Kept<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for Field { name, value, .. } in &self.0 {
            match value {
                Value::Whole(raw) => map.serialize_entry(name, raw)?,
                Value::Items(items) => map.serialize_entry(name, items)?,
            }
        }
        map.end()
    }
}
