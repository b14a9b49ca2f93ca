//! OpenRouter, on OpenAI's chat wire: one address before the models of many makers.

use serde_json::Value;

use crate::provider::check::finding::{Finding, Level};
use crate::provider::check::rule::rules;
use crate::provider::openai_chat::manner::{Manner, OPENAI};
use crate::provider::openai_chat::rules::OC_13;
use crate::provider::target::Dialect;

pub(crate) const DIALECT: Dialect = Dialect {
    name: "openrouter",
    about: "OpenRouter",
    wire: "openai-chat",
    rules: RULES,
    parameters: PARAMETERS,
    check,
    manner: &MANNER,
};

/// Its own fields of a request.
const PARAMETERS: &[&str] = &[
    "cache_control",
    "debug",
    "image_config",
    "include_reasoning",
    "min_p",
    "models",
    "plugins",
    "preset",
    "provider",
    "reasoning",
    "repetition_penalty",
    "route",
    "session_id",
    "structured_outputs",
    "top_a",
    "top_k",
    "trace",
    "transforms",
    "usage",
];

/// It takes what OpenAI takes, and passes it on (openrouter.ai/docs/api-reference/parameters).
static MANNER: Manner = Manner { providers: &["openrouter"], own_ids: true, ..OPENAI };

rules! {
    /// OpenRouter has no rules of its own: what the model's maker refuses depends on the model.
}

/// Ids of other makers are longer (recorded: pydantic-ai test_openrouter_google_nested_schema).
#[expect(clippy::ptr_arg, reason = "the signature of every dialect")]
fn check(_: &Value, out: &mut Vec<Finding>) {
    let too_long = |finding: &&mut Finding| finding.rule == OC_13.id && finding.level == Level::Reported;
    out.iter_mut().filter(too_long).for_each(|finding| finding.level = Level::Soft);
}
