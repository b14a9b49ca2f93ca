//! What a model says, as each wire says it: events of a stream, or a whole answer.

use serde_json::{Value, json};

/// A wire, by the path of its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Anthropic,
    Chat,
    Responses,
    Gemini,
}

impl Wire {
    pub(crate) fn of(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap();
        match path {
            "/v1/messages" => Some(Self::Anthropic),
            "/v1/chat/completions" => Some(Self::Chat),
            "/v1/responses" => Some(Self::Responses),
            _ if path.ends_with("enerateContent") => Some(Self::Gemini),
            _ => None,
        }
    }

    /// What the model says, in this wire's form: a text.
    pub(crate) fn text(self, text: &str, number: usize) -> Vec<Value> {
        match self {
            Self::Anthropic => vec![json!({ "type": "text", "text": text })],
            Self::Chat => vec![json!({ "role": "assistant", "content": text })],
            Self::Responses => vec![json!({ "type": "message", "id": format!("msg_end_{number}"), "role": "assistant",
                "status": "completed", "content": [{ "type": "output_text", "text": text, "annotations": [] }] })],
            Self::Gemini => vec![json!({ "text": text })],
        }
    }

    /// An answer as the events of a stream.
    pub(crate) fn events(self, said: &[Value], number: usize) -> Vec<String> {
        match self {
            Self::Anthropic => anthropic(said, number),
            Self::Chat => chat(&said[0], number),
            Self::Responses => responses(said, number),
            Self::Gemini => gemini(said, number),
        }
    }

    /// An answer that comes whole.
    pub(crate) fn whole(self, said: &[Value], number: usize) -> Value {
        match self {
            Self::Anthropic => json!({ "id": format!("msg_up_{number}"), "type": "message", "role": "assistant",
                "model": "claude-x", "content": said, "stop_reason": stop(said), "stop_sequence": null,
                "usage": { "input_tokens": 3, "output_tokens": 5 } }),
            Self::Chat => json!({ "id": format!("chatcmpl-{number}"), "object": "chat.completion", "model": "gpt-x",
                "choices": [{ "index": 0, "message": said[0], "finish_reason": finish(&said[0]) }],
                "usage": { "prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8 } }),
            Self::Responses => response(said, number, "completed"),
            Self::Gemini => json!({ "candidates": [{ "index": 0, "content": { "role": "model", "parts": said },
                "finishReason": "STOP" }], "responseId": format!("gem-{number}"), "modelVersion": "gemini-x" }),
        }
    }

    pub(crate) fn error_event(self) -> String {
        match self {
            Self::Anthropic => event(
                "error",
                &json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } }),
            ),
            Self::Responses => event(
                "response.failed",
                &json!({ "type": "response.failed", "response": { "id": "resp_failed", "object": "response",
                    "status": "failed", "output": [], "error": { "code": "server_is_overloaded", "message": "no" } } }),
            ),
            Self::Chat | Self::Gemini => format!("data: {}\n\n", json!({ "error": { "code": 503, "message": "no" } })),
        }
    }
}

fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// A text in so many pieces, or as many as it has characters.
fn pieces(text: &str, count: usize) -> Vec<String> {
    let all: Vec<char> = text.chars().collect();
    let count = count.min(all.len());
    (0..count).map(|at| all[at * all.len() / count..(at + 1) * all.len() / count].iter().collect()).collect()
}

fn stop(said: &[Value]) -> &'static str {
    if said.iter().any(|block| block["type"] == "tool_use") { "tool_use" } else { "end_turn" }
}

fn anthropic(blocks: &[Value], number: usize) -> Vec<String> {
    let mut events = vec![event(
        "message_start",
        &json!({ "type": "message_start", "message": { "id": format!("msg_up_{number}"), "type": "message",
            "role": "assistant", "model": "claude-x", "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": { "input_tokens": 3, "output_tokens": 1 } } }),
    )];
    for (index, block) in blocks.iter().enumerate() {
        let start = |block: Value| {
            event(
                "content_block_start",
                &json!({ "type": "content_block_start", "index": index, "content_block": block }),
            )
        };
        let delta = |delta: Value| {
            event("content_block_delta", &json!({ "type": "content_block_delta", "index": index, "delta": delta }))
        };
        let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
        match block["type"].as_str().unwrap() {
            "thinking" => {
                events.push(start(json!({ "type": "thinking", "thinking": "", "signature": "" })));
                let parts = pieces(&text("thinking"), 5);
                events.extend(parts.iter().map(|part| delta(json!({ "type": "thinking_delta", "thinking": part }))));
                events.push(delta(json!({ "type": "signature_delta", "signature": text("signature") })));
            }
            "text" => {
                events.push(start(json!({ "type": "text", "text": "" })));
                let parts = pieces(&text("text"), 12);
                events.extend(parts.iter().map(|part| delta(json!({ "type": "text_delta", "text": part }))));
            }
            "tool_use" => {
                let begun = json!({ "type": "tool_use", "id": block["id"], "name": block["name"], "input": {} });
                events.push(start(begun));
                // Written as no client writes it again.
                let written = serde_json::to_string_pretty(&block["input"]).unwrap();
                let parts = pieces(&written, 3);
                events.extend(
                    parts.iter().map(|part| delta(json!({ "type": "input_json_delta", "partial_json": part }))),
                );
            }
            _ => events.push(start(block.clone())),
        }
        events.push(event("content_block_stop", &json!({ "type": "content_block_stop", "index": index })));
    }
    events.push(event(
        "message_delta",
        &json!({ "type": "message_delta", "delta": { "stop_reason": stop(blocks), "stop_sequence": null },
            "usage": { "output_tokens": 5 } }),
    ));
    events.push(event("message_stop", &json!({ "type": "message_stop" })));
    events
}

fn finish(message: &Value) -> &'static str {
    if message["tool_calls"].is_array() { "tool_calls" } else { "stop" }
}

fn chat(message: &Value, number: usize) -> Vec<String> {
    let chunk = |delta: &Value, finish: Option<&str>| {
        let chunk = json!({ "id": format!("chatcmpl-{number}"), "object": "chat.completion.chunk", "model": "gpt-x",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] });
        format!("data: {chunk}\n\n")
    };
    let mut events = vec![chunk(&json!({ "role": "assistant" }), None)];
    for name in ["reasoning_content", "content"] {
        let text = message[name].as_str().unwrap_or_default();
        events.extend(pieces(text, 4).iter().map(|piece| chunk(&json!({ name: piece }), None)));
    }
    for (index, call) in message["tool_calls"].as_array().into_iter().flatten().enumerate() {
        let (name, arguments) = (&call["function"]["name"], call["function"]["arguments"].as_str().unwrap());
        let begun = json!({ "tool_calls": [{ "index": index, "id": call["id"], "type": "function",
            "function": { "name": name, "arguments": "" } }] });
        events.push(chunk(&begun, None));
        let arguments = arguments.replacen('{', "{ ", 1);
        events.extend(pieces(&arguments, 3).iter().map(|piece| {
            chunk(&json!({ "tool_calls": [{ "index": index, "function": { "arguments": piece } }] }), None)
        }));
    }
    events.push(chunk(&json!({}), Some(finish(message))));
    events.push("data: [DONE]\n\n".to_owned());
    events
}

fn response(items: &[Value], number: usize, status: &str) -> Value {
    json!({ "id": format!("resp_{number}"), "object": "response", "status": status, "model": "gpt-x", "output": items,
        "usage": { "input_tokens": 3, "output_tokens": 5, "total_tokens": 8 } })
}

fn responses(items: &[Value], number: usize) -> Vec<String> {
    let mut events = vec![event(
        "response.created",
        &json!({ "type": "response.created", "response": response(&[], number, "in_progress") }),
    )];
    for (index, item) in items.iter().enumerate() {
        let of = |kind: &str, more: Value| {
            let mut data = json!({ "type": kind, "output_index": index, "item_id": item["id"] });
            data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            event(kind, &data)
        };
        let mut begun = item.clone();
        begun["status"] = json!("in_progress");
        for empty in ["content", "summary"] {
            if item[empty].is_array() {
                begun[empty] = json!([]);
            }
        }
        if item["arguments"].is_string() {
            begun["arguments"] = json!("");
        }
        events.push(of("response.output_item.added", json!({ "item": begun })));
        match item["type"].as_str().unwrap() {
            "message" => {
                let part = json!({ "type": "output_text", "text": "", "annotations": [] });
                events.push(of("response.content_part.added", json!({ "content_index": 0, "part": part })));
                let text = item["content"][0]["text"].as_str().unwrap();
                events.extend(
                    pieces(text, 4)
                        .iter()
                        .map(|piece| of("response.output_text.delta", json!({ "content_index": 0, "delta": piece }))),
                );
                events.push(of("response.output_text.done", json!({ "content_index": 0, "text": text })));
                events
                    .push(of("response.content_part.done", json!({ "content_index": 0, "part": item["content"][0] })));
            }
            "function_call" => {
                let arguments = item["arguments"].as_str().unwrap();
                events.extend(
                    pieces(arguments, 3)
                        .iter()
                        .map(|piece| of("response.function_call_arguments.delta", json!({ "delta": piece }))),
                );
                events.push(of("response.function_call_arguments.done", json!({ "arguments": arguments })));
            }
            _ => {}
        }
        events.push(of("response.output_item.done", json!({ "item": item })));
    }
    events.push(event(
        "response.completed",
        &json!({ "type": "response.completed", "response": response(items, number, "completed") }),
    ));
    events
}

fn gemini(parts: &[Value], number: usize) -> Vec<String> {
    let chunk = |part: &Value, finish: Option<&str>| {
        let mut candidate = json!({ "index": 0, "content": { "role": "model", "parts": [part] } });
        if let Some(finish) = finish {
            candidate["finishReason"] = json!(finish);
        }
        let chunk = json!({ "candidates": [candidate], "responseId": format!("gem-{number}"), "modelVersion": "gemini-x",
            "usageMetadata": { "promptTokenCount": 3, "candidatesTokenCount": 5, "totalTokenCount": 8 } });
        format!("data: {chunk}\n\n")
    };
    let mut events = Vec::new();
    for part in parts {
        match part["text"].as_str() {
            Some(text) => events.extend(pieces(text, 3).iter().map(|piece| chunk(&json!({ "text": piece }), None))),
            None => events.push(chunk(part, None)),
        }
    }
    events.push(chunk(&json!({ "text": "" }), Some("STOP")));
    events
}

/// What a client hears of these events: a reader of its own, that knows each wire's few forms.
pub(crate) fn heard(wire: Wire, events: &[String]) -> Vec<String> {
    let mut blocks: Vec<(String, String, String)> = Vec::new();
    let open = |blocks: &mut Vec<_>, kind: &str, name: &Value| {
        blocks.push((kind.to_owned(), name.as_str().unwrap_or_default().to_owned(), String::new()));
    };
    let data = |event: &String| {
        let line = event.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        serde_json::from_str::<Value>(line).unwrap_or(Value::Null)
    };
    for data in events.iter().map(data) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match wire {
            Wire::Anthropic => match data["type"].as_str().unwrap() {
                "content_block_start" => {
                    let block = &data["content_block"];
                    open(&mut blocks, block["type"].as_str().unwrap(), &block["name"]);
                }
                "content_block_delta" => {
                    let delta = &data["delta"];
                    blocks.last_mut().unwrap().2 += &(text(&delta["text"]) + &text(&delta["partial_json"]));
                }
                _ => {}
            },
            Wire::Chat => {
                let delta = &data["choices"][0]["delta"];
                if delta["content"].is_string() {
                    if blocks.is_empty() {
                        open(&mut blocks, "text", &Value::Null);
                    }
                    blocks[0].2 += &text(&delta["content"]);
                }
                let function = &delta["tool_calls"][0]["function"];
                if function["name"].is_string() {
                    open(&mut blocks, "tool_use", &function["name"]);
                }
                if function.is_object() {
                    blocks.last_mut().unwrap().2 += &text(&function["arguments"]);
                }
            }
            Wire::Responses => match data["type"].as_str().unwrap() {
                "response.output_item.added" if data["item"]["type"] == "function_call" => {
                    open(&mut blocks, "tool_use", &data["item"]["name"]);
                }
                "response.content_part.added" => open(&mut blocks, "text", &Value::Null),
                "response.output_text.delta" | "response.function_call_arguments.delta" => {
                    blocks.last_mut().unwrap().2 += &text(&data["delta"]);
                }
                _ => {}
            },
            Wire::Gemini => {
                let part = &data["candidates"][0]["content"]["parts"][0];
                if let Some(call) = part.get("functionCall") {
                    open(&mut blocks, "tool_use", &call["name"]);
                    blocks.last_mut().unwrap().2 = call["args"].to_string();
                } else if blocks.last().is_none_or(|(kind, ..)| kind != "text") {
                    open(&mut blocks, "text", &Value::Null);
                    blocks.last_mut().unwrap().2 = text(&part["text"]);
                } else {
                    blocks.last_mut().unwrap().2 += &text(&part["text"]);
                }
            }
        }
    }
    let line = |(kind, name, said): &(String, String, String)| match kind.as_str() {
        "tool_use" => {
            let arguments = serde_json::from_str::<Value>(said).unwrap_or(Value::Null);
            Some(format!("call {} {arguments}", json!(name)))
        }
        _ => Some(format!("assistant: {}", said.trim_end())).filter(|_| !said.is_empty()),
    };
    blocks.iter().filter_map(line).collect()
}
