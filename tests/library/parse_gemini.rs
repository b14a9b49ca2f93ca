//! Gemini requests to messages, and answers back into requests.

use crate::common::parsed::{answered, parsed};
use crate::common::prompts;
use conversation_store::provider::{PromptOptions, Target, repair};
use conversation_store::{Rule, Severity};
use serde_json::Value;

const TARGET: Target = Target::GEMINI;

/// A request, what is said about it, and the JSON of its messages.
#[test]
fn broken_requests_lose_nothing() {
    use Rule::{Altered, RoleChanged};
    let table: &[(&str, &[Rule], &[&str])] = &[
        (
            r#"{"system_instruction":"Be kind.","contents":"hi"}"#,
            &[Altered],
            &[
                r#"{"role":"system","chunks":[{"type":"text","text":"Be kind."}]}"#,
                r#"{"role":"user","chunks":[{"type":"text","text":"hi"}]}"#,
            ],
        ),
        (
            r#"[{"parts":{"text":"a"}},{"role":"assistant","parts":[{"text":"b"}]},"c"]"#,
            &[RoleChanged, RoleChanged],
            &[
                r#"{"role":"user","chunks":[{"type":"text","text":"a"}]}"#,
                r#"{"role":"assistant","chunks":[{"type":"text","text":"b"}]}"#,
                r#"{"role":"user","chunks":[{"type":"text","text":"c"}]}"#,
            ],
        ),
        (
            r#"[{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a": 1.50}}},{"function_call":{"name":"f","args":{}}}]},
                {"role":"function","parts":[{"functionResponse":{"name":"f","response":{"result":"1"}}},
                    {"text":"and"},{"function_response":{"name":"f","response":{"n":[2]}}}]}]"#,
            &[],
            &[
                r#"{"role":"assistant","chunks":[{"type":"tool_call","id":"f","name":"f","arguments":"{\"a\": 1.50}"},{"type":"tool_call","id":"f_2","name":"f","arguments":"{}"}]}"#,
                r#"{"role":"tool","chunks":[{"type":"tool_result","tool_call_id":"f","name":"f","content":"1"},{"type":"tool_result","tool_call_id":"f_2","name":"f","content":[{"type":"json","json":{"n":[2]}}]}]}"#,
                r#"{"role":"user","chunks":[{"type":"text","text":"and"}]}"#,
            ],
        ),
        (
            r#"[{"role":"model","parts":[{"text":"hm","thought":true,"thoughtSignature":"c2ln"},
                {"functionCall":{"id":"7","name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"}]},
                {"role":"user","parts":[{"functionResponse":{"id":"7","name":"f","response":{"error":"boom"}}}]}]"#,
            &[],
            &[
                r#"{"role":"assistant","chunks":[{"type":"thinking","text":"hm","signature":"c2ln","native":{"wire":"gemini","json":{"text":"hm","thought":true,"thoughtSignature":"c2ln"}}},{"type":"tool_call","id":"7","name":"f","arguments":"{}","native":{"wire":"gemini","json":{"functionCall":{"id":"7","name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"}}}]}"#,
                r#"{"role":"tool","chunks":[{"type":"tool_result","tool_call_id":"7","name":"f","content":"boom","is_error":true}]}"#,
            ],
        ),
        (
            r#"[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}},
                {"inlineData":{"mimeType":"audio/wav","data":"UklGRg=="}},{"fileData":{"fileUri":"https://x.test/f","mimeType":"video/mp4"}},
                {"fileData":{"fileUri":"https://x.test/g"}},{"hologram":1}]},[1]]"#,
            &[Altered],
            &[
                r#"{"role":"user","chunks":[{"type":"image","url":"data:image/png;base64,iVBORw0KGgo="},{"type":"audio","data":"UklGRg==","mime_type":"audio/wav"},{"type":"file","url":"https://x.test/f","mime_type":"video/mp4"},{"type":"file","url":"https://x.test/g","native":{"wire":"gemini","json":{"fileData":{"fileUri":"https://x.test/g"}}}},{"type":"opaque","provider":"gemini","kind":"hologram","json":{"hologram":1}}]}"#,
                r#"{"role":"user","chunks":[{"type":"opaque","provider":"gemini","kind":"content","json":[1]}]}"#,
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
    // gh:microsoft/vscode#299295, gh:symfony/ai#2040: too few responses, and a list in place of an object.
    let request = r#"{"contents":[{"role":"user","parts":[{"text":"a"}]},
        {"role":"model","parts":[{"functionCall":{"name":"f","args":{}}},{"functionCall":{"name":"g","args":{}}}]},
        {"role":"user","parts":[{"functionResponse":{"name":"g","response":["x"]}}]}],
        "generationConfig":{"temperature":0.20}}"#;
    let repaired = repair(TARGET, TARGET, request, &PromptOptions::new()).unwrap();
    prompts::assert_accepted(TARGET, &repaired);
    let text = repaired.request.get();
    assert!(text.contains(r#"{"functionResponse":{"name":"g","response":{"result":["x"]}}}"#), "{text}");
    assert!(text.ends_with(r#""generationConfig":{"temperature":0.20}}"#), "{text}");
    let rules: Vec<Rule> = repaired.report.iter().map(|line| line.rule).collect();
    assert_eq!(rules, [Rule::PendingAnswered]);
}

#[test]
fn a_response_that_is_no_object_is_its_result() {
    let table = [
        (r#""x""#, r#"{"result":"x"}"#),
        (r#"["x"]"#, r#"{"result":["x"]}"#),
        (r#"["x","y"]"#, r#"{"result":["x","y"]}"#),
        (r#"[1, {"a": 2}]"#, r#"{"result":[1,{"a":2}]}"#),
        ("5", r#"{"result":5}"#),
    ];
    for (given, wanted) in table {
        let request = format!(
            r#"{{"contents":[{{"role":"user","parts":[{{"text":"a"}}]}},{{"role":"model","parts":[{{"functionCall":{{"name":"f","args":{{}}}}}}]}},
            {{"role":"user","parts":[{{"functionResponse":{{"name":"f","response":{given}}}}}]}}]}}"#
        );
        let repaired = repair(TARGET, TARGET, &request, &PromptOptions::new()).unwrap();
        prompts::assert_accepted(TARGET, &repaired);
        let text = repaired.request.get();
        assert!(text.contains(&format!(r#"{{"functionResponse":{{"name":"f","response":{wanted}}}}}"#)), "{text}");
    }
}

#[test]
fn a_conversation_that_is_in_order_comes_back_as_it_is() {
    let request = concat!(
        r#"{"systemInstruction":{"parts":[{"text":"Be kind."}]},"contents":["#,
        r#"{"role":"user","parts":[{"text":"a"},{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}},"#,
        r#"{"fileData":{"mimeType":"video/mp4","fileUri":"https://x.test/v"},"videoMetadata":{"fps":1}}]},"#,
        r#"{"role":"model","parts":[{"text":"b"},{"functionCall":{"name":"f","args":{"n" : 1.0}},"thoughtSignature":"c2ln"},"#,
        r#"{"functionCall":{"name":"f","args":{}}}]},"#,
        r#"{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"result":"1"}}},"#,
        r#"{"functionResponse":{"name":"f","response":{"n" : [2]}}}]},"#,
        r#"{"role":"model","parts":[{"text":"c"},{"text":"","thoughtSignature":"c2-_bg"}]},"#,
        r#"{"role":"user","parts":[{"text":"d"}]}],"tools":[{"codeExecution":{}}]}"#
    );
    let repaired = repair(TARGET, TARGET, request, &PromptOptions::new()).unwrap();
    assert_eq!(repaired.request.get(), request);
    assert_eq!(repaired.report, []);
}

/// What the service signed comes back as it was, part by part.
#[test]
fn answers_come_back_as_they_were() {
    let cases = [
        ("thinking_with_parallel_calls", 1),
        ("signature_behind_the_text", 0),
        ("signature_on_the_text", 0),
        ("call_with_an_id", 0),
        ("code_execution", 0),
        ("picture", 0),
    ];
    for (name, unsigned_thoughts) in cases {
        let body = std::fs::read(format!("tests/fixtures/providers/gemini/{name}/response.json")).unwrap();
        let response: Value = serde_json::from_slice(&body).unwrap();
        let prompt = answered(TARGET, &body);
        let request: Value = serde_json::from_str(prompt.request.get()).unwrap();
        let said = response["candidates"][0]["content"]["parts"].as_array().unwrap();
        assert_eq!(request["contents"][1]["parts"], Value::from(&said[unsigned_thoughts..]), "{name}");
    }
}

/// What was lost when a content was written again: the second kind of data in a part, what stands beside a response, a
/// response without a name.
#[test]
fn no_data_of_a_part_is_lost() {
    let table = [
        (
            r#"[{"role":"user","parts":[{"text":"hi","inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}}]}]"#,
            r#"[{"role":"user","parts":[{"text":"hi"},{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}}]}]"#,
        ),
        (
            r#"[{"role":"user","parts":[{"text":"a"}]},
                {"role":"model","parts":[{"text":"b","functionCall":{"name":"f","args":{}},"thoughtSignature":"c2ln"}]},
                {"role":"user","parts":[{"functionResponse":{"name":"f","response":{"n":1}}}]}]"#,
            r#"{"role":"model","parts":[{"text":"b"},{"functionCall":{"name":"f","args":{}},"thoughtSignature":"c2ln"}]}"#,
        ),
        (
            r#"[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[
                {"functionCall":{"name":"f","args":{}},"thoughtSignature":"c2ln"},{"functionCall":{"name":"g","args":{}}}]},
                {"role":"user","parts":[{"functionResponse":{"name":"f","response":{"n":1},"scheduling":"SILENT",
                "parts":[{"inlineData": {"mimeType":"image/png","data":"iVBORw0KGgo="}}]}}]}]"#,
            concat!(
                r#""response":{"n":1},"parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}}],"#,
                r#""scheduling":"SILENT"}}"#
            ),
        ),
        (
            r#"[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[
                {"functionCall":{"name":"f","args":{}},"thoughtSignature":"c2ln"},{"functionCall":{"name":"g","args":{}}}]},
                {"role":"user","parts":[{"functionResponse":{"name":"","response":{"n":1}}},
                {"functionResponse":{"name":"f","response":{"n":2}}}]}]"#,
            r#"[{"functionResponse":{"name":"f","response":{"n":2}}},{"functionResponse":{"name":"g","response":{"n":1}}}]"#,
        ),
    ];
    for (request, wanted) in table {
        let repaired = repair(TARGET, TARGET, request, &PromptOptions::new()).unwrap();
        prompts::assert_accepted(TARGET, &repaired);
        assert!(repaired.request.get().contains(wanted), "{wanted}\n{}", repaired.request);
        let lost: Vec<_> = repaired.report.iter().filter(|line| line.severity == Severity::Lost).collect();
        assert!(lost.is_empty(), "{lost:#?}");
    }
}
