//! Records that are written again: the only two reasons are that content has to be forgotten, and that a deleted
//! conversation's tail goes while forks still read what is before it.

use super::encode::Body;
use super::split::{Line, Record, seal_record};
use super::text::Text;
use super::v1::{ChunkLine, Content, Output};
use super::{Header, MessageHeader};
use crate::error::Result;
use crate::model::ConversationId;

/// Puts and removals that replace a record.
pub(crate) type Replacement = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// What takes the place of content that was forgotten.
pub(crate) const REDACTED: &str = "[redacted]";

impl Body {
    /// The entries of a record.
    pub(crate) fn of(record: &Record<'_>) -> Result<Self> {
        let mut body = Self::new();
        record.raw_entries().try_for_each(|(_, entry)| body.raw(entry)).map(|()| body)
    }
}

/// The record without its entries above `last`: its header and entries.
pub(crate) fn truncate(record: &Record<'_>, last: u64, next_message_index: u64) -> Result<(Header, Body)> {
    let mut body = Body::new();
    let (mut before, mut after) = (None, None);
    for ((seq, entry), line) in record.raw_entries().zip(record.lines()) {
        let message = match line? {
            (_, Line::Chunk(line)) => Some(line.message),
            _ => None,
        };
        if seq <= last {
            body.raw(entry)?;
            before = message;
        } else if seq == last + 1 {
            after = message;
        }
    }
    let cut = before.is_some() && before == after;
    Ok((Header { next_message_index, cut, ..record.header.clone() }, body))
}

/// The first record of a conversation that was deleted and that forks still read: its key and value.
pub(crate) fn mark_deleted(conversation: ConversationId, record: &Record<'_>) -> Result<(Vec<u8>, Vec<u8>)> {
    let header = Header { deleted: true, ..record.header.clone() };
    seal_record(conversation, record.first_seq, &header, Body::of(record)?)
}

/// Whether a record holds nothing of a message, or of one chunk of it, that a redaction takes. Arguments as for [`redact`].
pub(crate) fn is_redacted(
    record: &Record<'_>,
    message: u64,
    chunk: Option<u32>,
    last: u64,
    first: &mut dyn FnMut(u32) -> bool,
) -> Result<bool> {
    let body = redact(record, message, chunk, last, first)?;
    Ok(body.is_none_or(|body| body.content() == record.content()))
}

/// The entries of a record without the content of a message, or of one chunk of it. `first` answers whether the first
/// fragment of a chunk index was seen before. Entries above `last` are not read. `None` if the record has nothing of it.
pub(crate) fn redact(
    record: &Record<'_>,
    message: u64,
    chunk: Option<u32>,
    last: u64,
    first: &mut dyn FnMut(u32) -> bool,
) -> Result<Option<Body>> {
    let is_of = |line: &Line<'_>| match line {
        Line::Chunk(line) => {
            record.message_index(line.message) == message && chunk.is_none_or(|chunk| chunk == line.chunk)
        }
        Line::Begin(begin) => chunk.is_none() && record.message_index(begin.message) == message,
        Line::Finish(finish) => chunk.is_none() && record.message_index(finish.message) == message,
        _ => false,
    };
    // After a fork point, the index means another message, unless the fork cut this one in two.
    if !record.lines().filter_map(Result::ok).any(|(seq, line)| seq <= last && is_of(&line)) {
        return Ok(None);
    }
    let mut body = Body::new();
    let mut changed = false;
    for ((_, entry), line) in record.raw_entries().zip(record.lines()) {
        let (_, line) = line?;
        match line {
            Line::Chunk(mut line)
                if record.message_index(line.message) == message && chunk.is_none_or(|chunk| chunk == line.chunk) =>
            {
                let is_first = first(line.chunk);
                forget(&mut line, is_first, chunk.is_none());
                body.line(&line)?;
                changed = true;
            }
            Line::Begin(mut begin) if chunk.is_none() && record.message_index(begin.message) == message => {
                forget_fields(&mut begin.header);
                body.begin_line(&begin)?;
                changed = true;
            }
            Line::Finish(mut finish) if chunk.is_none() && record.message_index(finish.message) == message => {
                forget_fields(&mut finish.header);
                body.finish_line(&finish)?;
                changed = true;
            }
            _ => body.raw(entry)?,
        }
    }
    Ok(changed.then_some(body))
}

/// What is known about a message may quote it in fields that nobody here understands.
fn forget_fields(header: &mut MessageHeader<'_>) {
    header.native = None;
    header.extra = None;
}

/// Role, index, call id and tool name stay; everything that was said goes.
fn forget(line: &mut ChunkLine<'_>, is_first: bool, whole_message: bool) {
    line.native = None;
    line.extra = None;
    if let Some(header) = line.header.as_mut().filter(|_| whole_message) {
        forget_fields(header);
    }
    // Later fragments are appended to the first one.
    let text = if is_first { REDACTED } else { "" };
    line.content = match &line.content {
        Content::Text { .. } => Content::Text { text: Text(text), annotations: None },
        Content::Refusal { .. } => Content::Refusal { text: Text(text) },
        Content::Thinking { .. } => Content::Thinking { text: Text(""), signature: None, redacted: None },
        Content::ToolCall { id, name, server, .. } => Content::ToolCall {
            id,
            name,
            arguments: Text(if is_first { "{}" } else { "" }),
            signature: None,
            server: *server,
        },
        Content::ToolResult { tool_call_id, name, is_error, .. } => {
            Content::ToolResult { tool_call_id, name: *name, output: Output::Text(Text(REDACTED)), is_error: *is_error }
        }
        Content::Image(_) | Content::Audio(_) | Content::File(_) | Content::Error { .. } | Content::Opaque { .. } => {
            Content::Text { text: Text(REDACTED), annotations: None }
        }
        Content::Unknown { kind } => Content::Unknown { kind },
    };
}
