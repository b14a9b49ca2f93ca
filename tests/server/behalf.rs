//! A key that acts for the owner whom each request names.

use std::io::Write;

use serde_json::json;

use crate::common::http::{Answer, Client};
use crate::common::running::Running;
use crate::pages::until;

fn send(client: &Client, owner: Option<&str>, verb: &str, path: &str, body: &str) -> Answer {
    let headers: Vec<_> = owner.map(|owner| ("x-convo-owner", owner)).into_iter().collect();
    client.send(verb, path, &headers, body.as_bytes())
}

#[test]
fn a_backend_acts_for_the_owner_that_a_request_names() {
    let (server, clients) = Running::with_keys(&[
        ("backend", "read,append,delete,impersonate"),
        ("ada", "read,append,delete"),
        ("root", "read,append,delete,admin"),
    ]);
    let [backend, ada, root] = &clients[..] else { panic!() };
    let say = json!({ "role": "user", "chunks": [{ "type": "text", "text": "hello" }] }).to_string();
    let path = "/api/v1/conversations/chat";
    for owner in ["ada", "gr\u{e4}ce"] {
        send(backend, Some(owner), "POST", &format!("{path}/messages"), &say).ok();
        let listed = send(backend, Some(owner), "GET", "/v1/conversations", "").ok();
        assert_eq!(listed["data"].as_array().unwrap().len(), 1, "{owner}");
    }
    // What was made for her is hers, and what is the backend's own is neither's.
    assert_eq!(ada.get(path).ok()["owner"], "ada");
    send(backend, None, "POST", &format!("{path}/messages"), &say).ok();
    send(backend, None, "POST", &format!("{path}/messages"), &say).ok();
    assert_eq!(ada.get(path).ok()["messages"], 1);
    assert_eq!(send(backend, Some("ada"), "GET", path, "").ok()["messages"], 1);
    assert_eq!(send(backend, None, "GET", path, "").ok()["owner"], "backend");
    assert_eq!(send(backend, Some("nobody"), "GET", &format!("{path}/events"), "").status, 404);
    // Nobody else may, not even for themselves, whatever else the key may do.
    for client in [ada, root] {
        for owner in ["ada", "root", "grace", ""] {
            for (verb, path) in
                [("GET", path), ("GET", "/v1/conversations"), ("POST", "/v1/responses"), ("GET", "/proxy/x/y")]
            {
                assert_eq!(send(client, Some(owner), verb, path, "").status, 403, "{verb} {path} {owner}");
            }
        }
    }
    for owner in ["", " ", "convo:proxy", &"x".repeat(1025)] {
        send(backend, Some(owner), "GET", path, "").code(400);
    }
    // The audit: who acted for whom, and how it ended.
    let log = server.log_so_far();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("on behalf")).collect();
    assert!(
        lines
            .iter()
            .any(|line| line.contains("\"owner\":\"ada\"") && line.contains("/messages") && line.contains("200")),
        "{log}"
    );
    assert!(!log.lines().any(|line| line.contains("\"owner\"") && !line.contains("on behalf")));
}

/// A client that does not wait for its answer is in the audit, too.
#[test]
fn what_is_done_for_another_is_logged_whoever_waits_for_it() {
    let (server, clients) =
        Running::with_keys_on("sled:DIR/store?cache_mb=1", &[("backend", "read,append,impersonate")], &[]);
    let say = json!({ "role": "user", "chunks": [{ "type": "text", "text": "hello" }] }).to_string();
    let length = say.len().to_string();
    let headers = [("x-convo-owner", "ada"), ("content-type", "application/json"), ("content-length", &length)];
    let head = clients[0].head("POST", "/api/v1/conversations/chat/messages", &headers);
    until("a line of a client that has left", || {
        let mut stream = clients[0].connect().unwrap();
        stream.write_all(format!("{head}{say}").as_bytes()).unwrap();
        drop(stream);
        let is_of_one = |line: &str| {
            line.contains("on behalf") && line.contains("\"owner\":\"ada\"") && line.contains("\"status\":499")
        };
        server.log_so_far().lines().any(is_of_one)
    });
    let metrics = clients[0].get("/metrics");
    assert!(!metrics.text().contains("convo_requests_in_flight 2"), "{}", metrics.text());
}
