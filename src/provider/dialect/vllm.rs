//! vLLM, llama.cpp and LM Studio: the chat templates of open models, on OpenAI's chat wire.

use crate::json::is_object;
use crate::provider::check::findings::Findings;
use crate::provider::check::rule::{Overrides, rules};
use crate::provider::check::value::{Object, role, sequence};
use crate::provider::openai_chat::check::{calls, out_of_turn};
use crate::provider::openai_chat::manner::{Manner, OPENAI, Order, System, UserContent};
use crate::provider::target::Dialect;
use serde_json::Value;

pub(crate) const DIALECT: Dialect = Dialect {
    name: "vllm",
    about: "vLLM, llama.cpp, LM Studio",
    wire: "openai-chat",
    rules: RULES,
    parameters: PARAMETERS,
    overrides: Overrides::NONE,
    check,
    manner: &MANNER,
};

/// Its own fields of a request.
const PARAMETERS: &[&str] = &[
    "add_generation_prompt",
    "add_special_tokens",
    "allowed_token_ids",
    "bad_words",
    "cache_prompt",
    "chat_template",
    "chat_template_kwargs",
    "continue_final_message",
    "documents",
    "echo",
    "enable_thinking",
    "grammar",
    "guided_choice",
    "guided_decoding_backend",
    "guided_grammar",
    "guided_json",
    "guided_regex",
    "ignore_eos",
    "include_reasoning",
    "include_stop_str_in_output",
    "json_schema",
    "length_penalty",
    "min_p",
    "min_tokens",
    "mirostat",
    "mm_processor_kwargs",
    "n_predict",
    "priority",
    "prompt_logprobs",
    "repeat_penalty",
    "repetition_penalty",
    "return_tokens_as_token_ids",
    "skip_special_tokens",
    "spaces_between_special_tokens",
    "stop_token_ids",
    "structured_outputs",
    "top_k",
    "truncate_prompt_tokens",
    "ttl",
    "use_beam_search",
];

/// VL-01, VL-02, VL-04. Its own ids have 46 characters (gh:vllm-project/vllm#22966), and so may others.
/// There is sound (gh:vllm-project/vllm#11027), but no documents (gh:langchain-ai/openwiki#63).
static MANNER: Manner = Manner {
    providers: &["vllm"],
    ids: OPENAI.ids.long(),
    own_ids: true,
    arrays: false,
    user: UserContent::Array,
    files: false,
    refusal: false,
    null: false,
    system: System::First,
    order: Order { begins: true, merges: true, bridges: true, ..Order::ANY },
    ..OPENAI
};

rules! {
    /// The rules of the strictest chat templates.
    VL_01 "VL-01" Hard
        "User and assistant messages alternate after the system message, beginning with the user. A run of tool \
         messages belongs to the assistant."
        "merge neighbours of one role into one message, and put a message of the other role between turns"
        "gh:vllm-project/vllm#6862; gh:microsoft/autogen#1037"
    VL_02 "VL-02" Hard
        "At most one system message, and it comes first."
        "join the system messages into the first one"
        "gh:suitenumerique/conversations#197"
    VL_03 "VL-03" Hard
        "`function.arguments` is the JSON text of an object: it is parsed before the template sees it."
        "repair the arguments to the JSON text of an object, `{}` if nothing can be saved"
        "gh:langchain-ai/langchain#35997"
    VL_04 "VL-04" Soft
        "Content is not null or absent, not even beside `tool_calls`: several templates refuse it."
        "send an empty string"
        "gh:ggml-org/llama.cpp#13471; gh:lmstudio-ai/lmstudio-bug-tracker#261; gh:SAIL-Research-Lab/cheetahclaws#72"
}

fn check(request: &Value, out: &mut Findings) {
    let Some(messages) = sequence(request, "messages") else { return };
    let mut previous = None;
    for (i, message) in messages.iter().enumerate() {
        let place = format!("messages[{i}]");
        let role = role(message);
        if ["system", "developer"].contains(&role) {
            if i > 0 {
                out.push(VL_02.at(place, "not the first message"));
            }
            continue;
        }
        if let Some(problem) = out_of_turn(role, previous) {
            out.push(VL_01.at(&place, problem));
        }
        check_message(message, &place, out);
        previous = Some(role);
    }
}

fn check_message(message: &Object, place: &str, out: &mut Findings) {
    for (i, call) in calls(message) {
        let arguments = call.get("function").and_then(|function| function.get("arguments")).and_then(Value::as_str);
        if arguments.is_some_and(|arguments| !is_object(arguments)) {
            let place = format!("{place}.tool_calls[{i}].function.arguments");
            out.push(VL_03.at(place, "not the JSON text of an object"));
        }
    }
    if message.get("content").is_none_or(Value::is_null) {
        out.push(VL_04.at(format!("{place}.content"), "content is null or absent"));
    }
}
