//! A question that failed, and is asked in another way: with another reminder, or a shortened result. It takes its own place.

use super::book::How;
use super::meaning::{self, Meaning};
use super::plan::{Echoed, Plan, Request};
use super::recorded::{Recorded, end_of, is_last};
use crate::error::Result;
use crate::history::{MessageState, StoredMessage};
use crate::model::{Chunk, ConversationId, Message, Role};

/// Of late answers that come after a call, one more than are passed over; and of messages that calls without an answer asked.
const LATE: usize = 5;
const FOLLOWING: usize = 64;
/// The most messages of a place of which all but the last are hidden.
const HIDDEN: u64 = 64;
/// What reminders are in that clients write for each request: Claude Code and opencode, Codex, Cline and Roo Code.
const REMINDERS: [(&str, &str); 4] = [
    ("<system-reminder>", "</system-reminder>"),
    ("<ide_opened_file>", "</ide_opened_file>"),
    ("<environment_context>", "</environment_context>"),
    ("<environment_details>", "</environment_details>"),
];
/// How a reminder has the words of a person, typed while the model was at work: Claude Code and opencode.
const QUOTES: &str = "The user sent";

impl<'a> Request<'a> {
    /// The first question of a session, asked in another way after it got no answer.
    pub(super) fn first_again(&self) -> Result<Echoed<'a>> {
        let is_first = self.scope.session.is_some() && self.turns.runs.is_empty();
        let newest = if is_first { self.book.begun_in(&self.scope.digest, 1)?.pop() } else { None };
        // What is asked without tools is not what was asked with some.
        let newest = newest.filter(|begun| begun.has_tools == self.scope.has_tools);
        let Some(id) = newest.map(|begun| begun.conversation) else { return Ok(Echoed::Nothing) };
        if self.may_wait && self.exchanges.has_failing(self.book.owner, id) {
            return Ok(Echoed::Wait);
        }
        let name = self.book.own(id);
        let Some(view) = self.book.store.log().view(&name)? else { return Ok(Echoed::Nothing) };
        let Some(until) = self.asked_in_vain(id, None)? else { return Ok(Echoed::Nothing) };
        let shown = self.readable(self.book.store.messages(&name, 0, FOLLOWING))?.unwrap_or_default();
        if shown.len() == FOLLOWING || !self.is_in_vain(&shown, until, true) {
            return Ok(Echoed::Nothing);
        }
        let hide = shown.iter().map(|stored| (stored.index, None)).collect();
        let (last_seq, next_message) = (view.last_seq(), view.head.next_message_index);
        let plan = Plan { name, last_seq, next_message, hide, how: How::Continued, ..self.new_conversation() };
        Ok(Echoed::Plan(Box::new(plan)))
    }

    /// The index after what the newest call of a conversation asked, if it got no answer: it may be asked in another way now.
    ///
    /// `answer`: the one before it, by its index.
    pub(super) fn asked_in_vain(&self, id: ConversationId, answer: Option<u64>) -> Result<Option<u64>> {
        if self.scope.is_probe || self.exchanges.is_writing(self.book.owner, id) {
            return Ok(None);
        }
        let Some((digest, asked)) = self.book.unanswered(id)? else { return Ok(None) };
        // Equal texts with other ids are another question.
        if !self.is_in_scope(&asked) || asked.answer_before != answer || asked.items != self.turns.items {
            return Ok(None);
        }
        // What is hidden is passed over each time.
        if asked.from.saturating_sub(answer.unwrap_or_default()) > HIDDEN {
            return Ok(None);
        }
        let attempts = self.attempts(&digest, &asked)?;
        let is_in_vain = !attempts.is_empty() && attempts.iter().all(|one| one.answer.is_none() && !one.runs());
        Ok(is_in_vain.then_some(asked.from))
    }

    /// Whether the request asks what was asked: the same but for reminders, with results of the same calls.
    fn asks_again(&self, asked: &[StoredMessage], is_first: bool) -> bool {
        // What the system says before all else surrounds a conversation.
        let is_system = |message: &&Message| message.role == Role::System;
        let system = self.turns.messages.iter().take_while(is_system).count();
        let all = self.turns.messages.get(system..).unwrap_or_default();
        let given = all.rsplit(|message| message.role == Role::Assistant).find(|part| !part.is_empty());
        let given: Vec<Meaning<'_>> = given.unwrap_or_default().iter().flat_map(asked_in).collect();
        let asked = asked.iter().map(|stored| &stored.message).skip_while(|message| is_first && is_system(message));
        let asked = asked.filter(|message| message.role != Role::Assistant);
        !given.is_empty() && asked.flat_map(asked_in).eq(given)
    }

    /// What is to be hidden of what follows a call, its answer and other attempts, if none of that counts: a late answer to an
    /// earlier call stays, and what calls without an answer asked goes, if this one asks it in another way.
    pub(super) fn gone_after(
        &self,
        recorded: &Recorded,
        siblings: &[&Recorded],
        answer: u64,
    ) -> Result<Option<Vec<u64>>> {
        if is_last(recorded, siblings) {
            return Ok(Some(Vec::new()));
        }
        let until = self.asked_in_vain(recorded.entry.conversation, Some(answer))?;
        let most = if until.is_some() { FOLLOWING } else { LATE };
        let shown = self.readable(self.book.store.messages(&recorded.name, end_of(recorded, siblings), most))?;
        let Some(shown) = shown.filter(|shown| shown.len() < most) else { return Ok(None) };
        let is_late =
            |stored: &StoredMessage| stored.message.role == Role::Assistant && stored.state == MessageState::Streaming;
        if shown.iter().all(is_late) {
            return Ok(Some(Vec::new()));
        }
        let in_vain = until.is_some_and(|until| self.is_in_vain(&shown, until, false));
        Ok(in_vain.then(|| shown.iter().map(|stored| stored.index).collect()))
    }

    /// Whether all that is shown was asked in vain, up to there, and is asked again. `is_first`: no answer is before it.
    pub(super) fn is_in_vain(&self, shown: &[StoredMessage], until: u64, is_first: bool) -> bool {
        let is_asked = |stored: &StoredMessage| stored.message.role != Role::Assistant && stored.index < until;
        shown.iter().all(is_asked) && self.asks_again(shown, is_first)
    }
}

/// What a message asks.
fn asked_in(message: &Message) -> impl Iterator<Item = Meaning<'_>> {
    message.chunks.iter().filter_map(asks)
}

/// What a chunk asks; `None` of a reminder. Of a result that is which call it is of.
pub(super) fn asks(chunk: &Chunk) -> Option<Meaning<'_>> {
    match meaning::of(chunk)? {
        Meaning::Text(text) if is_reminder(&text) => None,
        Meaning::Result { id, .. } if !id.is_empty() => Some(Meaning::Reference(id.to_owned())),
        meaning => Some(meaning),
    }
}

/// Whether a text is nothing but reminders, as of time and place, without a word of a person.
fn is_reminder(text: &str) -> bool {
    let Some(mut rest) = after_reminder(text) else { return false };
    while let Some(after) = after_reminder(rest) {
        rest = after;
    }
    rest.trim_start().is_empty()
}

/// What follows the reminder with which a text begins.
fn after_reminder(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let (said, rest) = REMINDERS.iter().find_map(|(open, close)| text.strip_prefix(open)?.split_once(close))?;
    (!said.contains(QUOTES)).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::is_reminder;

    #[test]
    fn a_reminder_has_no_words_of_a_person() {
        for (text, is) in [
            ("<system-reminder>It is 10:00.</system-reminder>\n", true),
            (" <environment_details>a</environment_details> <system-reminder>b</system-reminder>", true),
            ("<system-reminder>a</system-reminder> on", false),
            ("<system-reminder>a</system-reminder><user_query>on</user_query>", false),
            ("<system-reminder>The user sent the following message: on</system-reminder>", false),
            ("<system-reminder>a", false),
            ("<document_content>a</document_content>", false),
            ("on", false),
            ("", false),
        ] {
            assert_eq!(is_reminder(text), is, "{text}");
        }
    }
}
