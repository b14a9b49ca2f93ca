//! The conversation of an agent: in every turn the user asks; the model thinks, calls two tools, and answers. Each of the
//! model's messages comes from the wire's own JSON, so that thinking, signatures and ids are what the wire gives back.

use conversation_store::model::{Chunk, Message, Role};
use conversation_store::provider::{Target, decode};
use conversation_store::{MessageState, StoredMessage};
use serde_json::{Value, json};

/// Messages in a turn.
pub(crate) const TURN: usize = 5;

/// How long the texts are, in words of five letters.
#[derive(Clone, Copy)]
pub(crate) struct Words {
    pub(crate) asked: usize,
    pub(crate) thought: usize,
    pub(crate) found: usize,
    pub(crate) answered: usize,
}

/// A conversation of so many turns.
pub(crate) fn conversation(target: Target, turns: usize, words: Words) -> Vec<StoredMessage> {
    let mut messages = Vec::with_capacity(turns * TURN);
    for turn in 0..turns {
        messages.push(Message::user(text(turn, "asks", words.asked)));
        messages.push(answer(target, turn, true, &text(turn, "thinks", words.thought), "I shall look."));
        for call in 0..2 {
            let result = Chunk::tool_result(id(turn, call), text(turn, "found", words.found));
            messages.push(Message::new(Role::Tool, [result]));
        }
        messages.push(answer(target, turn, false, "", &text(turn, "says", words.answered)));
    }
    let stored = messages.into_iter().enumerate().map(|(at, message)| {
        let (index, seq) = (at as u64, at as u64 + 1);
        let mut stored = StoredMessage::new(index, MessageState::Complete, message);
        (stored.first_seq, stored.last_seq) = (seq, seq);
        stored
    });
    stored.collect()
}

fn id(turn: usize, call: usize) -> String {
    format!("call_{turn}_{call}")
}

fn text(turn: usize, what: &str, words: usize) -> String {
    let begin = format!("{what} {turn}");
    (0..words).fold(begin, |text, word| text + [" lorem", " ipsum", " dolor", " magna"][(turn + word) % 4])
}

/// What the provider sends: thinking, a text, two calls; or only the text.
fn answer(target: Target, turn: usize, calls: bool, thought: &str, said: &str) -> Message {
    let ids: Vec<String> = (0..2).filter(|_| calls).map(|call| id(turn, call)).collect();
    let body = match target.wire().name {
        "openai-chat" => openai_chat(turn, &ids, thought, said),
        "openai-responses" => openai_responses(turn, &ids, thought, said),
        "anthropic" => anthropic(turn, &ids, thought, said),
        "gemini" => gemini(turn, &ids, thought, said),
        "bedrock-converse" => bedrock_converse(turn, &ids, thought, said),
        other => panic!("the wire {other} has no answers here"),
    };
    decode(target, body.to_string().as_bytes()).unwrap()
}

fn arguments(turn: usize) -> Value {
    json!({"path": format!("src/file_{turn}.rs")})
}

fn openai_chat(turn: usize, ids: &[String], thought: &str, said: &str) -> Value {
    let calls = ids.iter().map(|id| {
        let function = json!({"name": "read_file", "arguments": arguments(turn).to_string()});
        json!({"id": id, "type": "function", "function": function})
    });
    let mut message = json!({"role": "assistant", "content": said});
    if !ids.is_empty() {
        message["reasoning_content"] = thought.into();
        message["tool_calls"] = calls.collect();
    }
    let finish_reason = if ids.is_empty() { "stop" } else { "tool_calls" };
    json!({"id": format!("chatcmpl-{turn}"), "object": "chat.completion", "model": "gpt-5",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}]})
}

fn openai_responses(turn: usize, ids: &[String], thought: &str, said: &str) -> Value {
    let mut output = Vec::new();
    if !ids.is_empty() {
        output.push(json!({"id": format!("rs_{turn}"), "type": "reasoning", "encrypted_content": "gAAAAABo",
            "summary": [{"type": "summary_text", "text": thought}]}));
    }
    let part = json!({"type": "output_text", "text": said, "annotations": []});
    output.push(json!({"id": format!("msg_{turn}_{}", ids.len()), "type": "message", "role": "assistant",
        "status": "completed", "content": [part]}));
    output.extend(ids.iter().map(|id| {
        json!({"id": format!("fc_{id}"), "type": "function_call", "call_id": id, "name": "read_file",
            "arguments": arguments(turn).to_string(), "status": "completed"})
    }));
    json!({"id": format!("resp_{turn}"), "object": "response", "model": "gpt-5", "status": "completed", "output": output})
}

fn anthropic(turn: usize, ids: &[String], thought: &str, said: &str) -> Value {
    let mut content = Vec::new();
    if !ids.is_empty() {
        content.push(json!({"type": "thinking", "thinking": thought, "signature": "EqoBCkgIBRABGAIi"}));
    }
    content.push(json!({"type": "text", "text": said}));
    content.extend(
        ids.iter().map(|id| json!({"type": "tool_use", "id": id, "name": "read_file", "input": arguments(turn)})),
    );
    let stop_reason = if ids.is_empty() { "end_turn" } else { "tool_use" };
    json!({"id": format!("msg_{turn}"), "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": content, "stop_reason": stop_reason})
}

fn gemini(turn: usize, ids: &[String], thought: &str, said: &str) -> Value {
    let mut parts = Vec::new();
    if !ids.is_empty() {
        parts.push(json!({"text": thought, "thought": true}));
    }
    parts.push(json!({"text": said}));
    parts.extend(ids.iter().enumerate().map(|(at, id)| {
        let call = json!({"functionCall": {"id": id, "name": "read_file", "args": arguments(turn)}});
        match (at, call) {
            (0, Value::Object(mut part)) => {
                part.insert("thoughtSignature".to_owned(), "EpwCCpkCAXLI2nw=".into());
                Value::Object(part)
            }
            (_, call) => call,
        }
    }));
    json!({"responseId": format!("r{turn}"), "modelVersion": "gemini-3-pro",
        "candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]})
}

fn bedrock_converse(turn: usize, ids: &[String], thought: &str, said: &str) -> Value {
    let mut content = Vec::new();
    if !ids.is_empty() {
        content
            .push(json!({"reasoningContent": {"reasoningText": {"text": thought, "signature": "EqoBCkgIBRABGAIi"}}}));
    }
    content.push(json!({"text": said}));
    let call = |id| json!({"toolUse": {"toolUseId": id, "name": "read_file", "input": arguments(turn)}});
    content.extend(ids.iter().map(call));
    let reason = if ids.is_empty() { "end_turn" } else { "tool_use" };
    json!({"output": {"message": {"role": "assistant", "content": content}}, "stopReason": reason})
}
