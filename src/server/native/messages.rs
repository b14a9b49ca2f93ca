//! Messages and entries: appended, read, hidden, erased.

use std::time::Duration;

use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::conversations::{TagChange, json};
use super::parameters;
use crate::history::report::{Fact, Surrogates};
use crate::history::{Cursor, Entry, ReportLine, StoredMessage};
use crate::log::reading::PageSize;
use crate::log::{Changes, Receipt};
use crate::model::{Expected, Line, Message, Name};
use crate::provider;
use crate::server::app::{Call, Outcome, ok};
use crate::server::body::{self, Judged, judged};
use crate::server::refusal::Refusal;

/// The most messages, and entries, of one answer.
const PAGE: u64 = 1_000;
/// The most messages of an answer that begins at the end.
const NEWEST: u64 = 100;
/// A page of messages ends with the message that exceeds this; one that begins at the end has fewer, down to one.
const BYTES: usize = 16 * 1024 * 1024;
/// The types of bodies that hold one message per line.
const LINES: &[&str] = &["application/x-ndjson", "application/jsonl", "application/x-jsonlines"];

pub(super) fn append(call: &Call, body: &[u8]) -> Outcome {
    call.query.check(&["expect", "durability", "from"])?;
    let name = parameters::writable(call)?;
    let (messages, changes, report) = match call.query.get("from") {
        None => read(call, &name, body)?,
        Some(_) => {
            judged(call, body, Judged::Checked)?;
            let parsed = provider::parse(parameters::target(call, "from")?, body::text(body)?)?;
            (parsed.messages, Changes::new(), parsed.notes)
        }
    };
    let receipt = call.store().append_changing(&name, &messages, &changes, &parameters::append(call)?)?;
    if receipt.duplicate {
        call.app.metrics.repeated.inc();
    } else {
        call.app.metrics.items.inc_by(messages.len() as u64);
    }
    ok(&Appended { receipt, report })
}

/// The receipt of an append, and what of a provider's request could not be read as it is.
#[derive(Serialize, JsonSchema)]
pub(super) struct Appended {
    #[serde(flatten)]
    receipt: Receipt,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    report: Vec<ReportLine>,
}

/// Messages, and what changes with them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Together<'a> {
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
    #[serde(borrow)]
    title: Option<&'a RawValue>,
    #[serde(borrow)]
    tags: Option<&'a RawValue>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
}

/// What distinguishes [`Together`] from a message.
#[derive(Deserialize)]
struct Named {
    role: Option<IgnoredAny>,
    messages: Option<IgnoredAny>,
}

/// One message, an array of them, one per line, or an object that has them and what changes with them.
fn read(call: &Call, name: &Name, body: &[u8]) -> Result<(Vec<Message>, Changes, Vec<ReportLine>), Refusal> {
    let text = body::text(body)?;
    let mut changes = Changes::new();
    let content_type = call.header("content-type").unwrap_or_default();
    let content_type = content_type.split(';').next().unwrap_or_default().trim();
    let lines: Vec<&str> = if LINES.contains(&content_type) {
        text.lines().filter(|line| !line.trim().is_empty()).collect()
    } else if text.trim_start().starts_with('[') {
        let raws: Vec<&RawValue> = serde_json::from_str(text)
            .map_err(|error| Refusal::new(400, "invalid_json", format!("the body cannot be read: {error}")))?;
        raws.into_iter().map(RawValue::get).collect()
    } else if let Ok(Named { role: None, messages: Some(_) }) = serde_json::from_str(text) {
        // Of a message, its reader says what is wrong.
        let Together { messages, title, tags, metadata } = body::object(text)?;
        let TagChange { add, remove } = body::part("tags", tags)?.unwrap_or_default();
        (changes.title, changes.add_tags, changes.remove_tags) = (body::part("title", title)?, add, remove);
        let metadata: Option<Box<RawValue>> = body::part("metadata", metadata)?;
        changes.metadata = metadata.as_deref().map(json).transpose()?;
        messages.into_iter().map(RawValue::get).collect()
    } else {
        vec![text.trim()]
    };
    let mut report = Vec::new();
    let message = |(at, line): (usize, &&str)| {
        let line = Line::from_json(line).map_err(|error| expected(at, &error))?;
        let Line { conversation, message, replaced_surrogates } = line;
        for chunk in replaced_surrogates {
            let note = ReportLine::new(Fact::SurrogatesReplaced(Surrogates::Chunk));
            report.push(note.at(format!("messages[{at}].chunks[{chunk}]")));
        }
        match conversation {
            Some(other) if call.own(&other).id() != name.id() => {
                let param = format!("messages[{at}].conversation");
                Err(Refusal::value(param, "it is not the conversation of the path"))
            }
            _ => Ok(message),
        }
    };
    let messages = lines.iter().enumerate().map(message).collect::<Result<_, _>>()?;
    Ok((messages, changes, report))
}

fn expected(at: usize, error: &Expected) -> Refusal {
    let Expected { column, place, problem } = error;
    let param = if place == "line" { format!("messages[{at}]") } else { format!("messages[{at}].{place}") };
    let message = format!("{param}: {problem} (column {column})");
    Refusal::invalid(param, "invalid_value", message)
}

/// A page of messages.
#[derive(Serialize, JsonSchema)]
pub(super) struct Messages {
    messages: Vec<StoredMessage>,
    /// The index at which the next page begins, if there is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

pub(super) fn list(call: &Call, _: &[u8]) -> Outcome {
    call.query.check(&["from", "limit", "newest"])?;
    let (store, name) = (call.store(), parameters::name(call));
    let newest = call.query.number("newest", 1, NEWEST)?;
    let from = call.query.number("from", 0, u64::MAX)?.unwrap_or(0);
    let limit = call.query.number("limit", 1, PAGE)?.unwrap_or(100);
    let limit = usize::try_from(newest.unwrap_or(limit)).unwrap_or(usize::MAX);
    let size = PageSize { limit, bytes: BYTES, shows_hidden: false };
    let (messages, next) = match newest {
        Some(_) => (store.page_before(&name, None, size)?, None),
        None => store.page(&name, from, size)?,
    };
    ok(&Messages { messages, next })
}

pub(super) fn get(call: &Call, _: &[u8]) -> Outcome {
    let (name, index) = (parameters::name(call), call.number::<u64>("message")?);
    let messages = call.store().messages(&name, index, 1)?;
    match messages.iter().find(|stored| stored.index == index) {
        Some(stored) => ok(stored),
        None => Err(Refusal::not_found(format!("message {index} not found"))),
    }
}

pub(super) fn remove(call: &Call, _: &[u8]) -> Outcome {
    call.query.check(&["chunk"])?;
    let chunk = call.query.parse("chunk", "number")?;
    ok(&call.store().remove(parameters::name(call), call.number("message")?, chunk)?)
}

pub(super) fn redact(call: &Call, _: &[u8]) -> Outcome {
    call.query.check(&["chunk"])?;
    let chunk = call.query.parse("chunk", "number")?;
    ok(&call.store().redact(parameters::name(call), call.number("message")?, chunk)?)
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Entries {
    entries: Vec<Entry>,
    /// Where the next page begins.
    cursor: Cursor,
}

pub(super) fn entries(call: &Call, _: &[u8]) -> Outcome {
    call.query.check(&["since", "limit"])?;
    let cursor: Cursor = call.query.parse("since", "cursor")?.unwrap_or_default();
    let limit = call.query.number("limit", 1, PAGE)?.unwrap_or(PAGE);
    // A follower's pieces are also limited in bytes.
    let mut tail = call.store().tail(parameters::name(call), cursor)?;
    let start = tail.cursor();
    let mut entries = tail.next(Duration::ZERO)?;
    entries.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let cursor = entries.last().map_or(start, |last| start.with_seq(last.seq));
    ok(&Entries { entries, cursor })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Rewind {
    to: u64,
}

pub(super) fn rewind(call: &Call, body: &[u8]) -> Outcome {
    let Rewind { to } = body::required(body)?;
    ok(&call.store().rewind(parameters::name(call), to)?)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewSummary {
    through: u64,
    #[schemars(regex(pattern = r"\S"))]
    text: String,
}

pub(super) fn summarize(call: &Call, body: &[u8]) -> Outcome {
    let NewSummary { through, text } = body::required(body)?;
    ok(&call.store().summarize(parameters::name(call), through, &text)?)
}
