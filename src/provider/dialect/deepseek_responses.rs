//! DeepSeek's API, on OpenAI's Responses wire.

use std::collections::HashMap;

use crate::provider::check::finding::Level;
use crate::provider::check::findings::Findings;
use crate::provider::check::rule::{Overrides, rules};
use crate::provider::check::value::{Object, objects};
use crate::provider::openai_responses::check::OF_OPENAI;
use crate::provider::openai_responses::manner::{Manner, NAME};
use crate::provider::target::Dialect;
use serde_json::Value;

pub(crate) const DIALECT: Dialect = Dialect {
    rules: RULES,
    overrides: Overrides { levels: &[(OF_OPENAI, Level::Soft)], ..Overrides::NONE },
    check,
    ..Dialect::plain("deepseek", "DeepSeek", NAME, &MANNER)
};

/// Reasoning is plain text under `content`, with ids of any kind, and goes back so (recorded: pydantic-ai
/// test_deepseek_responses\[function_tool\], test_deepseek_responses_replay_own_reasoning_history).
static MANNER: Manner = Manner { providers: &["deepseek"], openais_items: false, calls_last: true };

rules! {
    /// DeepSeek's rules on this wire.
    DR_01 "DR-01" Hard
        "No message comes between a call and its output."
        "move the message before the calls, or after their outputs"
        "recorded: pydantic-ai test_deepseek_responses_rejects_interleaved_function_calls (400, No tool output found for \
         tool call)"
}

fn check(request: &Value, out: &mut Findings) {
    let items = request.get("input").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let text = |item: &Object, name: &str| item.get(name).and_then(Value::as_str).map(str::to_owned);
    // How many messages stand before the call, by its id.
    let (mut calls, mut messages) = (HashMap::new(), 0_usize);
    for (i, item) in objects(items) {
        match text(item, "type").as_deref() {
            None | Some("message") => messages += 1,
            Some("function_call") => _ = calls.insert(text(item, "call_id"), messages),
            Some("function_call_output") => {
                if calls.get(&text(item, "call_id")).is_some_and(|before| *before < messages) {
                    out.push(DR_01.at(format!("input[{i}]"), "a message is between the call and this output"));
                }
            }
            Some(_) => {}
        }
    }
}
