//! Moonshot's API, home of the Kimi models, on OpenAI's chat wire.

use crate::provider::check::findings::Findings;
use crate::provider::check::rule::{Overrides, rules};
use crate::provider::check::value::{Object, is_filled, role, sequence};
use crate::provider::openai_chat::check::{call_ids, is_thinking};
use crate::provider::openai_chat::manner::{ImagesTaken, Manner, OPENAI, Texts, UserContent};
use crate::provider::target::Dialect;
use serde_json::Value;

pub(crate) const DIALECT: Dialect = Dialect {
    name: "moonshot",
    about: "Moonshot's Kimi",
    wire: "openai-chat",
    rules: RULES,
    parameters: PARAMETERS,
    overrides: Overrides::NONE,
    check,
    manner: &MANNER,
};

/// Its own fields of a request.
const PARAMETERS: &[&str] = &["enable_thinking", "thinking"];

/// MS-01, MS-02: `reasoning_content` goes with every message that has calls, so that no later message changes an earlier
/// one. Images are sent as data, and there are no parts for sound and documents (platform.moonshot.ai use-kimi-vision-model).
static MANNER: Manner = Manner {
    providers: &["moonshot", "moonshotai", "kimi"],
    own_ids: true,
    arrays: false,
    user: UserContent::Joined,
    images: ImagesTaken::Data,
    audio: false,
    files: false,
    reasoning_content: Some(" "),
    refusal: false,
    texts: Texts::NotEmpty,
    ..OPENAI
};

rules! {
    /// Moonshot's rules.
    MS_01 "MS-01" Hard
        "With thinking on, assistant messages with `tool_calls` carry a `reasoning_content` that is not empty; a space \
         passes. It is on when the request, the model's name or another message shows it."
        "send back the `reasoning_content` that came with the calls, or a single space"
        "gh:earendil-works/pi#4178; gh:continuedev/continue#11806"
    MS_02 "MS-02" Reported
        "The content of a message is not empty, except beside `tool_calls`."
        "leave the message out, or give it text"
        "gh:MoonshotAI/kimi-code#1985; gh:lobehub/lobehub#8419"
}

/// Parts of the names of models that think.
const THINKING_MODELS: &[&str] = &["k2.5", "k2.6", "thinking"];

fn check(request: &Value, out: &mut Findings) {
    let Some(messages) = sequence(request, "messages") else { return };
    let thinking = is_thinking(request, &messages, THINKING_MODELS);
    for (i, message) in messages.iter().enumerate() {
        check_message(message, &format!("messages[{i}]"), thinking, out);
    }
}

fn check_message(message: &Object, place: &str, thinking: bool, out: &mut Findings) {
    let calls = !call_ids(message).is_empty();
    let reasons = message.get("reasoning_content").is_some_and(is_filled);
    if thinking && role(message) == "assistant" && calls && !reasons {
        out.push(MS_01.at(place, "tool calls without reasoning_content, in thinking mode"));
    }
    if !calls && is_empty(message.get("content").unwrap_or(&Value::Null)) {
        out.push(MS_02.at(format!("{place}.content"), "content is empty, null or absent"));
    }
}

fn is_empty(content: &Value) -> bool {
    match content {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(parts) => parts.is_empty(),
        _ => false,
    }
}
