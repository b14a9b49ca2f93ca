//! The Model Context Protocol over HTTP: under the same keys, for the same owners.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::common::http::{Answer, Client};
use crate::common::running::{Running, create_key};

fn send(client: &Client, message: &Value) -> Answer {
    let headers = [("accept", "application/json, text/event-stream"), ("mcp-protocol-version", "2025-06-18")];
    client.send("POST", "/mcp", &headers, message.to_string().as_bytes())
}

fn ask(client: &Client, method: &str, params: &Value) -> Value {
    let answer = send(client, &json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let answer = answer.ok();
    assert_eq!(answer["id"], 7);
    answer
}

fn tools(client: &Client) -> BTreeSet<String> {
    let tools = ask(client, "tools/list", &json!({}));
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    tools["result"]["tools"].as_array().unwrap().iter().map(name).collect()
}

/// What a tool gives, or why it failed.
fn call(client: &Client, name: &str, arguments: &Value) -> Result<Value, String> {
    let answer = ask(client, "tools/call", &json!({ "name": name, "arguments": arguments }));
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
    match answer["result"]["isError"].as_bool() {
        Some(true) => Err(text),
        _ => Ok(serde_json::from_str(&text).unwrap()),
    }
}

fn say(client: &Client, key: &str, text: &str) -> String {
    let message = json!({ "role": "user", "chunks": [{ "type": "text", "text": text, "id": format!("msg_{text}") }] });
    let receipt = client.post(&format!("/api/v1/conversations/{key}/messages"), &message).ok();
    receipt["conversation"].as_str().unwrap().to_owned()
}

#[test]
fn what_is_asked_is_answered_without_a_session() {
    let server = Running::open();
    let client = &server.client;
    say(client, "a", "drinks");
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
    let begun = ask(client, "initialize", &hello);
    assert_eq!(
        (&begun["result"]["serverInfo"]["name"], &begun["result"]["protocolVersion"]),
        (&json!("convo"), &json!("2025-06-18"))
    );
    let told = send(client, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    assert_eq!((told.status, told.header("mcp-session-id")), (202, None));
    let found = call(client, "search_conversations", &json!({ "query": "drink" })).unwrap();
    assert_eq!(found["hits"].as_array().unwrap().len(), 2, "the title, and the text");
    assert!(found["notice"].as_str().unwrap().contains("untrusted"));
    assert_eq!(client.get("/mcp").status, 405);
    assert_eq!(client.delete("/mcp").status, 405);
    assert_eq!(client.send("POST", "/mcp", &[], b"{}").status, 406, "a client has to accept what may come");
    // A page of another site asks nothing.
    let foreign = client.send("POST", "/mcp", &[("origin", "https://evil.example")], b"{}");
    assert_eq!(foreign.code(403), "foreign_origin");
    let log = server.log_so_far();
    assert!(!log.contains("drinks") && !log.contains("rmcp"), "{log}");
}

#[test]
fn an_agent_sees_what_its_owner_sees_and_writes_if_the_server_and_the_key_allow_it() {
    let owners = [("ada", "read,append"), ("grace", "read,append"), ("ada", "read"), ("ada", "append")];
    let (_server, closed) = Running::with_keys(&owners[..1]);
    assert!(!tools(&closed[0]).contains("append_note"), "the setting is off by default");
    let dir = crate::common::tempdir().unwrap();
    let keys = dir.path().join("keys.json");
    let secrets = owners.map(|(owner, scopes)| create_key(&keys, owner, scopes));
    let args = ["--keys", keys.to_str().unwrap()];
    let server = Running::start_in_environment("memory:", &args, &[("CONVO_MCP__WRITE", "true")]);
    let clients = secrets.map(|secret| server.client.with_key(&secret));
    let [ada, grace, reader, blind] = &clients;
    assert_eq!((tools(ada).len(), tools(reader).len()), (8, 5));
    assert_eq!(send(blind, &json!({})).code(403), "missing_scope");
    assert_eq!(send(&server.client, &json!({})).code(401), "invalid_api_key");
    let id = say(ada, "a", "walrus");
    for conversation in [&*id, "a", &format!("conv_{}", id.replace('-', "")), &format!("convo://conversations/{id}")] {
        let named = json!({ "conversation": conversation, "message": 0 });
        assert!(call(reader, "read_around", &named).unwrap().to_string().contains("walrus"));
        let foreign = call(grace, "read_around", &named).unwrap_err();
        assert!(!foreign.contains("walrus"), "{foreign}");
        for (tool, arguments) in [
            ("read_messages", json!({ "conversation": conversation })),
            ("tag", json!({ "conversation": conversation, "add": ["x"] })),
            ("fork", json!({ "conversation": conversation })),
        ] {
            call(grace, tool, &arguments).unwrap_err();
        }
    }
    for (tool, arguments, list) in [
        ("search_conversations", json!({ "query": "walrus" }), "hits"),
        ("search_conversations", json!({ "query": "walrus", "conversation": id }), "hits"),
        ("list_conversations", json!({}), "conversations"),
        ("find_item", json!({ "item": "msg_walrus" }), "items"),
    ] {
        assert_ne!(call(ada, tool, &arguments).unwrap()[list], json!([]), "{tool}");
        assert_eq!(call(grace, tool, &arguments).unwrap()[list], json!([]), "{tool}");
    }
    let uri = format!("convo://conversations/{id}");
    assert!(ask(ada, "resources/read", &json!({ "uri": uri })).to_string().contains("walrus"));
    assert!(ask(grace, "resources/read", &json!({ "uri": uri })).get("error").is_some());
    assert_eq!(ask(grace, "resources/list", &json!({}))["result"]["resources"], json!([]));
    // An id of another owner's key is not taken.
    call(grace, "append_note", &json!({ "conversation": id, "text": "mine" })).unwrap_err();
    call(ada, "append_note", &json!({ "conversation": "a", "text": "noted" })).unwrap();
    assert_eq!(ada.get("/api/v1/conversations/a").ok()["messages"], 2);
}
