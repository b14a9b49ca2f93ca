//! What recordings of providers taught: each shape of an answer goes back to its provider as it came.

use crate::common::{prompts, stored};
use conversation_store::model::Message;
use conversation_store::provider::{PromptOptions, Target, decode};
use serde_json::{Value, json};

/// A target, and an item that an answer of it holds.
fn table() -> Vec<(&'static str, Value)> {
    vec![
        ("openai-chat", json!({"reasoning": "I look it up."})),
        ("openai-chat", json!({"reasoning_content": "I look it up."})),
        ("openai-chat", json!({"reasoning_details": [{"type": "reasoning.encrypted", "data": "Q2k=", "index": 0}]})),
        (
            "openai-chat",
            json!({"tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"},
                "extra_content": {"google": {"thought_signature": "CikB"}}}]}),
        ),
        (
            "openai-chat/mistral",
            json!({"tool_calls": [{"id": "KikbB849t", "function": {"name": "f", "arguments": "{}"}}]}),
        ),
        (
            "openai-responses",
            json!({"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "iVBORw0KGgo=",
                "size": "1024x1024", "quality": "high", "background": "opaque", "output_format": "png"}),
        ),
        (
            "openai-responses",
            json!({"type": "shell_call", "id": "sh_1", "call_id": "s", "action": {"commands": ["ls"]}}),
        ),
        (
            "openai-responses",
            json!({"type": "computer_call", "id": "cu_1", "call_id": "c", "status": "completed",
                "pending_safety_checks": [], "action": {"type": "screenshot"}}),
        ),
        (
            "openai-responses",
            json!({"type": "mcp_approval_request", "id": "mcpr_1", "name": "n", "arguments": "{}", "server_label": "s"}),
        ),
        ("openai-responses", json!({"type": "hologram_call", "id": "holo_1", "beams": 3})),
        (
            "anthropic",
            json!([{"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "n", "server_name": "s", "input": {}},
                {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": false,
                    "content": [{"type": "text", "text": "found"}]}]),
        ),
        ("anthropic", json!([{"type": "compaction", "content": "So far."}])),
        (
            "gemini",
            json!({"toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["q"]}, "id": "x"}, "thoughtSignature": "c2ln"}),
        ),
        (
            "gemini",
            json!({"toolResponse": {"toolType": "GOOGLE_SEARCH_WEB", "id": "x", "response": {"a": 1}}, "thoughtSignature": "c2ln"}),
        ),
    ]
}

/// The answer with the item before a text.
fn answer(wire: &str, item: &Value) -> String {
    let body = match wire {
        "openai-chat" => {
            let mut message = json!({"role": "assistant", "content": "So."});
            message.as_object_mut().unwrap().extend(item.as_object().unwrap().clone());
            json!({"object": "chat.completion", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]})
        }
        "openai-responses" => {
            let said = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "So.", "annotations": []}]});
            json!({"object": "response", "status": "completed", "output": [item, said]})
        }
        "anthropic" => {
            let mut content = item.as_array().unwrap().clone();
            content.push(json!({"type": "text", "text": "So."}));
            json!({"type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn"})
        }
        _ => {
            json!({"candidates": [{"content": {"role": "model", "parts": [item, {"text": "So."}]}, "finishReason": "STOP"}]})
        }
    };
    body.to_string()
}

/// Whether the items of `wanted` stand in a value, with no field changed.
fn holds(value: &Value, wanted: &Value) -> bool {
    let is_here = match (value, wanted) {
        (Value::Object(fields), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| fields.get(name) == Some(wanted))
        }
        _ => value == wanted,
    };
    is_here
        || match value {
            Value::Object(fields) => fields.values().any(|value| holds(value, wanted)),
            Value::Array(items) => items.iter().any(|value| holds(value, wanted)),
            _ => false,
        }
}

#[test]
fn an_answers_items_go_back_to_its_provider() {
    for (target, item) in table() {
        let target: Target = target.parse().unwrap();
        let said = decode(target, answer(target.wire().name, &item).as_bytes()).unwrap();
        let messages = stored::log(vec![Message::user("go"), said, Message::user("and?")]);
        let prompt = prompts::prompt(target, &messages, &PromptOptions::new()).unwrap();
        prompts::assert_accepted(target, &prompt);
        let request: Value = serde_json::from_str(prompt.request.get()).unwrap();
        let items = item.as_array().cloned().unwrap_or_else(|| vec![item.clone()]);
        for item in items {
            assert!(holds(&request, &item), "{target}: {item}\n{request}\n{:#?}", prompt.report);
        }
    }
}
