//! What all wires do with thinking that is not sent in the target's own form.

use super::options::Thinking;
use crate::history::report::Fact;

impl Thinking {
    /// Thinking as text.
    pub(crate) fn tagged(thought: &str) -> String {
        format!("<think>\n{thought}\n</think>")
    }

    /// The line for thinking as text.
    pub(crate) fn tagging(self) -> Fact<'static> {
        Fact::ThinkingTagged { asked: self == Self::Tagged }
    }

    /// Whether thinking that the target does not take as such becomes text. `is_all`: its message is nothing else.
    pub(crate) const fn tags(self, is_all: bool) -> bool {
        match self {
            Self::Tagged => true,
            Self::Native => is_all,
            Self::Omit => false,
        }
    }
}
