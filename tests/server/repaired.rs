//! Requests whose histories are repaired on their way, before a provider that judges them.

use std::io::{BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use conversation_store::provider::{Target, check};
use serde_json::{Value, json};

use crate::common::http::{Client, received};
use crate::common::running::Running;

/// A server before a provider that refuses what breaks a rule, and what the provider got.
fn before_a_judge(settings: &str) -> (Running, Receiver<String>, tempfile::TempDir) {
    serving(settings, |stream, say| {
        while let Some((_, body)) = received(stream) {
            let findings = check(Target::OPENAI_CHAT, &body).unwrap();
            let is_refused = body.contains("never taken") || findings.iter().any(|found| found.level.is_refused());
            say.send(body).unwrap();
            if is_refused {
                give(stream.get_mut(), 400, &json!({ "error": { "message": "no", "type": "invalid_request_error" } }));
            } else {
                let choice = json!({ "index": 0, "finish_reason": "stop",
                    "message": { "role": "assistant", "content": "It is noon." } });
                give(stream.get_mut(), 200, &json!({ "id": "c-1", "model": "m-1", "choices": [choice] }));
            }
        }
    })
}

/// A server before a provider that refuses what breaks a rule, and does not answer the rest. It gives what it got, and an empty
/// text for a request that it waits for no more.
fn before_a_silent_judge(settings: &str) -> (Running, Receiver<String>, tempfile::TempDir) {
    serving(settings, |stream, say| {
        while let Some((_, body)) = received(stream) {
            let is_refused = check(Target::OPENAI_CHAT, &body).unwrap().iter().any(|found| found.level.is_refused());
            say.send(body).unwrap();
            if is_refused {
                give(stream.get_mut(), 400, &json!({ "error": { "message": "no" } }));
            } else {
                // Nothing comes on this connection but its end.
                let _ = stream.read(&mut [0]);
                let _ = say.send(String::new());
                return;
            }
        }
    })
}

fn give(stream: &mut TcpStream, status: u16, answer: &Value) {
    let answer = answer.to_string();
    let head = format!("HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length:");
    write!(stream, "{head} {}\r\n\r\n{answer}", answer.len()).unwrap();
}

/// A server before a provider that does this with each connection.
fn serving(
    settings: &str,
    serve: fn(&mut BufReader<TcpStream>, &Sender<String>),
) -> (Running, Receiver<String>, tempfile::TempDir) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (say, got) = channel();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let say = say.clone();
            std::thread::spawn(move || serve(&mut BufReader::new(stream), &say));
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

/// What the provider got next.
fn next(got: &Receiver<String>) -> String {
    got.recv_timeout(Duration::from_secs(30)).unwrap()
}

/// How a request is sent that the provider does not answer, and how many requests come before it.
const SILENT: [(&str, &str, usize); 5] = [
    ("refused", "yes", 1),
    ("refused", "required", 1),
    ("always", "yes", 0),
    ("always", "required", 0),
    ("never", "required", 0),
];

/// A history that this setting sends to the end: one that is broken, if it is repaired.
fn history(repair: &str) -> Value {
    if repair == "never" { json!({ "messages": [{ "role": "user", "content": "hello" }] }) } else { broken() }
}

#[test]
fn a_stop_ends_a_call_before_its_answer_begins() {
    for (repair, record, before) in SILENT {
        let (running, got, _dir) = before_a_silent_judge(&format!("repair = \"{repair}\"\nrecord = \"{record}\""));
        let client = &running.client;
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| client.post("/proxy/up/v1/chat/completions", &history(repair)));
            for _ in 0..=before {
                assert_ne!(next(&got), "", "{repair} {record}");
            }
            let begun = Instant::now();
            let exchange = loop {
                assert!(begun.elapsed() < Duration::from_secs(30), "{repair} {record}: {}", running.log());
                let list = client.get("/api/v1/conversations").ok();
                let Some(conversation) = list["items"][0]["conversation"].as_str() else { continue };
                let stopped = client.post(&format!("/api/v1/conversations/{conversation}/stop"), &json!({})).ok();
                if let Some(exchange) = stopped["stopped"][0].as_str() {
                    break exchange.to_owned();
                }
            };
            // The provider hears it, and the client.
            assert_eq!(next(&got), "", "{repair} {record}");
            assert_eq!(asked.join().unwrap().code(502), "stopped", "{repair} {record}");
            let path = format!("/api/v1/exchanges/{exchange}");
            while client.get(&path).ok()["state"] == "started" {
                assert!(begun.elapsed() < Duration::from_secs(30), "{repair} {record}");
            }
            assert_eq!(client.get(&path).ok()["state"], "stopped", "{repair} {record}");
        });
    }
}

#[test]
fn a_client_that_leaves_ends_its_call_before_the_answer_begins() {
    for (repair, record, before) in SILENT {
        let settings = format!("repair = \"{repair}\"\nrecord = \"{record}\"\non_disconnect = \"cancel\"");
        let (running, got, _dir) = before_a_silent_judge(&settings);
        let body = history(repair).to_string();
        let length = body.len().to_string();
        let head = running.client.head("POST", "/proxy/up/v1/chat/completions", &[("content-length", &length)]);
        let mut stream = running.client.connect().unwrap();
        stream.write_all((head + &body).as_bytes()).unwrap();
        for _ in 0..=before {
            assert_ne!(next(&got), "", "{repair} {record}");
        }
        drop(stream);
        assert_eq!(next(&got), "", "{repair} {record}");
    }
}
