//! What is said in a request, in an answer, and in a stored conversation, in one form: texts of one role joined, calls, results.

use serde_json::Value;

use super::answers::Wire;

/// A line for each thing that is said. Thinking is left out, and what stands around the words.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Said {
    pub(super) lines: Vec<String>,
    /// Whose text the last line is.
    of: Option<&'static str>,
}

fn role(role: &str) -> &'static str {
    match role {
        "assistant" | "model" => "assistant",
        "system" | "developer" => "system",
        _ => "user",
    }
}

fn strings(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(|part| strings(&part["text"])).collect(),
        _ => String::new(),
    }
}

impl Said {
    fn text(&mut self, by: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        let by = role(by);
        match self.lines.last_mut() {
            Some(line) if self.of == Some(by) => line.push_str(text),
            _ => self.lines.push(format!("{by}: {text}")),
        }
        self.of = Some(by);
    }

    fn line(&mut self, line: String) {
        self.lines.push(line);
        self.of = None;
    }

    fn call(&mut self, name: &Value, arguments: &Value) {
        let arguments = match arguments {
            Value::String(text) => serde_json::from_str(text).unwrap_or(Value::Null),
            other => other.clone(),
        };
        self.line(format!("call {name} {arguments}"));
    }

    fn result(&mut self, output: &Value) {
        let text = match output {
            Value::Object(_) => output.to_string(),
            other => strings(other),
        };
        self.line(format!("result {text}"));
    }

    /// Without white space at the ends of the model's texts.
    fn trimmed(mut self) -> Vec<String> {
        for line in self.lines.iter_mut().filter(|line| line.starts_with("assistant: ")) {
            line.truncate(line.trim_end().len());
        }
        self.lines
    }
}

/// What is said by the list of a request.
pub(super) fn by_items(wire: Wire, items: &[Value]) -> Vec<String> {
    let mut said = Said::default();
    for item in items {
        let by = item["role"].as_str().unwrap_or("user");
        match wire {
            Wire::Anthropic => match &item["content"] {
                Value::String(text) => said.text(by, text),
                blocks => blocks.as_array().unwrap().iter().for_each(|block| anthropic(&mut said, by, block)),
            },
            Wire::Chat => match by {
                "tool" => said.result(&item["content"]),
                _ => chat(&mut said, by, item),
            },
            Wire::Responses => responses(&mut said, item),
            Wire::Gemini => {
                // Gemini CLI sends results again after it was started anew.
                let mut seen = Vec::new();
                for part in item["parts"].as_array().unwrap() {
                    let id = &part["functionResponse"]["id"];
                    if id.is_null() || !seen.contains(&id) {
                        gemini(&mut said, by, part);
                    }
                    seen.push(id);
                }
            }
        }
    }
    said.trimmed()
}

/// What is said by an answer, after what was said before it.
pub(super) fn by_answer(wire: Wire, answer: &[Value]) -> Vec<String> {
    let mut said = Said::default();
    for part in answer {
        match wire {
            Wire::Anthropic => anthropic(&mut said, "assistant", part),
            Wire::Chat => chat(&mut said, "assistant", part),
            Wire::Responses => responses(&mut said, part),
            Wire::Gemini => gemini(&mut said, "assistant", part),
        }
    }
    said.trimmed()
}

fn anthropic(said: &mut Said, by: &str, block: &Value) {
    match block["type"].as_str().unwrap() {
        "text" => said.text(by, block["text"].as_str().unwrap()),
        "tool_use" => said.call(&block["name"], &block["input"]),
        "tool_result" => said.result(&block["content"]),
        "thinking" | "redacted_thinking" => {}
        other => said.line(other.to_owned()),
    }
}

fn chat(said: &mut Said, by: &str, message: &Value) {
    said.text(by, &strings(&message["content"]));
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        said.call(&call["function"]["name"], &call["function"]["arguments"]);
    }
}

fn responses(said: &mut Said, item: &Value) {
    match item["type"].as_str().unwrap_or("message") {
        "message" => {
            let by = item["role"].as_str().unwrap_or("user");
            match &item["content"] {
                Value::String(text) => said.text(by, text),
                parts => parts.as_array().unwrap().iter().for_each(|part| match part["text"].as_str() {
                    Some(text) => said.text(by, text),
                    None => said.line("image".to_owned()),
                }),
            }
        }
        "function_call" => said.call(&item["name"], &item["arguments"]),
        "function_call_output" => said.result(&item["output"]),
        "reasoning" => {}
        other => said.line(other.to_owned()),
    }
}

fn gemini(said: &mut Said, by: &str, part: &Value) {
    if let Some(text) = part["text"].as_str() {
        said.text(by, text);
    } else if let Some(call) = part.get("functionCall") {
        said.call(&call["name"], &call["args"]);
    } else if let Some(response) = part.get("functionResponse") {
        said.result(&response["response"]);
    }
}

/// What is said by messages of the store.
pub(super) fn by_messages(messages: &[Value]) -> Vec<String> {
    let mut said = Said::default();
    for message in messages {
        let by = message["role"].as_str().unwrap();
        let chunks = message["chunks"].as_array().unwrap();
        for (at, chunk) in chunks.iter().enumerate() {
            if chunk["type"] == "tool_result" && chunks[..at].contains(chunk) {
                continue;
            }
            match chunk["type"].as_str().unwrap() {
                "text" | "refusal" => said.text(by, chunk["text"].as_str().unwrap()),
                "tool_call" => said.call(&chunk["name"], &chunk["arguments"]),
                "tool_result" => match &chunk["content"] {
                    Value::Array(parts) if parts.iter().any(|part| part["type"] == "json") => {
                        said.result(&parts[0]["json"]);
                    }
                    output => said.result(output),
                },
                "thinking" | "error" => {}
                "opaque" => {
                    let kind = chunk["kind"].as_str().unwrap();
                    said.line(kind.to_owned());
                }
                other => said.line(other.to_owned()),
            }
        }
    }
    said.trimmed()
}
