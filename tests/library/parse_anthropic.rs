//! Anthropic's requests to messages, broken ones too, and its answers back into its prompts.

use std::fs;

use crate::common::parsed::{VALUES, answered, assert_repaired, parsed};
use crate::common::prompts;
use conversation_store::model::{Message, Role};
use conversation_store::provider::{PromptOptions, Target, decode, parse, repair};
use conversation_store::{ReportLine, Rule, Severity, Store};
use proptest::test_runner::TestRunner;
use serde_json::Value;

const TARGET: Target = Target::ANTHROPIC;

#[test]
fn a_request_in_order_comes_back_as_it_is() {
    let request = concat!(
        r#"{"model":"claude-x","max_tokens":9,"system":[{"type":"text","text":"Be brief."}],"messages":["#,
        r#"{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}},"#,
        r#"{"type":"document","source":{"type":"url","url":"https://x.test/a.pdf"},"title":"a","context":"b"}]},"#,
        r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},"#,
        r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}},"#,
        r#"{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]},"#,
        r#"{"type":"tool_use","id":"a","name":"f","input":{"n": 1.0}},"#,
        r#"{"type":"tool_use","id":"b","name":"f","input":{},"caller":{"type":"direct"}}]},"#,
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"no","is_error":true},"#,
        r#"{"type":"tool_result","tool_use_id":"b","content":[{"type":"search_result","source":"s","title":"t","#,
        r#""content":[{"type":"text","text":"found"}]}]},{"type":"text","text":"Well?"}]}],"temperature":1e0}"#
    );
    let repaired = repair(TARGET, TARGET, request, &PromptOptions::new()).unwrap();
    assert_eq!(repaired.request.get(), request);
    assert_eq!(repaired.report, []);
}

/// "`tool_use` ids were found without `tool_result` blocks immediately after".
#[test]
fn the_refused_request_of_the_field_is_accepted() {
    let request = r#"{"model":"claude-x","max_tokens":9,"messages":[
        {"role":"user","content":"Two files, please."},
        {"role":"assistant","content":[
            {"type":"text","text":"I look."},
            {"type":"tool_use","id":"toolu_1","name":"read","input":{"path":"a"}},
            {"type":"tool_use","id":"toolu_2","name":"read","input":"{\"path\":\"b\"}"}]},
        {"role":"user","content":"Well?"},
        {"role":"user","content":[{"type":"text","text":""},{"type":"tool_result","tool_use_id":"toolu_2","content":"B"}]}]}"#;
    let repaired = repair(TARGET, TARGET, request, &PromptOptions::new()).unwrap();
    prompts::assert_accepted(TARGET, &repaired);
    let value: Value = serde_json::from_str(repaired.request.get()).unwrap();
    let kinds: Vec<&str> = value["messages"][2]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["tool_result", "tool_result", "text"]);
    assert_eq!(value["messages"][1]["content"][2]["input"]["path"], "b");
    let rules: Vec<Rule> = repaired.report.iter().map(|line| line.rule).collect();
    assert_eq!(rules, [Rule::OutcomeUnknown, Rule::ResultMoved, Rule::EmptyMessageRemoved]);
}

/// A request, what is said about it, and the JSON of its last message.
#[test]
fn broken_requests_lose_nothing() {
    use Rule::{Altered, RoleChanged};
    let table: &[(&str, &[Rule], &str)] = &[
        (r#"[{"role":"user","content":"a"}]"#, &[], r#"{"role":"user","chunks":[{"type":"text","text":"a"}]}"#),
        (
            r#"[{"role":"Human","content":["a"]}]"#,
            &[RoleChanged],
            r#"{"role":"user","chunks":[{"type":"text","text":"a"}]}"#,
        ),
        (r#"["a"]"#, &[RoleChanged], r#"{"role":"user","chunks":[{"type":"text","text":"a"}]}"#),
        (
            r#"[[1]]"#,
            &[Altered],
            r#"{"role":"user","chunks":[{"type":"opaque","provider":"anthropic","kind":"message","json":[1]}]}"#,
        ),
        (r#"[{"role":"assistant","content":""}]"#, &[], r#"{"role":"assistant","chunks":[]}"#),
        (
            r#"[{"role":"user","content":{"a":1}}]"#,
            &[Altered],
            r#"{"role":"user","chunks":[{"type":"text","text":"{\"a\":1}"}]}"#,
        ),
        (
            r#"[{"content":[{"type":"tool_use","name":"f","input":[1]}]}]"#,
            &[RoleChanged],
            r#"{"role":"assistant","chunks":[{"type":"tool_call","id":"","name":"f","arguments":"[1]"}]}"#,
        ),
        (
            r#"[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"},{"type":"tool_result","content":{"a":1},"is_error":1}]}]"#,
            &[],
            r#"{"role":"user","chunks":[{"type":"tool_result","tool_call_id":"t","content":""},{"type":"tool_result","tool_call_id":"","content":[{"type":"json","json":{"a":1}}]}]}"#,
        ),
        (
            r#"[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"image","source":{"type":"file","file_id":"f"}}]}]"#,
            &[],
            r#"{"role":"user","chunks":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"opaque","provider":"anthropic","kind":"image","json":{"type":"image","source":{"type":"file","file_id":"f"}}}]}"#,
        ),
        (
            r#"[{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"é"},"title":"a"}]}]"#,
            &[],
            r#"{"role":"user","chunks":[{"type":"file","name":"a","data":"w6k=","mime_type":"text/plain"}]}"#,
        ),
        (
            r#"[{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":""},{"type":"redacted_thinking","data":"d"},{"type":"hologram"},7]}]"#,
            &[],
            r#"{"role":"assistant","chunks":[{"type":"thinking","text":"t"},{"type":"thinking","text":"","redacted":"d"},{"type":"opaque","provider":"anthropic","kind":"hologram","json":{"type":"hologram"}},{"type":"opaque","provider":"anthropic","kind":"","json":7}]}"#,
        ),
    ];
    for (request, rules, wanted) in table {
        let (messages, notes) = parsed(TARGET, request);
        assert_eq!(messages.last().unwrap(), wanted, "{request}");
        assert_eq!(notes, *rules, "{request}");
    }
}

#[test]
fn system_is_the_first_message() {
    for (system, said) in [
        (r#""Be brief.""#, Some(1)),
        (r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#, Some(2)),
        (r#"{"a":1}"#, Some(1)),
        (r#""""#, None),
        ("[]", None),
        ("null", None),
    ] {
        let request = format!(r#"{{"system":{system},"messages":[{{"role":"user","content":"hi"}}]}}"#);
        let messages = parse(TARGET, &request).unwrap().messages;
        let first = Some(&messages[0]).filter(|message| message.role == Role::System);
        assert_eq!(first.map(|message| message.chunks.len()), said, "{system}");
        assert_eq!(messages.last().unwrap(), &Message::user("hi"));
    }
}

/// The provider gets its own blocks back, byte for byte in what it verifies.
#[test]
fn answers_go_back_block_by_block() {
    for case in ["thinking_with_tools", "interleaved_thinking", "redacted_thinking", "server_tools", "code_execution"] {
        let body = fs::read_to_string(format!("tests/fixtures/providers/anthropic/{case}/response.json")).unwrap();
        let prompt = answered(TARGET, body.as_bytes());
        let blocks = body.lines().filter_map(|line| line.strip_prefix("    ")).map(|line| line.trim_end_matches(','));
        for block in blocks {
            assert!(prompt.request.get().contains(block), "{case}: {block}\n{}", prompt.request);
        }
    }
}

/// What the model thought behind the result of the provider's own tool comes back, although it is not the first of its
/// message: two messages of the model are one on this wire.
#[test]
fn thinking_behind_the_providers_own_tools_is_given_back() {
    let request = concat!(
        r#"{"messages":[{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":["#,
        r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}},"#,
        r#"{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]},"#,
        r#"{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"a"}]},"#,
        r#"{"role":"user","content":[{"type":"text","text":"Well?"}]}]}"#
    );
    let repaired = repair(TARGET, TARGET, request, &PromptOptions::new()).unwrap();
    assert_eq!((repaired.request.get(), repaired.report), (request, vec![]));
    let (call, thought) =
        (r#"{"type":"server_tool_use""#, r#"{"type":"thinking","thinking":"hm","signature":"c2ln"},"#);
    let result = r#"{"type":"web_search_tool_result""#;
    for (behind, place) in [("a text", call), ("a call that has no result yet", result)] {
        let elsewhere = request.replace(thought, "").replace(place, &format!("{thought}{place}"));
        let elsewhere = elsewhere
            .replace(r#""content":[{"type":"thinking""#, r#""content":[{"type":"text","text":"b"},{"type":"thinking""#);
        let repaired = repair(TARGET, TARGET, &elsewhere, &PromptOptions::new()).unwrap();
        // No rule says that it is refused there.
        assert_eq!((repaired.request.get(), repaired.report), (elsewhere.as_str(), vec![]), "behind {behind}");
    }
}

/// What only answers have in their citations goes; the citations stay.
#[test]
fn citations_of_documents_go_back() {
    let body = fs::read("tests/fixtures/providers/anthropic/citations/response.json").unwrap();
    let prompt = answered(TARGET, &body);
    let value: Value = serde_json::from_str(prompt.request.get()).unwrap();
    let cited = value["messages"][1]["content"][1]["citations"].as_array().unwrap();
    assert_eq!((cited.len(), cited[0]["end_char_index"].as_u64(), cited[0].get("file_id")), (2, Some(20), None));
}

#[test]
fn any_json_is_parsed_without_panic_and_repaired_to_what_is_accepted() {
    const FIELDS: &[&str] = &[
        "type",
        "text",
        "citations",
        "source",
        "title",
        "id",
        "name",
        "input",
        "caller",
        "tool_use_id",
        "content",
        "is_error",
        "thinking",
        "signature",
        "data",
        "cache_control",
        "provider",
        "json",
    ];
    const KINDS: &[&str] = &[
        "text",
        "image",
        "document",
        "search_result",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "tool_result",
        "server_tool_use",
        "web_search_tool_result",
        "container_upload",
        "compaction",
        "hologram",
    ];
    for kind in KINDS {
        for (field, value) in FIELDS.iter().flat_map(|field| VALUES.iter().map(move |value| (field, value))) {
            for role in ["user", "assistant", "system"] {
                let block = format!(
                    r#"{{"text":"a","type":"{kind}","id":"srvtoolu_1","tool_use_id":"srvtoolu_1","{field}":{value}}}"#
                );
                let request = format!(
                    r#"[{{"role":"user","content":"hi"}},{{"role":"{role}","content":[{block},{block}]}},{{"role":"user","content":"ho"}}]"#
                );
                for target in [TARGET, TARGET.with_dialect("bedrock").unwrap()] {
                    assert_repaired(target, &request);
                }
            }
        }
    }
}

/// Events in any order, with anything in them: no panic, and what comes of it can be stored and rendered.
#[test]
fn any_events_are_taken() {
    const EVENTS: &[&str] = &[
        r#"{"type":"message_start","message":{"id":"m","model":"claude-x","content":[],"usage":{"input_tokens":1}}}"#,
        r#"{"type":"message_start","message":{"content":[{"type":"text","text":"a"}],"stop_reason":"end_turn"}}"#,
        r#"{"type":"message_start"}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a","citations":[{"a":1}]}}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":"","signature":"s"}}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f","input":{"a":1},"caller":{"type":"direct"}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"d"}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":7}"#,
        r#"{"type":"content_block_start","content_block":{}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"b"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"b":2}}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"1}"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"q\":1}"}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"t"}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"signature_delta","signature":"sig"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"surprise_delta","x":1}}"#,
        r#"{"type":"content_block_delta","index":9,"delta":{"type":"text_delta","text":"lost"}}"#,
        r#"{"type":"content_block_delta","index":0}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":"x"},"usage":{"output_tokens":2}}"#,
        r#"{"type":"message_delta","usage":null}"#,
        r#"{"type":"message_stop"}"#,
        r#"{"type":"ping"}"#,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"o"}}"#,
        r#"{"type":"surprise"}"#,
    ];
    let strategy = proptest::collection::vec(proptest::sample::select(EVENTS), 0..12);
    let mut runner = TestRunner::new(crate::common::config(crate::common::cases("CONVO_HOSTILE_CASES", 1000)));
    let ran = runner.run(&strategy, |events| {
        let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        let message = decode(TARGET, body.as_bytes()).unwrap();
        assert_eq!(Message::from_json(&message.to_json()).unwrap().to_json(), message.to_json());
        let store = Store::open("memory:").unwrap();
        store.append("chat", &[Message::user("q"), message]).unwrap();
        let messages = store.load_raw("chat").unwrap();
        let prompt = prompts::prompt(TARGET, &messages, &PromptOptions::new()).unwrap();
        prompts::assert_accepted(TARGET, &prompt);
        prompts::assert_conserved(TARGET, &messages, &prompt);
        Ok(())
    });
    ran.unwrap();
}

/// Thinking in a message of its own, marks of what is cached, and blocks that only the provider knows in full: what they say
/// is there after a repair.
#[test]
fn what_the_provider_made_survives_a_repair() {
    let mark = r#""cache_control":{"type":"ephemeral"}"#;
    let text = |text: &str| format!(r#"{{"type":"text","text":"{text}",{mark}}}"#);
    let said = |role: &str, blocks: &str| format!(r#"{{"role":"{role}","content":[{blocks}]}}"#);
    let marked = (0..5).map(|at| said(["user", "assistant"][at % 2], &text(&at.to_string())));
    let call = r#"{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"tool_use","id":"t 1","name":"f","input":{}}]}"#;
    let found = r#"{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"S"}]}"#;
    let document = r#"{"type":"document","source":{"type":"content","content":"D"}}"#;
    let table = [
        (
            r#"{"role":"user","content":"q"},
                {"role":"assistant","content":[{"type":"thinking","thinking":"T","signature":"QUJD"}]},
                {"role":"assistant","content":[{"type":"text","text":"ok"}]},
                {"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}}]},
                {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"r"}]}"#
                .to_owned(),
            concat!(
                r#"{"role":"assistant","content":[{"type":"thinking","thinking":"T","signature":"QUJD"},"#,
                r#"{"type":"text","text":"ok"},{"type":"tool_use","id":"t1","name":"f","input":{}}]}"#
            )
            .to_owned(),
        ),
        (
            marked.clone().collect::<Vec<_>>().join(","),
            format!(
                r#""messages":[{{"role":"user","content":[{{"type":"text","text":"0"}}]}},{}"#,
                marked.skip(1).collect::<Vec<_>>().join(",")
            ),
        ),
        (
            format!(
                r#"{call},{}"#,
                said("user", &format!(r#"{{"type":"tool_result","tool_use_id":"t 1","content":[{found}]}}"#))
            ),
            r#"[{"content":[{"text":"S","type":"text"}],"source":"s","title":"t","type":"search_result"}]"#.to_owned(),
        ),
        (format!("{call},{}", said("user", document)), document.to_owned()),
        (format!("{call},{}", said("user", &text("b"))), text("b")),
        (
            format!(r#"{},{{"role":"tool","tool_use_id":"t1","content":"R"}}"#, call.replace("t 1", "t1")),
            r#"{"type":"tool_result","tool_use_id":"t1","content":"R"}"#.to_owned(),
        ),
    ];
    for (messages, wanted) in table {
        let request = format!(
            r#"{{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{messages}],"thinking":{{"type":"enabled","budget_tokens":1024}}}}"#
        );
        let request = if messages.contains("thinking") {
            request
        } else {
            request.replace(r#","thinking":{"type":"enabled","budget_tokens":1024}"#, "")
        };
        let repaired = repair(TARGET, TARGET, &request, &PromptOptions::new()).unwrap();
        prompts::assert_accepted(TARGET, &repaired);
        assert!(repaired.request.get().contains(&wanted), "{wanted}\n{}", repaired.request);
        let is_lost = |line: &&ReportLine| line.severity == Severity::Lost && !line.detail.contains("`cache_control`");
        let lost: Vec<_> = repaired.report.iter().filter(is_lost).collect();
        assert!(lost.is_empty(), "{lost:#?}");
    }
}

#[test]
fn other_wires_read_documents_with_citations() {
    let pdf = r#""source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0xLjQK"}"#;
    let table = [
        (format!(r#"{{"type":"document",{pdf},"citations":{{"enabled":true}},"context":"c"}}"#), "JVBERi0xLjQK"),
        (
            r#"{"type":"document","source":{"type":"content","content":[{"type":"text","text":"D"}]}}"#.to_owned(),
            "RA==",
        ),
        (
            r#"{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"S"}]}"#.to_owned(),
            "cwoKUw==",
        ),
    ];
    for (block, data) in table {
        let request = format!(r#"[{{"role":"user","content":[{block},{{"type":"text","text":"q"}}]}}]"#);
        for target in [Target::OPENAI_CHAT, Target::OPENAI_RESPONSES, Target::GEMINI] {
            let crossed = repair(TARGET, target, &request, &PromptOptions::new()).unwrap();
            assert!(crossed.request.get().contains(data), "{target} {}", crossed.request);
        }
    }
}
