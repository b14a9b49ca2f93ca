//! xAI's API, home of the Grok models, on OpenAI's chat wire.

use crate::provider::check::rule::rules;
use crate::provider::openai_chat::manner::{Manner, OPENAI};
use crate::provider::target::Dialect;

pub(crate) const DIALECT: Dialect = Dialect {
    name: "xai",
    about: "xAI",
    wire: "openai-chat",
    rules: RULES,
    parameters: PARAMETERS,
    check: |_, _| {},
    manner: &MANNER,
};

/// Its own fields of a request.
const PARAMETERS: &[&str] = &["bootstrap_host", "bootstrap_room", "deferred", "search_parameters"];

/// Of media it takes images (docs.x.ai/docs/api-reference, chat completions).
static MANNER: Manner =
    Manner { providers: &["xai", "x-ai", "grok"], audio: false, files: false, refusal: false, ..OPENAI };

rules! {
    /// xAI has no rules that are known to be its own.
}
