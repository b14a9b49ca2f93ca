//! DeepSeek's API, on OpenAI's chat wire.

use crate::provider::check::finding::Level;
use crate::provider::check::findings::Findings;
use crate::provider::check::rule::{Overrides, rules};
use crate::provider::check::value::{Object, role, sequence};
use crate::provider::openai_chat::check::{call_ids, is_prefix, is_thinking};
use crate::provider::openai_chat::manner::{Ends, ImagesTaken, Manner, OPENAI, Order, UserContent};
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
/// earlier one. DS-06, DS-07, DS-08: the order of roles is that of the strictest model, whichever is asked.
static MANNER: Manner = Manner {
    providers: &["deepseek"],
    own_ids: true,
    arrays: false,
    user: UserContent::Joined,
    images: ImagesTaken::Never,
    audio: false,
    files: false,
    reasoning_content: Some(""),
    refusal: false,
    order: Order { begins: true, merges: true, bridges: false, ends: Ends::AskingOrPrefix },
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
    DS_06 "DS-06" Hard
        "The last message is a user or tool message, or an assistant message with `prefix` true, which the beta address takes. \
         Soft where the model's name is not that of a reasoner."
        "append the user's next message, or set `prefix` to have the text continued (`--continue-last`)"
        "gh:BerriAI/litellm#8090; gh:gptme/gptme#467; gh:langgenius/dify#16860; api-docs.deepseek.com \
         chat_prefix_completion"
    DS_07 "DS-07" Hard
        "No two user messages, and no two assistant messages, follow each other, for `deepseek-reasoner` and R1: reported \
         until April 2025. Soft where the model is not named; other models take them."
        "join the two into one message"
        "gh:Aider-AI/aider#2960; gh:deepseek-ai/DeepSeek-R1#21; gh:xerrors/Yuxi#126"
    DS_08 "DS-08" Hard
        "The first message after the system's is not the assistant's, for `deepseek-reasoner` and R1: reported until April \
         2025. Soft where the model is not named; other models take it."
        "begin with a user message"
        "gh:ChatGPTNextWeb/NextChat#6343; gh:lobehub/lobehub#5601; gh:daodao97/chatmcp#66"
    DS_09 "DS-09" Soft
        "`reasoning_content` comes with calls only. In messages without calls `deepseek-reasoner` refused it until \
         December 2025, when it learned to call tools; since then it is ignored there."
        "leave `reasoning_content` out of messages without calls"
        "api-docs.deepseek.com thinking_mode; gh:AstrBotDevs/AstrBot#4174; gh:anomalyco/opencode#24722"
}

/// Roles whose content must be a string.
const STRING_ROLES: &[&str] = &["system", "assistant", "tool"];
/// Parts of the names of models that think.
const THINKING_MODELS: &[&str] = &["reasoner", "v4"];
/// Parts of the names of models that want user and assistant to take turns.
const STRICT_MODELS: &[&str] = &["reasoner", "r1"];

fn check(request: &Value, out: &mut Findings) {
    let Some(messages) = sequence(request, "messages") else { return };
    let thinking = is_thinking(request, &messages, THINKING_MODELS);
    for (i, message) in messages.iter().enumerate() {
        check_message(message, &format!("messages[{i}]"), thinking, out);
    }
    if request.get("tools").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        out.push(DS_05.at("tools", "empty array"));
    }
    let model = request.get("model").and_then(Value::as_str).map(str::to_ascii_lowercase);
    let is_strict = model.map(|model| STRICT_MODELS.iter().any(|name| model.contains(name)));
    check_turns(&messages, is_strict, out);
}

/// Who speaks when. `is_strict`: whether the model wants turns, if it is named.
fn check_turns(messages: &[&Object], is_strict: Option<bool>, out: &mut Findings) {
    if let Some((i, last)) = messages.iter().enumerate().next_back()
        && !["user", "tool"].contains(&role(last))
        && !(role(last) == "assistant" && is_prefix(last))
    {
        let level = if is_strict == Some(false) { Level::Soft } else { Level::Hard };
        out.push(DS_06.at(format!("messages[{i}]"), format!("the last role is {}", role(last))).with_level(level));
    }
    let level = match is_strict {
        Some(false) => return,
        Some(true) => Level::Hard,
        None => Level::Soft,
    };
    for (i, pair) in messages.windows(2).enumerate() {
        if let [before, after] = pair
            && role(before) == role(after)
            && ["user", "assistant"].contains(&role(after))
        {
            let problem = format!("two {} messages in a row", role(after));
            out.push(DS_07.at(format!("messages[{}]", i + 1), problem).with_level(level));
        }
    }
    let first = messages.iter().position(|message| role(message) != "system");
    if let Some(i) = first.filter(|i| messages.get(*i).is_some_and(|first| role(first) == "assistant")) {
        out.push(DS_08.at(format!("messages[{i}]"), "the assistant speaks first").with_level(level));
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
    let thought = message.get("reasoning_content").and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    if thought && role == "assistant" && call_ids(message).is_empty() {
        out.push(DS_09.at(format!("{place}.reasoning_content"), "reasoning_content without calls"));
    }
}
