//! What all wires do with thinking that is not sent in the target's own form.

use super::options::Thinking;

/// Why thinking was left out that the caller did not want.
pub(crate) const AS_ASKED: &str = "thinking was left out, as was asked for";
/// What became of thinking that is text.
pub(crate) const IN_TAGS: &str = "it is text in <think> tags in this prompt";

impl Thinking {
    /// Thinking as text.
    pub(crate) fn tagged(thought: &str) -> String {
        format!("<think>\n{thought}\n</think>")
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
