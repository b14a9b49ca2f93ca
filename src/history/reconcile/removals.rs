//! What is left out of a conversation, whatever is beside it.

use super::super::group::StoredMessage;
use super::super::report::{Fact, ReportLine};
use crate::model::{Body, Chunk};

/// A failed generation is visible to people who look at the log, never to a provider. A message of nothing else goes with it:
/// the line of the error reports it.
pub(super) fn error_chunks(mut messages: Vec<StoredMessage>, report: &mut Vec<ReportLine>) -> Vec<StoredMessage> {
    messages.retain_mut(|stored| {
        let chunks = stored.message.chunks.len();
        for (at, chunk) in stored.message.chunks.iter().enumerate() {
            if matches!(chunk.body, Body::Error { .. }) {
                report.push(ReportLine::chunk(Fact::ErrorRemoved, stored, at));
            }
        }
        stored.retain(|chunk| !matches!(chunk.body, Body::Error { .. }));
        chunks == 0 || !stored.message.chunks.is_empty()
    });
    messages
}

/// A message without any content says nothing. Thinking is content.
pub(super) fn empty_messages(mut messages: Vec<StoredMessage>, report: &mut Vec<ReportLine>) -> Vec<StoredMessage> {
    messages.retain(|stored| {
        let has_content = stored.message.chunks.iter().any(is_content);
        if !has_content {
            let role = stored.message.role;
            report.push(ReportLine::message(Fact::MessageEmpty { role }, stored));
        }
        has_content
    });
    messages
}

pub(crate) fn is_content(chunk: &Chunk) -> bool {
    match &chunk.body {
        Body::Text { text, .. } | Body::Refusal { text } => !text.is_empty() || chunk.native.is_some(),
        Body::Thinking { text, signature, redacted } => {
            !text.is_empty() || signature.is_some() || redacted.is_some() || chunk.native.is_some()
        }
        Body::Error { .. } => false,
        _ => true,
    }
}
