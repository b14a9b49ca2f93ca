//! Perplexity's Sonar models, on OpenAI's chat wire.

use crate::provider::check::findings::Findings;
use crate::provider::check::rule::{Overrides, rules};
use crate::provider::check::value::{role, sequence};
use crate::provider::openai_chat::check::out_of_turn;
use crate::provider::openai_chat::manner::{Ends, Manner, OPENAI, Order, System, UserContent};
use crate::provider::target::Dialect;
use serde_json::Value;

pub(crate) const DIALECT: Dialect = Dialect {
    name: "perplexity",
    about: "Perplexity's Sonar",
    wire: "openai-chat",
    rules: RULES,
    parameters: PARAMETERS,
    overrides: Overrides::NONE,
    check,
    manner: &MANNER,
};

/// Its own fields of a request (docs.perplexity.ai, chat completions).
const PARAMETERS: &[&str] = &[
    "disable_search",
    "enable_search_classifier",
    "image_domain_filter",
    "image_format_filter",
    "last_updated_after_filter",
    "last_updated_before_filter",
    "return_images",
    "return_related_questions",
    "search_after_date_filter",
    "search_before_date_filter",
    "search_domain_filter",
    "search_mode",
    "search_recency_filter",
    "top_k",
];

/// PX-01 to PX-03. Images are taken, sound is not (docs.perplexity.ai, image attachments).
static MANNER: Manner = Manner {
    providers: &["perplexity", "sonar"],
    own_ids: true,
    arrays: false,
    user: UserContent::Array,
    audio: false,
    files: false,
    refusal: false,
    system: System::First,
    order: Order { begins: true, merges: true, bridges: true, ends: Ends::Asking },
    ..OPENAI
};

rules! {
    /// Perplexity's rules.
    PX_01 "PX-01" Hard
        "User and assistant messages alternate after the system messages, beginning with the user. A run of tool messages \
         counts as the user's."
        "merge neighbours of one role into one message, and put a message of the other role between turns"
        "gh:perplexityai/api-discussion#265; gh:serac-labs/serac#53; gh:livekit/agents#1529"
    PX_02 "PX-02" Hard
        "System messages come first."
        "join later system messages into the first one, or let the user say them"
        "gh:pipecat-ai/pipecat#4009; gh:edenai/edenai-apis#144"
    PX_03 "PX-03" Hard
        "The last message is the user's or a tool's."
        "append the user's next message"
        "gh:pipecat-ai/pipecat#4009"
}

fn check(request: &Value, out: &mut Findings) {
    let Some(messages) = sequence(request, "messages") else { return };
    let mut previous = None;
    for (i, message) in messages.iter().enumerate() {
        let role = role(message);
        if ["system", "developer"].contains(&role) {
            if previous.is_some() {
                out.push(PX_02.at(format!("messages[{i}]"), "after a message of another role"));
            }
            continue;
        }
        if let Some(problem) = out_of_turn(role, previous) {
            out.push(PX_01.at(format!("messages[{i}]"), problem));
        }
        previous = Some(role);
    }
    if messages.last().is_some_and(|message| role(message) == "assistant") {
        let place = format!("messages[{}]", messages.len() - 1);
        out.push(PX_03.at(place, "the conversation ends with the assistant"));
    }
}
