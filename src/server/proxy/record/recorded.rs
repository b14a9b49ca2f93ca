//! A call that was recorded, as it is now: its answer, and the other answers to the same question.
//!
//! An answer that a client gets later, by the id of its response: one in the background, or one that was cut off on its way.

use std::borrow::Borrow;

use uuid::Uuid;

use super::around::{About, END_FIELD};
use super::book::{Book, Entry};
use super::meaning::{self, Digest};
use super::plan::Request;
use crate::error::{Error, Result};
use crate::history::{MessageState, StoredMessage};
use crate::log::limits::message_bytes;
use crate::log::{hidden, items};
use crate::model::{Body, Chunk, FinishReason, Json, Name};
use crate::store::QUEUED;

/// A byte of an answer that is compared: as it is stored, as a message, and as what that means.
const HELD: usize = 4;
/// The most equal calls that are looked at, the newest first; and the most among which those of a session are looked for.
const SAME: usize = 32;
const MANY: usize = 256;

/// A call that was recorded, as it is now.
pub(super) struct Recorded {
    pub(super) entry: Entry,
    pub(super) name: Name,
    pub(super) next_message: u64,
    pub(super) last_seq: u64,
    pub(super) answer: Option<Answer>,
    /// Whether its end is noted in the book.
    pub(super) has_ended: bool,
}

pub(super) struct Answer {
    pub(super) stored: StoredMessage,
    pub(super) is_open: bool,
    pub(super) is_cut: bool,
    /// How it ended was lost with the program that wrote it: the client may have more of it.
    pub(super) is_lost: bool,
}

impl Recorded {
    /// Whether there is no answer that a client takes for one.
    pub(super) fn has_failed(&self) -> bool {
        self.answer.as_ref().is_none_or(|answer| answer.is_cut || answer.stored.message.chunks.is_empty())
    }

    /// Whether its answer is whole, and has nothing that clients send again: it is empty, or thinking alone.
    pub(super) fn says_nothing(&self) -> bool {
        let says = |chunk: &Chunk| meaning::of_model(chunk).is_some();
        self.answer.as_ref().is_some_and(|answer| !answer.is_cut && !answer.stored.message.chunks.iter().any(says))
    }

    pub(super) fn runs(&self) -> bool {
        self.answer.as_ref().map_or(!self.has_ended, |answer| answer.is_open)
    }
}

impl Answer {
    pub(super) fn of(stored: StoredMessage) -> Self {
        let is_open = stored.state == MessageState::Streaming;
        let is_interrupted = stored.state == MessageState::Interrupted;
        let is_lost = is_interrupted && stored.message.metadata.extra.get(END_FIELD).is_none();
        let reason = stored.message.finish_reason.as_ref();
        let has_failed = matches!(reason, Some(FinishReason::Interrupted | FinishReason::Error));
        let is_cut = is_open || is_interrupted || has_failed || is_queued(reason);
        let is_cut = is_cut || is_undelivered(&stored) || ends_within_a_call(&stored);
        Self { stored, is_open, is_cut, is_lost }
    }

    /// The same, of a call that is being recorded here: what has no end is still written.
    pub(super) fn that_runs(self) -> Self {
        Self { is_open: self.is_open || self.is_lost, is_lost: false, ..self }
    }
}

impl Request<'_> {
    /// The calls under a digest that may count, as they are now.
    pub(super) fn recorded(&self, digest: &Digest, counts: impl Fn(&Entry) -> bool) -> Result<Vec<Recorded>> {
        let (mut found, mut held) = (Vec::new(), 0_usize);
        let is_own = |entry: &Entry| entry.scope == self.scope.digest;
        let mut asked = self.book.asked(digest, SAME)?;
        if self.scope.session.is_some() && asked.len() == SAME && !asked.iter().any(is_own) {
            // Many sessions begin alike.
            asked.extend(self.book.asked(digest, MANY)?.into_iter().skip(SAME).filter(is_own).take(SAME));
        }
        for entry in asked {
            if counts(&entry)
                && let Some(recorded) = self.read(entry)?
            {
                let answer = recorded.answer.as_ref().map_or(0, |answer| message_bytes(&answer.stored.message));
                held = held.saturating_add(answer.saturating_mul(HELD));
                match self.room.reach(held) {
                    // The newest come first.
                    Err(Error::LimitExceeded { .. }) => break,
                    reached => reached?,
                }
                found.push(recorded);
            }
        }
        Ok(found)
    }

    /// The calls under a digest that are of one place, as they are now.
    pub(super) fn attempts(&self, digest: &Digest, of: &Entry) -> Result<Vec<Recorded>> {
        let is_here = |entry: &Entry| entry.conversation == of.conversation && entry.from == of.from;
        let here = self.book.asked(digest, MANY)?.into_iter().filter(is_here).take(SAME);
        let read = here.map(|entry| self.read(entry));
        Ok(read.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// The calls under a digest that may be asked again, as they are now.
    pub(super) fn still_asked(&self, digest: &Digest, counts: impl Fn(&Entry) -> bool) -> Result<Vec<Recorded>> {
        self.not_replaced(self.recorded(digest, counts)?)
    }

    /// Of these calls those in whose place nothing else is asked: they have whole answers, or what they asked is not hidden.
    pub(super) fn not_replaced<R: Borrow<Recorded>>(&self, asked: impl IntoIterator<Item = R>) -> Result<Vec<R>> {
        // Attempts of one place come together, and what is hidden of a conversation may be much.
        let (mut known, mut left) = (None, Vec::new());
        for one in asked {
            let recorded = one.borrow();
            let place = (recorded.entry.conversation, recorded.entry.from);
            let is_whole = recorded.answer.as_ref().is_some_and(|answer| !answer.is_cut);
            if !is_whole && known.is_none_or(|(of, _)| of != place) {
                known = Some((place, self.is_shown(recorded)?));
            }
            if is_whole || known.is_some_and(|(_, is_shown)| is_shown) {
                left.push(one);
            }
        }
        Ok(left)
    }

    /// Whether what a call asked is not hidden.
    fn is_shown(&self, recorded: &Recorded) -> Result<bool> {
        let log = self.book.store.log();
        let Some(asked) = recorded.entry.from.checked_sub(1) else { return Ok(true) };
        let Some(view) = log.view(&recorded.name)? else { return Ok(false) };
        hidden::is_visible(log, &view, asked)
    }

    /// Those of this scope first. Without a session many people are of one scope: of equal calls those with the same key come
    /// first, of these those with the same system and tools, then those that nobody has gone on with, then those of the same
    /// model. Of each, the newest first.
    pub(super) fn nearest_first(&self, asked: Vec<Recorded>) -> Vec<Recorded> {
        let rank = |recorded: &Recorded| {
            let entry = &recorded.entry;
            let is_others = entry.scope != self.scope.digest;
            if self.scope.session.is_some() {
                return (is_others, false, false, false, false);
            }
            let is_over = !is_last(recorded, &siblings(recorded, &asked));
            let surrounds_other = entry.surroundings != Some(self.scope.surroundings);
            let is_other_model = entry.model != Some(self.scope.model);
            (is_others, !self.is_same_account(entry), surrounds_other, is_over, is_other_model)
        };
        let ranks: Vec<_> = asked.iter().map(rank).collect();
        let mut ranked: Vec<_> = ranks.into_iter().zip(asked).collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        ranked.into_iter().map(|(_, recorded)| recorded).collect()
    }

    /// A call as it is now; `None` if its conversation is gone.
    pub(super) fn read(&self, entry: Entry) -> Result<Option<Recorded>> {
        // Asked before the look at the log: what has ended by then is all there.
        let is_running = self.exchanges.is_running(self.book.owner, entry.exchange);
        let is_lost = self.exchanges.is_lost(entry.exchange);
        let Some(found) = self.look(entry, is_running, is_lost)? else { return Ok(None) };
        if found.has_ended || self.book.ended(found.entry.exchange)?.is_none() {
            return Ok(Some(found));
        }
        // Its answer may have come after the look.
        self.look(found.entry, is_running, true)
    }

    fn look(&self, entry: Entry, is_running: bool, has_ended: bool) -> Result<Option<Recorded>> {
        let store = self.book.store;
        let name = self.book.own(entry.conversation);
        let Some(view) = store.log().view(&name)? else { return Ok(None) };
        let (next_message, last_seq) = (view.head.next_message_index, view.last_seq());
        if next_message < entry.from {
            return Ok(None);
        }
        let item = items::find_hidden(store.log(), &view, &entry.exchange.to_string())?;
        let answer = match item {
            Some(item) => self.book.message(&name, item.message_index)?.map(Answer::of),
            None => None,
        };
        // Between the begin of an answer and its writer it reads as one that was lost.
        let answer = answer.map(|answer| if is_running { answer.that_runs() } else { answer });
        let has_ended = has_ended || answer.is_some();
        Ok(Some(Recorded { entry, name, next_message, last_seq, answer, has_ended }))
    }

    /// Whether all that was said before an answer in the same run is what the client gave the model to go on with.
    pub(super) fn is_prefilled(&self, recorded: &Recorded) -> Result<bool> {
        for index in &recorded.entry.kept {
            let said = self.book.message(&recorded.name, *index)?;
            if said.is_none_or(|said| said.message.metadata.extra.get(END_FIELD).is_some()) {
                return Ok(false);
            }
        }
        Ok(!recorded.entry.kept.is_empty())
    }

    /// What was said before an answer in the same run: as it is stored, and as clients give it to the model to go on with who
    /// leave out the white space at the end of each part of it.
    pub(super) fn kept_before(&self, recorded: &Recorded) -> Result<Vec<Vec<Chunk>>> {
        let (mut stored, mut stripped) = (Vec::new(), Vec::new());
        for index in &recorded.entry.kept {
            let shown = self.book.store.messages(&recorded.name, *index, 1)?;
            for mut message in shown.into_iter().filter(|shown| shown.index == *index).map(|shown| shown.message) {
                stored.extend(message.chunks.iter().cloned());
                if let Some(Chunk { body: Body::Text { text, .. }, .. }) = message.chunks.last_mut() {
                    text.truncate(text.trim_end_matches(|c: char| c.is_ascii_whitespace()).len());
                }
                stripped.append(&mut message.chunks);
            }
        }
        let other = (stored != stripped).then_some(stripped);
        Ok(std::iter::once(stored).chain(other).collect())
    }
}

/// Whether the client was gone before the end of the answer.
fn is_undelivered(stored: &StoredMessage) -> bool {
    stored.message.metadata.extra.get(END_FIELD).is_some_and(|end: &Json| {
        serde_json::from_str::<serde_json::Value>(end.as_str())
            .is_ok_and(|end| end.get("delivered") == Some(&false.into()))
    })
}

/// Whether a limit of tokens has cut an answer off in the arguments of a call. No client can send these as they are.
fn ends_within_a_call(stored: &StoredMessage) -> bool {
    let last = stored.message.chunks.last().map(|chunk| &chunk.body);
    let is_broken = |arguments: &str| meaning::is_broken(&meaning::canonical(arguments));
    stored.message.finish_reason == Some(FinishReason::Length)
        && matches!(last, Some(Body::ToolCall { arguments, .. }) if is_broken(arguments))
}

/// Whether an answer has ended, and not as answers do.
pub(super) fn has_failed(stored: &StoredMessage) -> bool {
    let answer = Answer::of(stored.clone());
    answer.is_cut && !answer.is_open
}

/// The calls of the same place: attempts of one another.
pub(super) fn siblings<'r>(recorded: &Recorded, asked: &'r [Recorded]) -> Vec<&'r Recorded> {
    let is_sibling = |other: &&Recorded| {
        other.entry.conversation == recorded.entry.conversation && other.entry.from == recorded.entry.from
    };
    asked.iter().filter(is_sibling).collect()
}

/// Whether nothing follows a call in its conversation but its answer and other attempts.
pub(super) fn is_last(recorded: &Recorded, siblings: &[&Recorded]) -> bool {
    recorded.next_message <= end_of(recorded, siblings)
}

/// The index after a call, its answer, and other attempts.
pub(super) fn end_of(recorded: &Recorded, siblings: &[&Recorded]) -> u64 {
    let answers = siblings.iter().filter_map(|sibling| Some(sibling.answer.as_ref()?.stored.index));
    let kept = siblings.iter().flat_map(|sibling| sibling.entry.kept.iter().copied());
    let after = answers.chain(kept).max().map_or(recorded.entry.from, |last| last.saturating_add(1));
    after.max(recorded.entry.from)
}

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
    let item = items::find_hidden(book.store.log(), &view, &exchange.to_string())?;
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
