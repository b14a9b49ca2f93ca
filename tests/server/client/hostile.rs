//! Bodies that no client sends: each is refused, and none is a failure of the server's.

use serde_json::{Value, json};

use super::frame;
use crate::common::running::Running;

/// The calls, each with JSON that it takes.
fn calls() -> Vec<(&'static str, Value)> {
    let (id, name) = ("0199a1b2-7c3d-7e4f-8a9b-0c1d2e3f4a5b", json!({ "name": "chat" }));
    let of = json!({ "id": id, "incarnation": u64::MAX });
    vec![
        ("hello", json!({ "protocol": 1 })),
        ("append", json!({ "name": name, "expected": "any", "key": null, "buffered": false })),
        ("begin", json!({ "name": name, "expected": { "at": 7 }, "key": "k", "buffered": true })),
        ("push", json!({ "writer": "x", "number": u64::MAX, "chunk_index": u32::MAX })),
        ("finish", json!({ "writer": "x" })),
        ("keep", json!({ "writers": ["x", ""] })),
        ("drop", json!({ "writers": ["x", ""] })),
        ("create", json!({ "name": name, "title": null, "tags": [""], "metadata": "{" })),
        ("change", json!({ "name": name, "to": { "rewind": { "to": u64::MAX } } })),
        ("fork", json!({ "parent": name, "at_seq": u64::MAX, "child": name })),
        ("delete", json!({ "name": name, "at": "1-x" })),
        ("redact", json!({ "name": name, "message": u64::MAX, "chunk": u32::MAX })),
        ("sync", json!({})),
        ("view", json!({ "name": name })),
        ("read", json!({ "of": of, "first": 0, "last": u64::MAX, "descending": true, "bytes": u64::MAX })),
        ("since", json!({ "of": of, "commit": u64::MAX })),
        ("item", json!({ "of": of, "item": "" })),
        ("conversations", json!({})),
        ("unfinished", json!({})),
        ("list", json!({ "owner": "", "limit": 0, "after": "x", "title": null, "tags": [] })),
        ("wait", json!({ "name": name, "incarnation": 0, "seq": u64::MAX, "milliseconds": 0 })),
        ("size", json!({})),
    ]
}

#[test]
fn what_no_client_sends_is_refused() {
    let server = Running::open();
    let docs = include_str!("../../../src/docs/http-api.md");
    for (call, asked) in calls() {
        assert!(docs.contains(&format!("`{call}`")), "{call} is not in the docs");
        let asked = asked.to_string();
        let whole = frame(asked.as_bytes(), b"no record");
        let mut bodies: Vec<Vec<u8>> = (0..whole.len()).step_by(7).map(|length| whole[..length].to_vec()).collect();
        bodies.extend([
            whole.clone(),
            frame(asked.as_bytes(), b""),
            frame(b"[]", b""),
            frame("[".repeat(100_000).as_bytes(), b""),
            frame(asked.replace("name", "Name").as_bytes(), b""),
            frame(asked.replace("18446744073709551615", "-1").as_bytes(), b""),
            [u8::MAX; 64].to_vec(),
        ]);
        for body in bodies {
            let answer = server.client.send("POST", &format!("/api/v1/log/{call}"), &[], &body);
            let shown = String::from_utf8_lossy(&body).chars().take(200).collect::<String>();
            assert!(answer.status < 500, "{call}: {shown:?}: {} {}", answer.status, answer.text());
            if answer.status != 200 {
                assert!(answer.json()["error"]["code"].is_string(), "{call}");
            }
        }
    }
    assert!(server.log().lines().all(|line| !line.contains("panicked")), "{}", server.log());
}
