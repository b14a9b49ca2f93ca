//! Requests whose histories are repaired on their way, before a provider that judges them.

use std::io::{BufReader, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use conversation_store::provider::{Target, check};
use serde_json::{Value, json};

use crate::common::http::{Client, received};
use crate::common::running::Running;

/// A server before a provider that refuses what breaks a rule, and what the provider got.
fn before_a_judge(settings: &str) -> (Running, Receiver<String>, tempfile::TempDir) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (say, got) = channel();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let say = say.clone();
            std::thread::spawn(move || {
                let mut stream = BufReader::new(stream);
                while let Some((_, body)) = received(&mut stream) {
                    let findings = check(Target::OPENAI_CHAT, &body).unwrap();
                    let is_refused =
                        body.contains("never taken") || findings.iter().any(|found| found.level.is_refused());
                    let (status, answer) = if is_refused {
                        (400, json!({ "error": { "message": "no", "type": "invalid_request_error" } }))
                    } else {
                        let message = json!({ "role": "assistant", "content": "It is noon." });
                        (
                            200,
                            json!({ "id": "c-1", "model": "m-1", "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }] }),
                        )
                    };
                    say.send(body).unwrap();
                    let answer = answer.to_string();
                    let head = format!("HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length:");
                    write!(stream.get_mut(), "{head} {}\r\n\r\n{answer}", answer.len()).unwrap();
                }
            });
        }
    });
    let dir = crate::common::tempdir().unwrap();
    let file = dir.path().join("convo.toml");
    std::fs::write(&file, format!("[[upstream]]\nname = \"up\"\nurl = \"{url}\"\n{settings}")).unwrap();
    (Running::start("memory:", &["--config", file.to_str().unwrap()]), got, dir)
}

/// A history with a call that has no result.
fn broken() -> Value {
    let call = json!({ "id": "call_1", "type": "function", "function": { "name": "clock", "arguments": "{}" } });
    json!({ "model": "m-1", "messages": [
        { "role": "user", "content": "What time is it?" },
        { "role": "assistant", "content": null, "tool_calls": [call] },
        { "role": "user", "content": "Well?" },
    ] })
}

/// Asks: the status, how many lines the report has, and what the provider got.
fn ask(client: &Client, got: &Receiver<String>, request: &Value) -> (u16, Option<usize>, Vec<Value>) {
    let answer = client.post("/proxy/up/v1/chat/completions", request);
    let lines = answer.header("x-convo-report").map(|lines| lines.parse().unwrap());
    (answer.status, lines, got.try_iter().map(|body| serde_json::from_str(&body).unwrap()).collect())
}

#[test]
fn a_history_is_repaired_when_the_settings_ask_for_it_and_once() {
    let well = json!({ "model": "m-1", "messages": [{ "role": "user", "content": "hello" }] });
    let refused = json!({ "model": "m-1", "messages": [{ "role": "user", "content": "never taken" }] });
    let mut hopeless = broken();
    hopeless["messages"][0]["content"] = json!("never taken");
    for (repair, record, calls) in [
        ("never", "yes", 1),
        ("refused", "yes", 2),
        ("always", "yes", 1),
        ("refused", "no", 2),
        ("always", "no", 1),
        ("always", "required", 1),
    ] {
        let (running, got, _dir) = before_a_judge(&format!("repair = \"{repair}\"\nrecord = \"{record}\""));
        let place = format!("{repair} {record}");
        // What breaks no rule passes as it is, refused or not.
        assert_eq!(ask(&running.client, &got, &well), (200, None, vec![well.clone()]), "{place}");
        assert_eq!(ask(&running.client, &got, &refused), (400, None, vec![refused.clone()]), "{place}");
        let (status, lines, seen) = ask(&running.client, &got, &broken());
        assert_eq!(seen.len(), calls, "{place}");
        if repair == "never" {
            assert_eq!((status, lines, &seen[0]), (400, None, &broken()));
            continue;
        }
        assert_eq!((status, lines), (200, Some(1)), "{place}");
        assert_eq!(seen[0] == broken(), repair == "refused", "{place}");
        let sent = seen.last().unwrap();
        assert_eq!(
            (&sent["messages"][2]["role"], &sent["messages"][2]["tool_call_id"]),
            (&json!("tool"), &json!("call_1"))
        );
        // It is sent once, also if it is refused still.
        let (status, _, seen) = ask(&running.client, &got, &hopeless);
        assert_eq!((status, seen.len()), (400, calls), "{place}");
    }
}

#[test]
fn what_the_client_said_is_stored_with_the_report() {
    for repair in ["refused", "always"] {
        let (running, got, _dir) = before_a_judge(&format!("repair = \"{repair}\""));
        let client = &running.client;
        let answer = client.post("/proxy/up/v1/chat/completions", &broken());
        assert_eq!(answer.status, 200);
        let exchange = answer.header("x-convo-exchange").unwrap().to_owned();
        let begun = std::time::Instant::now();
        let ended = loop {
            let found = client.get(&format!("/api/v1/exchanges/{exchange}")).ok();
            if found["state"] != "started" {
                break found;
            }
            assert!(begun.elapsed() < std::time::Duration::from_secs(60));
        };
        assert_eq!(ended["state"], "complete");
        let path = format!("/api/v1/conversations/{}/messages", ended["conversation"].as_str().unwrap());
        let messages = client.get(&path).ok()["messages"].as_array().unwrap().clone();
        let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["user", "assistant", "user", "assistant"], "{repair}");
        let report = messages[3]["convo_end"]["repaired"].as_array().unwrap();
        assert!(report.len() == 1 && report[0].as_str().unwrap().contains("tool result added"), "{report:?}");
        // The next turn goes on in the same conversation.
        let mut next = broken();
        let more =
            [json!({ "role": "assistant", "content": "It is noon." }), json!({ "role": "user", "content": "Thanks" })];
        next["messages"].as_array_mut().unwrap().extend(more);
        client.post("/proxy/up/v1/chat/completions", &next).ok();
        assert_eq!(client.get("/api/v1/conversations").ok()["items"].as_array().unwrap().len(), 1);
        assert_eq!(got.try_iter().count(), if repair == "refused" { 4 } else { 2 });
    }
}
