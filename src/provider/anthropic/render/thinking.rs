//! What becomes of thinking: the blocks of a message as they came with their signatures, all of them, or none (AN-21 to
//! AN-26, AN-43).

use std::borrow::Cow;

use super::plan::{Plan, Step};
use super::renderer::Renderer;
use super::request::Block;
use super::thought::{Form, Thought};
use crate::history::StoredMessage;
use crate::history::report::{Fact, Thought as Why};
use crate::model::Body;
use crate::provider::prompt::options::Thinking;
use crate::provider::prompt::origin::{Whose, is_openais};
use crate::provider::prompt::turns::Turn;
use crate::provider::text::is_blank;

/// What becomes of the thinking of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Blocks of the provider's own.
    Own,
    /// Text in tags.
    Tagged,
    /// Nothing, and why.
    LeftOut(Why),
}

impl<'a> Renderer<'a> {
    pub(crate) fn use_of_thinking(&self, turn: &Turn<'a>, plan: &Plan<'a>) -> Use {
        let mut thoughts =
            plan.steps.iter().filter_map(|step| if let Step::Think(thought) = step { Some(thought) } else { None });
        // What OpenAI encrypted is its own, also where nobody states it.
        let is_own = self.whose(turn.stored).is_own()
            && !turn.said().any(|(_, chunk)| {
                matches!(&chunk.body, Body::Thinking { signature: Some(signature), .. } if is_openais(signature))
            });
        match self.options.thinking {
            Thinking::Tagged => Use::Tagged,
            Thinking::Omit => Use::LeftOut(Why::AsAsked),
            Thinking::Native if plan.is_thinking_only() => Use::Tagged,
            Thinking::Native if !is_own => Use::LeftOut(Why::Foreign),
            Thinking::Native if thoughts.any(|thought| thought.own.is_none()) => Use::LeftOut(Why::Unsigned),
            Thinking::Native if !plan.keeps_thinking(self.may_think()) => Use::LeftOut(Why::OutOfPlace),
            Thinking::Native => Use::Own,
        }
    }

    fn whose(&self, stored: &StoredMessage) -> Whose {
        Whose::of(&stored.message.metadata, self.manner.providers, self.options.model.as_deref())
    }

    pub(crate) fn thought(&mut self, thought: Thought<'a>, stored: &StoredMessage, wanted: Use) -> Option<Block<'a>> {
        let why = match (wanted, thought.own) {
            (Use::Own, Some(Form::Signed { signature })) => {
                self.report.extend(self.whose(stored).note(stored, thought.chunk));
                return Some(Block::Thinking { thinking: thought.text, signature });
            }
            (Use::Own, Some(Form::Redacted { data })) => {
                self.report.extend(self.whose(stored).note(stored, thought.chunk));
                return Some(Block::RedactedThinking { data });
            }
            (Use::Tagged, _) if !is_blank(thought.text) => {
                self.note(self.options.thinking.tagging(), stored, thought.chunk);
                return Some(Block::Text { text: Cow::Owned(Thinking::tagged(thought.text)) });
            }
            (Use::LeftOut(why), _) => why,
            (Use::Own | Use::Tagged, _) if thought.text.is_empty() && !thought.is_opaque => Why::Empty,
            (Use::Own | Use::Tagged, _) => Why::NoText,
        };
        self.note(Fact::ThinkingRemoved { why, text: thought.text }, stored, thought.chunk);
        None
    }
}
