//! What is searched over HTTP.

use serde_json::{Value, json};

use crate::common::http::Client;
use crate::common::running::Running;

fn say(client: &Client, key: &str, role: &str, chunk: &Value) {
    client.post(&format!("/api/v1/conversations/{key}/messages"), &json!({ "role": role, "chunks": [chunk] })).ok();
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// The key and the message index of each hit.
fn places(client: &Client, query: &str) -> Vec<(String, Option<u64>)> {
    let found = client.get(&format!("/api/v1/search?{query}")).ok();
    let place = |hit: &Value| (hit["key"].as_str().unwrap().to_owned(), hit["message_index"].as_u64());
    let mut places: Vec<_> = found["hits"].as_array().unwrap().iter().map(place).collect();
    places.sort();
    places
}

fn at(key: &str, message: u64) -> (String, Option<u64>) {
    (key.to_owned(), Some(message))
}

#[test]
fn words_are_found_by_stem_part_tag_time_and_role() {
    let server = Running::open();
    let client = &server.client;
    say(client, "a", "user", &text("Who drinks <tea>, and who drank it?"));
    let call = json!({ "type": "tool_call", "id": "t", "name": "brew", "arguments": r#"{"what":"teas"}"# });
    say(client, "a", "assistant", &call);
    say(client, "a", "tool", &json!({ "type": "tool_result", "tool_call_id": "t", "content": "a pot of tea" }));
    say(client, "b", "assistant", &text("No tea"));
    client.put("/api/v1/conversations/a/title", &json!({ "title": "-" })).ok();
    client.put("/api/v1/conversations/b/title", &json!({ "title": "-" })).ok();
    client.post("/api/v1/conversations/b/tags", &json!({ "add": ["dry"] })).ok();
    assert_eq!(places(client, "q=drink+tea"), [at("a", 0)]);
    assert_eq!(places(client, "q=tea"), [at("a", 0), at("b", 0)]);
    assert_eq!(places(client, "q=tea&in=texts,calls,results"), [at("a", 0), at("a", 1), at("a", 2), at("b", 0)]);
    assert_eq!(places(client, "q=tea&in=calls&in=results"), [at("a", 1), at("a", 2)]);
    assert_eq!(places(client, "q=tea&tag=dry"), [at("b", 0)]);
    assert_eq!(places(client, "q=tea&role=assistant"), [at("b", 0)]);
    assert_eq!(places(client, "q=tea&conversation=a"), [at("a", 0)]);
    assert_eq!(places(client, "q=tea&until=2020-01-01"), []);
    assert_eq!(places(client, "q=tea&since=2020-01-01T00:00:00Z").len(), 2);
    let hit = client.get("/api/v1/search?q=drink").ok()["hits"][0].clone();
    let pieces =
        json!([{ "text": "Who " }, { "text": "drinks", "match": true }, { "text": " <tea>, and who drank it?" }]);
    assert_eq!((&hit["pieces"], &hit["found_in"]), (&pieces, &json!("text")));
    let first = client.get("/api/v1/search?q=tea&limit=1").ok();
    let second = client.get(&format!("/api/v1/search?q=tea&limit=1&after={}", first["next"].as_str().unwrap())).ok();
    assert_ne!(first["hits"][0]["conversation"], second["hits"][0]["conversation"]);
    assert_eq!(second.get("next"), None);
    for query in [
        "",
        "q=",
        "q=%22",
        "q=tea&in=pictures",
        "q=tea&role=bot",
        "q=tea&limit=101",
        "q=tea&after=x",
        "q=tea&since=now",
        "p=tea",
    ] {
        client.get(&format!("/api/v1/search?{query}")).code(400);
    }
    assert_eq!(client.get(&format!("/api/v1/search?q={}", "a+".repeat(40))).code(413), "limit_exceeded");
}

#[test]
fn each_owner_finds_what_is_theirs() {
    let (_server, clients) = Running::with_keys(&[("ada", "read,append"), ("grace", "read,append"), ("ada", "append")]);
    let [ada, grace, blind] = &clients[..] else { panic!() };
    say(ada, "a", "user", &text("the winter cache"));
    say(grace, "a", "user", &text("the summer cache"));
    assert_eq!(ada.get("/api/v1/search?q=caches").ok()["hits"][0]["excerpt"], "the winter cache");
    assert_eq!(grace.get("/api/v1/search?q=winter").ok()["hits"], json!([]));
    let id = ada.get("/api/v1/conversations/a").ok()["conversation"].as_str().unwrap().to_owned();
    assert_eq!(grace.get(&format!("/api/v1/search?q=cache&conversation={id}")).ok()["hits"], json!([]));
    assert_eq!(blind.get("/api/v1/search?q=cache").code(403), "missing_scope");
}
