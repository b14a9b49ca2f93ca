//! An object of very many fields costs what it is long, wherever it is in a request or an answer.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use conversation_store::model::Line;
use conversation_store::provider::{Target, decode, parse};

/// What takes longer is taken for work without an end: twice the fields would take four times as long.
const PATIENCE: Duration = Duration::from_secs(100);
const FIELDS: usize = 500_000;

/// Half of the fields are `null`, and come first.
fn fields(name: &str) -> String {
    let field = |number: usize| format!(",\"{name}{number}\":{}", if number < FIELDS / 2 { "null" } else { "1" });
    (0..FIELDS).map(field).collect()
}

fn ends<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) {
    let (done, waiting) = mpsc::channel();
    thread::spawn(move || done.send(work()));
    assert!(waiting.recv_timeout(PATIENCE).is_ok(), "{what}: it has not ended after {PATIENCE:?}");
}

/// Requests with `FIELDS` where the object is open.
const REQUESTS: &[(&str, &[&str])] = &[
    (
        "openai-chat",
        &[
            r#"[{"role":"user","content":"hi"FIELDS}]"#,
            r#"[{"role":"assistant","content":"hi"FIELDS}]"#,
            r#"[{"role":"assistant","content":[{"type":"thinking","thinking":"hm"FIELDS}]}]"#,
            r#"[{"role":"user","content":[{"type":"text","text":"hi"FIELDS}]}]"#,
            r#"[{"role":"user","content":[{"type":"odd"FIELDS}]}]"#,
            r#"[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f"}FIELDS}]}]"#,
            r#"[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f"FIELDS}}]}]"#,
        ],
    ),
    (
        "openai-responses",
        &[
            r#"[{"type":"message","role":"user","content":"hi"FIELDS}]"#,
            r#"[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"FIELDS}]}]"#,
            r#"[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"FIELDS}]"#,
            r#"[{"type":"reasoning","id":"rs_1","summary":[]FIELDS}]"#,
            r#"[{"type":"odd"FIELDS}]"#,
        ],
    ),
    (
        "anthropic",
        &[
            r#"[{"role":"user","content":"hi"FIELDS}]"#,
            r#"[{"role":"user","content":[{"type":"text","text":"hi"FIELDS}]}]"#,
            r#"[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://a.b/c.png"FIELDS}}]}]"#,
            r#"[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{"a":1FIELDS}}]}]"#,
            r#"[{"role":"user","content":[{"type":"odd"FIELDS}]}]"#,
        ],
    ),
    (
        "gemini",
        &[
            r#"[{"role":"user","parts":[{"text":"hi"}]FIELDS}]"#,
            r#"[{"role":"user","parts":[{"text":"hi"FIELDS}]}]"#,
            r#"[{"role":"model","parts":[{"functionCall":{"name":"f"FIELDS}}]}]"#,
            r#"[{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"a":1FIELDS}}}]}]"#,
        ],
    ),
    (
        "bedrock-converse",
        &[
            r#"[{"role":"user","content":[{"text":"hi"}]FIELDS}]"#,
            r#"[{"role":"user","content":[{"text":"hi"FIELDS}]}]"#,
            r#"[{"role":"user","content":[{"odd":null FIELDS}]}]"#,
            r#"[{"role":"assistant","content":[{"toolUse":{"toolUseId":"t","name":"f","input":{}FIELDS}}]}]"#,
        ],
    ),
];

#[test]
fn requests_of_many_fields_are_read() {
    let many = fields("a");
    for (target, requests) in REQUESTS {
        let target: Target = target.parse().unwrap();
        for request in *requests {
            let body = request.replace("FIELDS", &many);
            ends(request, move || parse(target, &body).unwrap());
        }
    }
}

/// Pieces of a call, and of a detail of reasoning, each with fields of its own.
#[test]
fn pieces_of_many_fields_are_put_together() {
    for piece in [
        r#"{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":""}FIELDS}]}"#,
        r#"{"reasoning_details":[{"type":"reasoning.text","index":0,"text":"hm"FIELDS}]}"#,
    ] {
        let event = |name: &str| {
            format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{}}}]}}\n\n", piece.replace("FIELDS", &fields(name)))
        };
        let body = [event("a"), event("b"), "data: [DONE]\n\n".to_owned()].concat();
        ends(piece, move || decode(Target::OPENAI_CHAT, body.as_bytes()));
    }
}

/// A half of a surrogate makes the reader look for each field a second time.
#[test]
fn a_line_of_many_fields_is_read() {
    let line = format!(r#"{{"role":"user","chunks":[{{"type":"text","text":"\ud800"}}]{}}}"#, fields("a"));
    ends("a transcript's line", move || Line::from_json(&line).unwrap());
}
