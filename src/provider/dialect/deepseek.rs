//! DeepSeek's API, on OpenAI's chat wire.

use crate::provider::check::findings::Findings;
use crate::provider::check::rule::{Overrides, rules};
use crate::provider::check::value::{Object, role, sequence};
use crate::provider::openai_chat::check::sequence::{call_ids, is_thinking};
use crate::provider::openai_chat::manner::{ImagesTaken, Manner, OPENAI};
use crate::provider::target::Dialect;
use serde_json::Value;

pub(crate) const DIALECT: Dialect = Dialect {
    name: "deepseek",
    about: "DeepSeek",
    wire: "openai-chat",
    rules: RULES,
    parameters: PARAMETERS,
    overrides: Overrides::NONE,
    check,
    manner: &MANNER,
};

/// Its own fields of a request.
const PARAMETERS: &[&str] = &["thinking"];

/// DS-01, DS-02, DS-03: `reasoning_content` goes with every message that has calls, so that no later message changes an
/// earlier one.
static MANNER: Manner = Manner {
    providers: &["deepseek"],
    arrays: false,
    images: ImagesTaken::Never,
    audio: false,
    files: false,
    reasoning_content: Some(""),
    refusal: false,
    ..OPENAI
};

rules! {
    /// DeepSeek's rules.
    DS_01 "DS-01" Hard
        "`content` of system, assistant and tool messages is a string, not an array of parts."
        "join the text parts into one string"
        "gh:BerriAI/litellm#6642; gh:tailcallhq/forgecode#2008; gh:cline/cline#230"
    DS_02 "DS-02" Hard
        "No image, audio or file parts."
        "leave the part out, or say in text what it shows"
        "gh:browser-use/web-ui#99; gh:chatboxai/chatbox#1740"
    DS_03 "DS-03" Hard
        "With thinking on, assistant messages with `tool_calls` carry `reasoning_content`, which may be empty. It is on \
        when the request, the model's name or another message shows it."
        "send back the `reasoning_content` that came with the calls, or an empty string"
        "gh:earendil-works/pi#3636; gh:abhigyanpatwari/GitNexus#43"
    DS_04 "DS-04" Reported
        "There is no role `developer`."
        "use the role `system`"
        "thin: from memory of the server's error; same family as gh:browser-use/web-ui#99"
    DS_05 "DS-05" Hard
        "`tools`, if present, is not empty."
        "leave `tools` out"
        "gh:runebookai/tome#87"
}

/// Roles whose content must be a string.
const STRING_ROLES: &[&str] = &["system", "assistant", "tool"];
/// Parts of the names of models that think.
const THINKING_MODELS: &[&str] = &["reasoner", "v4"];

fn check(request: &Value, out: &mut Findings) {
    let Some(messages) = sequence(request, "messages") else { return };
    let thinking = is_thinking(request, &messages, THINKING_MODELS);
    for (i, message) in messages.iter().enumerate() {
        check_message(message, &format!("messages[{i}]"), thinking, out);
    }
    if request.get("tools").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        out.push(DS_05.at("tools", "empty array"));
    }
}

fn check_message(message: &Object, place: &str, thinking: bool, out: &mut Findings) {
    let role = role(message);
    if role == "developer" {
        out.push(DS_04.at(format!("{place}.role"), "role developer"));
    }
    if let Some(parts) = message.get("content").and_then(Value::as_array) {
        if STRING_ROLES.contains(&role) {
            out.push(DS_01.at(format!("{place}.content"), format!("content of a {role} message is an array")));
        }
        for (j, part) in parts.iter().enumerate().filter(|(_, part)| part.is_object()) {
            let kind = part.get("type").unwrap_or(&Value::Null);
            if kind != "text" && !kind.is_null() {
                out.push(DS_02.at(format!("{place}.content[{j}]"), format!("part of type {kind}")));
            }
        }
    }
    let reasons = message.get("reasoning_content").is_some_and(Value::is_string);
    if thinking && role == "assistant" && !call_ids(message).is_empty() && !reasons {
        out.push(DS_03.at(place, "tool calls without reasoning_content, in thinking mode"));
    }
}
