//! What becomes of thinking on a wire that has no thinking blocks.

use std::borrow::Cow;

use super::renderer::Renderer;
use super::request::{Part, SEPARATOR};
use crate::history::Rule;
use crate::provider::prompt::options::Thinking;
use crate::provider::prompt::thinking::{AS_ASKED, IN_TAGS};
use crate::provider::prompt::turns::Turn;
use crate::provider::text::is_blank;

/// A thinking chunk of an assistant message.
#[derive(Debug)]
pub(crate) struct Thought<'a> {
    /// Its position in the message.
    pub(crate) chunk: usize,
    pub(crate) text: &'a str,
    /// Whether it has a signature, or redacted data, which belong to another wire.
    pub(crate) is_opaque: bool,
    /// How many parts of the message stand before it.
    pub(crate) before: usize,
}

pub(crate) type Thoughts<'a> = Vec<Thought<'a>>;

impl<'a> Renderer<'a> {
    /// Puts thinking where it belongs: into the text, into `reasoning_content`, which is given back, or nowhere.
    ///
    /// A message with calls always carries `reasoning_content` where the dialect has it: so it depends on nothing that
    /// comes later.
    pub(crate) fn thinking(
        &mut self,
        turn: &Turn<'a>,
        thoughts: Thoughts<'a>,
        parts: &mut Vec<Part<'a>>,
        says_more: bool,
    ) -> Option<String> {
        let otherwise = self.manner.reasoning_content.filter(|_| !turn.calls.is_empty());
        let own = otherwise.is_some()
            && self.options.thinking == Thinking::Native
            && turn.is_by(self.manner.providers, self.options.model.as_deref());
        let is_all = parts.is_empty() && turn.calls.is_empty() && !says_more;
        let tags = self.options.thinking.tags(is_all);
        let (mut native, mut tagged) = (Vec::new(), 0);
        for thought in thoughts {
            if own && !thought.is_opaque && !thought.text.is_empty() {
                native.push(thought.text);
            } else if tags && !is_blank(thought.text) {
                self.note(Rule::ThinkingTagged, turn.stored, thought.chunk, IN_TAGS);
                let text = Cow::Owned(Thinking::tagged(thought.text));
                parts.insert((thought.before + tagged).min(parts.len()), Part::Text { text });
                tagged += 1;
            } else {
                self.note(Rule::ThinkingLeftOut, turn.stored, thought.chunk, self.why_left_out(&thought));
            }
        }
        otherwise.map(|otherwise| if native.is_empty() { otherwise.to_owned() } else { native.join(SEPARATOR) })
    }

    fn why_left_out(&self, thought: &Thought<'_>) -> &'static str {
        match self.options.thinking {
            Thinking::Omit => AS_ASKED,
            _ if thought.is_opaque => "thinking with a signature, or redacted, is bound to another provider",
            _ if is_blank(thought.text) => "the thinking says nothing",
            _ => "the target takes no thinking here",
        }
    }
}
