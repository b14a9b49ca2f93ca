//! The OpenAI Conversations API: its calls, errors, pages, repetitions.

use serde_json::{Value, json};

use crate::common::http::Client;
use crate::common::running::Running;

/// A new conversation: its path.
pub(crate) fn conversation(client: &Client) -> String {
    let made = client.post("/v1/conversations", &json!({})).ok();
    format!("/v1/conversations/{}", made["id"].as_str().unwrap())
}

/// Appends user messages: their ids.
fn say(client: &Client, path: &str, texts: &[&str]) -> Vec<String> {
    let items: Vec<Value> = texts.iter().map(|text| json!({ "role": "user", "content": text })).collect();
    ids(&client.post(&format!("{path}/items"), &json!({ "items": items })).ok())
}

fn ids(list: &Value) -> Vec<String> {
    list["data"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

fn texts(list: &Value) -> Vec<String> {
    let text = |item: &Value| item["content"][0]["text"].as_str().unwrap_or_default().to_owned();
    list["data"].as_array().unwrap().iter().map(text).collect()
}

#[test]
fn the_calls() {
    let server = Running::open();
    let client = &server.client;
    let items = json!([{ "role": "user", "content": "hello" }]);
    let made = client.post("/v1/conversations", &json!({ "metadata": { "b": "1", "a": "2" }, "items": items })).ok();
    assert_eq!(
        (made["object"].as_str(), made["metadata"].to_string()),
        (Some("conversation"), r#"{"a":"2","b":"1"}"#.to_owned())
    );
    assert!(made["created_at"].is_i64() && made.as_object().unwrap().len() == 4, "{made}");
    let id = made["id"].as_str().unwrap();
    assert!(id.starts_with("conv_"));
    let path = format!("/v1/conversations/{id}");
    assert_eq!(client.get(&path).ok(), made);

    let updated = client.post(&path, &json!({ "metadata": { "c": "3" } })).ok();
    assert_eq!(updated["metadata"], json!({ "c": "3" }), "replaced, not merged");
    assert_eq!(client.post(&path, &json!({ "metadata": null })).ok()["metadata"], json!({}));

    let added = client
        .post(
            &format!("{path}/items"),
            &json!({ "items": [
        { "type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{\"a\": 1}" },
        { "type": "function_call_output", "call_id": "call_1", "output": "42" },
    ] }),
        )
        .ok();
    assert_eq!((added["object"].as_str(), added["has_more"].as_bool()), (Some("list"), Some(false)));
    let added_ids = ids(&added);
    assert!(added_ids[0].starts_with("fc_") && added_ids[1].starts_with("fco_"), "{added_ids:?}");
    assert_eq!((&added["first_id"], &added["last_id"]), (&json!(added_ids[0]), &json!(added_ids[1])));
    assert_eq!(added["data"][0]["status"], "completed");

    let listed = client.get(&format!("{path}/items?order=asc")).ok();
    assert_eq!(texts(&listed)[0], "hello");
    assert_eq!(listed["data"].as_array().unwrap()[1..], added["data"].as_array().unwrap()[..]);
    let item = format!("{path}/items/{}", added_ids[0]);
    assert_eq!(client.get(&format!("{item}?include%5B%5D=reasoning.encrypted_content")).ok(), added["data"][0]);

    assert_eq!(client.delete(&item).ok()["object"], "conversation", "the conversation, not the item");
    assert_eq!(client.get(&item).code(404), "");
    assert_eq!(client.delete(&item).code(404), "");
    assert_eq!(ids(&client.get(&format!("{path}/items?order=asc")).ok()).len(), 2);

    let deleted = client.delete(&path).ok();
    assert_eq!(deleted, json!({ "id": id, "object": "conversation.deleted", "deleted": true }));
    for gone in [client.get(&path), client.delete(&path), client.get(&format!("{path}/items")), client.get(&item)] {
        assert_eq!(gone.code(404), "");
    }
    // No body at all is a conversation without anything.
    assert_eq!(client.send("POST", "/v1/conversations", &[], b"").ok()["metadata"], json!({}));
}

#[test]
fn pages() {
    let server = Running::open();
    let (client, path) = (&server.client, conversation(&server.client));
    assert_eq!(
        client.get(&format!("{path}/items")).ok(),
        json!({ "object": "list", "data": [], "first_id": null, "last_id": null, "has_more": false })
    );
    let all: Vec<String> = (0..500).map(|at| at.to_string()).collect();
    for texts in all.chunks(20) {
        say(client, &path, &texts.iter().map(String::as_str).collect::<Vec<_>>());
    }
    for (order, limit) in [("asc", 100), ("desc", 100), ("asc", 7), ("desc", 7), ("asc", 1), ("desc", 63)] {
        let (mut seen, mut after, mut pages) = (Vec::new(), String::new(), 0);
        loop {
            let page = client.get(&format!("{path}/items?order={order}&limit={limit}{after}")).ok();
            let page_ids = ids(&page);
            assert_eq!(
                (page["first_id"].as_str(), page["last_id"].as_str()),
                (page_ids.first().map(String::as_str), page_ids.last().map(String::as_str))
            );
            seen.extend(texts(&page));
            pages += 1;
            assert_eq!(page["has_more"], seen.len() < 500, "{order} {limit}: exact at the edge");
            if page["has_more"] == false || limit == 1 && pages == 5 {
                break;
            }
            after = format!("&after={}", page["last_id"].as_str().unwrap());
        }
        let mut expected = all.clone();
        if order == "desc" {
            expected.reverse();
        }
        assert_eq!(seen, expected[..seen.len()], "{order} {limit}");
        assert!(limit == 1 || seen.len() == 500);
    }
    // Twenty, the newest first, unless it is said otherwise.
    assert_eq!(
        texts(&client.get(&format!("{path}/items")).ok()),
        all.iter().rev().take(20).cloned().collect::<Vec<_>>()
    );
}

#[test]
fn after_a_removed_item() {
    let server = Running::open();
    let (client, path) = (&server.client, conversation(&server.client));
    let added = say(client, &path, &["a", "b", "c", "d"]);
    client.delete(&format!("{path}/items/{}", added[1])).ok();
    let page = |order: &str, after: &str| texts(&client.get(&format!("{path}/items?order={order}&after={after}")).ok());
    assert_eq!(
        (page("asc", &added[1]), page("desc", &added[1])),
        (vec!["c".to_owned(), "d".to_owned()], vec!["a".to_owned()])
    );
    let refused = client.get(&format!("{path}/items?after=msg_none"));
    assert_eq!(refused.of(404)["error"]["param"], "after");
}

#[test]
fn errors() {
    let server = Running::open();
    let (client, path) = (&server.client, conversation(&server.client));
    let items = format!("{path}/items");
    let many: Vec<Value> = (0..21).map(|_| json!({ "role": "user", "content": "x" })).collect();
    let table = [
        (json!({ "items": many }), "items", "array_above_max_length"),
        (json!({}), "items", "missing_required_parameter"),
        (json!({ "items": "x" }), "items", "invalid_type"),
        (json!({ "items": [1] }), "items[0]", "invalid_type"),
        (json!({ "items": [{}] }), "items[0].type", "missing_required_parameter"),
        (
            json!({ "items": [{ "role": "user", "content": "x" }, { "role": "bot", "content": "x" }] }),
            "items[1].role",
            "invalid_value",
        ),
        (json!({ "items": [{ "role": "user" }] }), "items[0].content", "missing_required_parameter"),
        (json!({ "items": [{ "role": "user", "content": 5 }] }), "items[0].content", "invalid_type"),
        (json!({ "items": [{ "role": "user", "content": ["x"] }] }), "items[0].content[0]", "invalid_type"),
        (
            json!({ "items": [{ "type": "function_call", "name": "f", "arguments": "" }] }),
            "items[0].call_id",
            "missing_required_parameter",
        ),
        (
            json!({ "items": [{ "type": "function_call", "call_id": "c", "name": "f", "arguments": {} }] }),
            "items[0].arguments",
            "invalid_type",
        ),
        (
            json!({ "items": [{ "type": "function_call_output", "call_id": "c".repeat(65), "output": "" }] }),
            "items[0].call_id",
            "string_above_max_length",
        ),
        (json!({ "items": [{ "type": "item_reference", "id": "msg_1" }] }), "items[0].type", "invalid_value"),
        (
            json!({ "items": [{ "type": "message", "id": 5, "role": "user", "content": "x" }] }),
            "items[0].id",
            "invalid_type",
        ),
    ];
    for (body, param, code) in table {
        let answer = client.post(&items, &body).of(400);
        assert_eq!(
            (answer["error"]["param"].as_str(), answer["error"]["code"].as_str()),
            (Some(param), Some(code)),
            "{body}"
        );
        assert_eq!(answer["error"]["type"], "invalid_request_error");
    }
    assert_eq!(client.get(&items).ok()["data"], json!([]), "nothing of a refused request is stored");
    for body in ["{", "[]", "null", "5", "{\"items\": [\"\\ud800\"]}", "\u{0}", &"[".repeat(200)] {
        client.send("POST", &items, &[], body.as_bytes()).code(400);
    }
    client.send("POST", &items, &[], b"\xff").code(400);
    for (query, code) in [
        ("limit=0", "integer_below_min_value"),
        ("limit=101", "integer_above_max_value"),
        ("limit=x", "invalid_type"),
        ("order=up", "invalid_value"),
    ] {
        assert_eq!(client.get(&format!("{items}?{query}")).code(400), code);
    }
    for absent in ["conv_x", "conv_00000000000000000000000000000000", "x", "conv_%00"] {
        let answer = client.get(&format!("/v1/conversations/{absent}"));
        assert_eq!(answer.code(404), "");
        assert!(answer.header("x-request-id").is_some());
    }
    client.get("/v1/nothing").code(404);
    client.put("/v1/conversations", &json!({})).code(405);
}

#[test]
fn metadata_has_limits() {
    let server = Running::open();
    let client = &server.client;
    let make = |metadata: Value| client.post("/v1/conversations", &json!({ "metadata": metadata }));
    let pairs = |count: usize| (0..count).map(|at| (at.to_string(), json!(""))).collect::<serde_json::Map<_, _>>();
    // Characters, not bytes.
    make(json!({ "é".repeat(64): "é".repeat(512) })).ok();
    make(Value::Object(pairs(16))).ok();
    make(Value::Object(pairs(17))).code(400);
    make(json!({ "k".repeat(65): "" })).code(400);
    make(json!({ "k": "v".repeat(513) })).code(400);
    make(json!({ "k": 5 })).code(400);
    make(json!([])).code(400);
    let path = conversation(client);
    client.post(&path, &json!({})).code(400);
}

/// SDKs repeat a request whose answer was lost, and say only that they do.
#[test]
fn a_repeated_request_changes_nothing() {
    let mut server = Running::durable(&[]);
    let path = conversation(&server.client);
    let items = format!("{path}/items");
    let body = json!({ "items": [{ "role": "user", "content": "yes" }, { "role": "user", "content": [{ "type": "input_text", "text": "a" }, { "type": "input_text", "text": "b" }] }] }).to_string();
    let send = |client: &Client, count: &str| {
        client.send("POST", &items, &[("x-stainless-retry-count", count)], body.as_bytes()).ok()
    };
    let first = send(&server.client, "0");
    assert_eq!(send(&server.client, "1"), first);
    assert_eq!(send(&server.client, "2"), first);
    server.kill_and_restart();
    assert_eq!(send(&server.client, "1"), first, "also after the server went down");
    // The same said again is said again.
    let second = send(&server.client, "0");
    assert_ne!(second, first);
    say(&server.client, &path, &["between"]);
    assert_ne!(send(&server.client, "1"), second, "not at the end any more: it is new");
    assert_eq!(ids(&server.client.get(&format!("{items}?limit=100")).ok()).len(), 7);
    // Also if it is more than a page.
    let large = json!({ "role": "user", "content": "x".repeat(9 * 1024 * 1024) });
    let body = json!({ "items": [large, large, large] }).to_string();
    let send = |count| {
        let headers = [("x-stainless-retry-count", count)];
        ids(&server.client.send("POST", &items, &headers, body.as_bytes()).ok())
    };
    let first = send("0");
    assert_eq!(send("1"), first);
}

#[test]
fn an_idempotency_key_changes_nothing_twice() {
    let mut server = Running::durable(&[]);
    let path = conversation(&server.client);
    let items = format!("{path}/items");
    let send = |client: &Client, text: &str, id: Option<&str>| {
        let mut item = json!({ "role": "user", "content": text });
        if let Some(id) = id {
            item["id"] = json!(id);
        }
        client.send("POST", &items, &[("idempotency-key", "k1")], json!({ "items": [item] }).to_string().as_bytes())
    };
    let first = send(&server.client, "a", Some("msg_mine")).ok();
    say(&server.client, &path, &["between"]);
    server.kill_and_restart();
    assert_eq!(send(&server.client, "a", Some("msg_mine")).ok(), first, "also with an id, which is there by now");
    assert_eq!(send(&server.client, "b", None).code(422), "key_reused");
    assert_eq!(ids(&server.client.get(&items).ok()).len(), 2);
    let long = "k".repeat(1_001);
    server.client.send("POST", &items, &[("idempotency-key", &long)], br#"{"items":[]}"#).code(400);
    let make = || {
        let body = json!({ "metadata": { "a": "b" }, "items": [{ "role": "user", "content": "x" }] }).to_string();
        server.client.send("POST", "/v1/conversations", &[("idempotency-key", "k1")], body.as_bytes()).ok()
    };
    let made = make();
    assert_eq!(make(), made);
    let made = format!("/v1/conversations/{}/items", made["id"].as_str().unwrap());
    assert_eq!(ids(&server.client.get(&made).ok()).len(), 1);
}

/// A key makes one conversation: with this metadata and these items.
#[test]
fn a_key_makes_no_other_conversation() {
    let mut server = Running::durable(&[]);
    let bodies = [
        json!({}),
        json!({ "metadata": { "a": "b" } }),
        json!({ "metadata": { "a": "c" } }),
        json!({ "items": [{ "role": "user", "content": "x" }] }),
        json!({ "items": [{ "role": "user", "content": "y" }] }),
        json!({ "metadata": { "a": "b" }, "items": [{ "role": "user", "content": "x" }] }),
        json!({ "metadata": { "a": "c" }, "items": [{ "role": "user", "content": "x" }] }),
    ];
    let make = |client: &Client, key: &str, body: &Value| {
        client.send("POST", "/v1/conversations", &[("idempotency-key", key)], body.to_string().as_bytes())
    };
    let mut made = Vec::new();
    for (at, body) in bodies.iter().enumerate() {
        let key = format!("k{at}");
        made.push(make(&server.client, &key, body).ok());
        for other in bodies.iter().filter(|other| *other != body) {
            assert_eq!(make(&server.client, &key, other).code(422), "key_reused", "{body} {other}");
        }
    }
    // What was done to it since is no matter.
    let updated = format!("/v1/conversations/{}", made[1]["id"].as_str().unwrap());
    server.client.post(&updated, &json!({ "metadata": { "a": "d" } })).ok();
    server.kill_and_restart();
    for (at, body) in bodies.iter().enumerate() {
        let again = make(&server.client, &format!("k{at}"), body).ok();
        assert_eq!(again["id"], made[at]["id"]);
        let path = format!("/v1/conversations/{}", again["id"].as_str().unwrap());
        let stored = ids(&server.client.get(&format!("{path}/items")).ok()).len();
        assert_eq!(stored, usize::from(body.get("items").is_some()), "{body}");
        if at != 1 {
            assert_eq!(server.client.get(&path).ok()["metadata"], body.get("metadata").cloned().unwrap_or(json!({})));
        }
    }
}

/// The forks of a deleted conversation keep its key from making another one, and the document says that it may happen.
#[test]
fn a_key_is_not_free_while_forks_are_left() {
    let server = Running::open();
    let client = &server.client;
    for body in [json!({}), json!({ "items": [{ "role": "user", "content": "x" }] })] {
        let make =
            || client.send("POST", "/v1/conversations", &[("idempotency-key", "k")], body.to_string().as_bytes());
        let delete = |id: &Value| client.delete(&format!("/v1/conversations/{}", id.as_str().unwrap())).ok();
        let id = make().ok()["id"].clone();
        let fork = format!("/api/v1/conversations/{}/fork", id.as_str().unwrap());
        let fork = client.post(&fork, &json!({ "at_seq": 1 })).ok();
        delete(&id);
        let refused = make();
        assert_eq!(refused.code(409), "shared_by_forks");
        let message = refused.json()["error"]["message"].to_string();
        assert!(message.contains("idempotency key k") && message.contains("use another key"), "{message}");
        client.delete(&format!("/api/v1/conversations/{}", fork["conversation"].as_str().unwrap())).ok();
        assert_eq!(make().ok()["id"], id);
        delete(&id);
    }
    let document = client.get("/openapi.json").ok();
    assert!(document["paths"]["/v1/conversations"]["post"]["responses"]["409"].is_object());
}

#[test]
fn a_body_may_be_absent_and_is_else_an_object() {
    let server = Running::open();
    let json = [("content-type", "application/json")];
    for (body, status) in [(&b""[..], 200), (b"{}", 200), (b"\r", 400), (b" \n", 400), (b"[]", 400), (b"null", 400)] {
        assert_eq!(server.client.send("POST", "/v1/conversations", &json, body).status, status, "{body:?}");
    }
}

#[test]
fn parts_have_a_type_and_texts_are_strings() {
    let server = Running::open();
    let path = conversation(&server.client);
    let add = |item: Value| server.client.post(&format!("{path}/items"), &json!({ "items": [item] }));
    for (part, param) in [
        (json!({ "text": "x" }), "type"),
        (json!({ "type": 1, "text": "x" }), "type"),
        (json!({ "type": "input_text" }), "text"),
        (json!({ "type": "input_text", "text": 1 }), "text"),
        (json!({ "type": "output_text", "text": null }), "text"),
        (json!({ "type": "refusal", "text": "x" }), "refusal"),
    ] {
        let items = [
            (json!({ "role": "user", "content": [part] }), "content"),
            (json!({ "type": "function_call_output", "call_id": "c", "output": [part] }), "output"),
            (json!({ "type": "reasoning", "summary": [part] }), "summary"),
        ];
        for (item, field) in items {
            let refused = add(item.clone()).of(400);
            assert_eq!(refused["error"]["param"], format!("items[0].{field}[0].{param}"), "{item}");
        }
    }
    add(json!({ "role": "user", "content": [{ "type": "of_next_year", "text": 1 }] })).ok();
}

#[test]
fn ids_are_unique_in_a_conversation() {
    let server = Running::open();
    let (client, path, other) = (&server.client, conversation(&server.client), conversation(&server.client));
    let reasoning = |id: &str| json!({ "type": "reasoning", "id": id, "summary": [] });
    let add = |path: &str, items: Value| client.post(&format!("{path}/items"), &json!({ "items": items }));
    add(&path, json!([reasoning("rs_1")])).ok();
    add(&other, json!([reasoning("rs_1")])).ok();
    for items in [json!([reasoning("rs_1")]), json!([reasoning("rs_2"), reasoning("rs_2")])] {
        let refused = add(&path, items).of(400);
        assert!(refused["error"]["message"].as_str().unwrap().starts_with("Duplicate item found with id rs_"));
    }
    assert_eq!(ids(&client.get(&format!("{path}/items")).ok()), ["rs_1"]);
    // Of those who give the same id at the same time one is first.
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (client, path) = (client.clone(), path.clone());
            let items = json!({ "items": [{ "type": "reasoning", "id": "rs_3", "summary": [] }] });
            std::thread::spawn(move || client.post(&format!("{path}/items"), &items).status)
        })
        .collect();
    let statuses: Vec<u16> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
}

#[test]
fn conversations_are_listed() {
    let server = Running::open();
    let client = &server.client;
    let mut made: Vec<String> =
        (0..45).map(|_| client.post("/v1/conversations", &json!({})).ok()["id"].as_str().unwrap().to_owned()).collect();
    made.reverse();
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let page = client.get(&format!("/v1/conversations?limit=10{after}")).ok();
        assert_eq!(page["data"][0]["object"], "conversation");
        seen.extend(ids(&page));
        if page["has_more"] == false {
            break;
        }
        after = format!("&after={}", page["last_id"].as_str().unwrap());
    }
    assert_eq!(seen, made);
    client.get("/v1/conversations?order=asc").code(400);
    client.get("/v1/conversations?after=conv_x").code(404);
    client.get("/v1/conversations?befor=x").code(400);
}

#[test]
fn many_add_at_once() {
    let server = Running::durable(&[]);
    let path = conversation(&server.client);
    let threads: Vec<_> = (0..8)
        .map(|thread| {
            let (client, path) = (server.client.clone(), path.clone());
            std::thread::spawn(move || {
                for at in 0..10 {
                    let (a, b) = (format!("{thread}.{at}.a"), format!("{thread}.{at}.b"));
                    say(&client, &path, &[&a, &b]);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let mut all = texts(&server.client.get(&format!("{path}/items?order=asc&limit=100")).ok());
    let second = texts(&server.client.get(&format!("{path}/items?order=desc&limit=60")).ok());
    all.extend(second.into_iter().rev());
    let all = &all[..100];
    // A request's items stand together, in their order.
    for pair in all.chunks(2) {
        assert_eq!(pair[0].trim_end_matches('a'), pair[1].trim_end_matches('b'), "{pair:?}");
    }
}
