//! A client that has rewritten its past: what the model said is what it said in a conversation of the session, and what was given
//! to it in between is not.

use std::collections::HashSet;

use super::book::How;
use super::echo::{self, chunks, is_text, same};
use super::meaning::{is_random, said};
use super::plan::{Echoed, Plan, Request, kept_by_client};
use super::recorded::has_failed;
use crate::error::{Error, Result};
use crate::history::{MessageState, StoredMessage};
use crate::model::{Body, Chunk, ConversationId, Message, Role};

/// The newest conversations of a session whose past a client may have rewritten; and the messages of each that are looked at first.
const REWRITTEN: usize = 8;
const FIRST: usize = 16;

impl<'a> Request<'a> {
    /// The client has rewritten its past: the model's runs are those of a conversation of this session, all else need not be.
    pub(super) fn rewritten(&self) -> Result<Echoed<'a>> {
        if self.scope.session.is_none() || self.turns.runs.is_empty() {
            return Ok(Echoed::Nothing);
        }
        let newest = self.book.begun_in(&self.scope.digest, REWRITTEN)?;
        let mut known = HashSet::new();
        let newest = newest.into_iter().map(|begun| begun.conversation).filter(|id| known.insert(*id));
        for (number, id) in newest.enumerate() {
            if number > 0 && !self.begins_like(id)? {
                continue;
            }
            match self.rewritten_in(id, number == 0)? {
                Echoed::Nothing => {}
                found => return Ok(found),
            }
        }
        Ok(Echoed::Nothing)
    }

    /// Whether the request begins as a conversation does, up to the model's first words there.
    fn begins_like(&self, id: ConversationId) -> Result<bool> {
        let messages = self.readable(self.book.store.messages(self.book.own(id), 0, FIRST))?.unwrap_or_default();
        let answer = messages.iter().find(|stored| stored.message.role == Role::Assistant);
        let (Some(answer), Some(run)) = (answer, self.turns.runs.first()) else { return Ok(false) };
        let echoed: Vec<&Chunk> = chunks(self.turns.run_messages(run)).collect();
        let said: Vec<&Chunk> = answer.message.chunks.iter().collect();
        let is_call = |chunk: &&Chunk| matches!(&chunk.body, Body::ToolCall { id, name, .. } if is_random(id, name));
        let is_evident = said.iter().any(is_call) || self.begins_as(messages.first());
        Ok(is_evident && echo::may_become(&said, &echoed, self.skips))
    }

    /// What is read of a conversation to be compared. One that is too large for that is not compared.
    pub(super) fn readable<T>(&self, read: Result<T>) -> Result<Option<T>> {
        match read {
            Err(Error::NotFound { .. } | Error::Corrupt { .. } | Error::LimitExceeded { .. }) => Ok(None),
            Err(Error::Busy(_)) if !self.may_wait => Ok(None),
            read => read.map(Some),
        }
    }

    /// `is_newest`: of the newest conversation a later answer may have been lost.
    fn rewritten_in(&self, id: ConversationId, is_newest: bool) -> Result<Echoed<'a>> {
        let name = self.book.own(id);
        // Asked before the look at the log: what has ended by then is all there.
        let is_writing = self.exchanges.is_writing(self.book.owner, id);
        let Some(view) = self.book.store.log().view(&name)? else { return Ok(Echoed::Nothing) };
        let Some(messages) = self.readable(self.book.store.load_raw(&name))? else { return Ok(Echoed::Nothing) };
        let mut runs = self.turns.runs.iter();
        let (mut last, mut hide, mut kept, mut rewritten) = (None, Vec::new(), Vec::new(), Vec::new());
        let mut rest = messages.as_slice();
        let mut given_from = 0;
        while let Some(first) = rest.iter().position(|stored| stored.message.role == Role::Assistant) {
            let from = rest.get(first..).unwrap_or_default();
            let length = from.iter().position(|stored| stored.message.role != Role::Assistant).unwrap_or(from.len());
            let (answers, after) = from.split_at_checked(length).unwrap_or_default();
            let recorded: Vec<&Chunk> = answers.iter().flat_map(|stored| &stored.message.chunks).collect();
            let Some(run) = runs.next() else { return Ok(Echoed::Nothing) };
            let was = rest.iter().take(first).map(|stored| &stored.message);
            if said(was) != said(self.turns.messages.get(given_from..run.first).unwrap_or_default()) {
                rewritten.extend(given_from..run.first);
            }
            given_from = run.end;
            let echoed: Vec<&Chunk> = chunks(self.turns.run_messages(run)).collect();
            let is_whole = answers.iter().all(|stored| stored.state == MessageState::Complete);
            let has_failed = after.is_empty() && answers.iter().all(has_failed) && echoed.iter().all(is_text);
            if has_failed && (last.is_some() || self.begins_as(messages.first())) {
                // Words of the client in the place of an answer that it has not got.
                hide = answers.iter().map(|stored| (stored.index, None)).collect();
                kept = self.turns.run_messages(run).iter().cloned().map(kept_by_client).collect();
            } else if self.may_wait && self.may_end_as(answers, after, &recorded, &echoed) {
                return Ok(Echoed::Wait);
            } else if !is_whole || !same(&recorded, &echoed, self.skips) {
                return Ok(Echoed::Nothing);
            }
            last = answers.last().map(|stored| (run, stored.index));
            rest = after;
        }
        if self.may_wait && runs.len() == 1 && is_writing {
            return Ok(Echoed::Wait);
        }
        // After the last answer nothing was asked that the request does not ask.
        let is_over = rest.is_empty() && (is_newest || runs.len() == 0);
        let Some((run, answer)) = last.filter(|_| is_over) else { return Ok(Echoed::Nothing) };
        let mut plan = Plan {
            name,
            last_seq: view.last_seq(),
            next_message: view.head.next_message_index,
            leave_at: None,
            hide,
            kept,
            rest: Vec::new(),
            prefill: &[],
            run: None,
            answer_before: Some(answer),
            calls: None,
            how: How::Continued,
            rewritten,
        };
        self.follow(&mut plan, run);
        Ok(Echoed::Plan(Box::new(plan)))
    }

    /// Whether the last answer of a conversation is not all stored yet, and may become the one that a run is the echo of.
    fn may_end_as(
        &self,
        answers: &[StoredMessage],
        after: &[StoredMessage],
        recorded: &[&Chunk],
        echoed: &[&Chunk],
    ) -> bool {
        let is_open = |stored: &StoredMessage| stored.state == MessageState::Streaming;
        after.is_empty() && answers.last().is_some_and(is_open) && echo::may_become(recorded, echoed, self.skips)
    }

    /// Whether the request begins with the words of a recorded message.
    fn begins_as(&self, recorded: Option<&StoredMessage>) -> bool {
        let (Some(recorded), Some(first)) = (recorded, self.turns.messages.first()) else { return false };
        let text = |chunk: &Chunk| if let Body::Text { text, .. } = &chunk.body { text.clone() } else { String::new() };
        let words = |message: &Message| message.chunks.iter().map(text).collect::<String>();
        let was = words(&recorded.message);
        recorded.message.role == first.role && !was.is_empty() && words(first).starts_with(&was)
    }
}
