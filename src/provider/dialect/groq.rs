//! Groq, on OpenAI's chat wire.

use serde_json::Value;

use crate::provider::check::finding::Finding;
use crate::provider::check::rule::rules;
use crate::provider::openai_chat::manner::{Manner, OPENAI, UserContent};
use crate::provider::target::Dialect;

pub(crate) const DIALECT: Dialect = Dialect {
    name: "groq",
    about: "Groq",
    wire: "openai-chat",
    rules: RULES,
    parameters: PARAMETERS,
    check,
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

/// The wire's rule that this server takes seriously.
const UNKNOWN_FIELD: &str = "OC-25";

#[expect(clippy::ptr_arg, reason = "the signature of every dialect")]
fn check(_: &Value, out: &mut Vec<Finding>) {
    for finding in out.iter_mut().filter(|finding| finding.rule == UNKNOWN_FIELD) {
        if !finding.place.ends_with(".index") && !finding.place.ends_with(".reasoning") {
            *finding = GQ_01.at(&finding.place, &finding.problem);
        }
    }
}
