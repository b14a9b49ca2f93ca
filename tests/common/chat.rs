//! Prompts for OpenAI chat as lines that a person can read.

use conversation_store::model::Message;
use conversation_store::provider::{PromptOptions, Target, render};
use conversation_store::{Rule, Store};
use serde_json::Value;

/// The request's messages, a line each: role or kind, then what is said.
pub(crate) fn shape(request: &str) -> Vec<String> {
    let request: Value = serde_json::from_str(request).unwrap();
    let mut lines = Vec::new();
    for message in request["messages"].as_array().unwrap() {
        let role = message["role"].as_str().unwrap();
        let mut line = match role {
            "tool" => format!("result {}:", message["tool_call_id"].as_str().unwrap()),
            _ => role.to_owned(),
        };
        if let Some(reasoning) = message["reasoning_content"].as_str() {
            line += &format!(" (thinks {reasoning:?})");
        }
        match &message["content"] {
            Value::String(text) => line += &format!(" {text}"),
            Value::Array(parts) => parts.iter().for_each(|part| line += &format!(" [{}]", part_text(part))),
            _ => {}
        }
        lines.push(line);
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let function = &call["function"];
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let (id, name, arguments) = (&call["id"], &function["name"], &function["arguments"]);
            lines.push(format!("call {} {} {}", text(id), text(name), text(arguments)));
        }
    }
    lines
}

fn part_text(part: &Value) -> String {
    let kind = part["type"].as_str().unwrap();
    match kind {
        "text" => part["text"].as_str().unwrap().to_owned(),
        "image_url" => format!("image {}", part["image_url"]["url"].as_str().unwrap()),
        other => other.to_owned(),
    }
}

/// The shape of the messages' prompt, and what was done to them.
pub(crate) fn rendered(target: Target, messages: &[Message], options: &PromptOptions) -> (Vec<String>, Vec<Rule>) {
    let store = Store::open("memory:").unwrap();
    store.append("chat", messages).unwrap();
    let prompt = render(target, &store.load("chat").unwrap(), options).unwrap();
    (shape(prompt.request.get()), prompt.report.iter().map(|line| line.rule).collect())
}
