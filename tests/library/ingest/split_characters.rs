//! Characters that a provider cut in two: the halves of a surrogate pair in two deltas.

use conversation_store::model::{Body, Chunk};
use conversation_store::provider::{Target, decode};

/// A stream of two deltas, with the texts in place of `A` and `B`.
const STREAMS: &[(&str, &str)] = &[
    (
        "openai-chat",
        r#"{"choices":[{"index":0,"delta":{"content":"A"}}]}|{"choices":[{"index":0,"delta":{"content":"B"}}]}"#,
    ),
    (
        "openai-chat",
        r#"{"choices":[{"index":0,"delta":{"reasoning_content":"A"}}]}|{"choices":[{"index":0,"delta":{"reasoning_content":"B"}}]}"#,
    ),
    (
        "openai-chat",
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"A"}}]}}]}|{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"B"}}]}}]}"#,
    ),
    (
        "openai-responses",
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","role":"assistant","content":[]}}|{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"A"}|{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"B"}"#,
    ),
    (
        "openai-responses",
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c","name":"f","arguments":""}}|{"type":"response.function_call_arguments.delta","output_index":0,"delta":"A"}|{"type":"response.function_call_arguments.delta","output_index":0,"delta":"B"}"#,
    ),
    (
        "anthropic",
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}|{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"A"}}|{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"B"}}"#,
    ),
    (
        "anthropic",
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}|{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"A"}}|{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"B"}}"#,
    ),
    (
        "anthropic",
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"f","input":{}}}|{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"A"}}|{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"B"}}"#,
    ),
    (
        "gemini",
        r#"{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"A"}]}}]}|{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"B"}]}}]}"#,
    ),
    (
        "gemini",
        r#"{"candidates":[{"content":{"parts":[{"text":"A","thought":true}]}}]}|{"candidates":[{"content":{"parts":[{"text":"B","thought":true}]}}]}"#,
    ),
    (
        "bedrock-converse",
        r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"A"}}}|{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"text":"B"}}}"#,
    ),
    (
        "bedrock-converse",
        r#"{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"A"}}}}|{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"B"}}}}"#,
    ),
    (
        "bedrock-converse",
        r#"{"contentBlockStart":{"contentBlockIndex":0,"start":{"toolUse":{"toolUseId":"c","name":"f"}}}}|{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"toolUse":{"input":"A"}}}}|{"contentBlockDelta":{"contentBlockIndex":0,"delta":{"toolUse":{"input":"B"}}}}"#,
    ),
];

/// The text that grew.
fn text(target: &str, stream: &str, a: &str, b: &str) -> String {
    let target: Target = target.parse().unwrap();
    let events = stream.replace("\"A\"", &format!("\"{a}\"")).replace("\"B\"", &format!("\"{b}\""));
    let events: String = events.split('|').map(|event| format!("data: {event}\n\n")).collect();
    let message = decode(target, events.as_bytes()).unwrap();
    let [Chunk { body, .. }] = &message.chunks[..] else { panic!("{events}: {message:?}") };
    match body {
        Body::Text { text, .. } | Body::Thinking { text, .. } => text.clone(),
        Body::ToolCall { arguments, .. } => arguments.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn halves_in_two_deltas_are_one_character() {
    let table = [
        (r"a\ud83d", r"\ude00b", "a😀b"),
        (r"\uD83D", r"\uDE00", "😀"),
        (r"a\ud83d", "b", "a\u{fffd}b"),
        ("a", r"\ude00b", "a\u{fffd}b"),
        (r"a\ud83d", r"\ud83d\ude00", "a\u{fffd}😀"),
        (r"a\ude00\ud83d", r"\ude00\ud83d", "a\u{fffd}😀\u{fffd}"),
        (r"a\ud83d", "", "a\u{fffd}"),
        (r"a\\ud83d", r"\\ude00", r"a\ud83d\ude00"),
        (r"a\ud83d\ude00", "b", "a😀b"),
    ];
    for (target, stream) in STREAMS {
        for (a, b, wanted) in table {
            assert_eq!(text(target, stream, a, b), wanted, "{target} {a} {b} {stream}");
        }
    }
}

/// Calls that come side by side have their own halves.
#[test]
fn halves_of_two_calls_are_not_mixed() {
    let delta = |index: u8, id: &str, text: &str| {
        format!(
            r#"data: {{"choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":{index},{id}"function":{{"arguments":"{text}"}}}}]}}}}]}}"#
        ) + "\n\n"
    };
    let stream = [
        delta(0, r#""id":"a","#, r"0\ud83d"),
        delta(1, r#""id":"b","#, r"1\ud83c"),
        delta(0, "", r"\ude00"),
        delta(1, "", r"\udf00"),
    ];
    let message = decode(Target::OPENAI_CHAT, stream.concat().as_bytes()).unwrap();
    let arguments = message.chunks.iter().map(|chunk| match &chunk.body {
        Body::ToolCall { arguments, .. } => arguments.as_str(),
        other => panic!("{other:?}"),
    });
    assert!(arguments.eq(["0😀", "1🌀"]));
}
