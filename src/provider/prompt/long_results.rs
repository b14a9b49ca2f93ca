//! Prompts whose results of tools are no longer than the options allow: the beginning stays, a line states the rest.

use std::borrow::Cow;

use crate::history::report::Fact;
use crate::history::{MessageState, ReportLine, StoredMessage};
use crate::model::{Body, Chunk, Output, PartBody, Role};

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
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    let kept = text.get(..end).unwrap_or_default();
    let line = if kept.is_empty() || kept.ends_with('\n') { "" } else { "\n" };
    format!("{kept}{line}[{} more bytes left out]", all - kept.len())
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
