//! Mistral's API, on OpenAI's chat wire.

use serde_json::{Map, Value};

use crate::provider::check::findings::Findings;
use crate::provider::check::rule::{Overrides, rules};
use crate::provider::check::shape::Type::{self, Any, AnyObject, Array, Bool, Null, Number, Object, OneOf};
use crate::provider::check::shape::{Fault, Shape, optional, required};
use crate::provider::check::value::{role, sequence};
use crate::provider::openai_chat::check::{call_ids, is_prefix};
use crate::provider::openai_chat::manner::{Ends, Manner, OPENAI, Order, System};
use crate::provider::openai_chat::rules::{OC_06, OC_20, OC_34};
use crate::provider::prompt::tool_id::IdRule;
use crate::provider::target::Dialect;
use crate::provider::text::is_word_with;

pub(crate) const DIALECT: Dialect = Dialect {
    name: "mistral",
    about: "Mistral",
    wire: "openai-chat",
    rules: RULES,
    parameters: PARAMETERS,
    // What OpenAI's types ask for, and its own do not.
    overrides: Overrides { waived: &[&OC_06, &OC_20, &OC_34], ..Overrides::NONE },
    check,
    manner: &MANNER,
};

/// Its own fields of a request.
const PARAMETERS: &[&str] =
    &["document_image_limit", "document_page_limit", "guardrails", "prompt_mode", "random_seed", "safe_prompt"];

/// MI-01, MI-02, MI-03, MI-06, MI-07. Of other media than images its types are not OpenAI's (sdk:mistralai ContentChunk), and
/// `image_url` may be the address itself (ImageURLChunk).
static MANNER: Manner = Manner {
    providers: &["mistral"],
    ids: IdRule { min: ID, max: ID, allows: |character| character.is_ascii_alphanumeric() },
    types: Some(ROLES),
    image_strings: true,
    audio: false,
    files: false,
    refusal: false,
    system: System::NotBehindModel,
    order: Order { bridges: true, ends: Ends::AskingOrPrefix, ..Order::ANY },
    ..OPENAI
};

rules! {
    /// Mistral's rules.
    MI_01 "MI-01" Hard
        "The id of a call is 9 of `a-z A-Z 0-9`, and so is tool_call_id."
        "map the id, in the call and in its tool message alike"
        "gh:anomalyco/opencode#1680; gh:nearai/ironclaw#1241; gh:langchain-ai/langchain#24668"
    MI_02 "MI-02" Hard
        "A user message does not follow a tool message directly."
        "put an assistant message between them"
        "gh:NousResearch/hermes-agent#84944; gh:avante-corp/avante.nvim#2562"
    MI_03 "MI-03" Hard
        "The last message is a user or tool message, or an assistant message with `prefix` true."
        "append the user's next message, or set `prefix` to have the text continued"
        "gh:0xPlaygrounds/rig#1130"
    MI_04 "MI-04" Hard
        "The conversation has as many tool messages as tool calls."
        "answer each call once, and leave out tool messages without a call"
        "gh:NousResearch/hermes-agent#11722"
    MI_05 "MI-05" Reported
        "An assistant message has content or `tool_calls`."
        "leave the message out, or give it text"
        "thin: from memory of error 3240"
    MI_06 "MI-06" Hard
        "No message fields outside of Mistral's own types: no reasoning_content, no refusal, no name on user messages."
        "leave the field out"
        "gh:BerriAI/litellm#30835; gh:charmbracelet/crush#1590"
    MI_07 "MI-07" Reported
        "Roles are system, user, assistant and tool; system does not follow assistant or tool."
        "use one of these roles, and move system messages to the front"
        "sdk:mistralai ChatCompletionRequestMessage; gh:swarmauri/swarmauri-sdk#162"
    MI_08 "MI-08" Hard
        "The message fits Mistral's own type: required keys, types."
        "give the field a value of that type"
        "sdk:mistralai ChatCompletionRequestMessage"
    MI_09 "MI-09" Hard
        "A tool message does not follow a user message."
        "move the tool message after the assistant message with its call, or leave it out"
        "gh:charmbracelet/crush#279"
}

/// Characters of an id.
const ID: usize = 9;

/// The types of a message (mistralai 3.7.0, `ChatCompletionRequestMessage`), role by role: MI-06 and MI-08. Recorded as
/// accepted: pydantic-ai test_model_sees_multiple_images\[mistral\] (`content: []` beside calls),
/// test_mistral_history_uses_prompt_cache (`tool_calls: []`), test_mistral_model_thinking_part,
/// test_multimodal_tool_return_matrix (`document_url`).
static ROLES: &[(&str, &Shape)] = &[("system", &SYSTEM), ("user", &USER), ("assistant", &ASSISTANT), ("tool", &TOOL)];

static SYSTEM: Shape = Shape(&[
    required("role", &[Any]),
    required("content", &[Type::String, Array(&[Object(&TEXT), Object(&THINKING)])]),
]);
static USER: Shape = Shape(&[required("role", &[Any]), required("content", CONTENT)]);
static ASSISTANT: Shape = Shape(&[
    required("role", &[Any]),
    optional("content", CONTENT),
    optional("tool_calls", &[Array(&[Object(&CALL)]), Null]),
    optional("prefix", &[Bool, Null]),
]);
static TOOL: Shape = Shape(&[
    required("role", &[Any]),
    required("content", CONTENT),
    optional("tool_call_id", &[Type::String, Null]),
    optional("name", &[Type::String, Null]),
]);

/// Parts of types that the package does not know pass it.
const CONTENT: &[Type] = &[Type::String, Array(&[Object(&Shape(&[required("type", &[Type::String, Null])]))]), Null];

static TEXT: Shape = Shape(&[required("type", &[OneOf(&["text"])]), required("text", &[Type::String])]);
static THINKING: Shape = Shape(&[required("type", &[OneOf(&["thinking"])]), required("thinking", &[Array(&[Any])])]);
static CALL: Shape = Shape(&[
    required("function", &[Object(&FUNCTION)]),
    optional("id", &[Type::String, Null]),
    optional("type", &[Type::String, Null]),
    optional("index", &[Number, Null]),
]);
static FUNCTION: Shape = Shape(&[required("name", &[Type::String]), required("arguments", &[Type::String, AnyObject])]);

fn check(request: &Value, out: &mut Findings) {
    let Some(messages) = sequence(request, "messages") else { return };
    let mut previous = "";
    for (i, message) in messages.iter().enumerate() {
        let place = format!("messages[{i}]");
        check_ids(message, &place, out);
        check_turn(message, previous, &place, out);
        check_fields(message, &place, out);
        previous = role(message);
    }
    let calls: usize = messages.iter().map(|message| call_ids(message).len()).sum();
    let answers = messages.iter().filter(|message| role(message) == "tool").count();
    if calls != answers {
        out.push(MI_04.at("messages", format!("{calls} calls, but {answers} tool messages")));
    }
    let may_be_last = |message: &Map<_, _>| match role(message) {
        "assistant" => is_prefix(message),
        role => ["user", "tool"].contains(&role),
    };
    if let Some(last) = messages.last().filter(|last| !may_be_last(last)) {
        out.push(MI_03.at(format!("messages[{}]", messages.len() - 1), format!("the last role is {:?}", role(last))));
    }
}

fn check_ids(message: &Map<String, Value>, place: &str, out: &mut Findings) {
    for (i, id) in call_ids(message).into_iter().enumerate() {
        check_id(id, &format!("{place}.tool_calls[{i}].id"), out);
    }
    if role(message) == "tool" {
        check_id(message.get("tool_call_id").unwrap_or(&Value::Null), &format!("{place}.tool_call_id"), out);
    }
}

fn check_id(id: &Value, place: &str, out: &mut Findings) {
    if !id.as_str().is_some_and(|text| text.len() == ID && is_word_with(text, ID, b"")) {
        out.push(MI_01.at(place, format!("id is {id}")));
    }
}

fn check_turn(message: &Map<String, Value>, previous: &str, place: &str, out: &mut Findings) {
    let follows = format!("follows a message of role {previous}");
    match (role(message), previous) {
        ("user", "tool") => out.push(MI_02.at(place, follows)),
        ("tool", "user") => out.push(MI_09.at(place, follows)),
        ("system", "assistant" | "tool") => out.push(MI_07.at(place, follows)),
        _ => {}
    }
}

fn check_fields(message: &Map<String, Value>, place: &str, out: &mut Findings) {
    let name = role(message);
    let Some((_, shape)) = ROLES.iter().find(|(role, _)| *role == name) else {
        out.push(MI_07.at(format!("{place}.role"), format!("role is {name:?}")));
        return out.push(MI_08.at(place, "no type for this role"));
    };
    let content = message.get("content").unwrap_or(&Value::Null);
    if name == "assistant" && call_ids(message).is_empty() && is_nothing(content) {
        out.push(MI_05.at(place, "neither content nor calls"));
    }
    for field in message.keys().filter(|field| !shape.knows(field)) {
        out.push(MI_06.at(format!("{place}.{field}"), "field is not in Mistral's type"));
    }
    for misfit in shape.misfits(message, place) {
        if misfit.fault != Fault::Unknown {
            out.push(MI_08.of(misfit));
        }
    }
}

fn is_nothing(content: &Value) -> bool {
    content.is_null() || content == "" || content.as_array().is_some_and(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use crate::provider::check::judge::check;
    use crate::provider::target::Target;

    #[test]
    fn what_its_own_types_allow_is_not_held_against_a_request() -> Result<(), Box<dyn std::error::Error>> {
        let request = r#"[
            {"role":"user","content":"q"},
            {"role":"assistant","tool_calls":[{"id":"abcdefghi","function":{"name":"f","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"abcdefghi","name":"f","content":"42"},
            {"role":"assistant","content":"a","tool_calls":[],"prefix":true}]"#;
        assert_eq!(check(Target::OPENAI_CHAT.with_dialect("mistral")?, request)?, []);
        let rules: Vec<_> = check(Target::OPENAI_CHAT, request)?.into_iter().map(|found| found.rule).collect();
        assert_eq!(rules, ["OC-34", "OC-17", "OC-12", "OC-29", "OC-25", "OC-25"]);
        Ok(())
    }
}
