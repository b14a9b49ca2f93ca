//! Limits on what one owner stores.

use serde_json::{Value, json};

use crate::common::http::{Answer, Client};
use crate::common::running::{Running, create_key};
use crate::streams::config;

fn say(client: &Client, key: &str, bytes: usize) -> Answer {
    let message = json!({ "role": "user", "chunks": [{ "type": "text", "text": "x".repeat(bytes) }] });
    client.post(&format!("/api/v1/conversations/{key}/messages"), &message)
}

/// Creates a conversation, the same one each time.
fn create(client: &Client) -> Value {
    let body = json!({ "items": [{ "role": "user", "content": "hello" }] }).to_string();
    client.send("POST", "/v1/conversations", &[("idempotency-key", "k")], body.as_bytes()).ok()
}

/// A durable server with limits, and a client of each of two owners.
fn limited(limits: &str) -> (Running, [Client; 2]) {
    let file = config(&format!("[limits]\n{limits}\n"));
    let mut server = Running::durable(&[]);
    server.kill();
    let secrets = ["ada", "grace"].map(|owner| create_key(&server.keys(), owner, "read,append,delete"));
    server.args = ["--config", &file, "--keys", server.keys().to_str().unwrap()].map(str::to_owned).to_vec();
    server.restart();
    let clients = secrets.map(|secret| server.client.with_key(&secret));
    (server, clients)
}

#[test]
fn an_owner_has_so_many_bytes_over_any_restart() {
    let (mut server, [mut ada, mut grace]) = limited("owner_bytes = 100000");
    let created = create(&ada);
    let mut taken = 0;
    while say(&ada, &format!("chat-{}", taken % 3), 1_000).status == 200 {
        taken += 1;
    }
    assert!((90..=99).contains(&taken), "{taken}");
    // To the last byte.
    while say(&ada, "chat-0", 1).status == 200 {}
    for round in 0..2 {
        assert_eq!(create(&ada), created, "a repetition is answered at the limit, too");
        let refused = say(&ada, "chat-0", 1_000);
        assert_eq!(refused.code(413), "limit_exceeded");
        let details = refused.json()["error"]["details"].clone();
        assert!(details["what"].as_str().unwrap().contains("limits.owner_bytes"), "{details}");
        assert_eq!(details["limit"], "100000 bytes");
        // Every way to write is limited.
        let item = json!({ "items": [{ "role": "user", "content": "x".repeat(5_000) }] });
        assert_eq!(ada.post("/v1/conversations", &item).code(413), "limit_exceeded");
        let listed = ada.get("/v1/conversations?limit=100").ok();
        assert_eq!(listed["data"].as_array().unwrap().len(), 4, "what is refused leaves no conversation: {listed}");
        let answer = json!({ "choices": [{ "index": 0, "delta": { "content": "x".repeat(5_000) } }] });
        let bytes = format!("data: {answer}\n\n");
        let ingested = ada.send("POST", "/api/v1/conversations/chat-1/ingest?from=openai-chat", &[], bytes.as_bytes());
        assert_eq!(ingested.code(413), "limit_exceeded");
        // Another owner has limits of its own.
        assert_eq!(say(&grace, "chat-0", 1_000).status, 200);
        if round == 0 {
            server.kill_and_restart();
            [ada.address, grace.address] = [server.client.address.clone(), server.client.address.clone()];
        }
    }
    ada.delete("/api/v1/conversations/chat-2").ok();
    let room = (0..).take_while(|_| say(&ada, "chat-0", 1_000).status == 200).count();
    assert!((taken / 3 - 4..=taken / 3 + 1).contains(&room), "{room} of {taken}");
}

#[test]
fn an_owner_has_so_many_conversations() {
    let (mut server, [mut ada, grace]) = limited("owner_conversations = 3");
    for key in ["a", "b"] {
        assert_eq!(say(&ada, key, 10).status, 200);
    }
    let created = create(&ada);
    for round in 0..2 {
        assert_eq!(create(&ada), created, "a repetition is answered at the limit, too");
        let refused = say(&ada, "d", 10);
        assert_eq!(refused.code(413), "limit_exceeded");
        assert!(refused.text().contains("limits.owner_conversations"), "{}", refused.text());
        assert_eq!(ada.post("/v1/conversations", &json!({})).code(413), "limit_exceeded");
        assert_eq!(ada.post("/api/v1/conversations/a/fork", &json!({})).code(413), "limit_exceeded");
        assert_eq!(say(&ada, "a", 10).status, 200);
        if round == 0 {
            assert_eq!(say(&grace, "a", 10).status, 200);
            server.kill_and_restart();
            ada.address = server.client.address.clone();
        }
    }
    ada.delete("/api/v1/conversations/b").ok();
    assert_eq!(say(&ada, "d", 10).status, 200);
}
