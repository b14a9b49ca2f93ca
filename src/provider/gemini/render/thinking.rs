//! What becomes of thinking: parts of its own where the service takes them back, else text, or nothing.

use std::borrow::Cow;

use super::renderer::Renderer;
use super::request::Part;
use crate::history::report::{Fact, Thought as Why};
use crate::provider::prompt::options::Thinking;
use crate::provider::prompt::turns::Turn;

/// A chunk of the model's message.
#[derive(Debug)]
pub(crate) struct Slot<'a> {
    /// Its position in the message.
    pub(crate) chunk: usize,
    pub(crate) place: Result<Part<'a>, Thought<'a>>,
}

/// Thinking, and the part that may stand for it.
#[derive(Debug)]
pub(crate) struct Thought<'a> {
    pub(crate) text: &'a str,
    pub(crate) opaque: bool,
    pub(crate) part: Option<Part<'a>>,
}

impl<'a> Renderer<'a> {
    /// The parts of the message. Thoughts alone say nothing to the service (GM-26): in a message of thinking only they are
    /// text.
    pub(crate) fn place_thinking(&mut self, turn: &Turn<'a>, slots: Vec<Slot<'a>>) -> Vec<Part<'a>> {
        let is_all = slots.iter().all(|slot| slot.place.is_err());
        let tags = self.options.thinking.tags(is_all);
        let mut parts = Vec::new();
        for Slot { chunk, place } in slots {
            let thought = match place {
                Ok(part) => {
                    parts.push(part);
                    continue;
                }
                Err(thought) => thought,
            };
            if let Some(part) = thought.part.filter(|_| !is_all) {
                parts.push(part);
            } else if tags && !thought.text.is_empty() {
                self.note(self.options.thinking.tagging(), turn.stored, chunk);
                parts.push(Part::Text { text: Cow::Owned(Thinking::tagged(thought.text)) });
            } else {
                let why = match self.options.thinking {
                    Thinking::Omit => Why::AsAsked,
                    _ if thought.text.is_empty() && !thought.opaque => Why::Empty,
                    Thinking::Tagged => Why::NoText,
                    _ if thought.opaque && !self.is_own(turn) => Why::Foreign,
                    // With its signature it is sent, unless the message is nothing else; then it is sent as text.
                    _ if is_all => Why::NoText,
                    _ => Why::Unsigned,
                };
                self.note(Fact::ThinkingRemoved { why, text: thought.text }, turn.stored, chunk);
            }
        }
        parts
    }
}
