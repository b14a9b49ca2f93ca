//! What a message of the assistant is going to say, before any of it is said.

use super::renderer::Asked;
use super::request::Block;
use super::thought::Thought;
use crate::provider::prompt::turns::Call;

/// A message as it is going to be said, in order.
#[derive(Default)]
pub(crate) struct Plan<'a> {
    pub(crate) steps: Vec<Step<'a>>,
    /// Before which step something was left out or changed for the first time: thinking after it would not be read as the
    /// model thought it.
    pub(crate) changed: Option<usize>,
    /// What only a user message may hold.
    pub(crate) media: Vec<Block<'a>>,
}

pub(crate) enum Step<'a> {
    Say(Block<'a>),
    /// A call of a tool that the provider runs.
    Ask(Block<'a>, Asked<'a>),
    Think(Thought<'a>),
    Call(Call<'a>),
    /// The results of the calls before this stand here: what follows was said after them.
    Answer,
}

impl<'a> Plan<'a> {
    pub(crate) fn change(&mut self) {
        self.changed.get_or_insert(self.steps.len());
    }
}

impl<'a> Plan<'a> {
    /// The results of the calls since the last ones stand here. Gives whether there are any.
    pub(super) fn answer(&mut self) -> bool {
        let mut last = self.steps.iter().rev().take_while(|step| !matches!(step, Step::Answer));
        let answers = last.any(|step| matches!(step, Step::Call(_)));
        self.steps.push(Step::Answer);
        answers
    }

    /// A block, or the gap where it was left out.
    pub(super) fn extend(&mut self, block: Option<Block<'a>>) {
        match block {
            Some(block) => self.steps.push(Step::Say(block)),
            None => self.change(),
        }
    }
}

impl Plan<'_> {
    /// Whether nothing is said but thinking.
    pub(crate) fn is_thinking_only(&self) -> bool {
        self.media.is_empty() && self.steps.iter().all(|step| matches!(step, Step::Think(_)))
    }

    /// Whether thinking may be given back as it came: it is where the model thinks, at the beginning if `begins`, or
    /// after the result of a tool that the provider ran (AN-24), something was said after it (AN-25), and all up to the
    /// last thought is as the model said it (AN-43).
    pub(crate) fn keeps_thinking(&self, begins: bool) -> bool {
        let is_thought = |step: &Step<'_>| matches!(step, Step::Think(_));
        let first = self.steps.iter().position(is_thought).unwrap_or(0);
        let leading = first + self.steps.iter().skip(first).take_while(|step| is_thought(step)).count();
        let end = self.steps.iter().rposition(is_thought).map_or(0, |last| last + 1);
        let is_in_place = match first.checked_sub(1).and_then(|before| self.steps.get(before)) {
            None => begins,
            Some(before) => matches!(before, Step::Say(block) if block.is_server_result()),
        };
        let intact = self.changed.is_none_or(|changed| changed >= end);
        let apart = self.steps.iter().any(|step| matches!(step, Step::Answer));
        is_in_place && end < self.steps.len() && intact && (leading == end || !apart)
    }
}
