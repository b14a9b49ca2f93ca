//! A client that has rewritten its past: what the model said is what it said in a conversation of the session, and what was given
//! to it in between is not.

use std::collections::HashSet;

use super::again::asks;
use super::around::END_FIELD;
use super::book::How;
use super::echo::{self, chunks, is_text, same, same_calls};
use super::meaning::{Evidence, said};
use super::plan::{Echoed, Plan, Request, kept_by_client};
use super::recorded::has_failed;
use super::turns::{Run, is_result};
use crate::error::{Error, Result};
use crate::history::{MessageState, StoredMessage};
use crate::log::View;
use crate::model::{Body, Chunk, ConversationId, Message, Role};

fn is_models(stored: &StoredMessage) -> bool {
    stored.message.role == Role::Assistant
}

fn is_call(chunk: &&Chunk) -> bool {
    matches!(chunk.body, Body::ToolCall { server: false, .. })
}

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
        let is_evident = Evidence::of(said.iter().copied()).is_enough || self.begins_as(messages.first());
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
        if self.may_wait && self.exchanges.has_failing(self.book.owner, id) {
            return Ok(Echoed::Wait);
        }
        // Asked before the look at the log: what has ended by then is all there.
        let is_writing = self.exchanges.is_writing(self.book.owner, id);
        let Some(view) = self.book.store.log().view(&name)? else { return Ok(Echoed::Nothing) };
        let Some(mut messages) = self.readable(self.book.store.load_raw(&name))? else { return Ok(Echoed::Nothing) };
        // What the client gives the model to go on with says nothing of what it is given after.
        let has_ended = |last: &StoredMessage| last.message.metadata.extra.get(END_FIELD).is_some();
        let is_prefill = |last: &StoredMessage| last.state == MessageState::Complete && !has_ended(last);
        if self.turns.trailing().is_some() && messages.last().is_some_and(|last| is_models(last) && is_prefill(last)) {
            return Ok(Echoed::Nothing);
        }
        let answer = messages.iter().rfind(|stored| is_models(stored)).map(|stored| stored.index);
        // What the client asks in another way now, as it got no answer.
        let asked = messages.iter().rposition(is_models).map_or(0, |answer| answer + 1);
        let in_vain = messages.get(asked..).filter(|asked| !asked.is_empty());
        let mut hide = Vec::new();
        if let Some(in_vain) = in_vain
            && let Some(until) = self.asked_in_vain(id, answer)?
            && self.is_in_vain(in_vain, until, answer.is_none())
        {
            hide.extend(in_vain.iter().map(|stored| stored.index));
            messages.truncate(asked);
        }
        let found = match self.whole(&view, &messages, is_newest, is_writing) {
            Echoed::Nothing if is_newest => self.in_part(&view, &messages, is_writing),
            found => found,
        };
        Ok(match found {
            Echoed::Plan(mut plan) => {
                plan.hide.extend(hide.into_iter().map(|asked| (asked, None)));
                Echoed::Plan(plan)
            }
            found => found,
        })
    }

    /// All that the model said there is in the request.
    fn whole(&self, view: &View, messages: &[StoredMessage], is_newest: bool, is_writing: bool) -> Echoed<'a> {
        let mut runs = self.turns.runs.iter();
        // Of an older conversation the beginning says that it is the one.
        let begins_as = !is_newest || self.begins_as(messages.first());
        let mut evidence = Evidence::default();
        let (mut last, mut hide, mut kept, mut rewritten) = (None, Vec::new(), Vec::new(), Vec::new());
        let mut rest = messages;
        let mut given_from = 0;
        while let Some(first) = rest.iter().position(|stored| stored.message.role == Role::Assistant) {
            let from = rest.get(first..).unwrap_or_default();
            let length = from.iter().position(|stored| stored.message.role != Role::Assistant).unwrap_or(from.len());
            let (answers, after) = from.split_at_checked(length).unwrap_or_default();
            let recorded: Vec<&Chunk> = answers.iter().flat_map(|stored| &stored.message.chunks).collect();
            let Some(run) = runs.next() else {
                // The client goes back to an earlier answer, if that was recorded here.
                let is_recorded = |stored: &&StoredMessage| stored.message.metadata.extra.get(END_FIELD).is_some();
                let is_back = is_newest && evidence.is_enough && hide.is_empty() && self.begins_alike(messages.first());
                let back = last.filter(|_| is_back);
                let Some((run, answer)) = back else { return Echoed::Nothing };
                let left = messages.iter().find(|stored| stored.index == answer).filter(is_recorded);
                let Some(left) = left else { return Echoed::Nothing };
                let leave_at = Some(left.last_seq);
                // What was asked while it was on its way.
                let is_within = |stored: &&StoredMessage| stored.index > answer && stored.first_seq < left.last_seq;
                let hide = messages.iter().filter(is_within).map(|stored| (stored.index, None)).collect();
                let how = How::Forked;
                let plan = Plan { leave_at, hide, how, rewritten, ..self.after_rewritten(view, run, answer) };
                return Echoed::Plan(Box::new(plan));
            };
            let was = said(rest.iter().take(first).map(|stored| &stored.message));
            if was != said(self.turns.messages.get(given_from..run.first).unwrap_or_default()) {
                rewritten.extend(given_from..run.first);
            } else {
                evidence.is_enough |= !was.is_empty();
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
                return Echoed::Wait;
            } else if !is_whole || !same(&recorded, &echoed, self.skips) {
                if !is_whole || !same_calls(&recorded, &echoed, self.skips) {
                    return Echoed::Nothing;
                }
                rewritten.extend(run.first..run.end);
            }
            evidence.take(echoed.iter().copied());
            last = answers.last().map(|stored| (run, stored.index));
            rest = after;
        }
        if self.may_wait && runs.len() == 1 && is_writing {
            return Echoed::Wait;
        }
        // After the last answer nothing was asked that the request does not ask.
        let is_over = rest.is_empty() && (is_newest || runs.len() == 0) && (begins_as || evidence.is_enough);
        let Some((run, answer)) = last.filter(|_| is_over) else { return Echoed::Nothing };
        let plan = Plan { hide, kept, rewritten, ..self.after_rewritten(view, run, answer) };
        Echoed::Plan(Box::new(plan))
    }

    /// After an answer of a conversation whose past the client has rewritten.
    fn after_rewritten(&self, view: &View, run: &Run, answer: u64) -> Plan<'a> {
        let mut plan = Plan {
            name: self.book.own(view.id),
            last_seq: view.last_seq(),
            next_message: view.head.next_message_index,
            leave_at: None,
            hide: Vec::new(),
            kept: Vec::new(),
            rest: Vec::new(),
            prefill: &[],
            run: None,
            answer_before: Some(answer),
            calls: None,
            how: How::Continued,
            rewritten: Vec::new(),
        };
        self.follow(&mut plan, run);
        plan
    }

    /// The client has left out what came first, or calls with their results: what it has of the model is the end of what was said
    /// there, but for such calls. Compared from the end.
    fn in_part(&self, view: &View, messages: &[StoredMessage], is_writing: bool) -> Echoed<'a> {
        let mut groups: Vec<&[StoredMessage]> =
            messages.chunk_by(|one, next| is_models(one) == is_models(next)).collect();
        if self.may_wait && is_writing && self.may_be_answered(&groups) {
            return Echoed::Wait;
        }
        let mut evidence = Evidence::default();
        let (mut last, mut rewritten, mut matched) = (None, Vec::new(), 0);
        let mut given_until = None;
        for run in self.turns.runs.iter().rev() {
            let mut given = Vec::new();
            let echoed: Vec<&Chunk> = chunks(self.turns.run_messages(run)).collect();
            let answers = loop {
                let Some(group) = groups.pop() else { return Echoed::Nothing };
                if !group.first().is_some_and(is_models) {
                    // After the last answer nothing was asked that the request does not ask.
                    if last.is_none() {
                        return Echoed::Nothing;
                    }
                    given.splice(0..0, group);
                    continue;
                }
                let recorded: Vec<&Chunk> = group.iter().flat_map(|stored| &stored.message.chunks).collect();
                if last.is_none() && self.may_wait && self.may_end_as(group, &[], &recorded, &echoed) {
                    return Echoed::Wait;
                }
                let is_whole = group.iter().all(|stored| stored.state == MessageState::Complete);
                if is_whole && same(&recorded, &echoed, self.skips) {
                    break group;
                }
                // Calls that were answered may be left out, with their results.
                if last.is_none() || !is_whole || !recorded.last().is_some_and(is_call) {
                    return Echoed::Nothing;
                }
                given.retain(|stored: &&StoredMessage| !stored.message.chunks.iter().all(is_result));
            };
            if let Some(until) = given_until {
                let given = said(given.iter().map(|stored| &stored.message));
                if given != said(self.turns.messages.get(run.end..until).unwrap_or_default()) {
                    rewritten.extend(run.end..until);
                }
            }
            given_until = Some(run.first);
            evidence.take(echoed.iter().copied());
            matched += 1;
            if last.is_none() {
                last = answers.last().map(|stored| (run, stored.index));
            }
        }
        let is_call_group = |group: &&[StoredMessage]| {
            let last = group.last().and_then(|stored| stored.message.chunks.last());
            !group.first().is_some_and(is_models) || last.is_some_and(|chunk| is_call(&chunk))
        };
        // What a client asks beside a conversation may quote the end of it.
        let is_evident = groups.iter().all(is_call_group) || self.scope.wanted.is_some() || matched > 1;
        let Some((run, answer)) = last.filter(|_| is_evident && evidence.is_enough) else { return Echoed::Nothing };
        let first = self.turns.messages.get(..given_until.unwrap_or_default()).unwrap_or_default();
        let given = groups.iter().copied().filter(|group| !group.first().is_some_and(is_models)).flatten();
        let given = given.map(|stored| &stored.message).filter(|message| !message.chunks.iter().all(is_result));
        let newest = groups.last().copied().unwrap_or_default().iter().map(|stored| &stored.message);
        if ![said(given), said(newest)].contains(&said(first)) {
            rewritten.extend(0..first.len());
        }
        rewritten.sort_unstable();
        Echoed::Plan(Box::new(Plan { rewritten, ..self.after_rewritten(view, run, answer) }))
    }

    /// Whether the last run may be the answer to what was asked last, of which nothing is stored yet: the run before it is the
    /// answer before.
    fn may_be_answered(&self, groups: &[&[StoredMessage]]) -> bool {
        let mut newest = groups.iter().rev();
        if newest.next().is_none_or(|asked| asked.first().is_some_and(is_models)) {
            return false;
        }
        match (self.turns.runs.iter().rev().nth(1), newest.next()) {
            (Some(run), Some(answers)) => {
                let recorded: Vec<&Chunk> = answers.iter().flat_map(|stored| &stored.message.chunks).collect();
                let echoed: Vec<&Chunk> = chunks(self.turns.run_messages(run)).collect();
                same(&recorded, &echoed, self.skips)
            }
            _ => self.scope.wanted.is_some(),
        }
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

    /// Whether the request's first message has a text of a recorded message that is no reminder, or begins with its words.
    fn begins_alike(&self, recorded: Option<&StoredMessage>) -> bool {
        let first = self.turns.messages.first().map(|first| &first.chunks[..]).unwrap_or_default();
        let was = recorded.map(|recorded| &recorded.message.chunks[..]).unwrap_or_default();
        let has =
            |chunk: &Chunk| asks(chunk).is_some_and(|text| was.iter().any(|was| asks(was).as_ref() == Some(&text)));
        self.begins_as(recorded) || first.iter().any(has)
    }

    /// Whether the request begins with the words of a recorded message.
    fn begins_as(&self, recorded: Option<&StoredMessage>) -> bool {
        let (Some(recorded), Some(first)) = (recorded, self.turns.messages.first()) else { return false };
        let text = |chunk: &Chunk| if let Body::Text { text, .. } = &chunk.body { text.clone() } else { String::new() };
        let words = |message: &Message| message.chunks.iter().map(text).collect::<String>();
        let was = words(&recorded.message);
        // `high` does not begin with the words `hi`.
        let goes_on = |rest: &str| !rest.starts_with(char::is_alphanumeric);
        recorded.message.role == first.role && !was.is_empty() && words(first).strip_prefix(&was).is_some_and(goes_on)
    }
}
