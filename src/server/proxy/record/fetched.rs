//! An answer that a client gets later, by the id of its response: one in the background, or one that was cut off on its way.

use super::around::{About, END_FIELD};
use super::book::Book;
use crate::error::Result;
use crate::history::{MessageState, StoredMessage};
use crate::log::reading;
use crate::model::{FinishReason, Json, Name};
use uuid::Uuid;

/// The finish reason of an answer that its provider still makes when the call ends.
pub(super) const QUEUED: &str = "queued";
/// Of an answer's end: that it was fetched.
pub(super) const FIELD: &str = "fetched";
/// States of a response that has ended.
const ENDED: &[&str] = &["completed", "incomplete", "failed", "cancelled"];
/// The last events of a stream of one.
const LAST: &[&str] = &["response.completed", "response.incomplete", "response.failed", "response.cancelled"];

/// Where an answer is still to be stored.
#[derive(Debug)]
pub(super) struct Awaited {
    pub(super) last_seq: u64,
    /// What is stored in its place.
    pub(super) earlier: StoredMessage,
    pub(super) about: Option<About>,
}

/// The place of a call's answer, unless it is stored whole, or is being written.
pub(super) fn awaited(book: &Book<'_>, name: &Name, exchange: Uuid) -> Result<Option<Awaited>> {
    let Some(view) = book.store.log().view(name)? else { return Ok(None) };
    let item = reading::find_hidden_item(book.store.log(), &view, &exchange.to_string())?;
    let stored = item.map(|item| book.message(name, item.message_index)).transpose()?.flatten();
    let Some(earlier) = stored else { return Ok(None) };
    if earlier.state == MessageState::Streaming || !is_awaited(&earlier) {
        return Ok(None);
    }
    Ok(Some(Awaited { last_seq: view.last_seq(), about: About::of(&earlier), earlier }))
}

/// Whether an answer ended without its end. One that was cancelled has none, wherever it comes from.
fn is_awaited(stored: &StoredMessage) -> bool {
    let reason = stored.message.finish_reason.as_ref();
    let end = stored.message.metadata.extra.get(END_FIELD).and_then(|end| Json::fields(end.as_str()));
    let was_fetched = end.is_some_and(|end| end.iter().any(|(name, _)| name == FIELD));
    let is_cut = stored.state == MessageState::Interrupted || reason == Some(&FinishReason::Interrupted);
    (is_cut || is_queued(reason)) && !was_fetched
}

/// Whether an answer is still made by its provider.
pub(super) fn is_queued(reason: Option<&FinishReason>) -> bool {
    matches!(reason, Some(FinishReason::Other(word)) if word == QUEUED)
}

/// A response that has ended, as JSON: it is the answer, or in the last event of a stream.
pub(super) fn ended(answer: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(answer).ok()?;
    if let Some(status) = field(text, "status") {
        return ENDED.iter().any(|ended| is_word(status, ended)).then_some(text);
    }
    let events = text.lines().rev().filter_map(|line| line.strip_prefix("data:"));
    let mut last =
        events.filter(|data| field(data, "type").is_some_and(|kind| LAST.iter().any(|end| is_word(kind, end))));
    field(last.next()?, "response")
}

fn field<'t>(object: &'t str, name: &str) -> Option<&'t str> {
    let fields = Json::fields(object)?;
    fields.into_iter().find(|(known, _)| known == name).map(|(_, raw)| raw.get())
}

fn is_word(json: &str, word: &str) -> bool {
    json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) == Some(word)
}

#[cfg(test)]
mod tests {
    use super::ended;

    #[test]
    fn a_response_is_the_answer_or_in_its_last_event() {
        let whole = r#"{"id":"r","status":"completed","output":[]}"#;
        let stream = |kind: &str| {
            format!("data: {{\"type\":\"response.created\"}}\n\ndata: {{\"type\":\"{kind}\",\"response\":{whole}}}\n\n")
        };
        let table = [
            (whole.to_owned(), Some(whole)),
            (stream("response.completed"), Some(whole)),
            (stream("response.in_progress"), None),
            (whole.replace("completed", "queued"), None),
            (whole.replace("completed", "in_progress"), None),
            (r#"{"error":{"message":"no"}}"#.to_owned(), None),
            (String::new(), None),
        ];
        for (answer, response) in table {
            assert_eq!(ended(answer.as_bytes()), response, "{answer}");
        }
        assert_eq!(ended(b"\xff"), None);
    }
}
