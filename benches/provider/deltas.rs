//! Streams: one answer of so many deltas, in which texts and calls take turns.

use std::fmt::Write;

use conversation_store::provider::Target;
use serde_json::{Value, json};

/// Deltas of a text, and of a call.
const BLOCK: usize = 20;

/// The bytes of a stream.
pub(crate) fn stream(target: Target, deltas: usize) -> Vec<u8> {
    let events = match target.wire().name {
        "openai-chat" => openai_chat(deltas),
        "openai-responses" => openai_responses(deltas),
        "anthropic" => anthropic(deltas),
        "gemini" => gemini(deltas),
        "bedrock-converse" => bedrock_converse(deltas),
        other => panic!("the wire {other} has no streams here"),
    };
    written(events)
}

/// The bytes of a stream of so many calls, each in one piece.
pub(crate) fn calls(target: Target, calls: usize, id: fn(usize) -> String) -> Vec<u8> {
    let calls = 0..calls;
    let events: Vec<Value> = match target.wire().name {
        "openai-chat" => calls
            .map(|at| {
                let function = json!({"name": "read_file", "arguments": "{}"});
                let call = json!({"index": at, "id": id(at), "type": "function", "function": function});
                json!({"id": "chatcmpl-1", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
            })
            .collect(),
        "openai-responses" => calls
            .map(|at| {
                let item = json!({"id": format!("fc_{at}"), "type": "function_call", "call_id": id(at),
                    "name": "read_file", "arguments": "{}", "status": "completed"});
                json!({"type": "response.output_item.done", "output_index": at, "item": item})
            })
            .collect(),
        "anthropic" => calls
            .flat_map(|at| {
                let block = json!({"type": "tool_use", "id": id(at), "name": "read_file", "input": {}});
                [
                    json!({"type": "content_block_start", "index": at, "content_block": block}),
                    json!({"type": "content_block_stop", "index": at}),
                ]
            })
            .collect(),
        "gemini" => calls
            .map(|at| {
                let call = json!({"functionCall": {"id": id(at), "name": "read_file", "args": {}}});
                json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [call]}}]})
            })
            .collect(),
        "bedrock-converse" => calls
            .flat_map(|at| {
                let start = json!({"toolUse": {"toolUseId": id(at), "name": "read_file"}});
                [
                    json!({"contentBlockStart": {"contentBlockIndex": at, "start": start}}),
                    json!({"contentBlockStop": {"contentBlockIndex": at}}),
                ]
            })
            .collect(),
        other => panic!("the wire {other} has no streams here"),
    };
    written(events)
}

fn written(events: Vec<Value>) -> Vec<u8> {
    let mut stream = String::new();
    for event in events {
        if let Some(name) = event["type"].as_str() {
            writeln!(stream, "event: {name}").unwrap();
        }
        write!(stream, "data: {event}\n\n").unwrap();
    }
    stream.into_bytes()
}

/// For each delta: its block's number, its place in the block, and whether the block is a call.
fn places(deltas: usize) -> impl Iterator<Item = (usize, usize, bool)> {
    (0..deltas).map(|delta| (delta / BLOCK, delta % BLOCK, delta / BLOCK % 2 == 1))
}

/// A piece of a call's arguments: all pieces of a block are one object.
fn piece(at: usize) -> &'static str {
    match at {
        0 => "{\"path\":\"",
        at if at + 1 == BLOCK => "\"}",
        _ => "src/",
    }
}

fn openai_chat(deltas: usize) -> Vec<Value> {
    let event = |delta: Value, reason: Value| {
        json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "gpt-5",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
    };
    let events = places(deltas).map(|(block, at, is_call)| {
        let delta = match (is_call, at) {
            (false, _) => json!({"content": " lorem"}),
            (true, 0) => json!({"tool_calls": [{"index": block / 2, "id": format!("call_{block}"), "type": "function",
                "function": {"name": "read_file", "arguments": piece(0)}}]}),
            (true, at) => json!({"tool_calls": [{"index": block / 2, "function": {"arguments": piece(at)}}]}),
        };
        event(delta, Value::Null)
    });
    events.chain([event(json!({}), "stop".into())]).collect()
}

fn openai_responses(deltas: usize) -> Vec<Value> {
    let mut events = vec![json!({"type": "response.created", "response": {"id": "resp_1", "model": "gpt-5"}})];
    for (block, at, is_call) in places(deltas) {
        let id = format!("item_{block}");
        if at == 0 {
            let item = if is_call {
                json!({"id": id, "type": "function_call", "call_id": format!("call_{block}"), "name": "read_file",
                    "arguments": "", "status": "in_progress"})
            } else {
                json!({"id": id, "type": "message", "role": "assistant", "status": "in_progress", "content": []})
            };
            events.push(json!({"type": "response.output_item.added", "output_index": block, "item": item}));
        }
        events.push(if is_call {
            json!({"type": "response.function_call_arguments.delta", "item_id": id, "output_index": block,
                "delta": piece(at)})
        } else {
            json!({"type": "response.output_text.delta", "item_id": id, "output_index": block, "content_index": 0,
                "delta": " lorem"})
        });
        if at + 1 == BLOCK {
            let item = if is_call {
                let arguments: String = (0..BLOCK).map(piece).collect();
                json!({"id": id, "type": "function_call", "call_id": format!("call_{block}"), "name": "read_file",
                    "arguments": arguments, "status": "completed"})
            } else {
                let part = json!({"type": "output_text", "text": " lorem".repeat(BLOCK), "annotations": []});
                json!({"id": id, "type": "message", "role": "assistant", "status": "completed", "content": [part]})
            };
            events.push(json!({"type": "response.output_item.done", "output_index": block, "item": item}));
        }
    }
    events
        .push(json!({"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "output": []}}));
    events
}

fn anthropic(deltas: usize) -> Vec<Value> {
    let message =
        json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": []});
    let mut events = vec![json!({"type": "message_start", "message": message})];
    for (block, at, is_call) in places(deltas) {
        if at == 0 {
            let content = if is_call {
                json!({"type": "tool_use", "id": format!("toolu_{block}"), "name": "read_file", "input": {}})
            } else {
                json!({"type": "text", "text": ""})
            };
            events.push(json!({"type": "content_block_start", "index": block, "content_block": content}));
        }
        let delta = if is_call {
            json!({"type": "input_json_delta", "partial_json": piece(at)})
        } else {
            json!({"type": "text_delta", "text": " lorem"})
        };
        events.push(json!({"type": "content_block_delta", "index": block, "delta": delta}));
        if at + 1 == BLOCK {
            events.push(json!({"type": "content_block_stop", "index": block}));
        }
    }
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}));
    events.push(json!({"type": "message_stop"}));
    events
}

/// A call comes whole: it takes the place of its block's last delta.
fn gemini(deltas: usize) -> Vec<Value> {
    let events = places(deltas).map(|(block, at, is_call)| {
        let part = if is_call && at + 1 == BLOCK {
            json!({"functionCall": {"id": format!("call_{block}"), "name": "read_file", "args": {"path": "src/"}}})
        } else {
            json!({"text": " lorem"})
        };
        json!({"responseId": "r1", "modelVersion": "gemini-3-pro",
            "candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]})
    });
    events.collect()
}

fn bedrock_converse(deltas: usize) -> Vec<Value> {
    let mut events = vec![json!({"messageStart": {"role": "assistant"}})];
    for (block, at, is_call) in places(deltas) {
        if is_call && at == 0 {
            let start = json!({"toolUse": {"toolUseId": format!("tooluse_{block}"), "name": "read_file"}});
            events.push(json!({"contentBlockStart": {"contentBlockIndex": block, "start": start}}));
        }
        let delta = if is_call { json!({"toolUse": {"input": piece(at)}}) } else { json!({"text": " lorem"}) };
        events.push(json!({"contentBlockDelta": {"contentBlockIndex": block, "delta": delta}}));
        if at + 1 == BLOCK {
            events.push(json!({"contentBlockStop": {"contentBlockIndex": block}}));
        }
    }
    events.push(json!({"messageStop": {"stopReason": "end_turn"}}));
    events
}
