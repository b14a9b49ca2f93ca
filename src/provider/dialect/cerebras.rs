//! Cerebras, on OpenAI's chat wire.

use crate::provider::check::rule::rules;
use crate::provider::openai_chat::manner::{Manner, OPENAI, UserContent};
use crate::provider::target::Dialect;

pub(crate) const DIALECT: Dialect = Dialect {
    name: "cerebras",
    about: "Cerebras",
    wire: "openai-chat",
    rules: RULES,
    parameters: PARAMETERS,
    check: |_, _| {},
    manner: &MANNER,
};

/// Its own fields of a request.
const PARAMETERS: &[&str] = &["clear_thinking", "disable_reasoning", "min_completion_tokens", "reasoning_format"];

/// An array where a string will do is not in its type (inference-docs.cerebras.ai, chat completions).
/// A message may have `reasoning` (recorded: pydantic-ai test_cerebras_thinking_part_survives_multiturn).
static MANNER: Manner = Manner {
    providers: &["cerebras"],
    arrays: false,
    user: UserContent::Joined,
    audio: false,
    files: false,
    refusal: false,
    ..OPENAI
};

rules! {
    /// Cerebras has no rules that are known to be its own.
}
