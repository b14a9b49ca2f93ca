//! Messages with what no version of this crate knows, as they are read from a request of each wire.

use std::sync::LazyLock;

use conversation_store::model::Message;
use conversation_store::provider::{Target, parse};
use proptest::prelude::*;

/// Targets, the names of their lists of messages, and items of these. Where a wire has one, an unknown thing stands in each role, alone, among known
/// ones, with the id of a call, and as the answer to one.
const ITEMS: &[(&str, &str, &[&str])] = &[
    (
        "openai-chat",
        "messages",
        &[
            r#"{"role":"user","content":[{"type":"hologram","beam":1}]}"#,
            r#"{"role":"user","content":[{"type":"text","text":"look"},{"type":"hologram","hologram":{"url":"https://x.test/h"}}]}"#,
            r#"{"role":"system","content":[{"type":"hologram","beam":1}]}"#,
            r#"{"role":"assistant","content":[{"type":"hologram","beam":1}]}"#,
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"call_0","type":"hologram","hologram":{"beam":1}}]}"#,
            r#"{"role":"assistant","content":"ok","hologram":{"beam":1}}"#,
            r#"{"role":"tool","tool_call_id":"call_0","content":[{"type":"hologram","beam":1}]}"#,
            r#"{"role":"oracle","content":"ok"}"#,
        ],
    ),
    (
        "openai-responses",
        "input",
        &[
            r#"{"type":"hologram","id":"h_1","beam":1}"#,
            r#"{"type":"hologram_call","id":"h_1","call_id":"call_0","status":"completed"}"#,
            r#"{"type":"hologram_call_output","call_id":"call_0","output":"ok"}"#,
            r#"{"type":"hologram_output","beam":1}"#,
            r#"{"role":"user","content":[{"type":"input_hologram","beam":1}]}"#,
            r#"{"role":"system","content":[{"type":"input_text","text":"ok"},{"type":"input_hologram","beam":1}]}"#,
            r#"{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_hologram","beam":1}]}"#,
            r#"{"type":"function_call_output","call_id":"call_0","output":[{"type":"input_hologram","beam":1}]}"#,
            r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_hologram","beam":1}]}"#,
            r#"{"role":"oracle","content":"ok"}"#,
        ],
    ),
    (
        "anthropic",
        "messages",
        &[
            r#"{"role":"user","content":[{"type":"hologram","beam":1}]}"#,
            r#"{"role":"user","content":[{"type":"text","text":"look"},{"type":"hologram","source":{"type":"hologram"}}]}"#,
            r#"{"role":"assistant","content":[{"type":"hologram","id":"call_0","beam":1}]}"#,
            r#"{"role":"assistant","content":[{"type":"hologram_tool_use","id":"srvtoolu_1","name":"h","input":{}},{"type":"hologram_tool_result","tool_use_id":"srvtoolu_1","content":[]}]}"#,
            r#"{"role":"assistant","content":[{"type":"hologram_tool_result","tool_use_id":"srvtoolu_1","content":{"beam":1}}]}"#,
            r#"{"role":"user","content":[{"type":"hologram_result","tool_use_id":"call_0","content":"ok"}]}"#,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_0","content":[{"type":"hologram","beam":1}]}]}"#,
            r#"{"role":"oracle","content":"ok"}"#,
        ],
    ),
    (
        "gemini",
        "contents",
        &[
            r#"{"role":"user","parts":[{"hologram":{"beam":1}}]}"#,
            r#"{"role":"user","parts":[{"text":"look"},{"hologram":{"beam":1}}]}"#,
            r#"{"role":"model","parts":[{"hologram":{"beam":1}}]}"#,
            r#"{"role":"model","parts":[{"hologramCall":{"id":"call_0","name":"h","args":{}}}]}"#,
            r#"{"role":"user","parts":[{"hologramResponse":{"id":"call_0","response":{}}}]}"#,
            r#"{"role":"user","parts":[{"functionResponse":{"id":"call_0","name":"read_file","response":{"beam":1},"parts":[{"hologram":{}}]}}]}"#,
            r#"{"role":"model","parts":[{"text":"ok","hologram":{"beam":1}}]}"#,
            r#"{"role":"oracle","parts":[{"text":"ok"}]}"#,
        ],
    ),
    (
        "bedrock-converse",
        "messages",
        &[
            r#"{"role":"user","content":[{"hologram":{"beam":1}}]}"#,
            r#"{"role":"user","content":[{"text":"look"},{"hologram":{"source":{"bytes":"AA=="}}}]}"#,
            r#"{"role":"assistant","content":[{"hologram":{"beam":1}}]}"#,
            r#"{"role":"assistant","content":[{"hologramUse":{"toolUseId":"call_0","name":"h","input":{}}}]}"#,
            r#"{"role":"user","content":[{"hologramResult":{"toolUseId":"call_0","content":[]}}]}"#,
            r#"{"role":"user","content":[{"toolResult":{"toolUseId":"call_0","content":[{"hologram":{"beam":1}}]}}]}"#,
            r#"{"role":"oracle","content":[{"text":"ok"}]}"#,
        ],
    ),
];

/// The messages of each item.
static MESSAGES: LazyLock<Vec<Vec<Message>>> = LazyLock::new(|| {
    let read = |target: &str, list: &str, item: &str| {
        let target: Target = target.parse().unwrap();
        parse(target, &format!("{{\"{list}\":[{item}]}}")).unwrap().messages
    };
    let read = ITEMS.iter().flat_map(|(target, list, items)| items.iter().map(move |item| read(target, list, item)));
    read.filter(|messages| !messages.is_empty()).collect()
});

/// What is read from such an item; who made it is stated, or not, or another is.
pub(crate) fn messages() -> impl Strategy<Value = Vec<Message>> {
    let provider = prop_oneof![3 => Just(None), 1 => Just(Some(None)), 1 => Just(Some(Some("openai".to_owned())))];
    (proptest::sample::select(MESSAGES.as_slice()), provider).prop_map(|(mut messages, provider)| {
        for message in &mut messages {
            if let Some(provider) = &provider {
                message.metadata.provider.clone_from(provider);
            }
        }
        messages
    })
}
