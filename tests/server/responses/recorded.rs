//! Streams that providers sent, as streams of responses: what a client puts together of the events is what was said.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{are_whole, server, streamed};
use crate::common::http::Event;
use crate::recorded::Reply;

/// The items that a client puts together of the events, as OpenAI's SDKs do it.
pub(super) fn accumulated(events: &[Event]) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    for Event { name, data, .. } in events {
        let number = |field: &str| data[field].as_u64().map(|number| usize::try_from(number).unwrap());
        let Some(at) = number("output_index") else { continue };
        if name == "response.output_item.added" {
            assert_eq!(at, items.len(), "an item comes after those before it");
            items.push(data["item"].clone());
            continue;
        }
        let item = &mut items[at];
        if let Some(id) = data["item_id"].as_str() {
            assert_eq!(item["id"], id);
        }
        let grow =
            |text: &mut Value| *text = json!(text.as_str().unwrap().to_owned() + data["delta"].as_str().unwrap());
        let (part, summary) = (number("content_index"), number("summary_index"));
        match name.as_str() {
            "response.content_part.added" => {
                let parts = item["content"].as_array_mut().unwrap();
                assert_eq!(part.unwrap(), parts.len());
                parts.push(data["part"].clone());
            }
            "response.output_text.delta" => grow(&mut item["content"][part.unwrap()]["text"]),
            "response.refusal.delta" => grow(&mut item["content"][part.unwrap()]["refusal"]),
            "response.output_text.annotation.added" => {
                let annotations = item["content"][part.unwrap()]["annotations"].as_array_mut().unwrap();
                assert_eq!(number("annotation_index").unwrap(), annotations.len());
                annotations.push(data["annotation"].clone());
            }
            "response.output_text.done" => assert_eq!(item["content"][part.unwrap()]["text"], data["text"]),
            "response.refusal.done" => assert_eq!(item["content"][part.unwrap()]["refusal"], data["refusal"]),
            "response.content_part.done" => assert_eq!(item["content"][part.unwrap()], data["part"]),
            "response.reasoning_summary_part.added" => {
                let parts = item["summary"].as_array_mut().unwrap();
                assert_eq!(summary.unwrap(), parts.len());
                parts.push(data["part"].clone());
            }
            "response.reasoning_summary_text.delta" => grow(&mut item["summary"][summary.unwrap()]["text"]),
            "response.reasoning_summary_text.done" => {
                assert_eq!(item["summary"][summary.unwrap()]["text"], data["text"])
            }
            "response.reasoning_summary_part.done" => assert_eq!(item["summary"][summary.unwrap()], data["part"]),
            "response.function_call_arguments.delta" => grow(&mut item["arguments"]),
            "response.function_call_arguments.done" => assert_eq!(item["arguments"], data["arguments"]),
            "response.custom_tool_call_input.delta" => grow(&mut item["input"]),
            "response.custom_tool_call_input.done" => assert_eq!(item["input"], data["input"]),
            "response.output_item.done" => {
                // The end knows more, and nothing else.
                let built = item.as_object().unwrap().iter().filter(|(name, _)| *name != "status");
                built.for_each(|(name, value)| assert_eq!(data["item"][name], *value, "{name}"));
                *item = data["item"].clone();
            }
            _ => panic!("{name} has an item"),
        }
    }
    items
}

/// What was said, and what was called, in a form in which items and the lines of a transcript are the same.
fn said_in(items: &[Value]) -> Vec<Value> {
    let of = |item: &Value| -> Vec<Value> {
        match item["type"].as_str().unwrap() {
            "message" => {
                let part = |part: &Value| match part["type"].as_str().unwrap() {
                    "output_text" => Some(json!({ "text": part["text"] })),
                    "refusal" => Some(json!({ "refusal": part["refusal"] })),
                    _ => None,
                };
                item["content"].as_array().unwrap().iter().filter_map(part).collect()
            }
            "reasoning" => {
                let parts = item["summary"].as_array().unwrap().iter();
                let text: String = parts.map(|part| part["text"].as_str().unwrap().to_owned()).collect();
                vec![json!({ "thinking": text })]
            }
            "function_call" => vec![json!({ "call": item["name"], "arguments": item["arguments"] })],
            "custom_tool_call" => vec![json!({ "call": item["name"], "arguments": item["input"] })],
            _ => Vec::new(),
        }
    };
    items.iter().flat_map(of).collect()
}

fn is_whole_picture(chunk: &Value) -> bool {
    chunk["type"] == "image" && chunk["url"].as_str().unwrap().starts_with("data:")
}

/// Pictures and sounds that a client has of the items, and those of a transcript.
fn media_in(items: &[Value]) -> Vec<Value> {
    let pictures =
        items.iter().filter(|item| item["type"] == "image_generation_call").map(|item| item["result"].clone());
    let parts = items.iter().filter_map(|item| item["content"].as_array()).flatten();
    pictures.chain(parts.filter(|part| part["audio"].is_object()).map(|part| part["audio"]["data"].clone())).collect()
}

fn media_by(message: &Value) -> Vec<Value> {
    let chunks = || message["chunks"].as_array().unwrap().iter();
    let data = |chunk: &Value| json!(chunk["url"].as_str().unwrap().split_once(";base64,").unwrap().1);
    let pictures = chunks().filter(|chunk| is_whole_picture(chunk)).map(data);
    pictures.chain(chunks().filter(|chunk| chunk["type"] == "audio").map(|chunk| chunk["data"].clone())).collect()
}

/// The kinds of what is cited, and whether each is what its type has.
fn cited(events: &[Event]) -> Vec<String> {
    let cited = events.iter().filter(|event| event.name == "response.output_text.annotation.added");
    let kind = |event: &Event| {
        let annotation = &event.data["annotation"];
        let kind = annotation["type"].as_str().unwrap_or_default().to_owned();
        let wanted: &[&str] = match kind.as_str() {
            "url_citation" => &["url", "title", "start_index", "end_index"],
            "file_citation" => &["file_id", "filename", "index"],
            _ => &[],
        };
        wanted.iter().for_each(|name| assert!(!annotation[name].is_null(), "{name} of {annotation}"));
        kind
    };
    cited.map(kind).collect()
}

fn said_by(message: &Value) -> Vec<Value> {
    let chunk = |chunk: &Value| match chunk["type"].as_str().unwrap() {
        "text" => Some(json!({ "text": chunk["text"] })),
        "refusal" => Some(json!({ "refusal": chunk["text"] })),
        "thinking" => Some(json!({ "thinking": chunk.get("text").unwrap_or(&json!("")) })),
        "tool_call" => Some(json!({ "call": chunk["name"], "arguments": chunk["arguments"] })),
        "audio" => Some(json!({ "text": chunk.get("transcript").unwrap_or(&json!("")) })),
        "image" if !is_whole_picture(chunk) => Some(json!({ "text": chunk["url"] })),
        _ => None,
    };
    message["chunks"].as_array().unwrap().iter().filter_map(chunk).collect()
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|path| path.is_dir());
    folders.sort();
    folders
}

#[test]
fn what_providers_streamed_is_what_a_client_puts_together() {
    let mut count = 0;
    let mut kinds: BTreeMap<(String, String), usize> = BTreeMap::new();
    for wire in folders(Path::new("tests/fixtures/providers")) {
        let name = wire.file_name().unwrap().to_str().unwrap().replace('_', "-");
        let server = server("memory:", &name, &[]);
        for folder in folders(&wire) {
            let Ok(stream) = fs::read(folder.join("stream.txt")) else { continue };
            let expected: Value =
                serde_json::from_str(&fs::read_to_string(folder.join("expected.jsonl")).unwrap()).unwrap();
            server.answers(Reply::stream().then_bytes(&stream).end());
            // What is a custom tool the request says.
            let request: Value = serde_json::from_slice(&fs::read(folder.join("request.json")).unwrap()).unwrap();
            let tools = request["tools"].as_array().into_iter().flatten();
            let tools: Vec<_> = tools.filter(|tool| tool["type"] == "custom" && tool["name"].is_string()).collect();
            let events = streamed(server.client(), json!("go"), json!({ "tools": tools }));
            are_whole(&events);
            let items = accumulated(&events);
            assert_eq!(said_in(&items), said_by(&expected), "{}", folder.display());
            assert_eq!(media_in(&items), media_by(&expected), "{}", folder.display());
            // Nothing is of a type that only an input has.
            let parts = items.iter().filter_map(|item| item["content"].as_array()).flatten();
            let is_output = |part: &Value| ["output_text", "refusal"].contains(&part["type"].as_str().unwrap());
            assert!(parts.into_iter().all(is_output), "{}", folder.display());
            for kind in cited(&events) {
                *kinds.entry((name.clone(), kind)).or_insert(0) += 1;
            }
            let status = events.last().unwrap().data["response"]["status"].as_str().unwrap().to_owned();
            let wanted = match expected["finish_reason"].as_str() {
                None | Some("stop" | "tool_calls" | "refusal") => "completed",
                Some("error" | "interrupted") => "failed",
                Some(_) => "incomplete",
            };
            assert_eq!(status, wanted, "{}", folder.display());
            count += 1;
        }
    }
    assert!(count >= 64, "{count}");
    for wire in ["openai-chat", "openai-responses", "anthropic"] {
        assert!(kinds.contains_key(&(wire.to_owned(), "url_citation".to_owned())), "{kinds:?}");
    }
}
