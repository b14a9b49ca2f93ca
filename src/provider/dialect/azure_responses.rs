//! Azure's OpenAI service, on OpenAI's Responses wire.

use crate::provider::check::rule::rules;
use crate::provider::openai_responses::manner::{Manner, NAME, OPENAI};
use crate::provider::target::Dialect;

pub(crate) const DIALECT: Dialect = Dialect {
    name: "azure",
    about: "Azure's OpenAI service",
    wire: NAME,
    rules: RULES,
    parameters: &[],
    check: |_, _| {},
    manner: &MANNER,
};

/// The models are OpenAI's, and so is what they take (learn.microsoft.com azure openai responses; recorded: pydantic-ai
/// test_azure_responses_reasoning_context_default_wire_contract).
static MANNER: Manner = Manner { providers: &["azure", "azure_openai", "openai"], ..OPENAI };

rules! {
    /// Azure adds no rules to OpenAI's.
}
