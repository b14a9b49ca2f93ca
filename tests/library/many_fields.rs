//! An object of very many fields costs what it is long, wherever it is in a request or an answer. So do very many events with a
//! field each.

use conversation_store::model::Line;
use conversation_store::provider::{PromptOptions, Target, decode, repair};

use crate::common::growth::assert_in_proportion;

/// Half of the fields are `null`, and come first.
fn fields(name: &str, count: usize) -> String {
    (0..count).map(|number| field(name, number, count)).collect()
}

fn field(name: &str, number: usize, count: usize) -> String {
    format!(",\"{name}{number}\":{}", if number < count / 2 { "null" } else { "1" })
}

/// Requests with `FIELDS` where the object is open: read, and written for their own wire and for another one.
fn assert_repaired(from: Target, requests: &[&str]) {
    // With an option, so that a request that is right is written again, too.
    let options = PromptOptions::new().with_last_messages(10);
    let other = if from.wire().name == "anthropic" { Target::OPENAI_CHAT } else { Target::ANTHROPIC };
    for request in requests {
        for target in [from, other] {
            assert_in_proportion(&format!("{request} for {target}"), |count| {
                let (body, options) = (request.replace("FIELDS", &fields("a", count)), options.clone());
                // Of a part that only its own wire takes, nothing is left for another.
                move || drop(repair(from, target, &body, &options))
            });
        }
    }
}

#[test]
fn requests_of_many_fields_are_repaired_on_chat() {
    assert_repaired(
        Target::OPENAI_CHAT,
        &[
            r#"[{"role":"user","content":"hi"FIELDS}]"#,
            r#"[{"role":"assistant","content":"hi"FIELDS}]"#,
            r#"[{"role":"assistant","content":[{"type":"thinking","thinking":"hm"FIELDS}]}]"#,
            r#"[{"role":"user","content":[{"type":"text","text":"hi"FIELDS}]}]"#,
            r#"[{"role":"user","content":[{"type":"odd"FIELDS}]}]"#,
            r#"[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f"}FIELDS}]}]"#,
            r#"[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f"FIELDS}}]}]"#,
        ],
    );
}

#[test]
fn requests_of_many_fields_are_repaired_on_responses() {
    assert_repaired(
        Target::OPENAI_RESPONSES,
        &[
            r#"[{"type":"message","role":"user","content":"hi"FIELDS}]"#,
            r#"[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"FIELDS}]}]"#,
            r#"[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"FIELDS}]"#,
            r#"[{"type":"reasoning","id":"rs_1","summary":[]FIELDS}]"#,
            r#"[{"type":"odd"FIELDS}]"#,
        ],
    );
}

#[test]
fn requests_of_many_fields_are_repaired_on_anthropic() {
    assert_repaired(
        Target::ANTHROPIC,
        &[
            r#"[{"role":"user","content":"hi"FIELDS}]"#,
            r#"[{"role":"user","content":[{"type":"text","text":"hi"FIELDS}]}]"#,
            r#"[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://a.b/c.png"FIELDS}}]}]"#,
            r#"[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"a":1FIELDS}}]}]"#,
            r#"[{"role":"user","content":[{"type":"odd"FIELDS}]}]"#,
        ],
    );
}

#[test]
fn requests_of_many_fields_are_repaired_on_gemini() {
    assert_repaired(
        Target::GEMINI,
        &[
            r#"[{"role":"user","parts":[{"text":"hi"}]FIELDS}]"#,
            r#"[{"role":"user","parts":[{"text":"hi"FIELDS}]}]"#,
            r#"[{"role":"model","parts":[{"functionCall":{"name":"f"FIELDS}}]}]"#,
            r#"[{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"a":1FIELDS}}}]}]"#,
        ],
    );
}

#[test]
fn requests_of_many_fields_are_repaired_on_converse() {
    assert_repaired(
        Target::BEDROCK_CONVERSE,
        &[
            r#"[{"role":"user","content":[{"text":"hi"}]FIELDS}]"#,
            r#"[{"role":"user","content":[{"text":"hi"FIELDS}]}]"#,
            r#"[{"role":"user","content":[{"odd":null FIELDS}]}]"#,
            r#"[{"role":"assistant","content":[{"toolUse":{"toolUseId":"t","name":"f","input":{}FIELDS}}]}]"#,
        ],
    );
}

/// Pieces of a call, and of a detail of reasoning, each with fields of its own.
#[test]
fn pieces_of_many_fields_are_put_together() {
    for piece in [
        r#"{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":""}FIELDS}]}"#,
        r#"{"reasoning_details":[{"type":"reasoning.text","index":0,"text":"hm"FIELDS}]}"#,
    ] {
        assert_in_proportion(piece, |count| {
            let event = |name: &str| {
                let delta = piece.replace("FIELDS", &fields(name, count));
                format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n")
            };
            let body = [event("a"), event("b"), "data: [DONE]\n\n".to_owned()].concat();
            move || drop(decode(Target::OPENAI_CHAT, body.as_bytes()))
        });
    }
}

/// A block of Anthropic begins; other wires take it for something that they do not know.
const BEGIN: &str = "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"odd\"}}\n\n";

/// Events of which each says something of the message that none before it said.
#[test]
fn events_of_a_field_each_are_put_together() {
    for (target, event) in [
        (Target::OPENAI_CHAT, r#"{"object":"chat.completion.chunk","choices":[]FIELD}"#),
        (Target::OPENAI_CHAT, r#"{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{}FIELD}]}"#),
        (
            Target::OPENAI_RESPONSES,
            r#"{"type":"response.in_progress","response":{"object":"response","output":[]FIELD}}"#,
        ),
        (Target::OPENAI_RESPONSES, r#"{"type":"response.odd"FIELD}"#),
        (Target::ANTHROPIC, r#"{"type":"message_delta","delta":{},"usage":{"output_tokens":1FIELD}}"#),
        (Target::ANTHROPIC, r#"{"type":"message_delta","delta":{},"context_management":{"applied_edits":[1]FIELD}}"#),
        (Target::ANTHROPIC, r#"{"type":"content_block_delta","index":0,"delta":{"type":"odd_delta"FIELD}}"#),
        (Target::GEMINI, r#"{"candidates":[{"content":{"parts":[{"text":"a"}]}}]FIELD}"#),
        (Target::GEMINI, r#"{"candidates":[{"content":{"parts":[{"text":"a"FIELD}]}}]}"#),
        (Target::BEDROCK_CONVERSE, r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"odd":{"a":1FIELD}}}}"#),
    ] {
        assert_in_proportion(event, |count| {
            let events = |number| format!("data: {}\n\n", event.replace("FIELD", &field("a", number, count)));
            let body = format!("{BEGIN}{}", (0..count).map(events).collect::<String>());
            move || drop(decode(target, body.as_bytes()))
        });
    }
}

/// A half of a surrogate makes the reader look for each field a second time.
#[test]
fn a_line_of_many_fields_is_read() {
    assert_in_proportion("a transcript's line", |count| {
        let fields = fields("a", count);
        let line = format!(r#"{{"role":"user","chunks":[{{"type":"text","text":"\ud800"}}]{fields}}}"#);
        move || drop(Line::from_json(&line).unwrap())
    });
}
