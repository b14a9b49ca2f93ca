//! What crosses from one wire to another: a block that a wire has of its own, and that no other knows, goes back to that
//! wire as it came, and never to another, whoever said it, also where two wires are one vendor's.

use conversation_store::provider::{PromptOptions, parse};

use crate::common::{prompts, stored};

/// Stands in each block. It is in a field that holds no words.
const MARK: &str = "MARK-7";

/// A request of each wire, with blocks of its own under every role that may have them.
const REQUESTS: &[(&str, &str)] = &[
    (
        "openai-chat",
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"hologram","beam":"MARK-7"}]},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}"#,
    ),
    (
        "openai-responses",
        r#"{"input":[{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_video","beam":"MARK-7"}]},
            {"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"MARK-7"}]},
            {"type":"hologram_output","call_id":"h","beam":"MARK-7"},
            {"type":"tool_search_output","execution":"client","call_id":"s","status":"completed","tools":[{"type":"function","name":"MARK-7"}]},
            {"type":"hologram","id":"h","beam":"MARK-7"},{"role":"user","content":"c"}]}"#,
    ),
    (
        "anthropic",
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"hologram","beam":"MARK-7"}]},{"role":"assistant","content":[{"type":"text","text":"b"},{"type":"hologram","beam":"MARK-7"}]},{"role":"user","content":"c"}]}"#,
    ),
    (
        "gemini",
        r#"{"contents":[{"role":"user","parts":[{"text":"a"},{"hologram":{"beam":"MARK-7"}}]},{"role":"model","parts":[{"text":"b"},{"hologram":{"beam":"MARK-7"}}]},{"role":"user","parts":[{"text":"c"}]}]}"#,
    ),
    (
        "bedrock-converse",
        r#"{"messages":[{"role":"user","content":[{"text":"a"},{"hologram":{"beam":"MARK-7"}}]},{"role":"assistant","content":[{"text":"b"},{"hologram":{"beam":"MARK-7"}}]},{"role":"user","content":[{"text":"c"}]}]}"#,
    ),
];

#[test]
fn a_block_of_one_wire_never_goes_to_another() {
    for from in prompts::targets() {
        let name = from.to_string();
        let (wire, request) = REQUESTS.iter().find(|(wire, _)| name.split('/').next() == Some(wire)).unwrap();
        let said = stored::log(parse(from, request).unwrap().messages);
        for to in prompts::targets() {
            let prompt = prompts::prompt(to, &said, &PromptOptions::new()).unwrap();
            let crosses = prompt.request.get().contains(MARK);
            let is_other = to.to_string().split('/').next() != Some(wire);
            assert!(!(crosses && is_other), "{from} to {to}: {}", prompt.request);
            assert!(crosses || !prompt.report.is_empty(), "{from} to {to}: left out, and not in the report");
            assert!(
                crosses || to.to_string() != *wire || name != *wire,
                "{from}: its own block is gone: {}",
                prompt.request
            );
        }
    }
}
