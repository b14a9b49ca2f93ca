//! What a message of the assistant is going to say, before any of it is said.

use serde_json::Value;

use super::request::Block;
use crate::model::{Body, Chunk};
use crate::provider::anthropic::manner::NAME;
use crate::provider::prompt::turns::{Call, Origin};

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

/// A call of a tool that the provider runs.
pub(crate) struct Asked<'a> {
    pub(super) id: String,
    /// Takes the place of a result that does not come.
    pub(super) made_result: Option<Value>,
    pub(super) origin: Origin<'a>,
}

impl<'a> Plan<'a> {
    pub(crate) fn change(&mut self) {
        self.changed.get_or_insert(self.steps.len());
    }

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

/// A thinking chunk.
#[derive(Clone, Copy)]
pub(crate) struct Thought<'a> {
    pub(super) chunk: usize,
    pub(super) text: &'a str,
    /// Whether it has a signature, or encrypted data, of whomever.
    pub(super) is_opaque: bool,
    pub(super) form: Option<Form<'a>>,
}

/// How the provider wrote it.
#[derive(Clone, Copy)]
pub(super) enum Form<'a> {
    Signed { signature: &'a str },
    Redacted { data: &'a str },
}

impl<'a> Thought<'a> {
    pub(crate) fn of(chunk: &'a Chunk, at: usize) -> Option<Self> {
        let Body::Thinking { text, signature, redacted } = &chunk.body else { return None };
        let filled = |data: &'a Option<String>| data.as_deref().filter(|data| !data.is_empty());
        // What came from another wire, or was mended, does not fit its signature.
        let is_foreign = chunk.native.as_ref().is_some_and(|native| native.wire != NAME);
        let form = match (filled(signature), filled(redacted)) {
            (Some(signature), None) => Some(Form::Signed { signature }),
            (None, Some(data)) if text.is_empty() => Some(Form::Redacted { data }),
            _ => None,
        };
        let is_opaque = signature.is_some() || redacted.is_some();
        Some(Self { chunk: at, text, is_opaque, form: form.filter(|_| !is_foreign) })
    }
}
