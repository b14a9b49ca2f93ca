//! Where a request belongs. It continues a recorded conversation, leaves it, repeats a call whose answer failed, or is new.
//!
//! A prefix counts only if it reaches an answer that was recorded. These cases are tried, in this order:
//!
//! 1. The whole request was asked before, in this scope. If its answer failed, was cut off, or still runs, this is another
//!    attempt at the same place. If its answer is complete, this is a fork that answers again.
//! 2. A beginning of what follows the last answer was asked, in this scope, and got no answer: it goes on there.
//! 3. The model's last run is the echo of a recorded answer: it goes on after that, or leaves there.
//!    So do the last runs together, if the calls of one answer came back in turn.
//! 4. All runs are equal, but what was given to the model in between is not: the client has rewritten its past.
//! 5. An earlier run is the echo of a recorded answer: it leaves there.

use super::book::{Entry, How};
use super::echo::{self, Echo, Kept, chunks, is_text, same};
use super::meaning::{Evidence, is_made_up, is_random, said};
use super::plan::{Echoed, Placed, Plan, Request, kept_by_client};
use super::recorded::{Answer, Recorded, is_last, siblings};
use super::scope::{Elsewhere, Kind};
use super::turns::{Part, Run};
use crate::error::{Error, Result};
use crate::history::StoredMessage;
use crate::log::{hidden, reading};
use crate::model::{Body, Chunk, ConversationId, Message, Name, Role};

/// The most chunks of an answer that are hidden one by one: each is an entry of its own.
const HIDDEN: usize = 64;
/// The most messages between a question and its answer, or its end, that are looked at.
const BETWEEN: usize = 64;
/// The most calls of one answer that are looked for, where they come back in turn.
const IN_TURN: usize = 32;

/// What came of looking.
#[derive(Debug)]
pub(super) enum Found {
    Placed(Box<Placed>),
    /// An answer that may be the echoed one is not all stored yet.
    Wait,
}

impl<'a> Request<'a> {
    /// Finds the place of the request, and stores what of it is not stored.
    pub(super) fn place(&self) -> Result<Found> {
        const TRIES: usize = 8;
        let mut stale = None;
        for _ in 0..TRIES {
            let Some(plan) = self.plan()? else { return Ok(Found::Wait) };
            // What it leaves may be a question that gets no answer.
            let is_early = || self.exchanges.has_failing(self.book.owner, plan.name.id());
            if plan.leave_at.is_some() && self.may_wait && is_early() {
                return Ok(Found::Wait);
            }
            match self.carry_out(self.with_other_system(plan)?) {
                // Somebody was faster: look again.
                Err(error @ (Error::StaleHead { .. } | Error::NameTaken { .. } | Error::SharedByForks { .. })) => {
                    stale = Some(error);
                }
                placed => return placed.map(|placed| Found::Placed(Box::new(placed))),
            }
        }
        // What somebody has written can be seen once it is durable.
        if self.may_wait {
            return Ok(Found::Wait);
        }
        Err(stale.unwrap_or_else(|| Error::Busy("the conversation".to_owned())))
    }

    /// Notes that the client begins with other words of the system than those that are recorded.
    fn with_other_system(&self, mut plan: Plan<'a>) -> Result<Plan<'a>> {
        let system = self.turns.messages.get(..self.turns.system).unwrap_or_default();
        if plan.how != How::New && !system.is_empty() {
            let shown = self.readable(self.book.store.messages(&plan.name, 0, system.len().saturating_add(1)))?;
            let shown = shown.unwrap_or_default();
            let recorded = shown.iter().map(|stored| &stored.message).take_while(|was| was.role == Role::System);
            if said(recorded) != said(system) {
                plan.rewritten.extend(0..system.len());
            }
        }
        Ok(plan)
    }

    fn plan(&self) -> Result<Option<Plan<'a>>> {
        if self.is_alone {
            return Ok(Some(self.new_conversation()));
        }
        match &self.scope.kept_elsewhere {
            Some(Elsewhere::Response(id)) => return self.after_response(id),
            Some(Elsewhere::Conversation) => return self.at_the_end(),
            None => {}
        }
        let asked = self.still_asked(&self.turns.asked, |entry| self.is_same_question(entry))?;
        if let Some(plan) = self.repeated(&asked)? {
            return Ok(Some(plan));
        }
        for part in self.turns.parts.iter().rev() {
            let asked = self.still_asked(&part.digest, |entry| self.is_in_scope(entry))?;
            let in_vain = |recorded: &&Recorded| {
                siblings(recorded, &asked).into_iter().all(|one| self.was_in_vain(one) || one.says_nothing())
            };
            if let Some(recorded) = asked.first().filter(in_vain) {
                return Ok(Some(self.goes_on_unanswered(recorded, &asked, part)?));
            }
        }
        for (number, run) in self.turns.looked_up().enumerate() {
            let is_possible =
                |entry: &Entry| self.is_users(entry) && entry.calls.is_none_or(|calls| calls == run.calls);
            let asked = self.nearest_first(self.recorded(&run.before, is_possible)?);
            let said: Vec<&Chunk> = chunks(self.turns.run_messages(run)).collect();
            let mut found = self.echoed(run, &said, &asked)?;
            // Who cleared an early result goes on, and leaves nothing.
            if number == 0 {
                found = found.or_else(|| self.by_call(run, &said))?;
                found = found.or_else(|| self.in_turn(run, asked.is_empty()))?.or_else(|| self.rewritten())?;
            }
            match found {
                Echoed::Plan(plan) => return Ok(Some(*plan)),
                Echoed::Wait => return Ok(None),
                Echoed::Nothing => {}
            }
        }
        match self.first_again()? {
            Echoed::Plan(plan) => Ok(Some(*plan)),
            Echoed::Wait => Ok(None),
            Echoed::Nothing => Ok(Some(self.new_conversation())),
        }
    }

    /// The provider has what came before: the request goes on after the answer of this id.
    fn after_response(&self, id: &str) -> Result<Option<Plan<'a>>> {
        let asked = self.still_asked(&self.turns.asked, |entry| self.is_in_scope(entry))?;
        if let Some(plan) = self.repeated(&asked)? {
            return Ok(Some(plan));
        }
        let before = self.book.response(id)?.filter(|entry| self.is_users(entry));
        // The client has the answer's id before the store has.
        if before.is_none() && self.may_wait && self.has_others() {
            return Ok(None);
        }
        let Some(recorded) = before.map(|entry| self.read(entry)).transpose()?.flatten() else {
            return Ok(Some(self.new_conversation()));
        };
        let Some(answer) = &recorded.answer else { return Ok(Some(self.new_conversation())) };
        if answer.is_open && self.may_wait {
            return Ok(None);
        }
        let mut plan = self.after(&recorded, std::slice::from_ref(&recorded), answer, Echo::Whole, self.rest(0, 0))?;
        plan.answer_before = Some(answer.stored.index);
        Ok(Some(plan))
    }

    /// The provider has what came before, under a name: the request goes on where the last one of that name did.
    fn at_the_end(&self) -> Result<Option<Plan<'a>>> {
        let asked = self.still_asked(&self.turns.asked, |entry| self.is_same_question(entry))?;
        let siblings = asked.first().map(|newest| siblings(newest, &asked)).unwrap_or_default();
        // What was answered may be asked again.
        let is_unanswered = asked.first().is_some_and(|newest| is_last(newest, &siblings));
        if is_unanswered && siblings.iter().all(|sibling| sibling.has_failed()) {
            return self.repeated(&asked);
        }
        let Some(id) = self.book.newest_in(&self.scope.digest)? else { return Ok(Some(self.new_conversation())) };
        let name = self.book.own(id);
        let Some(view) = self.book.store.log().view(&name)? else { return Ok(Some(self.new_conversation())) };
        let (last_seq, next_message) = (view.last_seq(), view.head.next_message_index);
        let how = How::Continued;
        Ok(Some(Plan { name, last_seq, next_message, how, ..self.new_conversation() }))
    }

    fn is_users(&self, entry: &Entry) -> bool {
        entry.user == self.scope.user
    }

    pub(super) fn is_in_scope(&self, entry: &Entry) -> bool {
        let is_same = entry.scope == self.scope.digest && self.is_users(entry);
        // Without a session two conversations differ only in what is said around the messages.
        is_same && (entry.has_session() || entry.surroundings == Some(self.scope.surroundings))
    }

    /// Whether a call without a session was made with the same key.
    pub(super) fn is_same_account(&self, entry: &Entry) -> bool {
        entry.account.is_none_or(|account| account == self.scope.account)
    }

    fn is_same_question(&self, entry: &Entry) -> bool {
        self.is_in_scope(entry)
            && entry.items == self.turns.items
            && entry.calls.is_none_or(|calls| calls == self.turns.calls)
    }

    /// What a run is of an answer, after what was said in the same run before.
    fn compare(&self, before: &[Vec<Chunk>], answer: &Answer, echoed: &[&Chunk], is_lost: bool) -> Option<Echo> {
        let said: Vec<&Chunk> = answer.stored.message.chunks.iter().collect();
        before.iter().find_map(|before| {
            let before: Vec<&Chunk> = before.iter().collect();
            echo::compare(&before, &said, echoed, self.skips, answer.is_cut, is_lost)
        })
    }

    /// Whether the client gives the model what was said before an answer in the same run.
    fn is_prefill(&self, before: &[Vec<Chunk>], given: &[&Chunk]) -> bool {
        before.iter().any(|before| same(&before.iter().collect::<Vec<_>>(), given, self.skips))
    }

    /// Whether a call got no answer, and nobody waits for one any more: without a session, another person may.
    fn was_in_vain(&self, recorded: &Recorded) -> bool {
        recorded.has_failed() && (recorded.entry.has_session() || !recorded.runs())
    }

    /// The whole request was asked before.
    fn repeated(&self, asked: &[Recorded]) -> Result<Option<Plan<'a>>> {
        let Some(newest) = asked.first() else { return Ok(None) };
        let prefill = self.turns.trailing().map_or(&[][..], |run| self.turns.run_messages(run));
        let given: Vec<&Chunk> = chunks(prefill).collect();
        if !given.is_empty() {
            for recorded in asked {
                let before = self.kept_before(recorded)?;
                let is_same_prefill = self.is_prefill(&before, &given);
                let Some(answer) = recorded.answer.as_ref().filter(|_| !is_same_prefill) else { continue };
                if let Some(echo) = self.compare(&before, answer, &given, answer.is_lost) {
                    if echo == Echo::Whole && answer.is_open && self.may_wait {
                        return Ok(None);
                    }
                    let mut plan = self.after(recorded, asked, answer, echo, Vec::new())?;
                    let mut run = recorded.entry.kept.clone();
                    run.push(answer.stored.index);
                    plan.run = Some((recorded.entry.from, run));
                    plan.answer_before = recorded.entry.answer_before;
                    plan.calls = recorded.entry.calls;
                    return Ok(Some(plan));
                }
            }
        }
        let is_same_prefill = self.is_prefill(&self.kept_before(newest)?, &given);
        let siblings = siblings(newest, asked);
        let is_last = is_last(newest, &siblings);
        let failed = siblings.iter().all(|sibling| sibling.has_failed());
        // Another agent of the session may be asked the same at the same time.
        let is_anothers = |one: &&Recorded| self.exchanges.is_anothers(one.entry.exchange, self.scope.surroundings);
        let is_beside = siblings.iter().any(is_anothers);
        let waits = siblings.iter().any(|sibling| !self.was_in_vain(sibling));
        if !newest.entry.has_session() && waits {
            return Ok(None);
        }
        let mut plan = self.at(newest);
        if failed && is_last && is_same_prefill && !is_beside {
            plan.hide = answers_besides(&siblings, &newest.entry.kept);
            plan.how = How::Attempt;
            plan.run = Some((newest.entry.from, newest.entry.kept.clone()));
        } else {
            self.leave_after_question(&mut plan, newest)?;
            plan.prefill = prefill;
        }
        Ok(Some(plan))
    }

    /// Part of what is asked was asked before, and got no answer that the client kept.
    fn goes_on_unanswered(&self, recorded: &Recorded, asked: &[Recorded], part: &Part) -> Result<Plan<'a>> {
        let siblings = siblings(recorded, asked);
        let mut plan = self.at(recorded);
        let whole =
            siblings.iter().filter(|sibling| sibling.says_nothing()).filter_map(|sibling| sibling.answer.as_ref());
        plan.hide = answers_besides(&siblings, &whole.map(|answer| answer.stored.index).collect::<Vec<_>>());
        plan.rest = self.rest(part.messages, part.chunks);
        plan.prefill = self.turns.trailing().map_or(&[][..], |run| self.turns.run_messages(run));
        if !is_last(recorded, &siblings) {
            self.leave_after_question(&mut plan, recorded)?;
        }
        Ok(plan)
    }

    /// Leaves a conversation after what was asked. What was hidden of it since is hidden there, too: it was when it was asked.
    fn leave_after_question(&self, plan: &mut Plan<'a>, recorded: &Recorded) -> Result<()> {
        let log = self.book.store.log();
        let Some(last) = recorded.entry.from.checked_sub(1) else {
            // Nothing was asked that can be left.
            *plan = self.new_conversation();
            return Ok(());
        };
        let last = self.book.message(&recorded.name, last)?;
        let last = last.ok_or_else(|| Error::no_conversation(&recorded.name))?.last_seq;
        let view = reading::view(log, &recorded.name)?;
        plan.hide = hidden::removed_since(log, &view, last)?;
        plan.leave_at = Some(last);
        plan.how = How::Forked;
        Ok(())
    }

    /// Whether other calls of the owner are being recorded.
    fn has_others(&self) -> bool {
        self.exchanges.has_others(self.book.owner, self.exchange)
    }

    /// The model's run is the echo of a recorded answer.
    ///
    /// `echoed`: what the model said there.
    fn echoed(&self, run: &Run, echoed: &[&Chunk], asked: &[Recorded]) -> Result<Echoed<'a>> {
        // It may be that the client has an answer, and the store not yet.
        let mut may_come = false;
        // The same of this scope's answers, which come first: known at the first one of others.
        let mut own_may_come = None;
        for recorded in asked {
            let is_own = recorded.entry.scope == self.scope.digest && self.is_same_account(&recorded.entry);
            if !is_own {
                own_may_come.get_or_insert(may_come);
            }
            let Some(answer) = &recorded.answer else {
                may_come |= recorded.runs() && !self.exchanges.is_unanswered(recorded.entry.exchange);
                continue;
            };
            if !recorded.entry.has_session() && !self.is_evident(run, recorded, answer) {
                continue;
            }
            let before = self.kept_before(recorded)?;
            let is_lost = answer.is_lost && is_own;
            let mut found = self.compare(&before, answer, echoed, is_lost);
            let lacks_prefill = found.is_none() && self.is_prefilled(recorded)?;
            if lacks_prefill {
                // A client may keep the answer without what the model was to go on with.
                found = self.compare(&[Vec::new()], answer, echoed, is_lost);
            }
            // Who goes on with what came of an answer does not wait for the rest.
            let may_stop = is_own && recorded.entry.has_session() && answer.is_open && self.may_wait;
            if found.is_some() && may_stop && self.exchanges.stop_left(recorded.entry.exchange) {
                return Ok(Echoed::Wait);
            }
            match found {
                // All its words are stored, and its end is not yet.
                Some(Echo::Whole) if answer.is_open && self.may_wait => may_come = true,
                // Another scope got the same.
                Some(_) if self.may_wait && own_may_come == Some(true) => return Ok(Echoed::Wait),
                // A newer answer may be the whole of it, and may not be stored yet.
                Some(Echo::Part(_)) if self.may_wait && (may_come || self.has_others()) => return Ok(Echoed::Wait),
                Some(echo) => {
                    let mut plan = match self.is_apart(recorded, answer) {
                        true => self.in_its_place(run, recorded, asked)?,
                        false => self.after_run(run, recorded, asked, answer, echo)?,
                    };
                    if lacks_prefill {
                        plan.rewritten.extend(run.first..run.end);
                    }
                    return Ok(Echoed::Plan(Box::new(plan)));
                }
                None if answer.is_open => {
                    let said = || answer.stored.message.chunks.iter();
                    may_come |= before.iter().any(|before| {
                        let recorded: Vec<&Chunk> = before.iter().chain(said()).collect();
                        echo::may_become(&recorded, echoed, self.skips)
                    });
                }
                None => {}
            }
        }
        if may_come && self.may_wait {
            return Ok(Echoed::Wait);
        }
        let in_vain = |recorded: &&Recorded| {
            let entry = &recorded.entry;
            let is_own = entry.has_session() && entry.scope == self.scope.digest;
            let failed = |one: &&Recorded| one.has_failed() && !one.runs();
            is_own && siblings(recorded, asked).iter().all(failed)
        };
        // A client may put words in the place of an answer that it has not got.
        let in_vain = asked.iter().filter(in_vain).filter(|_| echoed.iter().all(is_text));
        if let Some(recorded) = self.not_replaced(in_vain)?.first() {
            return Ok(Echoed::Plan(Box::new(self.in_its_place(run, recorded, asked)?)));
        }
        Ok(Echoed::Nothing)
    }

    /// The model's run calls a tool by an id that is no other's: of many calls with one question that one is looked at.
    fn by_call(&self, run: &Run, said: &[&Chunk]) -> Result<Echoed<'a>> {
        let id = said.iter().find_map(|chunk| match &chunk.body {
            Body::ToolCall { id, name, .. } if is_random(id, name) => Some(id),
            _ => None,
        });
        let Some(id) = id else { return Ok(Echoed::Nothing) };
        let Some(entry) = self.book.that_calls(&run.before, id)?.filter(|entry| self.is_users(entry)) else {
            return Ok(Echoed::Nothing);
        };
        self.echoed(run, said, &self.attempts(&run.before, &entry)?)
    }

    /// After a question that was asked, with what the client has in the place of its answer.
    fn in_its_place(&self, run: &Run, recorded: &Recorded, asked: &[Recorded]) -> Result<Plan<'a>> {
        let siblings = siblings(recorded, asked);
        let mut plan = self.at(recorded);
        plan.hide = answers_besides(&siblings, &[]);
        plan.kept = self.turns.run_messages(run).iter().cloned().map(kept_by_client).collect();
        self.follow(&mut plan, run);
        let is_apart = siblings.iter().filter_map(|one| one.answer.as_ref()).any(|one| self.is_apart(recorded, one));
        if is_apart || !is_last(recorded, &siblings) {
            self.leave_after_question(&mut plan, recorded)?;
        }
        Ok(plan)
    }

    /// The calls of one answer come back in turn, each with its result: the last run is an echo together with those before it that
    /// only results part from it.
    fn in_turn(&self, last: &Run, is_unknown: bool) -> Result<Echoed<'a>> {
        let has_results = |run: &Run, next: &Run| {
            let between = self.turns.messages.get(run.end..next.first).unwrap_or_default();
            chunks(between).all(|chunk| matches!(chunk.body, Body::ToolResult { .. }))
        };
        // Who asked with what came before has given the results of all calls before.
        if !is_unknown || last.end == self.turns.messages.len() {
            return Ok(Echoed::Nothing);
        }
        let mut next = last;
        for run in self.turns.looked_up().skip(1).take(IN_TURN) {
            if !has_results(run, next) {
                break;
            }
            next = run;
            let is_possible =
                |entry: &Entry| self.is_users(entry) && entry.calls.is_none_or(|calls| calls == run.calls);
            let asked = self.nearest_first(self.recorded(&run.before, is_possible)?);
            if asked.is_empty() {
                continue;
            }
            let joined = || self.turns.runs.iter().filter(|one| one.first >= run.first && one.first <= last.first);
            let said: Vec<&Chunk> = joined().flat_map(|one| chunks(self.turns.run_messages(one))).collect();
            let mut echoed = self.echoed(last, &said, &asked)?;
            if let Echoed::Plan(plan) = &mut echoed {
                let ends = joined().map(|one| one.end);
                let given =
                    ends.zip(joined().skip(1)).filter_map(|(from, next)| self.turns.messages.get(from..next.first));
                plan.rest.splice(0..0, given.flatten().cloned());
            }
            return Ok(echoed);
        }
        Ok(Echoed::Nothing)
    }

    /// Whether nobody else's answer could be taken for this one, where no session says whose it is.
    fn is_evident(&self, run: &Run, recorded: &Recorded, answer: &Answer) -> bool {
        let entry = &recorded.entry;
        let is_own = self.is_in_scope(entry) && self.is_same_account(entry);
        let is_evident_before = run.is_evident_before && entry.scope == self.scope.digest;
        is_own || is_evident_before || Evidence::of(&answer.stored.message.chunks).is_enough
    }

    /// After an answer that is echoed by a run.
    fn after_run(
        &self,
        run: &Run,
        recorded: &Recorded,
        asked: &[Recorded],
        answer: &Answer,
        echo: Echo,
    ) -> Result<Plan<'a>> {
        let mut plan = self.after(recorded, asked, answer, echo, Vec::new())?;
        plan.answer_before = Some(answer.stored.index);
        let lacks_id = |chunk: &Chunk| matches!(&chunk.body, Body::ToolCall { id, name, .. } if is_made_up(id, name));
        let ids = recorded.entry.calls.filter(|_| !answer.stored.message.chunks.iter().any(lacks_id));
        plan.calls = ids.map(|_| self.turns.calls);
        self.follow(&mut plan, run);
        if Some(run.end) == self.turns.trailing().map(|run| run.end) {
            let mut kept = recorded.entry.kept.clone();
            kept.push(answer.stored.index);
            plan.run = Some((recorded.entry.from, kept));
        }
        Ok(plan)
    }

    /// After an answer: in its conversation if nothing follows it there but other attempts, and it is this scope's; else it leaves.
    fn after(
        &self,
        recorded: &Recorded,
        asked: &[Recorded],
        answer: &Answer,
        echo: Echo,
        rest: Vec<Message>,
    ) -> Result<Plan<'a>> {
        let siblings = siblings(recorded, asked);
        let mut plan = self.at(recorded);
        plan.rest = rest;
        let index = answer.stored.index;
        let others = answers_besides(&siblings, &recorded.entry.kept);
        plan.hide = others.into_iter().filter(|(other, _)| *other != index).collect();
        if let Echo::Part(Kept { chunks, mut rest }) = echo {
            let none = !chunks.contains(&true);
            let gone = chunks.iter().enumerate().filter(|(_, kept)| !**kept);
            if none {
                plan.hide.push((index, None));
            } else if gone.clone().count() > HIDDEN {
                // What is left of it is a message of its own.
                let stays = answer.stored.message.chunks.iter().zip(&chunks).filter(|(_, kept)| **kept);
                rest.splice(0..0, stays.map(|(chunk, _)| chunk.clone()));
                plan.hide.push((index, None));
            } else {
                plan.hide.extend(gone.map(|(at, _)| (index, Some(answer.stored.chunk_index(at)))));
            }
            if !rest.is_empty() {
                plan.kept.push(kept_by_client(Message::assistant(rest)));
            }
        }
        let is_own = recorded.entry.scope == self.scope.digest;
        let gone = self.gone_after(recorded, &siblings, index)?;
        let is_followed = gone.is_none();
        plan.hide.extend(gone.into_iter().flatten().map(|asked| (asked, None)));
        if !is_own || is_followed || self.is_hidden(recorded, answer) || answer.is_open {
            plan.leave_at = Some(answer.stored.last_seq);
            plan.how = How::Forked;
            plan.hide.extend(self.within(recorded, answer)?.into_iter().map(|other| (other, None)));
            // What is still written in the conversation ends in its fork.
            let open = siblings.iter().filter_map(|sibling| sibling.answer.as_ref()).filter(|answer| answer.is_open);
            let open =
                open.map(|answer| answer.stored.index).filter(|at| *at != index && !recorded.entry.kept.contains(at));
            plan.hide.extend(open.map(|at| (at, None)));
        }
        Ok(plan)
    }

    /// Whether something else comes between a question and its answer: it was asked while the answer was on its way.
    fn is_apart(&self, recorded: &Recorded, answer: &Answer) -> bool {
        let (from, index) = (recorded.entry.from, answer.stored.index);
        let between = usize::try_from(index.saturating_sub(from)).unwrap_or(usize::MAX);
        let asks = |stored: &StoredMessage| stored.message.role != Role::Assistant && stored.index < index;
        let shown = || self.book.store.messages(&recorded.name, from, between.min(BETWEEN));
        between > 0 && shown().is_ok_and(|shown| shown.iter().any(asks))
    }

    /// What was said after an answer had begun, and before it had ended, by its indexes.
    fn within(&self, recorded: &Recorded, answer: &Answer) -> Result<Vec<u64>> {
        let after = answer.stored.index.saturating_add(1);
        let shown = self.readable(self.book.store.messages(&recorded.name, after, BETWEEN))?.unwrap_or_default();
        let is_within = |stored: &&StoredMessage| stored.first_seq < answer.stored.last_seq;
        Ok(shown.iter().filter(is_within).map(|stored| stored.index).collect())
    }

    /// Whether an answer was hidden, as another one was taken for the one that lives.
    fn is_hidden(&self, recorded: &Recorded, answer: &Answer) -> bool {
        let shown = self.book.store.messages(&recorded.name, answer.stored.index, 1);
        shown.is_ok_and(|shown| shown.first().is_none_or(|stored| stored.index != answer.stored.index))
    }

    /// At the place of a recorded call.
    fn at(&self, recorded: &Recorded) -> Plan<'a> {
        Plan {
            name: recorded.name.clone(),
            last_seq: recorded.last_seq,
            next_message: recorded.next_message,
            leave_at: None,
            hide: Vec::new(),
            kept: Vec::new(),
            rest: Vec::new(),
            prefill: &[],
            run: None,
            answer_before: recorded.entry.answer_before,
            calls: recorded.entry.calls,
            how: How::Continued,
            rewritten: Vec::new(),
        }
    }

    pub(super) fn new_conversation(&self) -> Plan<'a> {
        let is_beside = self.scope.is_probe || matches!(self.scope.kind, Kind::Side | Kind::Compaction);
        let wanted = self.scope.wanted.as_deref().filter(|_| !is_beside);
        let wanted = wanted.map(|wanted| Name::from(wanted).with_owner(self.book.owner));
        // Who could make a conversation of any id could take that of another owner's key.
        let wanted = wanted.filter(|name| name.key().is_some());
        let is_free = |name: &Name| matches!(self.book.store.log().view(name), Ok(None));
        let id = || Name::from(ConversationId::new()).with_owner(self.book.owner);
        Plan {
            name: wanted.filter(is_free).unwrap_or_else(id),
            last_seq: 0,
            next_message: 0,
            leave_at: None,
            hide: Vec::new(),
            kept: Vec::new(),
            rest: self.rest(0, 0),
            prefill: self.turns.trailing().map_or(&[][..], |run| self.turns.run_messages(run)),
            run: None,
            answer_before: None,
            calls: Some(self.turns.calls),
            how: How::New,
            rewritten: Vec::new(),
        }
    }
}

/// The answers of calls of one place that do not live, to be hidden: all but those that the client gave the model to go on with.
fn answers_besides(siblings: &[&Recorded], kept: &[u64]) -> Vec<(u64, Option<u32>)> {
    let answers = siblings.iter().filter_map(|sibling| sibling.answer.as_ref()).filter(|answer| !answer.is_open);
    answers.map(|answer| answer.stored.index).filter(|index| !kept.contains(index)).map(|index| (index, None)).collect()
}
