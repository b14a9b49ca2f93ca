//! What becomes of thinking: the blocks of a message as they came with their signatures, all of them, or none (AN-21 to
//! AN-26, AN-43).

use std::borrow::Cow;

use super::assistant::{Plan, Step};
use super::wire::Block;
use super::{NAME, Renderer};
use crate::history::Rule;
use crate::history::StoredMessage;
use crate::model::{Body, Chunk};
use crate::provider::Thinking;
use crate::provider::text::is_blank;
use crate::provider::turns::Turn;

/// A thinking chunk.
#[derive(Clone, Copy)]
pub(super) struct Thought<'a> {
    chunk: usize,
    text: &'a str,
    own: Option<Form<'a>>,
}

/// How the provider wrote it.
#[derive(Clone, Copy)]
enum Form<'a> {
    Signed { signature: &'a str },
    Redacted { data: &'a str },
}

/// What becomes of the thinking of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// Blocks of the provider's own.
    Own,
    /// Text in tags.
    Tagged,
    /// Nothing, and why.
    LeftOut(&'static str),
}

impl<'a> Thought<'a> {
    pub(super) fn of(chunk: &'a Chunk, at: usize) -> Option<Self> {
        let Body::Thinking { text, signature, redacted } = &chunk.body else { return None };
        let filled = |data: &'a Option<String>| data.as_deref().filter(|data| !data.is_empty());
        // What came from another wire, or was mended, does not fit its signature.
        let is_foreign = chunk.native.as_ref().is_some_and(|native| native.wire != NAME);
        let own = match (filled(signature), filled(redacted)) {
            (Some(signature), None) => Some(Form::Signed { signature }),
            (None, Some(data)) if text.is_empty() => Some(Form::Redacted { data }),
            _ => None,
        };
        Some(Self { chunk: at, text, own: own.filter(|_| !is_foreign) })
    }
}

impl<'a> Renderer<'a> {
    pub(super) fn use_of_thinking(&self, turn: &Turn<'a>, plan: &Plan<'a>) -> Use {
        let mut thoughts =
            plan.steps.iter().filter_map(|step| if let Step::Think(thought) = step { Some(thought) } else { None });
        let is_own = turn.is_by(self.manner.providers, self.options.model.as_deref());
        match self.options.thinking {
            Thinking::Tagged => Use::Tagged,
            Thinking::Omit => Use::LeftOut("thinking was left out, as was asked for"),
            Thinking::Native if plan.is_thinking_only() => Use::Tagged,
            Thinking::Native if !is_own => Use::LeftOut("thinking is bound to the provider and model that made it"),
            Thinking::Native if thoughts.any(|thought| thought.own.is_none()) => {
                Use::LeftOut("the target takes thinking with its signature only, and all of a message or none")
            }
            Thinking::Native if !plan.keeps_thinking(self.may_think()) => Use::LeftOut(
                "the target takes thinking only where the model thought it: first, or behind its own tools, and unchanged",
            ),
            Thinking::Native => Use::Own,
        }
    }

    pub(super) fn thought(&mut self, thought: Thought<'a>, stored: &StoredMessage, wanted: Use) -> Option<Block<'a>> {
        let why = match (wanted, thought.own) {
            (Use::Own, Some(Form::Signed { signature })) => {
                return Some(Block::Thinking { thinking: thought.text, signature });
            }
            (Use::Own, Some(Form::Redacted { data })) => return Some(Block::RedactedThinking { data }),
            (Use::Tagged, _) if !is_blank(thought.text) => {
                self.note(Rule::ThinkingTagged, stored, thought.chunk, "it is text in <think> tags in this prompt");
                return Some(Block::Text { text: Cow::Owned(Thinking::tagged(thought.text)) });
            }
            (Use::LeftOut(why), _) => why,
            (Use::Own | Use::Tagged, _) => "there is no text in it",
        };
        self.note(Rule::ThinkingLeftOut, stored, thought.chunk, why);
        None
    }
}
