//! Azure's OpenAI service, on OpenAI's chat wire.

use crate::provider::check::rule::rules;
use crate::provider::openai_chat::manner::{Manner, OPENAI};
use crate::provider::target::Dialect;

pub(crate) const DIALECT: Dialect = Dialect {
    name: "azure",
    about: "Azure's OpenAI service",
    wire: "openai-chat",
    rules: RULES,
    parameters: PARAMETERS,
    check: |_, _| {},
    manner: &MANNER,
};

/// Its own fields of a request.
const PARAMETERS: &[&str] = &["data_sources", "enhancements", "user_security_context"];

/// The models are OpenAI's, and so is what they take (learn.microsoft.com azure openai reference).
static MANNER: Manner = Manner { providers: &["azure", "azure_openai", "openai"], ..OPENAI };

rules! {
    /// Azure adds no rules to OpenAI's.
}
