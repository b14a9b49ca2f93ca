//! Responses requests to messages, and answers back into requests.

use crate::common::parsed::{answered, parsed};
use crate::common::prompts;
use conversation_store::Rule;
use conversation_store::provider::{PromptOptions, Target, repair};
use serde_json::Value;

const TARGET: Target = Target::OPENAI_RESPONSES;

/// A request, what is said about it, and the JSON of its messages.
#[test]
fn broken_requests_lose_nothing() {
    use Rule::{Altered, RoleChanged};
    let table: &[(&str, &[Rule], &[&str])] = &[
        (
            r#"{"instructions":"Be kind.","input":"hi"}"#,
            &[],
            &[
                r#"{"role":"system","chunks":[{"type":"text","text":"Be kind.","native":{"wire":"openai-responses","json":{"instructions":"Be kind."}}}]}"#,
                r#"{"role":"user","chunks":[{"type":"text","text":"hi"}]}"#,
            ],
        ),
        (
            r#"[{"role":"developer","content":"a"},{"role":"human","content":[{"type":"text","text":"b"}]},"c"]"#,
            &[RoleChanged, RoleChanged],
            &[
                r#"{"role":"system","chunks":[{"type":"text","text":"a"}]}"#,
                r#"{"role":"user","chunks":[{"type":"text","text":"b"}]}"#,
                r#"{"role":"user","chunks":[{"type":"text","text":"c"}]}"#,
            ],
        ),
        (
            r#"[{"role":"assistant","content":"a"},{"role":"assistant","content":[{"type":"input_text","text":"b"}]},
                {"type":"function_call","call_id":"c1","name":"f","arguments":{"a":1}},
                {"role":"tool","tool_call_id":"c1","content":"ok"}]"#,
            &[Altered],
            &[
                r#"{"role":"assistant","chunks":[{"type":"text","text":"a"}]}"#,
                r#"{"role":"assistant","chunks":[{"type":"text","text":"b"},{"type":"tool_call","id":"c1","name":"f","arguments":"{\"a\":1}"}]}"#,
                r#"{"role":"tool","chunks":[{"type":"tool_result","tool_call_id":"c1","content":"ok"}]}"#,
            ],
        ),
        (
            r#"[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}]},
                {"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}"}]"#,
            &[],
            &[
                r#"{"role":"assistant","chunks":[{"type":"thinking","text":"hm","id":"rs_1","native":{"wire":"openai-responses","json":{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}]}}},{"type":"tool_call","id":"c1","name":"f","arguments":"{}","item_id":"fc_1","native":{"wire":"openai-responses","json":{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}"}}}]}"#,
            ],
        ),
        (
            r#"[{"role":"user","content":[{"type":"input_image","file_id":"file-1"},{"type":"input_video","url":"v"}]},
                {"type":"item_reference","id":"msg_1"},{"type":"hologram"},[1]]"#,
            &[Altered],
            &[
                r#"{"role":"user","chunks":[{"type":"image","url":"","native":{"wire":"openai-responses","json":{"type":"input_image","file_id":"file-1"}}},{"type":"opaque","provider":"openai","kind":"input_video","json":{"type":"input_video","url":"v"}}]}"#,
                r#"{"role":"user","chunks":[{"type":"opaque","provider":"openai","kind":"item_reference","json":{"type":"item_reference","id":"msg_1"}}]}"#,
                r#"{"role":"assistant","chunks":[{"type":"opaque","provider":"openai","kind":"hologram","json":{"type":"hologram"}}]}"#,
                r#"{"role":"user","chunks":[{"type":"opaque","provider":"openai","kind":"item","json":[1]}]}"#,
            ],
        ),
        (
            r#"[{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"https://x.test/a.png"}]},
                {"type":"function_call_output","call_id":"c2","output":{"b":1}}]"#,
            &[Altered],
            &[
                r#"{"role":"tool","chunks":[{"type":"tool_result","tool_call_id":"c1","content":[{"type":"text","text":"a"},{"type":"image","url":"https://x.test/a.png"}]}]}"#,
                r#"{"role":"tool","chunks":[{"type":"tool_result","tool_call_id":"c2","content":"{\"b\":1}"}]}"#,
            ],
        ),
    ];
    for (request, rules, wanted) in table {
        let (messages, notes) = parsed(TARGET, request);
        assert_eq!(messages, *wanted, "{request}");
        assert_eq!(notes, *rules, "{request}");
    }
}

#[test]
fn a_refused_request_is_repaired() {
    // gh:openai/openai-node#1567, gh:lace-ai/gai#49: reasoning that nothing follows, a call that nothing answers.
    let request = r#"{"model":"gpt-5","instructions":"Be kind.","input":[{"role":"user","content":"a"},
        {"type":"reasoning","id":"rs_1","summary":[]},
        {"role":"user","content":"b"},
        {"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}"},
        {"role":"user","content":"c"}],"store":false}"#;
    let repaired = repair(TARGET, TARGET, request, &PromptOptions::new()).unwrap();
    prompts::assert_accepted(TARGET, &repaired);
    let text = repaired.request.get();
    assert!(text.starts_with(r#"{"model":"gpt-5","instructions":"Be kind.","input":[{"#), "{text}");
    assert!(text.ends_with(r#"],"store":false}"#), "{text}");
    // The call keeps its id: nothing says that it is refused.
    assert!(!text.contains("rs_1") && text.contains("fc_1"), "{text}");
    let rules: Vec<Rule> = repaired.report.iter().map(|line| line.rule).collect();
    assert_eq!(rules, [Rule::EmptyMessageRemoved, Rule::OutcomeUnknown]);
}

/// What a request holds, the items between a question and a last word, and what is sent in their place.
fn repaired_items(items: &str) -> Value {
    let request = format!(
        r#"{{"model":"gpt-5","input":[{{"role":"user","content":"q"}},{items},{{"role":"user","content":"b"}}]}}"#
    );
    let repaired = repair(TARGET, TARGET, &request, &PromptOptions::new()).unwrap();
    prompts::assert_accepted(TARGET, &repaired);
    let again = repair(TARGET, TARGET, repaired.request.get(), &PromptOptions::new()).unwrap();
    assert_eq!(again.request.get(), repaired.request.get());
    let mut request: Value = serde_json::from_str(repaired.request.get()).unwrap();
    let input = request["input"].as_array_mut().unwrap();
    input.pop();
    input.remove(0);
    request["input"].take()
}

/// Frameworks send what belongs to a chat: gh:MervinPraison/PraisonAI#3934, gh:langchain-ai/langchainjs#11248,
/// gh:aplpolaris/promptfx#724.
#[test]
fn what_was_written_for_another_wire_is_said_in_the_words_of_this_one() {
    let call = r#"{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}"#;
    let output = r#"{"type":"function_call_output","call_id":"c1","output":"r"}"#;
    let picture = r#"{"type":"input_image","image_url":"https://x.test/a.png"}"#;
    let user = |parts: &str| format!(r#"{{"type":"message","role":"user","content":[{parts}]}}"#);
    let hi = r#"{"type":"input_text","text":"hi"}"#;
    let table = [
        // Parts.
        (
            r#"{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"https://x.test/a.png"}}]}"#,
            user(&format!("{hi},{picture}")),
        ),
        (
            r#"{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x.test/a.png"}}]}"#,
            user(picture),
        ),
        (
            r#"{"role":"user","content":[{"type":"input_image","image_url":{"url":"https://x.test/a.png"}}]}"#,
            user(picture),
        ),
        (
            r#"{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}}]}"#,
            user(r#"{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}"#),
        ),
        (
            r#"{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}"#,
            user(r#"{"type":"input_file","file_id":"file-1"}"#),
        ),
        (
            r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x.test/a.png","detail":"high"}}]}"#,
            user(r#"{"type":"input_image","image_url":"https://x.test/a.png","detail":"high"}"#),
        ),
        // The bytes show what it is.
        (
            r#"{"role":"user","content":[{"type":"text","text":"hi"},{"type":"input_file","file_data":"JVBERi0="}]}"#,
            user(&format!(
                r#"{hi},{{"type":"input_file","filename":"file","file_data":"data:application/pdf;base64,JVBERi0="}}"#
            )),
        ),
        // A part that nobody knows is no item.
        (r#"{"role":"user","content":[{"type":"text","text":"hi"},{"type":"hologram","beam":"b"}]}"#, user(hi)),
        // Parts in the place of items.
        (r#"{"type":"text","text":"hi"}"#, user(hi)),
        (r#"{"type":"image_url","image_url":{"url":"https://x.test/a.png"}}"#, user(picture)),
        // Calls.
        (
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},
               {"role":"tool","tool_call_id":"c1","content":"r"}"#,
            format!("{call},{output}"),
        ),
        (
            r#"{"role":"assistant","content":"hi","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},
               {"type":"function_call_output","call_id":"c1","output":"r"}"#,
            format!(
                r#"{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"hi"}}]}},{call},{output}"#
            ),
        ),
    ];
    for (given, wanted) in table {
        let wanted: Value = serde_json::from_str(&format!("[{wanted}]")).unwrap();
        assert_eq!(repaired_items(given), wanted, "{given}");
    }
}

/// gh:openai/openai-agents-python#1855: "No tool output found for local shell call".
#[test]
fn a_call_of_a_local_shell_is_answered() {
    let call = r#"{"type":"local_shell_call","id":"lsh_1","call_id":"c1","status":"completed","action":{"type":"exec","command":["ls"],"env":{}}}"#;
    let items = repaired_items(call);
    assert_eq!((&items[0], items.as_array().unwrap().len()), (&serde_json::from_str(call).unwrap(), 2));
    assert_eq!((&items[1]["type"], &items[1]["call_id"]), (&"local_shell_call_output".into(), &"c1".into()));
    // By either name of the id, as the guide has it and as the official type has it.
    for id in ["call_id", "id"] {
        let answered = format!(r#"{call},{{"type":"local_shell_call_output","{id}":"c1","output":"a"}}"#);
        assert_eq!(repaired_items(&answered), serde_json::from_str::<Value>(&format!("[{answered}]")).unwrap());
    }
}

/// gh:laravel/ai#1052, gh:mastra-ai/mastra#8738: without it, the call is refused by its id.
#[test]
fn reasoning_behind_its_call_comes_before_it() {
    let reasoning = r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"}"#;
    let call = |at: u8| {
        format!(r#"{{"type":"function_call","id":"fc_{at}","call_id":"c{at}","name":"f","arguments":"{{}}"}}"#)
    };
    let output = |at: u8| format!(r#"{{"type":"function_call_output","call_id":"c{at}","output":"r"}}"#);
    let (calls, outputs) = ([call(1), call(2)].join(","), [output(1), output(2)].join(","));
    let wanted: Value = serde_json::from_str(&format!("[{reasoning},{calls},{outputs}]")).unwrap();
    assert_eq!(repaired_items(&format!("{calls},{reasoning},{outputs}")), wanted);
}

#[test]
fn a_conversation_that_is_in_order_comes_back_as_it_is() {
    let request = concat!(
        r#"{"model":"gpt-5","instructions":"Be kind.","input":["#,
        r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"a"},"#,
        r#"{"type":"input_image","image_url":"https://x.test/a.png","detail":"low"}]},"#,
        r#"{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"ENC"},"#,
        r#"{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"x"}},"#,
        r#"{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":["#,
        r#"{"type":"output_text","text":"b","annotations":[],"logprobs":[]}]},"#,
        r#"{"id":"fc_1","type":"function_call","call_id":"c1","name":"f","arguments":"{}"},"#,
        r#"{"type":"function_call_output","call_id":"c1","output":"ok"}],"max_output_tokens":1e3}"#
    );
    let repaired = repair(TARGET, TARGET, request, &PromptOptions::new()).unwrap();
    assert_eq!(repaired.request.get(), request);
    assert_eq!(repaired.report, []);
}

/// What the provider checks comes back as it was: encrypted reasoning, calls, what hosted tools did, phases, citations.
#[test]
fn answers_come_back_as_they_were() {
    for name in ["reasoning_with_parallel_calls", "web_search_with_citations", "custom_tool", "results_with_an_image"] {
        let body = std::fs::read(format!("tests/fixtures/providers/openai_responses/{name}/response.json")).unwrap();
        let response: Value = serde_json::from_slice(&body).unwrap();
        let prompt = answered(TARGET, &body);
        let request: Value = serde_json::from_str(prompt.request.get()).unwrap();
        let said = response["output"].as_array().unwrap();
        let sent = &request["input"].as_array().unwrap()[1..][..said.len()];
        for (said, sent) in said.iter().zip(sent) {
            for key in ["type", "encrypted_content", "phase", "action", "call_id", "name", "arguments", "input"] {
                assert_eq!(said.get(key), sent.get(key), "{name}: {sent}");
            }
            if said["type"] == "message" {
                assert_eq!(said["content"], sent["content"], "{name}");
            }
        }
    }
}
