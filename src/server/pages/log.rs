//! A conversation's log: its entries, in order, with what is hidden.

use std::time::Duration;

use askama::Template;

use super::conversation::Heading;
use super::frame::{Frame, for_its_owner, page};
use super::message::described;
use super::words::{Cut, Moment};
use crate::history::{Entry, EntryKind};
use crate::model::{Body, Chunk, Output};
use crate::server::app::{Call, Outcome};
use crate::server::native::parameters;

/// Entries of a page.
const PAGE: usize = 200;
/// Bytes of an entry's content.
const CONTENT: usize = 400;

#[derive(Template)]
#[template(config = "src/server/pages/askama.toml", path = "log.html")]
struct Log {
    frame: Frame,
    heading: Heading,
    rows: Vec<Row>,
    earlier: Option<u64>,
    later: Option<u64>,
}

struct Row {
    seq: u64,
    at: Moment,
    kind: &'static str,
    /// The message and the chunk: `3` or `3.1`.
    place: String,
    message: Option<u64>,
    role: &'static str,
    what: String,
    content: Cut,
}

pub(super) fn log(call: &Call, _: &[u8]) -> Outcome {
    let call = &for_its_owner(call)?;
    call.query.check(&["since"])?;
    let (store, name) = (call.store(), parameters::name(call));
    let item = store.describe(&name)?;
    let since = call.query.number("since", 0, u64::MAX)?.unwrap_or(0);
    // A follower's pieces are also limited in bytes.
    let mut entries = store.tail(&name, since)?.next(Duration::ZERO)?;
    entries.truncate(PAGE);
    let last = entries.last().map_or(since, |entry| entry.seq);
    let shown = Log {
        frame: Frame::of(call),
        rows: entries.iter().map(Row::of).collect(),
        earlier: (since > 0).then(|| since.saturating_sub(PAGE as u64)),
        later: (last < item.last_seq).then_some(last),
        heading: Heading::of(call, &name, item)?,
    };
    page(200, &shown)
}

impl Row {
    fn of(entry: &Entry) -> Self {
        let place = match (entry.message_index, entry.chunk_index) {
            (Some(message), Some(chunk)) => format!("{message}.{chunk}"),
            (Some(message), None) => message.to_string(),
            (None, _) => String::new(),
        };
        let json = serde_json::to_value(entry).unwrap_or_default();
        let (what, content) = match &entry.kind {
            EntryKind::Chunk { chunk, .. } => summary(chunk, &json),
            EntryKind::Begin { .. } | EntryKind::Finish { .. } => (String::new(), rest(json)),
            EntryKind::Rewind { end } => (String::new(), format!("hides messages below {end}")),
            EntryKind::Summary { text } => (String::new(), text.clone()),
            _ => (String::new(), rest(json)),
        };
        Self {
            seq: entry.seq,
            at: entry.created_at.into(),
            kind: entry.kind.name(),
            place,
            message: entry.message_index,
            role: entry.role.map_or("", |role| role.as_str()),
            what,
            content: Cut::new(&content, CONTENT),
        }
    }
}

/// What a chunk is, and its content.
fn summary(chunk: &Chunk, json: &serde_json::Value) -> (String, String) {
    let kind = chunk.body.kind().replace('_', " ");
    match &chunk.body {
        Body::Text { text, .. } => (String::new(), text.clone()),
        Body::Thinking { text, .. } if !text.is_empty() => (kind, text.clone()),
        Body::ToolCall { name, arguments, .. } => (format!("{kind} {name}"), arguments.clone()),
        Body::ToolResult { tool_call_id, output: Output::Text(text), .. } => {
            (format!("{kind} {tool_call_id}"), text.clone())
        }
        Body::Image(image) => (kind, described(&image.url)),
        _ => {
            let mut json = json.get("chunk").cloned().unwrap_or_default();
            if let serde_json::Value::Object(fields) = &mut json {
                fields.remove("type");
            }
            (kind, json.to_string())
        }
    }
}

/// The fields of an entry that have no column, as JSON.
fn rest(json: serde_json::Value) -> String {
    const COLUMNS: [&str; 6] = ["seq", "kind", "message_index", "chunk_index", "role", "created_at"];
    let serde_json::Value::Object(mut fields) = json else { return String::new() };
    fields.retain(|name, _| !COLUMNS.contains(&name.as_str()));
    if fields.is_empty() { String::new() } else { serde_json::Value::Object(fields).to_string() }
}
