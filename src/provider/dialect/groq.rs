//! Groq, on OpenAI's chat wire.

use crate::provider::check::rule::{Overrides, rules};
use crate::provider::openai_chat::manner::{Manner, OPENAI, UserContent};
use crate::provider::openai_chat::rules::OC_25;
use crate::provider::target::Dialect;

pub(crate) const DIALECT: Dialect = Dialect {
    name: "groq",
    about: "Groq",
    wire: "openai-chat",
    rules: RULES,
    parameters: PARAMETERS,
    overrides: Overrides { replaced: &[(&OC_25, &GQ_01, &["index", "reasoning"])], ..Overrides::NONE },
    check: |_, _| {},
    manner: &MANNER,
};

/// Its own fields of a request.
const PARAMETERS: &[&str] = &[
    "citation_options",
    "compound_custom",
    "disable_tool_validation",
    "documents",
    "exclude_domains",
    "include_domains",
    "include_reasoning",
    "reasoning_format",
    "search_settings",
];

/// GQ-01; it has no field for refusals (sdk:groq ChatCompletionAssistantMessageParam). An array where a string will do is
/// refused (gh:OpenHands/OpenHands#4643, gh:livekit/agents#1790). Of media it knows images only (sdk:groq
/// ChatCompletionContentPartParam).
static MANNER: Manner = Manner {
    providers: &["groq"],
    own_ids: true,
    arrays: false,
    user: UserContent::Joined,
    audio: false,
    files: false,
    refusal: false,
    ..OPENAI
};

rules! {
    /// Groq's rules.
    GQ_01 "GQ-01" Reported
        "No message fields that the official type does not have, in particular reasoning_content. In a tool call \
         `index` passes."
        "leave the field out"
        "gh:tashfeenahmed/freellmapi#1070; gh:Kilo-Org/kilocode#10375"
}
