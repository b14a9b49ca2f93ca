//! What was redacted is in no answer of the server, on no page, and in no line of its log.

use serde_json::{Value, json};

use crate::common::http::{Answer, Client};
use crate::common::prompts::targets;
use crate::common::running::Running;
use crate::pages::PAGES;

const SECRET: &str = "zq7xk9vw";
const CHAT: &str = "/api/v1/conversations/chat";

/// What a client wrote: the title comes from the first text, and each message quotes it in another way.
fn write(client: &Client) {
    let said = json!({ "said": SECRET });
    let messages = json!([
        { "role": "user", "chunks": [
            { "type": "text", "text": SECRET, "annotations": [said], "x_said": SECRET },
            { "type": "image", "url": format!("https://x.invalid/{SECRET}") },
            { "type": "file", "name": SECRET, "data": SECRET },
        ] },
        { "role": "assistant", "usage": said, "finish_reason": format!("blocked: {SECRET}"), "x_said": SECRET, "chunks": [
            { "type": "thinking", "text": SECRET, "signature": SECRET },
            { "type": "tool_call", "id": "c1", "name": "ls", "arguments": said.to_string() },
            { "type": "opaque", "provider": "openai", "kind": "x_block", "json": said },
            { "type": "error", "message": SECRET, "code": SECRET },
            { "type": "x_kind", "said": SECRET },
        ] },
        { "role": "tool", "chunks": [{ "type": "tool_result", "tool_call_id": "c1", "content": SECRET }] },
    ]);
    let key = [("idempotency-key", "request")];
    client.send("POST", &format!("{CHAT}/messages"), &key, messages.to_string().as_bytes()).ok();
    let delta =
        |delta: Value| format!("data: {}\n\n", json!({ "choices": [{ "index": 0, "delta": delta }], "said": SECRET }));
    let answer =
        delta(json!({ "content": SECRET })) + &delta(json!({ "reasoning_content": SECRET })) + "data: [DONE]\n\n";
    let ingest = format!("{CHAT}/ingest?from=openai-chat");
    client.send("POST", &ingest, &[("idempotency-key", "answer")], answer.as_bytes()).ok();
    let id = client.get(CHAT).ok()["conversation"].as_str().unwrap().replace('-', "");
    let items = json!({ "items": [
        { "type": "function_call", "id": "fc_1", "call_id": "c2", "name": "ls", "arguments": said.to_string() },
        { "type": "function_call_output", "call_id": "c2", "output": SECRET },
        { "role": "assistant", "content": SECRET },
    ] });
    client.post(&format!("/v1/conversations/conv_{id}/items"), &items).ok();
}

/// Every answer about the conversation: each route that reads, each page, and what is refused.
fn answers(client: &Client) -> Vec<(String, Answer)> {
    let id = client.get(CHAT).ok()["conversation"].as_str().unwrap().to_owned();
    let openai = format!("/v1/conversations/conv_{}", id.replace('-', ""));
    let listed = client.get(&format!("{openai}/items?order=asc")).ok();
    let items: Vec<&str> = listed["data"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect();
    let messages = client.get(CHAT).ok()["messages"].as_u64().unwrap();
    let document = client.get("/openapi.json").ok();
    let mut paths = Vec::new();
    for (path, verbs) in document["paths"].as_object().unwrap() {
        if verbs.get("get").is_none() || path.ends_with("/events") {
            continue;
        }
        let path = if path.starts_with("/v1") {
            path.replace("/v1/conversations/{conversation}", &openai)
        } else {
            path.replace("{conversation}", &id)
        };
        let mut queries = vec![String::new()];
        if path.ends_with("/prompt") {
            queries = targets().iter().map(|target| format!("?for={target}")).collect();
        } else if path.ends_with("/find") {
            queries = vec!["?item=fc_1".to_owned()];
        }
        for query in queries {
            paths.extend(
                items
                    .iter()
                    .map(|item| path.replace("{item}", item) + &query)
                    .flat_map(|path| (0..messages).map(move |message| path.replace("{message}", &message.to_string()))),
            );
        }
    }
    paths.extend(PAGES.iter().map(|path| path.replace("ID", &id)));
    paths.push("/pages?q=redacted".to_owned());
    paths.sort();
    paths.dedup();
    let mut answers: Vec<_> = paths.into_iter().map(|path| (path.clone(), client.get(&path))).collect();
    let mut post = |path: String, body: &[u8]| {
        let answer = client.send("POST", &path, &[("idempotency-key", "request")], body);
        answers.push((path, answer));
    };
    post(format!("{CHAT}/prompt?for=anthropic"), b"{\"tools\":[]}");
    post(format!("{CHAT}/messages"), b"{\"role\":\"user\",\"chunks\":[{\"type\":\"text\",\"text\":\"other\"}]}");
    post(format!("{CHAT}/messages/0/redact?chunk=99"), b"");
    post(format!("{CHAT}/rewind"), b"{\"to\":99}");
    post(format!("{CHAT}/summaries"), b"{\"through\":0,\"text\":\"\"}");
    post("/api/v1/admin/verify".to_owned(), b"");
    answers
}

#[test]
fn no_route_shows_what_was_redacted() {
    let server = Running::durable(&[]);
    let client = &server.client;
    write(client);
    client.post(&format!("{CHAT}/fork"), &json!({ "key": "fork" })).ok();
    let shows = |answer: &Answer| String::from_utf8_lossy(&answer.body).contains(SECRET);
    let before = answers(client);
    let showing = before.iter().filter(|(_, answer)| shows(answer)).count();
    assert!(showing > 50, "{showing} of {} answers show it before", before.len());
    let messages = client.get(CHAT).ok()["messages"].as_u64().unwrap();
    for message in 0..messages {
        let redacted = client.post(&format!("{CHAT}/messages/{message}/redact"), &json!({})).ok();
        assert_eq!((&redacted["summaries"], &redacted["meta"]), (&json!([]), &json!([])));
    }
    for (path, answer) in answers(client) {
        assert!(!shows(&answer), "{path}: {}", String::from_utf8_lossy(&answer.body));
    }
    for path in [CHAT, "/api/v1/conversations/fork", "/pages/conversations/chat"] {
        let last = client.get(CHAT).ok()["last_seq"].as_u64().unwrap();
        let mut events = client.follow(&format!("{path}/events?since=0"), &[]);
        // A page gives its own, which end with no number.
        let count = if path.starts_with("/pages") { 1 } else { usize::try_from(last - messages).unwrap() };
        for event in events.take(count) {
            assert!(!event.data.to_string().contains(SECRET), "{path}: {event:?}");
        }
    }
    let log = server.log_so_far();
    assert!(!log.contains(SECRET), "{log}");
}
